//! Slices of maps in existing tables, for each type of column: those that the server orders as the language does, and
//! those that are read as a whole.

use std::collections::BTreeMap;

use crate::support::{self, client, data, open, server, unique, write};
use mingle_model::{Date, Decimal, FieldType, Level, Ref, Time, Type, Value};
use mingle_store::{Address, Data, KeyRange, Read, StoreSchema, Write};
use mingle_store_postgres::{CollectionMapping, ObjectMapping, PostgresConfig};

fn program(entry: &Type) -> StoreSchema {
    let fields = [("marks", FieldType::Map(entry.clone(), Type::Int))];
    support::schema(Level::Linearizable, &[], &[("Page", Type::String, &fields)])
}

fn config(url: String, table: &str) -> PostgresConfig {
    let marks = CollectionMapping {
        table: format!("{table}_marks"),
        key: vec!["page".into()],
        value: "n".into(),
        entry: Some("mark".into()),
        ..CollectionMapping::default()
    };
    let mapping = ObjectMapping {
        table: table.into(),
        key: vec!["id".into()],
        fields: BTreeMap::from([("marks".into(), marks)]),
        ..ObjectMapping::default()
    };
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    config.objects = BTreeMap::from([("Page".into(), mapping)]);
    config
}

/// Columns with their types, and values that their default order would place otherwise, where there are some.
fn cases() -> Vec<(&'static str, Type, Vec<Value>)> {
    let texts = || ["a", "B", "ä", "Z", "ab", "~"].map(Value::from).to_vec();
    let numbers = [-3, 0, 7, 12, 100].map(Value::Int).to_vec();
    let decimal = |text: &str| Value::Decimal(text.parse::<Decimal>().expect("a decimal"));
    let date = |text: &str| Value::Date(Date::parse(text).expect("a date"));
    let time = |text: &str| Value::Time(Time::parse(text).expect("a time"));
    let bytes = |bytes: &[u8]| Value::Bytes(bytes.into());
    let times = ["1969-12-31T23:59:59.5Z", "2020-01-01T00:00:00Z", "2020-06-01T00:00:00Z"];
    vec![
        ("text", Type::String, texts()),
        ("varchar(9)", Type::String, texts()),
        ("char(4)", Type::String, ["a", "B", "ab", "~"].map(Value::from).to_vec()),
        (
            "uuid",
            Type::String,
            [
                "0e37df36-f698-11e6-8dd4-cb9ced3df976",
                "ae37df36-f698-11e6-8dd4-cb9ced3df976",
                "5e37df36-f698-11e6-8dd4-cb9ced3df976",
            ]
            .map(Value::from)
            .to_vec(),
        ),
        ("smallint", Type::Int, numbers.clone()),
        ("bigint", Type::Int, numbers),
        ("boolean", Type::Bool, vec![Value::Bool(false), Value::Bool(true)]),
        ("bytea", Type::Bytes, vec![bytes(b"b"), bytes(b""), bytes(b"\xff"), bytes(b"a\0")]),
        ("numeric(9, 2)", Type::Decimal, ["-1.5", "10", "9.25", "0"].map(decimal).to_vec()),
        (
            "date",
            Type::Date,
            ["0001-01-01", "1969-12-31", "2026-01-31", "+10000-01-01"].map(date).to_vec(),
        ),
        ("timestamptz", Type::Time, times.map(time).to_vec()),
        ("timestamp", Type::Time, times.map(time).to_vec()),
    ]
}

/// Returns ranges with all pairs of these bounds, and without.
fn ranges(keys: &[Value]) -> Vec<KeyRange> {
    let bounds = || std::iter::once(None).chain(keys.iter().cloned().map(Some));
    let mut found = Vec::new();
    for (from, before) in
        bounds().flat_map(|from| bounds().map(move |before| (from.clone(), before)))
    {
        for (count, is_after, is_last) in [
            (1, false, false),
            (2, true, false),
            (2, false, true),
            (9, true, true),
            (0, false, false),
        ] {
            let (from, before) = (from.clone(), before.clone());
            found.push(KeyRange { from, is_after, before, count, is_last });
        }
    }
    found
}

#[tokio::test]
async fn a_slice_is_the_same_as_of_the_whole_map() {
    let Some(url) = server().await else { return };
    let legacy = client(&url).await;
    for (column, entry, keys) in cases() {
        let table = unique("slices");
        let made = format!(
            "CREATE TABLE {table} (id text PRIMARY KEY); CREATE TABLE {table}_marks \
             (page text, mark {column}, n bigint NOT NULL, PRIMARY KEY (page, mark)); \
             INSERT INTO {table} VALUES ('p'), ('q')"
        );
        legacy.batch_execute(&made).await.expect("the tables are made");
        let store = open(config(url.clone(), &table), program(&entry)).await;
        let marks = |page: &str| Address { object: Ref::new("Page", Value::from(page)), field: 0 };
        let puts = keys.iter().zip(1..).flat_map(|(key, n)| {
            ["p", "q"].map(|page| Write::Put(marks(page), key.clone(), Value::Int(n)))
        });
        write(&*store, puts.collect()).await.expect("a commit");
        let Data::Entries(all) = data(&*store, Read::Entries(marks("p"))).await else {
            panic!("{column}: no entries")
        };
        assert_eq!(all.len(), keys.len(), "{column}");
        for range in ranges(&keys) {
            let expected = range.slice(all.iter().map(|(key, value)| (key, value)));
            let slice = Read::MapSlice { address: marks("p"), range };
            assert_eq!(
                data(&*store, slice.clone()).await,
                Data::Entries(expected),
                "{column}: {slice:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_bound_that_the_column_cannot_hold_is_one_all_the_same() {
    let Some(url) = server().await else { return };
    let table = unique("slices");
    let made = format!(
        "CREATE TABLE {table} (id text PRIMARY KEY); CREATE TABLE {table}_marks \
         (page text, mark smallint, n bigint NOT NULL, PRIMARY KEY (page, mark)); \
         INSERT INTO {table} VALUES ('p'); INSERT INTO {table}_marks VALUES ('p', 7, 1), ('p', -7, 2)"
    );
    client(&url).await.batch_execute(&made).await.expect("the tables are made");
    let store = open(config(url, &table), program(&Type::Int)).await;
    let address = Address { object: Ref::new("Page", Value::from("p")), field: 0 };
    let bound = |number: i64| Some(Value::Int(number));
    let (from, before) = (bound(i64::MIN), bound(i64::MAX));
    let range = KeyRange { from, before, ..KeyRange::first(9) };
    let all = vec![(Value::Int(-7), Value::Int(2)), (Value::Int(7), Value::Int(1))];
    assert_eq!(data(&*store, Read::MapSlice { address, range }).await, Data::Entries(all));
}
