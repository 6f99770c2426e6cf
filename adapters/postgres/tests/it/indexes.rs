//! Indexes over existing tables: what they give is what SQL by hand gives, and the examination says where the
//! database has none. The conformance suite has those of Mingle's own tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::support::{self, data, open, server, unique};
use mingle_model::random::Random;
use mingle_model::{BuiltinQuery, FieldType, IndexRead, Level, Name, Ref, Type, Value};
use mingle_store::{Data, Read, StoreOperation, StoreSchema};
use mingle_store_postgres::{ObjectMapping, PostgresConfig, examine};
use tokio_postgres::Client;

/// Returns the queries of an index with fields of these types.
fn queries(index: &str, fields: &[(&str, Type)]) -> BTreeMap<Name, StoreOperation> {
    let names: Vec<Name> = fields.iter().map(|(name, _)| Name::from(*name)).collect();
    let types: Vec<Type> = fields.iter().map(|(_, found)| found.clone()).collect();
    let mut all = BTreeMap::new();
    for (equal, counts) in (0..=fields.len()).flat_map(|equal| [(equal, false), (equal, true)]) {
        let read = IndexRead {
            object: "Seat".into(),
            index: index.into(),
            fields: names.clone(),
            equal,
            counts,
            is_unique: false,
        };
        let operation = StoreOperation {
            is_command: false,
            parameters: read.parameters(&types),
            result: Some(read.result()),
            body: None,
            builtin: Some(BuiltinQuery::Index(read)),
        };
        all.insert(format!("{index}/{equal}/{counts}").into(), operation);
    }
    all
}

/// Returns a program of seats in a hall; the guest of a seat is optional.
fn program() -> StoreSchema {
    let option = |inner: Type| FieldType::Register(Type::Option(Arc::new(inner)));
    let seat = [
        ("hall", FieldType::Register(Type::String)),
        ("price", FieldType::Register(Type::Decimal)),
        ("guest", option(Type::Ref("Guest".into()))),
    ];
    let place: &[(&str, Type)] = &[("row", Type::Int), ("letter", Type::String)];
    let mut schema = support::schema(
        Level::Linearizable,
        &[("Place", place)],
        &[("Seat", Type::Struct("Place".into()), &seat), ("Guest", Type::String, &[])],
    );
    schema.operations = queries("prices", &[("hall", Type::String), ("price", Type::Decimal)]);
    schema.operations.extend(queries("guests", &[("guest", Type::Ref("Guest".into()))]));
    schema
}

async fn seats() -> Option<(PostgresConfig, String, Client)> {
    let url = server().await?;
    let client = support::client(&url).await;
    let own = unique("hall");
    let sql = format!(
        "CREATE SCHEMA {own}; \
         CREATE TABLE {own}.guests (name text PRIMARY KEY); \
         INSERT INTO {own}.guests VALUES ('ada'), ('bob'); \
         CREATE TABLE {own}.seats (row_number integer NOT NULL, letter text COLLATE \"C\" NOT NULL, \
           hall text COLLATE \"C\" NOT NULL, price numeric(8, 2), guest text REFERENCES {own}.guests, \
           PRIMARY KEY (row_number, letter))"
    );
    client.batch_execute(&sql).await.expect("the tables");
    let table = |name: &str, key: &[&str]| ObjectMapping {
        table: format!("{own}.{name}"),
        key: key.iter().map(ToString::to_string).collect(),
        ..ObjectMapping::default()
    };
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    config.objects = BTreeMap::from([
        ("Seat".into(), table("seats", &["row_number", "letter"])),
        ("Guest".into(), table("guests", &["name"])),
    ]);
    Some((config, own, client))
}

fn ask(operation: &str, arguments: Vec<Value>) -> Read {
    Read::Query { operation: operation.into(), arguments }
}

fn seat(row: i64, letter: &str) -> Value {
    let parts = [Value::Int(row), Value::from(letter)];
    Value::Ref(Ref::new("Seat", Value::Struct(Arc::from(parts))))
}

/// Returns the seats that SQL by hand gives.
async fn by_hand(client: &Client, own: &str, rest: &str) -> Value {
    let sql = format!("SELECT row_number::bigint, letter FROM {own}.seats {rest}");
    let rows = client.query(&sql, &[]).await.expect("SQL by hand");
    Value::list(rows.iter().map(|row| seat(row.get(0), row.get(1))))
}

