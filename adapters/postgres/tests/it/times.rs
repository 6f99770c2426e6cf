//! Times in existing columns: exact to the microsecond, and every other content is refused.

use std::collections::BTreeMap;

use crate::support::{self, client, data, open, read, server, unique, write};
use mingle_model::{FieldType, Level, Ref, Time, Type, Value};
use mingle_store::{Address, Data, Read, StoreError, StoreSchema, ViolationKind, Write};
use mingle_store_postgres::{CollectionMapping, ObjectMapping, PostgresConfig};

const ZONED: u16 = 0;
const NAIVE: u16 = 1;
const SHORT: u16 = 2;
const SEEN: u16 = 3;
const NOTES: u16 = 4;

fn program() -> StoreSchema {
    let option = || FieldType::Register(Type::Option(Type::Time.into()));
    let fields = [
        ("zoned", option()),
        ("naive", option()),
        ("short", option()),
        ("seen", FieldType::Set(Type::Time)),
        ("notes", FieldType::Map(Type::Time, Type::String)),
    ];
    support::schema(Level::Linearizable, &[], &[("Event", Type::Time, &fields)])
}

fn mapping(table: &str) -> ObjectMapping {
    let of = |value: &str, entry: Option<&str>| CollectionMapping {
        table: format!("{table}_{}", if entry.is_some() { "notes" } else { "seen" }),
        key: vec!["event".into()],
        value: value.into(),
        entry: entry.map(str::to_owned),
        ..CollectionMapping::default()
    };
    ObjectMapping {
        table: table.into(),
        key: vec!["id".into()],
        fields: BTreeMap::from([
            ("seen".into(), of("at", None)),
            ("notes".into(), of("note", Some("at"))),
        ]),
        ..ObjectMapping::default()
    }
}

fn time(text: &str) -> Value {
    Value::Time(Time::parse(text).expect("a time"))
}

fn at(id: &str, field: u16) -> Address {
    Address { object: Ref::new("Event", time(id)), field }
}

const EVENT: &str = "2026-11-26T10:00:00.123457Z";

