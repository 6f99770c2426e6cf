//! Decimals in existing columns: exact, never rounded, and an error for any content that is no decimal.

use std::collections::BTreeMap;

use crate::support::{self, client, data, open, read, server, unique, write};
use mingle_model::{Decimal, FieldType, Level, Ref, Type, Value};
use mingle_store::{Address, Data, Read, StoreError, StoreSchema, ViolationKind, Write};
use mingle_store_postgres::{CollectionMapping, ObjectMapping, PostgresConfig};

const PRICE: u16 = 0;
const ANY: u16 = 1;
const HUNDREDS: u16 = 2;
const SEEN: u16 = 3;
const NOTES: u16 = 4;

fn program() -> StoreSchema {
    let option = || FieldType::Register(Type::Option(Type::Decimal.into()));
    let fields = [
        ("price", option()),
        ("any", option()),
        ("hundreds", option()),
        ("seen", FieldType::Set(Type::Decimal)),
        ("notes", FieldType::Map(Type::Decimal, Type::String)),
    ];
    support::schema(Level::Linearizable, &[], &[("Item", Type::Decimal, &fields)])
}

fn config(url: String, table: &str) -> PostgresConfig {
    let of = |kind: &str, value: &str, entry: Option<&str>| CollectionMapping {
        table: format!("{table}_{kind}"),
        key: vec!["item".into()],
        value: value.into(),
        entry: entry.map(str::to_owned),
        ..CollectionMapping::default()
    };
    let mapping = ObjectMapping {
        table: table.into(),
        key: vec!["id".into()],
        columns: BTreeMap::from([("any".into(), vec!["any value".into()])]),
        fields: BTreeMap::from([
            ("seen".into(), of("seen", "n", None)),
            ("notes".into(), of("notes", "note", Some("n"))),
        ]),
    };
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    config.objects = BTreeMap::from([("Item".into(), mapping)]);
    config
}

fn tables(table: &str, rows: &str) -> String {
    format!(
        "CREATE DOMAIN {table}_price AS numeric(4, 2); \
         CREATE TABLE {table} (id numeric PRIMARY KEY, price {table}_price, \"any value\" numeric, hundreds numeric(3, -2)); \
         CREATE TABLE {table}_seen (item numeric, n numeric, PRIMARY KEY (item, n)); \
         CREATE TABLE {table}_notes (item numeric, n numeric(10, 3), note text NOT NULL, PRIMARY KEY (item, n)); {rows}"
    )
}

fn decimal(text: &str) -> Value {
    Value::Decimal(Decimal::parse(text).expect("a decimal"))
}

fn at(id: &str, field: u16) -> Address {
    Address { object: Ref::new("Item", decimal(id)), field }
}

/// Reads a register, and shows it with its zeros.
async fn shown(store: &dyn mingle_store::DataStore, field: u16) -> String {
    match data(store, Read::Register(at("1.5", field))).await {
        Data::Register(Some(value)) => value.to_string(),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn decimals_are_those_of_the_database() {
    let Some(url) = server().await else { return };
    let table = unique("decimals");
    let rows = format!(
        "INSERT INTO {table} VALUES (1.50, 99.90, -0.00012000, 12300); INSERT INTO {table}_seen VALUES (1.5, 7.0)"
    );
    let legacy = client(&url).await;
    legacy.batch_execute(&tables(&table, &rows)).await.expect("the tables are made");
    let store = open(config(url, &table), program()).await;
    // The key 1.5 is the row with 1.50, and numbers keep their zeros.
    assert_eq!(shown(&*store, PRICE).await, "some(99.90)");
    assert_eq!(shown(&*store, ANY).await, "some(-0.00012000)");
    assert_eq!(shown(&*store, HUNDREDS).await, "some(12300)");

    let writes = vec![
        Write::Insert(at("1.50", SEEN), decimal("7")),
        Write::Insert(at("1.5", SEEN), decimal("-1.10")),
        Write::Put(at("1.5", NOTES), decimal("2.5"), "one".into()),
        Write::Put(at("1.5", NOTES), decimal("2.500"), "two".into()),
    ];
    write(&*store, writes).await.expect("a commit");
    let seen = Data::Values(vec![decimal("-1.1"), decimal("7")]);
    assert_eq!(data(&*store, Read::Elements(at("1.5", SEEN))).await, seen);
    let notes = Data::Entries(vec![(decimal("2.5"), "two".into())]);
    assert_eq!(data(&*store, Read::Entries(at("1.5", NOTES))).await, notes);

    for text in [
        "0.000",
        "-19.90",
        "99999999999999999999999999999999999999",
        "-0.00000000000000000000000000000000000001",
        "1234567890123456789.0123456789012345678",
        "10000",
        "0.0001",
    ] {
        let value = Value::some(decimal(text));
        write(&*store, vec![Write::Assign(at("1.5", ANY), value)]).await.expect("a commit");
        assert_eq!(shown(&*store, ANY).await, format!("some({text})"));
        let sql = format!("SELECT \"any value\"::text FROM {table}");
        let found: String = legacy.query_one(&sql, &[]).await.expect("a row").get(0);
        assert_eq!(found, text);
    }
    for (field, text) in [
        (PRICE, "0.001"),
        (PRICE, "-99.999"),
        (PRICE, "100"),
        (HUNDREDS, "150"),
        (HUNDREDS, "0.5"),
        (HUNDREDS, "100000"),
    ] {
        let value = Value::some(decimal(text));
        let refused = write(&*store, vec![Write::Assign(at("1.5", field), value)]).await;
        let error = refused.expect_err("it would be rounded");
        assert!(error.to_string().contains("cannot hold"), "{error}");
        let StoreError::Violated { violation, .. } = error else { panic!("{error}") };
        assert_eq!(violation.kind, ViolationKind::Range, "{}", violation.message);
    }
    for (field, text) in [(PRICE, "-99.99"), (PRICE, "1.5000"), (HUNDREDS, "99900.0")] {
        let value = Value::some(decimal(text));
        write(&*store, vec![Write::Assign(at("1.5", field), value)]).await.expect("it fits");
    }
}

#[tokio::test]
async fn what_is_no_decimal_is_an_error_of_its_column() {
    let Some(url) = server().await else { return };
    let table = unique("decimals");
    let rows = format!(
        "INSERT INTO {table} VALUES (1.5, NULL, 'NaN', NULL), (2, NULL, 'Infinity', NULL), (3, NULL, 1e60, NULL); \
         INSERT INTO {table}_seen VALUES (1.5, 'NaN')"
    );
    client(&url).await.batch_execute(&tables(&table, &rows)).await.expect("the tables are made");
    let store = open(config(url, &table), program()).await;
    for (id, one, words) in [
        ("1.5", Read::Register(at("1.5", ANY)), "column \"any value\" holds NaN"),
        ("2", Read::Register(at("2", ANY)), "column \"any value\" holds infinity"),
        (
            "3",
            Read::Register(at("3", ANY)),
            "column \"any value\" holds a number of more than 38 digits",
        ),
        ("1.5", Read::Elements(at("1.5", SEEN)), "column \"n\" holds NaN"),
    ] {
        let error = read(&*store, std::slice::from_ref(&one)).await.expect_err("it is no decimal");
        let told = error.to_string();
        assert!(told.contains(words) && told.contains(&table) && told.contains(id), "{told}");
    }
    assert_eq!(shown(&*store, PRICE).await, "none");
}
