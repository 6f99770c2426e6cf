//! Enumerations of the program in columns that list their values.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{self, RealWorld, client, data, open, server, unique, write};
use mingle_model::{EnumType, EnumValue, FieldType, Level, Ref, Type, Value};
use mingle_store::{Address, Data, Read, StoreSchema, Write};
use mingle_store_postgres::{ObjectMapping, Postgres, PostgresConfig, describe};

const LABELS: [&str; 4] = ["open", "NC-17", "it's \\ \"odd\"", "é😀"];

fn status(labels: &[&str]) -> Type {
    let value = |label: &&str| EnumValue { name: (*label).into(), label: (*label).into() };
    let values = labels.iter().map(value).collect();
    Type::Enum(Arc::new(EnumType { name: "Status".into(), values }))
}

/// Columns of an enumeration, of a text and a varchar with a check, of a domain with one, and an array.
fn tables(table: &str) -> String {
    let labels = LABELS.map(|label| format!("'{}'", label.replace('\'', "''"))).join(", ");
    format!(
        "CREATE TYPE {table}_kind AS ENUM ({labels}); \
         CREATE DOMAIN {table}_state AS text CHECK (VALUE IN ({labels})); \
         CREATE TABLE {table} (kind {table}_kind PRIMARY KEY, named {table}_kind NOT NULL, \
         checked text NOT NULL CHECK (checked IN ({labels})), short varchar(20) CHECK (short IN ({labels})), \
         state {table}_state, many {table}_kind[])"
    )
}

fn program(labels: &[&str]) -> StoreSchema {
    let register = |inner: Type| FieldType::Register(inner);
    let option = |inner: Type| register(Type::Option(inner.into()));
    let fields = [
        ("named", register(status(labels))),
        ("checked", register(status(labels))),
        ("short", option(status(labels))),
        ("state", option(status(labels))),
        ("many", option(Type::List(status(labels).into()))),
    ];
    let mut schema =
        support::schema(Level::Linearizable, &[], &[("Item", status(labels), &fields)]);
    schema.schema = Arc::new(schema.schema.stored());
    schema
}

fn config(url: String, table: &str) -> PostgresConfig {
    let mapping =
        ObjectMapping { table: table.into(), key: vec!["kind".into()], ..ObjectMapping::default() };
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    config.objects = BTreeMap::from([("Item".into(), mapping)]);
    config
}

#[tokio::test]
async fn every_column_with_a_list_holds_the_values_of_an_enum() {
    let Some(url) = server().await else { return };
    let table = unique("enums");
    let legacy = client(&url).await;
    legacy.batch_execute(&tables(&table)).await.expect("the table is made");
    let store = open(config(url, &table), program(&LABELS)).await;
    let at = |key: &str, field: u16| Address { object: Ref::new("Item", Value::from(key)), field };
    for label in LABELS {
        let value = Value::from(label);
        let many = Value::some(Value::list(LABELS.map(Value::from)));
        let some = Value::some(value.clone());
        let all = [value.clone(), value, some.clone(), some, many];
        let assign =
            |(field, value): (usize, &Value)| Write::Assign(at(label, field as u16), value.clone());
        write(&*store, all.iter().enumerate().map(assign).collect()).await.expect("a commit");
        for (field, value) in all.into_iter().enumerate() {
            let found = data(&*store, Read::Register(at(label, field as u16))).await;
            assert_eq!(found, Data::Register(Some(value)), "{label}");
        }
        let sql = format!("SELECT checked FROM {table} WHERE kind = $1::text::{table}_kind");
        let found: String = legacy.query_one(&sql, &[&label]).await.expect("a row").get(0);
        assert_eq!(found, label);
    }
    // No column can refuse a value of the program.
    let may_refuse = format!("{:?}", store.constraints_that_may_refuse());
    assert!(
        !may_refuse.contains("CHECK") && !may_refuse.contains("none of its values"),
        "{may_refuse}"
    );
    assert!(!may_refuse.contains("refuses"), "{may_refuse}");
}

#[tokio::test]
async fn a_value_that_a_column_lacks_is_refused_at_the_start() {
    let Some(url) = server().await else { return };
    let table = unique("lacks");
    client(&url).await.batch_execute(&tables(&table)).await.expect("the table is made");
    let more = [&LABELS[..], &["lost"]].concat();
    let opened = Postgres::connect(config(url, &table), program(&more), RealWorld::make()).await;
    let error = opened.map(|_| ()).expect_err("a column lacks a value").to_string();
    for words in ["column kind", "cannot hold \"lost\"", "the key of Item", "Status", "\"NC-17\""] {
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_description_has_the_values() {
    let Some(url) = server().await else { return };
    let table = unique("lists");
    client(&url).await.batch_execute(&tables(&table)).await.expect("the table is made");
    let config = PostgresConfig::at(url);
    let all = describe("store", &config, "public", RealWorld::make()).await.expect("it is there");
    let found = all.iter().find(|found| found.name == table).expect("it is a table");
    let kind = format!("{table}_kind");
    let state = format!("{table}_state");
    let names = [Some(&kind), Some(&kind), None, None, Some(&state), Some(&kind)];
    for (column, name) in found.columns.iter().zip(names) {
        let listed = column.enumeration.as_ref().unwrap_or_else(|| panic!("{column:?}"));
        assert_eq!(
            (listed.name.as_ref(), &listed.labels[..]),
            (name, &LABELS.map(str::to_owned)[..])
        );
    }
}