#[tokio::test]
async fn an_index_of_an_existing_table_gives_what_sql_gives() {
    let Some((config, own, client)) = seats().await else { return };
    let mut random = Random::new(7);
    let mut rows = String::new();
    for row in 0..20 {
        for letter in ["A", "B", "a"] {
            let price = match random.below(5) {
                0 => "NULL".to_owned(),
                cents => format!("{}.5", cents * 10),
            };
            let hall = random.pick(&["north", "south"]);
            let guest = random.pick(&["'ada'", "'bob'", "NULL"]);
            let comma = if rows.is_empty() { "" } else { ", " };
            write!(rows, "{comma}({row}, '{letter}', '{hall}', {price}, {guest})").expect("text");
        }
    }
    client
        .batch_execute(&format!("INSERT INTO {own}.seats VALUES {rows}"))
        .await
        .expect("the rows");
    let store = open(config, program()).await;
    let price = |text: &str| Value::some(Value::Decimal(text.parse().expect("a decimal")));
    let guest = |name: &str| Value::Ref(Ref::new("Guest", Value::from(name)));
    let (north, yes, no) = (Value::from("north"), Value::Bool(true), Value::Bool(false));
    let order = "ORDER BY price, row_number, letter LIMIT 7";
    let back = "ORDER BY price DESC, row_number DESC, letter DESC LIMIT 7";
    let keys = "ORDER BY row_number, letter LIMIT 7";
    let there = "hall = 'north' AND price IS NOT NULL";
    for (operation, arguments, sql) in [
        (
            "prices/1/false",
            vec![north.clone(), Value::NONE, Value::NONE, no.clone(), Value::Int(7)],
            format!("WHERE {there} {order}"),
        ),
        (
            "prices/1/false",
            vec![north.clone(), price("20.5"), price("40.50"), yes.clone(), Value::Int(7)],
            format!("WHERE {there} AND price >= 20.5 AND price < 40.5 {back}"),
        ),
        (
            "prices/0/false",
            vec![Value::some("o".into()), Value::NONE, no.clone(), Value::Int(7)],
            "WHERE hall >= 'o' AND price IS NOT NULL ORDER BY hall, price, row_number, letter LIMIT 7"
                .to_owned(),
        ),
        (
            "prices/2/false",
            vec![
                north.clone(),
                Value::Decimal("10.5".parse().expect("a decimal")),
                Value::some(seat(2, "B")),
                no.clone(),
                Value::Int(7),
            ],
            format!(
                "WHERE hall = 'north' AND price = 10.5 AND (row_number, letter) > (2, 'B') {keys}"
            ),
        ),
        (
            "guests/1/false",
            vec![guest("ada"), Value::some(seat(9, "A")), yes.clone(), Value::Int(7)],
            "WHERE guest = 'ada' AND (row_number, letter) < (9, 'A') ORDER BY row_number DESC, letter DESC LIMIT 7"
                .to_owned(),
        ),
    ] {
        let found = data(&*store, ask(operation, arguments)).await;
        let expected = by_hand(&client, &own, &sql).await;
        let Value::List(items) = &expected else { panic!("no list") };
        assert!(!items.is_empty(), "{sql} gives something");
        assert_eq!(found, Data::Result(expected), "{operation}: {sql}");
    }
    let sql = format!("SELECT count(*) FROM {own}.seats WHERE guest = 'bob'");
    let counted: i64 = client.query_one(&sql, &[]).await.expect("a count").get(0);
    let count = |most: i64| ask("guests/1/true", vec![guest("bob"), Value::NONE, Value::Int(most)]);
    assert_eq!(data(&*store, count(1_000)).await, Data::Result(Value::Int(counted)));
    assert_eq!(data(&*store, count(2)).await, Data::Result(Value::Int(2)));
}

#[tokio::test]
async fn a_value_that_no_row_can_hold_is_an_error_that_names_the_column() {
    let Some((config, ..)) = seats().await else { return };
    let store = open(config, program()).await;
    let third = Value::Decimal("0.333".parse().expect("a decimal"));
    let arguments =
        vec![Value::from("north"), third, Value::NONE, Value::Bool(false), Value::Int(1)];
    let read = support::read(&*store, &[ask("prices/2/false", arguments)]).await;
    let why = read.expect_err("it does not fit").to_string();
    assert!(why.contains("price") && why.contains("numeric(8, 2)"), "{why}");
}

#[tokio::test]
async fn the_examination_says_where_the_database_has_no_index() {
    let Some((config, own, client)) = seats().await else { return };
    let world = support::RealWorld::make();
    let warnings = async || {
        let found = examine(config.clone(), program(), world.clone()).await;
        let texts = found.findings.iter().filter(|finding| finding.subject == "index");
        texts.map(|finding| finding.text.clone()).collect::<Vec<_>>()
    };
    let missing = warnings().await;
    let is_missing = |text: &&String| text.contains("CREATE INDEX ON");
    assert_eq!(missing.iter().filter(is_missing).count(), 2, "{missing:?}");
    let sql = format!(
        "CREATE INDEX ON {own}.seats (hall, price, letter); CREATE INDEX ON {own}.seats (guest) WHERE guest > 'a'"
    );
    client.batch_execute(&sql).await.expect("the indexes");
    let left = warnings().await;
    // An index of some of the rows does not do.
    let listed: Vec<&String> = left.iter().filter(is_missing).collect();
    assert!(matches!(listed[..], [only] if only.contains("(guest)")), "{left:?}");
}
