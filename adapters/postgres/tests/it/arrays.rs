//! Arrays and `real` in existing columns: read and written exactly, and an error for any content that is no list.

use std::collections::BTreeMap;

use crate::support::{self, client, data, open, read, server, unique, write};
use mingle_model::{Date, FieldType, Level, Ref, Time, Type, Value};
use mingle_store::{Address, Data, Read, StoreError, StoreSchema, Write};
use mingle_store_postgres::{ObjectMapping, PostgresConfig};

/// The fields, with the types of their columns: `flags` (0) to `price` (6).
const COLUMNS: &str = "flags boolean[], small smallint[], whole bigint[], parts double precision[], texts varchar(9)[], \
                       moods MOOD[] NOT NULL DEFAULT '{}', price real";

fn program() -> StoreSchema {
    let list = |items: Type| Type::List(items.into());
    let option = |inner: Type| FieldType::Register(Type::Option(inner.into()));
    let fields = [
        ("flags", option(list(Type::Bool))),
        ("small", option(list(Type::Int))),
        ("whole", option(list(Type::Int))),
        ("parts", option(list(Type::Float))),
        ("texts", option(list(Type::String))),
        ("moods", FieldType::Register(list(Type::String))),
        ("price", option(Type::Float)),
    ];
    support::schema(Level::Linearizable, &[], &[("Item", Type::Int, &fields)])
}

fn at(id: i64, field: u16) -> Address {
    Address { object: Ref::new("Item", Value::Int(id)), field }
}

/// Makes a table, and opens it as `Item` of a program.
async fn made(
    url: &str,
    table: String,
    sql: &str,
    program: StoreSchema,
) -> (std::sync::Arc<mingle_store_postgres::Postgres>, String) {
    client(url).await.batch_execute(sql).await.expect("the table is made");
    let mapping =
        ObjectMapping { table: table.clone(), key: vec!["id".into()], ..ObjectMapping::default() };
    let mut config = PostgresConfig::at(url.to_owned());
    config.schema = Some(unique("own"));
    config.objects = BTreeMap::from([("Item".into(), mapping)]);
    (open(config, program).await, table)
}

async fn store(url: &str, rows: &str) -> (std::sync::Arc<mingle_store_postgres::Postgres>, String) {
    let table = unique("arrays");
    let columns = COLUMNS.replace("MOOD", &format!("{table}_mood"));
    let sql = format!(
        "CREATE TYPE {table}_mood AS ENUM ('sad', 'very happy'); CREATE TABLE {table} (id bigint PRIMARY KEY, {columns}); \
         INSERT INTO {table} {rows}"
    );
    made(url, table, &sql, program()).await
}

