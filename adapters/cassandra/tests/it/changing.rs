//! Tables of other applications that are changed while a store is open.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::{Level, StructType, Type, Value};
use mingle_services::Engine;
use mingle_store::conformance::schema::store_schema;
use mingle_store::{Data, DataStore, Read, Session, StoreError, StoreOperation, StoreSchema};
use mingle_store_cassandra::Cassandra;

use crate::support::{Other, config, connect, fresh_table};

/// Returns a schema with queries without parameters, by name: their bodies and results.
fn with(queries: &[(&str, String, Type)]) -> StoreSchema {
    let mut schema = store_schema(Level::Eventual);
    let mut declared = (*schema.schema).clone();
    let fields = ["a", "z"].map(|name| (name.into(), Type::String)).to_vec();
    declared.structs.insert("Pair".into(), Arc::new(StructType { name: "Pair".into(), fields }));
    schema.schema = Arc::new(declared);
    let operations = queries.iter().map(|(name, body, result)| {
        let operation = StoreOperation {
            is_command: false,
            parameters: Vec::new(),
            result: Some(result.clone()),
            body: Some(body.clone()),
            builtin: None,
        };
        ((*name).into(), operation)
    });
    StoreSchema { operations: operations.collect::<BTreeMap<_, _>>(), ..schema }
}

async fn ask(store: &Cassandra, query: &str) -> Result<Value, String> {
    let mut open = store.begin(&Session::default()).await.expect("it begins");
    let read = Read::Query { operation: query.into(), arguments: Vec::new() };
    match open.read(&[read]).await {
        Ok(mut answers) => match answers.remove(0).data {
            Data::Result(value) => Ok(value),
            other => panic!("{other:?}"),
        },
        Err(StoreError::Refused { reason, .. }) => Err(reason),
        Err(other) => panic!("{query}: {other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_reads_columns_by_their_names_whatever_was_added() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let other = Other::at(server.url()).await;
    let table = fresh_table(&other, "id text PRIMARY KEY, a text, z text").await;
    other.run(&format!("INSERT INTO {table} (id, a, z) VALUES ('x', 'A', 'Z')")).await;
    let ids = fresh_table(&other, "id text PRIMARY KEY").await;
    other.run(&format!("INSERT INTO {ids} (id) VALUES ('x')")).await;
    let pair = Type::Struct("Pair".into());
    let schema = with(&[
        ("all", format!("SELECT * FROM {table} WHERE id = 'x'"), pair.clone()),
        ("named", format!("SELECT id, a, z FROM {table} WHERE id = 'x'"), pair.clone()),
        ("listed", format!("SELECT * FROM {table}"), Type::List(Arc::new(pair))),
        ("one", format!("SELECT * FROM {ids} WHERE id = 'x'"), Type::String),
    ]);
    let store = connect(config(server.url()), schema).await.expect("it opens");
    let row = |a: &str, z: &str| Value::Struct([Value::from(a), Value::from(z)].into());
    assert_eq!(ask(&store, "all").await, Ok(row("A", "Z")));
    assert_eq!(ask(&store, "one").await, Ok(Value::from("x")));

    // The new column is between the existing ones.
    other.run(&format!("ALTER TABLE {table} ADD m text")).await;
    other.run(&format!("UPDATE {table} SET m = 'M' WHERE id = 'x'")).await;
    for _ in 0..6 {
        assert_eq!(ask(&store, "all").await, Ok(row("A", "Z")));
        assert_eq!(ask(&store, "named").await, Ok(row("A", "Z")));
        assert_eq!(ask(&store, "listed").await, Ok(Value::list([row("A", "Z")])));
    }
    // The next column is before them.
    other.run(&format!("ALTER TABLE {table} ADD \"A0\" text")).await;
    for _ in 0..6 {
        assert_eq!(ask(&store, "all").await, Ok(row("A", "Z")));
    }
    other.run(&format!("ALTER TABLE {ids} ADD more text")).await;
    for _ in 0..6 {
        let reason = ask(&store, "one").await.expect_err("there are two columns");
        assert!(reason.contains("expected one column for string, found id, more"), "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_is_dropped_is_an_error_until_it_is_there_again() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let other = Other::at(server.url()).await;
    let table = fresh_table(&other, "id text PRIMARY KEY, a text, z text").await;
    other.run(&format!("INSERT INTO {table} (id, a, z) VALUES ('x', 'A', 'Z')")).await;
    let pair = Type::Struct("Pair".into());
    let schema = with(&[
        ("all", format!("SELECT * FROM {table} WHERE id = 'x'"), pair.clone()),
        ("named", format!("SELECT a, z FROM {table} WHERE id = 'x'"), pair),
    ]);
    let store = connect(config(server.url()), schema).await.expect("it opens");
    let row = |a: &str| Value::Struct([Value::from(a), Value::from("Z")].into());
    assert_eq!(ask(&store, "all").await, Ok(row("A")));
    assert_eq!(ask(&store, "named").await, Ok(row("A")));
    other.run(&format!("ALTER TABLE {table} DROP a")).await;
    for _ in 0..6 {
        let reason = ask(&store, "all").await.expect_err("it lacks a column");
        assert!(reason.contains("no column a for Pair; it gives id, z"), "{reason}");
        let reason = ask(&store, "named").await.expect_err("it lacks a column");
        assert!(reason.contains(" a"), "{reason}");
    }
    other.run(&format!("ALTER TABLE {table} ADD a text")).await;
    other.run(&format!("UPDATE {table} SET a = 'A2' WHERE id = 'x'")).await;
    for _ in 0..6 {
        assert_eq!(ask(&store, "all").await, Ok(row("A2")));
        assert_eq!(ask(&store, "named").await, Ok(row("A2")));
    }
}
