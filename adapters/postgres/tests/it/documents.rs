//! JSON documents in existing columns: of `jsonb` and of `json`, with what other programs write.

use std::collections::BTreeMap;

use crate::support::{self, client, data, open, read, server, unique, write};
use mingle_model::random::{Random, hostile_json};
use mingle_model::{Document, FieldType, Level, Ref, Type, Value};
use mingle_store::{Address, Data, Read, StoreSchema, Write};
use mingle_store_postgres::{CollectionMapping, ObjectMapping, PostgresConfig};

const BINARY: u16 = 0;
const TEXT: u16 = 1;
const MAYBE: u16 = 2;
const NOTES: u16 = 3;
const LINES: u16 = 4;

const SEED: u64 = 44_017;

fn program() -> StoreSchema {
    let fields = [
        ("binary", FieldType::Register(Type::Json)),
        ("text", FieldType::Register(Type::Json)),
        ("maybe", FieldType::Register(Type::Option(Type::Json.into()))),
        ("notes", FieldType::Map(Type::String, Type::Json)),
        ("lines", FieldType::Register(Type::List(Type::Option(Type::Json.into()).into()))),
    ];
    support::schema(Level::Linearizable, &[], &[("Page", Type::String, &fields)])
}

fn config(url: String, table: &str) -> PostgresConfig {
    let notes = CollectionMapping {
        table: format!("{table}_notes"),
        key: vec!["page".into()],
        value: "note".into(),
        entry: Some("name".into()),
        ..CollectionMapping::default()
    };
    let mapping = ObjectMapping {
        table: table.into(),
        key: vec!["id".into()],
        columns: BTreeMap::new(),
        fields: BTreeMap::from([("notes".into(), notes)]),
    };
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    config.objects = BTreeMap::from([("Page".into(), mapping)]);
    config
}

fn tables(table: &str) -> String {
    format!(
        "CREATE DOMAIN {table}_document AS jsonb; \
         CREATE TABLE {table} (id text PRIMARY KEY, \"binary\" {table}_document, text json, maybe jsonb, lines jsonb); \
         CREATE TABLE {table}_notes (page text, name text, note jsonb NOT NULL, PRIMARY KEY (page, name));"
    )
}

fn json(text: &str) -> Value {
    Value::Json(Document::parse(text).expect("JSON"))
}

fn at(field: u16) -> Address {
    Address { object: Ref::new("Page", Value::from("a")), field }
}

async fn register(store: &dyn mingle_store::DataStore, field: u16) -> Value {
    match data(store, Read::Register(at(field))).await {
        Data::Register(Some(value)) => value,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn hostile_documents_come_back_from_both_types_of_columns() {
    let Some(url) = server().await else { return };
    let table = unique("documents");
    let other = client(&url).await;
    other.batch_execute(&tables(&table)).await.expect("the tables are made");
    let store = open(config(url, &table), program()).await;
    println!("seed {SEED}");
    let mut random = Random::new(SEED);
    for _ in 0..150 {
        let text = hostile_json(&mut random);
        let value = json(&text);
        let line = Value::list([Value::some(value.clone()), Value::NONE]);
        let writes = vec![
            Write::Assign(at(BINARY), value.clone()),
            Write::Assign(at(TEXT), value.clone()),
            Write::Assign(at(MAYBE), Value::some(value.clone())),
            Write::Assign(at(LINES), line.clone()),
            Write::Put(at(NOTES), Value::from("n"), value.clone()),
        ];
        write(&*store, writes).await.expect("it commits");
        assert_eq!(register(&*store, BINARY).await, value, "{text}");
        assert_eq!(register(&*store, TEXT).await, value, "{text}");
        assert_eq!(register(&*store, MAYBE).await, Value::some(value.clone()), "{text}");
        assert_eq!(register(&*store, LINES).await, line, "{text}");
        let notes = data(&*store, Read::Entries(at(NOTES))).await;
        assert_eq!(notes, Data::Entries(vec![(Value::from("n"), value.clone())]), "{text}");
        // The same text, written by another program, is the same document.
        let update =
            format!("UPDATE {table} SET \"binary\" = $1::text::jsonb, text = $1::text::json");
        other.execute(&update, &[&text]).await.expect("the database takes it");
        assert_eq!(register(&*store, BINARY).await, value, "{text}");
        assert_eq!(register(&*store, TEXT).await, value, "{text}");
    }
}

#[tokio::test]
async fn null_is_a_document_and_no_document_is_none() {
    let Some(url) = server().await else { return };
    let table = unique("documents");
    let other = client(&url).await;
    other.batch_execute(&tables(&table)).await.expect("the tables are made");
    let store = open(config(url, &table), program()).await;
    let insert = format!("INSERT INTO {table} (id) VALUES ('a')");
    other.batch_execute(&insert).await.expect("a row");
    assert_eq!(register(&*store, MAYBE).await, Value::NONE);
    // A column that is null reads as never written, and the default is the document null.
    assert_eq!(data(&*store, Read::Register(at(BINARY))).await, Data::Register(None));
    write(&*store, vec![Write::Assign(at(MAYBE), Value::some(json("null")))])
        .await
        .expect("it commits");
    assert_eq!(register(&*store, MAYBE).await, Value::some(json("null")));
    let row =
        other.query_one(&format!("SELECT maybe::text FROM {table}"), &[]).await.expect("a row");
    assert_eq!(row.get::<_, Option<&str>>(0), Some("null"));
    write(&*store, vec![Write::Assign(at(MAYBE), Value::NONE)]).await.expect("it commits");
    let row =
        other.query_one(&format!("SELECT maybe::text FROM {table}"), &[]).await.expect("a row");
    assert_eq!(row.get::<_, Option<&str>>(0), None);
}

#[tokio::test]
async fn documents_that_no_json_can_be_are_errors_that_name_the_column() {
    let Some(url) = server().await else { return };
    let table = unique("documents");
    let other = client(&url).await;
    other.batch_execute(&tables(&table)).await.expect("the tables are made");
    let store = open(config(url, &table), program()).await;
    for (text, reason) in [
        (r#"{"a":1,"a":2}"#, "the member `a` is there twice"),
        (r#""\u0000""#, "a text in a json value holds no U+0000"),
        (r#""\ud800""#, "one half of a surrogate pair"),
        ("1e400", "at most 400 digits before the point"),
        (&format!("{}{}", "[".repeat(101), "]".repeat(101)), "nests at most 100 deep"),
    ] {
        let insert = format!(
            "INSERT INTO {table} (id, text) VALUES ('a', $1::text::json) \
             ON CONFLICT (id) DO UPDATE SET text = excluded.text"
        );
        // The server itself refuses half a character.
        if other.execute(&insert, &[&text]).await.is_err() {
            assert!(text.contains("ud800"), "{text}");
            continue;
        }
        let found = read(&*store, &[Read::Register(at(TEXT))]).await.expect_err(text).to_string();
        assert!(
            found.contains("column \"text\" holds no json") && found.contains(reason),
            "{found}"
        );
    }
}