#[tokio::test]
async fn lists_come_back_as_they_were_written() {
    let Some(url) = server().await else { return };
    let (store, table) =
        store(&url, "(id, texts, price) VALUES (1, '[3:4]={a,\"b c\"}', 21.05)").await;
    let texts = Value::list(["a", "b c"].map(Value::from));
    let found = data(&*store, Read::Register(at(1, 4))).await;
    assert_eq!(found, Data::Register(Some(Value::some(texts))));
    let found = data(&*store, Read::Register(at(1, 6))).await;
    assert_eq!(found, Data::Register(Some(Value::some(Value::from(21.05)))));

    let ints = |all: &[i64]| Value::list(all.iter().copied().map(Value::Int));
    let texts = |all: &[&str]| Value::list(all.iter().copied().map(Value::from));
    let floats = |all: &[f64]| Value::list(all.iter().copied().map(Value::from));
    let extremes =
        [f64::MAX, f64::MIN_POSITIVE, -0.0, 0.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    // The largest `real` is the number with its shortest text.
    let largest: f64 = f32::MAX.to_string().parse().expect("a number");
    for (field, value) in [
        (0, Value::list([true, false].map(Value::Bool))),
        (1, ints(&[i16::MIN.into(), i16::MAX.into()])),
        (2, ints(&[i64::MIN, 0, i64::MAX])),
        (2, ints(&[])),
        (3, floats(&extremes)),
        (4, texts(&["", "NULL", "a\"b", "\\", "{,}", " x ", "ä\u{1f980}\n"])),
        (6, Value::from(largest)),
        (6, Value::from(0.5)),
    ] {
        let wanted = Value::some(value);
        write(&*store, vec![Write::Assign(at(1, field), wanted.clone())]).await.expect("a commit");
        let found = data(&*store, Read::Register(at(1, field))).await;
        assert_eq!(found, Data::Register(Some(wanted)));
    }
    let moods = texts(&["very happy", "sad"]);
    write(&*store, vec![Write::Assign(at(2, 5), moods.clone())]).await.expect("a commit");
    assert_eq!(data(&*store, Read::Register(at(2, 5))).await, Data::Register(Some(moods)));
    write(&*store, vec![Write::Assign(at(1, 0), Value::NONE)]).await.expect("a commit");
    let sql = format!(
        "SELECT flags IS NULL AND whole = '{{}}' AND texts[5] = '{{,}}' FROM {table} WHERE id = 1"
    );
    let legacy = client(&url).await;
    assert!(legacy.query_one(&sql, &[]).await.expect("a row").get::<_, bool>(0));

    for (field, value, words) in [
        (1, ints(&[40_000]), "out of range"),
        (4, texts(&["0123456789"]), "too long"),
        (6, Value::from(0.123_456_789), "would round it"),
        (6, Value::from(1e300), "would round it"),
    ] {
        let refused = write(&*store, vec![Write::Assign(at(1, field), Value::some(value))]).await;
        let error = refused.expect_err("the column cannot hold it");
        assert!(error.to_string().contains(words), "{error}");
        assert!(matches!(error, StoreError::Violated { .. }), "{error}");
    }
    let error = write(&*store, vec![Write::Assign(at(1, 5), texts(&["angry"]))]).await;
    assert!(error.expect_err("no such mood").to_string().contains("angry"));
}

const MORE: &str = "days date[], prices numeric(6, 2)[], exact numeric[], moments timestamptz[], plain timestamp(3)[], raw bytea[], \
                    papers jsonb[], chained OUTER_DOMAIN, listed LIST_DOMAIN";

fn more() -> StoreSchema {
    let list = |items: Type| FieldType::Register(Type::Option(Type::List(items.into()).into()));
    let fields = [
        ("days", list(Type::Date)),
        ("prices", list(Type::Decimal)),
        ("exact", list(Type::Decimal)),
        ("moments", list(Type::Time)),
        ("plain", list(Type::Time)),
        ("raw", list(Type::Bytes)),
        ("papers", list(Type::Json)),
        ("chained", FieldType::Register(Type::Option(Type::Decimal.into()))),
        ("listed", list(Type::Date)),
    ];
    support::schema(Level::Linearizable, &[], &[("Item", Type::Int, &fields)])
}

async fn store_of_more(url: &str) -> (std::sync::Arc<mingle_store_postgres::Postgres>, String) {
    let table = unique("arrays");
    let columns = MORE
        .replace("OUTER_DOMAIN", &format!("{table}_outer"))
        .replace("LIST_DOMAIN", &format!("{table}_list"));
    let sql = format!(
        "CREATE DOMAIN {table}_inner AS numeric(4, 2) CHECK (value >= 0); CREATE DOMAIN {table}_outer AS {table}_inner; \
         CREATE DOMAIN {table}_days AS date[]; CREATE DOMAIN {table}_list AS {table}_days; \
         CREATE TABLE {table} (id bigint PRIMARY KEY, {columns}); INSERT INTO {table} (id) VALUES (1)"
    );
    made(url, table, &sql, more()).await
}

#[tokio::test]
async fn lists_of_dates_numbers_times_bytes_and_documents_are_exact() {
    let Some(url) = server().await else { return };
    let (store, table) = store_of_more(&url).await;
    let numbers = |all: &[&str]| {
        Value::list(all.iter().map(|text| Value::Decimal(text.parse().expect("a decimal"))))
    };
    let days = |all: &[i32]| Value::list(all.iter().map(|day| Value::Date(Date::from_days(*day))));
    let times = |all: &[i64]| Value::list(all.iter().map(|at| Value::Time(Time::from_micros(*at))));
    let raw = |all: &[&[u8]]| Value::list(all.iter().map(|raw| Value::Bytes((*raw).into())));
    let documents =
        |all: &[&str]| Value::list(all.iter().map(|text| Value::Json(text.parse().expect("JSON"))));
    let nines = "9".repeat(38);
    for (field, value) in [
        (0, days(&[0, -719_469, 20_484, -2_440_588, 2_145_042_905])),
        (0, days(&[])),
        (1, numbers(&["9999.99", "-0.01", "7.00"])),
        (2, numbers(&["0.000", &nines, "-1.5"])),
        (3, times(&[0, -1, 1 << 53, -200_000_000_000_000_000])),
        (4, times(&[0, 1_234_000, -1_000])),
        (5, raw(&[b"", b"\0\xff", b"{,}"])),
        (6, documents(&["null", "{\"a\": [1.50, \"\\\"{,}\"]}", "\"NULL\""])),
        (7, Value::Decimal("99.99".parse().expect("a decimal"))),
        (8, days(&[1])),
    ] {
        let wanted = Value::some(value);
        write(&*store, vec![Write::Assign(at(1, field), wanted.clone())]).await.expect("a commit");
        let found = data(&*store, Read::Register(at(1, field))).await;
        assert_eq!(found, Data::Register(Some(wanted.clone())));
        let Data::Register(Some(found)) = found else { panic!("{found:?}") };
        assert_eq!(found.to_string(), wanted.to_string(), "with its zeros");
    }
    let sql = format!(
        "SELECT prices = '{{9999.99,-0.01,7}}' AND moments[1] = '1970-01-01T00:00:00Z' AND plain[2] = '1970-01-01 00:00:01.234' \
         AND raw[2] = '\\x00ff' AND papers[2]->'a'->>0 = '1.5' AND listed = '{{1970-01-02}}' FROM {table} WHERE id = 1"
    );
    let legacy = client(&url).await;
    assert!(legacy.query_one(&sql, &[]).await.expect("a row").get::<_, bool>(0));
    for (field, value, words) in [
        (1, numbers(&["1.005"]), "it is numeric(6, 2)"),
        (4, times(&[1]), "keeps 3 digits"),
        (0, days(&[i32::MAX]), "cannot hold it"),
        (7, Value::Decimal("1.005".parse().expect("a decimal")), "it is numeric(4, 2)"),
        (7, Value::Decimal("-1".parse().expect("a decimal")), "check"),
    ] {
        let refused = write(&*store, vec![Write::Assign(at(1, field), Value::some(value))]).await;
        let error = refused.expect_err("the column cannot hold it");
        assert!(error.to_string().contains(words), "{error}");
        assert!(matches!(error, StoreError::Violated { .. }), "{error}");
    }
    let update = "SET days = '{infinity}', prices = '{NULL}', exact = '{NaN}', moments = '{{now},{now}}', papers = ARRAY['{\"a\":\"\"}'::jsonb, NULL]";
    legacy.batch_execute(&format!("UPDATE {table} {update}")).await.expect("an update");
    for (field, words) in [
        (0, "its array has infinity"),
        (1, "its array has a null"),
        (2, "its array has NaN"),
        (3, "its array has several dimensions"),
        (6, "its array has a null"),
    ] {
        let error =
            read(&*store, &[Read::Register(at(1, field))]).await.expect_err("it is no list");
        let error = error.to_string();
        assert!(error.contains(words) && error.contains("column"), "{error}");
    }
}

const TEXTS: &str = "halves real[], codes char(3)[], names citext[], ids uuid[], sizes SIZE_DOMAIN[], moods MOOD_DOMAIN[], tags TAG_DOMAIN[]";

async fn store_of_texts(url: &str) -> (std::sync::Arc<mingle_store_postgres::Postgres>, String) {
    let list = |items: Type| FieldType::Register(Type::Option(Type::List(items.into()).into()));
    let fields = [
        ("halves", list(Type::Float)),
        ("codes", list(Type::String)),
        ("names", list(Type::String)),
        ("ids", list(Type::String)),
        ("sizes", list(Type::Decimal)),
        ("moods", list(Type::String)),
        ("tags", list(Type::String)),
    ];
    let program = support::schema(Level::Linearizable, &[], &[("Item", Type::Int, &fields)]);
    let table = unique("arrays");
    let domains = ["size", "mood", "tag"].map(|name| (name, format!("{table}_{name}")));
    let mut columns = TEXTS.to_owned();
    for (name, domain) in &domains {
        columns = columns.replace(&format!("{}_DOMAIN", name.to_uppercase()), domain);
    }
    let [(_, size), (_, mood), (_, tag)] = &domains;
    let sql = format!(
        "CREATE EXTENSION IF NOT EXISTS citext; CREATE TYPE {table}_moods AS ENUM ('sad', 'very happy'); \
         CREATE DOMAIN {size}_inner AS numeric(4, 1); CREATE DOMAIN {size} AS {size}_inner CHECK (value > 0); \
         CREATE DOMAIN {mood} AS {table}_moods; CREATE DOMAIN {tag} AS varchar(4); \
         CREATE TABLE {table} (id bigint PRIMARY KEY, {columns}); INSERT INTO {table} (id) VALUES (1)"
    );
    made(url, table, &sql, program).await
}

#[tokio::test]
async fn lists_of_reals_of_texts_that_the_database_changes_and_of_domains_are_exact() {
    let Some(url) = server().await else { return };
    let (store, table) = store_of_texts(&url).await;
    let texts = |all: &[&str]| Value::list(all.iter().copied().map(Value::from));
    let floats = |all: &[f64]| Value::list(all.iter().copied().map(Value::from));
    let sizes = |all: &[&str]| {
        Value::list(all.iter().map(|text| Value::Decimal(text.parse().expect("a decimal"))))
    };
    let id = "0e37df36-f698-11e6-8dd4-cb9ced3df976";
    for (field, value) in [
        (0, floats(&[21.05, -0.0, f64::NAN, f64::INFINITY])),
        (0, floats(&[])),
        (1, texts(&["BO", "", " b", "ä\"{"])),
        (2, texts(&["Ana", "ana", "ANA", "{,}"])),
        (3, texts(&[id])),
        (4, sizes(&["999.9", "0.1", "7.0"])),
        (5, texts(&["very happy", "sad"])),
        (6, texts(&["NULL", "a\"b", ""])),
    ] {
        let wanted = Value::some(value);
        write(&*store, vec![Write::Assign(at(1, field), wanted.clone())]).await.expect("a commit");
        let found = data(&*store, Read::Register(at(1, field))).await;
        assert_eq!(found, Data::Register(Some(wanted)));
    }
    let sql = format!(
        "SELECT codes[1] = 'BO ' AND names[1] = 'aNA' AND sizes[3] = 7 AND moods = '{{very happy,sad}}' AND tags[1] = 'NULL' \
         FROM {table} WHERE id = 1"
    );
    let legacy = client(&url).await;
    assert!(legacy.query_one(&sql, &[]).await.expect("a row").get::<_, bool>(0));
    for (field, value, words) in [
        (0, floats(&[0.5, 0.123_456_789]), "would round it"),
        (1, texts(&["BO", "BO "]), "fills its values up with blanks"),
        (1, texts(&["long"]), "too long"),
        (3, texts(&[id, &id.to_uppercase()]), "in small letters"),
        (4, sizes(&["1.25"]), "it is numeric(4, 1)"),
        (4, sizes(&["1", "0"]), "check"),
        (5, texts(&["angry"]), "angry"),
        (6, texts(&["fives"]), "too long"),
    ] {
        let refused = write(&*store, vec![Write::Assign(at(1, field), Value::some(value))]).await;
        let error = refused.expect_err("the column cannot hold it");
        assert!(error.to_string().contains(words), "{error}");
        assert!(matches!(error, StoreError::Violated { .. }), "{error}");
    }
    // What another program has written is read as it is.
    let update = "SET halves = '{21.05}', codes = '{\"x  \"}', names = '{A,a}'";
    legacy.batch_execute(&format!("UPDATE {table} {update}")).await.expect("an update");
    for (field, value) in [(0, floats(&[21.05])), (1, texts(&["x"])), (2, texts(&["A", "a"]))] {
        let found = data(&*store, Read::Register(at(1, field))).await;
        assert_eq!(found, Data::Register(Some(Value::some(value))));
    }
}

#[tokio::test]
async fn what_is_no_list_is_an_error_of_its_column() {
    let Some(url) = server().await else { return };
    let rows = "(id, whole, texts) VALUES (1, '{1,NULL}', '{{a},{b}}')";
    let (store, _) = store(&url, rows).await;
    for (field, words) in [(2, "its array has a null"), (4, "its array has several dimensions")] {
        let one = Read::Register(at(1, field));
        let error = read(&*store, &[one]).await.expect_err("it is no list").to_string();
        assert!(error.contains(words) && error.contains("column"), "{error}");
    }
}