#[tokio::test]
async fn times_are_exact_to_the_microsecond() {
    let Some(url) = server().await else { return };
    let table = unique("times");
    let legacy = client(&url).await;
    let sql = format!(
        "CREATE TABLE {table} (id timestamptz PRIMARY KEY, zoned timestamptz, naive timestamp, \
         short timestamptz(3)); \
         CREATE TABLE {table}_seen (event timestamptz REFERENCES {table}, at timestamptz, PRIMARY KEY (event, at)); \
         CREATE TABLE {table}_notes (event timestamptz REFERENCES {table}, at timestamp, note text NOT NULL, \
         PRIMARY KEY (event, at)); \
         INSERT INTO {table} VALUES ('{EVENT}', '0044-03-15 12:00:00.000001+00 BC', '294246-12-31 23:59:59.999999'); \
         INSERT INTO {table}_seen VALUES ('{EVENT}', '{EVENT}'); \
         INSERT INTO {table}_notes VALUES ('{EVENT}', '1999-12-31 23:59:59.999999', 'one')"
    );
    legacy.batch_execute(&sql).await.expect("the tables are made");
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    config.objects = BTreeMap::from([("Event".into(), mapping(&table))]);
    let store = open(config, program()).await;

    let register = |value: Value| Data::Register(Some(Value::some(value)));
    let before_christ = Time::parse("0000-01-01T00:00:00Z").expect("a time");
    let Data::Register(Some(found)) = data(&*store, Read::Register(at(EVENT, ZONED))).await else {
        panic!("it is there");
    };
    let Value::Option(Some(found)) = found else { panic!("it holds a time") };
    let Value::Time(found) = *found else { panic!("{found}") };
    assert_eq!(found.micros().rem_euclid(1_000_000), 1);
    assert!(found < before_christ, "{found}");
    let seconds: i64 = legacy
        .query_one(
            &format!(
                "SELECT floor(extract(epoch FROM naive))::bigint FROM {table} WHERE id = '{EVENT}'"
            ),
            &[],
        )
        .await
        .expect("a row")
        .get(0);
    let last = Value::Time(Time::from_micros(seconds * 1_000_000 + 999_999));
    assert_eq!(data(&*store, Read::Register(at(EVENT, NAIVE))).await, register(last));

    // A time in a set or a map is found, and is not inserted a second time.
    let one = time("1999-12-31T23:59:59.999999Z");
    write(
        &*store,
        vec![
            Write::Insert(at(EVENT, SEEN), time(EVENT)),
            Write::Put(at(EVENT, NOTES), one.clone(), "two".into()),
        ],
    )
    .await
    .expect("a commit");
    let seen = Data::Values(vec![time(EVENT)]);
    assert_eq!(data(&*store, Read::Elements(at(EVENT, SEEN))).await, seen);
    assert_eq!(data(&*store, Read::Contains(at(EVENT, SEEN), time(EVENT))).await, Data::Bool(true));
    let notes = Data::Entries(vec![(one, "two".into())]);
    assert_eq!(data(&*store, Read::Entries(at(EVENT, NOTES))).await, notes);

    for moment in [
        "0001-01-01T00:00:00.000001Z",
        "1969-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59.999999Z",
    ] {
        for field in [ZONED, NAIVE] {
            let written = Write::Assign(at(moment, field), Value::some(time(moment)));
            write(&*store, vec![written]).await.expect("a commit");
            assert_eq!(
                data(&*store, Read::Register(at(moment, field))).await,
                register(time(moment))
            );
        }
    }
    for (field, micros, words) in [
        (SHORT, 1, "keeps 3 digits"),
        (ZONED, i64::MIN, "beyond what timestamptz holds"),
        (NAIVE, i64::MIN, "beyond what timestamptz holds"),
    ] {
        let value = Value::some(Value::Time(Time::from_micros(micros)));
        let refused = write(&*store, vec![Write::Assign(at(EVENT, field), value)]).await;
        let error = refused.expect_err("it does not fit");
        assert!(error.to_string().contains(words), "{error}");
        let StoreError::Violated { violation, .. } = error else { panic!("{error}") };
        assert_eq!(violation.kind, ViolationKind::Range, "{}", violation.message);
    }
    let short = Write::Assign(at(EVENT, SHORT), Value::some(time("2026-11-26T10:00:00.123Z")));
    write(&*store, vec![short]).await.expect("it fits");
}

#[tokio::test]
async fn infinity_is_an_error_of_its_column_alone() {
    let Some(url) = server().await else { return };
    let table = unique("times");
    let sql = format!(
        "CREATE TABLE {table} (id timestamptz PRIMARY KEY, zoned timestamptz, naive timestamp, short timestamptz(3)); \
         CREATE TABLE {table}_seen (event timestamptz, at timestamptz, PRIMARY KEY (event, at)); \
         CREATE TABLE {table}_notes (event timestamptz, at timestamp, note text NOT NULL, PRIMARY KEY (event, at)); \
         INSERT INTO {table} VALUES ('2000-01-01Z', 'infinity', '-infinity', '2000-01-01Z'); \
         INSERT INTO {table}_seen VALUES ('2000-01-01Z', 'infinity'); \
         INSERT INTO {table}_notes VALUES ('2000-01-01Z', '-infinity', 'never')"
    );
    client(&url).await.batch_execute(&sql).await.expect("the tables are made");
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    config.objects = BTreeMap::from([("Event".into(), mapping(&table))]);
    let store = open(config, program()).await;
    let id = "2000-01-01T00:00:00Z";
    for (one, words) in [
        (Read::Register(at(id, ZONED)), ["column \"zoned\" holds infinity", ""]),
        (Read::Register(at(id, NAIVE)), ["column \"naive\" holds -infinity", ""]),
        (Read::Elements(at(id, SEEN)), ["column \"at\" holds infinity", "_seen"]),
        (Read::Entries(at(id, NOTES)), ["column \"at\" holds -infinity", "_notes"]),
    ] {
        let error = read(&*store, std::slice::from_ref(&one)).await.expect_err("it is no time");
        let told = error.to_string();
        assert!(words.iter().all(|words| told.contains(words)), "{one:?}: {told}");
        assert!(told.contains(&table) && told.contains(id), "{told} names no table and key");
    }
    let short = Data::Register(Some(Value::some(time(id))));
    assert_eq!(data(&*store, Read::Register(at(id, SHORT))).await, short);
}
