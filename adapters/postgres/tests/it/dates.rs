//! Dates in existing columns: every day that the column holds, and an error for any other content.

use std::collections::BTreeMap;

use crate::support::{self, client, data, open, read, server, unique, write};
use mingle_model::{Date, FieldType, Level, Ref, Type, Value};
use mingle_store::{Address, Data, Read, StoreError, StoreSchema, ViolationKind, Write};
use mingle_store_postgres::{CollectionMapping, ObjectMapping, PostgresConfig};

const HELD: u16 = 0;
const SEEN: u16 = 1;
const NOTES: u16 = 2;

fn program() -> StoreSchema {
    let fields = [
        ("held", FieldType::Register(Type::Option(Type::Date.into()))),
        ("seen", FieldType::Set(Type::Date)),
        ("notes", FieldType::Map(Type::Date, Type::String)),
    ];
    support::schema(Level::Linearizable, &[], &[("Event", Type::Date, &fields)])
}

fn config(url: String, table: &str) -> PostgresConfig {
    let of = |kind: &str, value: &str, entry: Option<&str>| CollectionMapping {
        table: format!("{table}_{kind}"),
        key: vec!["event".into()],
        value: value.into(),
        entry: entry.map(str::to_owned),
        ..CollectionMapping::default()
    };
    let mapping = ObjectMapping {
        table: table.into(),
        key: vec!["id".into()],
        fields: BTreeMap::from([
            ("seen".into(), of("seen", "at", None)),
            ("notes".into(), of("notes", "note", Some("at"))),
        ]),
        ..ObjectMapping::default()
    };
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    config.objects = BTreeMap::from([("Event".into(), mapping)]);
    config
}

fn tables(table: &str, rows: &str) -> String {
    format!(
        "CREATE TABLE {table} (id date PRIMARY KEY, held date); \
         CREATE TABLE {table}_seen (event date, at date, PRIMARY KEY (event, at)); \
         CREATE TABLE {table}_notes (event date, at date, note text NOT NULL, PRIMARY KEY (event, at)); {rows}"
    )
}

fn date(text: &str) -> Value {
    Value::Date(Date::parse(text).expect("a date"))
}

fn at(id: &str, field: u16) -> Address {
    Address { object: Ref::new("Event", date(id)), field }
}

const EVENT: &str = "2026-01-31";

#[tokio::test]
async fn dates_are_those_of_the_database() {
    let Some(url) = server().await else { return };
    let table = unique("dates");
    let rows = format!(
        "INSERT INTO {table} VALUES ('{EVENT}', '0044-03-15 BC'); INSERT INTO {table}_seen VALUES ('{EVENT}', '{EVENT}')"
    );
    let legacy = client(&url).await;
    legacy.batch_execute(&tables(&table, &rows)).await.expect("the tables are made");
    let store = open(config(url, &table), program()).await;
    let register = |value: Value| Data::Register(Some(Value::some(value)));
    // The year 44 BC is the year -43.
    assert_eq!(data(&*store, Read::Register(at(EVENT, HELD))).await, register(date("-0043-03-15")));

    let writes = vec![
        Write::Insert(at(EVENT, SEEN), date(EVENT)),
        Write::Insert(at(EVENT, SEEN), date("1969-12-31")),
        Write::Put(at(EVENT, NOTES), date("1999-12-31"), "last".into()),
    ];
    write(&*store, writes).await.expect("a commit");
    let seen = Data::Values(vec![date("1969-12-31"), date(EVENT)]);
    assert_eq!(data(&*store, Read::Elements(at(EVENT, SEEN))).await, seen);
    let notes = Data::Entries(vec![(date("1999-12-31"), "last".into())]);
    assert_eq!(data(&*store, Read::Entries(at(EVENT, NOTES))).await, notes);

    for (day, shown) in [
        ("-4713-11-24", "4714-11-24 BC"),
        ("0000-12-31", "0001-12-31 BC"),
        ("0001-01-01", "0001-01-01"),
        ("1999-12-31", "1999-12-31"),
        ("2000-02-29", "2000-02-29"),
        ("+10000-01-01", "10000-01-01"),
        ("+5874897-12-31", "5874897-12-31"),
    ] {
        let written = Write::Assign(at(day, HELD), Value::some(date(day)));
        write(&*store, vec![written]).await.expect("a commit");
        assert_eq!(data(&*store, Read::Register(at(day, HELD))).await, register(date(day)));
        let sql = format!("SELECT held::text FROM {table} WHERE id = '{shown}'");
        let found: String = legacy.query_one(&sql, &[]).await.expect("a row").get(0);
        assert_eq!(found, shown);
    }
    for day in ["-4713-11-23", "+5874898-01-01", "+5881580-07-11", "-5877641-06-23"] {
        let value = Value::some(date(day));
        let refused = write(&*store, vec![Write::Assign(at(EVENT, HELD), value)]).await;
        let error = refused.expect_err("it does not fit");
        assert!(error.to_string().contains("beyond what date holds"), "{error}");
        let StoreError::Violated { violation, .. } = error else { panic!("{error}") };
        assert_eq!(violation.kind, ViolationKind::Range, "{}", violation.message);
    }
}

#[tokio::test]
async fn infinity_is_no_date() {
    let Some(url) = server().await else { return };
    let table = unique("dates");
    let rows = format!(
        "INSERT INTO {table} VALUES ('{EVENT}', 'infinity'); INSERT INTO {table}_seen VALUES ('{EVENT}', '-infinity')"
    );
    client(&url).await.batch_execute(&tables(&table, &rows)).await.expect("the tables are made");
    let store = open(config(url, &table), program()).await;
    for (one, words) in [
        (Read::Register(at(EVENT, HELD)), "column \"held\" holds infinity"),
        (Read::Elements(at(EVENT, SEEN)), "column \"at\" holds -infinity"),
    ] {
        let error = read(&*store, std::slice::from_ref(&one)).await.expect_err("it is no date");
        let told = error.to_string();
        assert!(told.contains(words) && told.contains(&table) && told.contains(EVENT), "{told}");
    }
}
