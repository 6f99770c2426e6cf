//! Existing tables that change while the store is open.

use std::collections::BTreeMap;

use crate::support::{self, client, data, open, read, server, unique, write};
use mingle_model::{FieldType, Level, Ref, Type, Value};
use mingle_store::{Address, Data, DataStore, Read, StoreError, StoreSchema, Write};
use mingle_store_postgres::{ObjectMapping, PostgresConfig};

const WEIGHT: u16 = 0;
const STATE: u16 = 1;
const NOTE: u16 = 2;

fn program() -> StoreSchema {
    let fields = [
        ("weight", FieldType::Register(Type::Int)),
        ("state", FieldType::Register(Type::String)),
        ("note", FieldType::Register(Type::String)),
    ];
    support::schema(Level::Linearizable, &[], &[("Parcel", Type::Int, &fields)])
}

fn at(field: u16) -> Address {
    Address { object: Ref::new("Parcel", Value::Int(1)), field }
}

/// Writes like the runtime, which tries again after a conflict; returns the number of retries.
async fn write_at_last(store: &dyn DataStore, one: Write) -> Result<usize, StoreError> {
    for attempt in 0..10 {
        match write(store, vec![one.clone()]).await {
            Err(StoreError::Conflict) => {}
            other => return other.map(|_| attempt),
        }
    }
    Err(StoreError::Conflict)
}

#[tokio::test]
async fn a_table_that_changes_is_described_anew() {
    let Some(url) = server().await else { return };
    let name = unique("parcel");
    let legacy = client(&url).await;
    let run = async |sql: String| legacy.batch_execute(&sql).await.expect("the table is changed");
    run(format!(
        "CREATE TYPE {name}_state AS ENUM ('new', 'paid'); \
         CREATE TABLE {name} (id integer PRIMARY KEY, weight integer NOT NULL, state {name}_state NOT NULL \
         DEFAULT 'new', note text NOT NULL DEFAULT ''); INSERT INTO {name} VALUES (1, 2)"
    ))
    .await;
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    let mapping =
        ObjectMapping { table: name.clone(), key: vec!["id".into()], ..ObjectMapping::default() };
    config.objects = BTreeMap::from([("Parcel".into(), mapping)]);
    let store = open(config, program()).await;
    let assign = |field, value: Value| Write::Assign(at(field), value);
    let register = |value: Value| Data::Register(Some(value));

    // A value that fits no column is refused as before, and no table is described again.
    let large = Value::Int(5_000_000_000);
    let refused = write(&*store, vec![assign(WEIGHT, large.clone())]).await;
    assert!(
        matches!(&refused, Err(StoreError::Violated { violation, .. }) if violation.message.contains("out of range"))
    );
    run(format!("ALTER TABLE {name} ALTER COLUMN weight TYPE bigint")).await;
    assert_eq!(write_at_last(&*store, assign(WEIGHT, large.clone())).await, Ok(1));
    assert_eq!(
        write_at_last(&*store, assign(WEIGHT, large.clone())).await,
        Ok(0),
        "it is known by now"
    );
    assert_eq!(data(&*store, Read::Register(at(WEIGHT))).await, register(large));

    run(format!("ALTER TYPE {name}_state ADD VALUE 'lost'")).await;
    assert!(write_at_last(&*store, assign(STATE, "lost".into())).await.is_ok());
    run(format!(
        "ALTER TABLE {name} ALTER COLUMN state DROP DEFAULT, ALTER COLUMN state TYPE text"
    ))
    .await;
    assert!(write_at_last(&*store, assign(STATE, "anything".into())).await.is_ok());
    assert_eq!(data(&*store, Read::Register(at(STATE))).await, register("anything".into()));

    run(format!("ALTER TABLE {name} ALTER COLUMN id TYPE bigint, ADD COLUMN depot text")).await;
    assert!(write_at_last(&*store, assign(NOTE, "one".into())).await.is_ok());

    run(format!("ALTER TABLE {name} DROP COLUMN note")).await;
    for _ in 0..2 {
        let error = read(&*store, &[Read::Register(at(NOTE))]).await.expect_err("it is gone");
        let told = error.to_string();
        assert!(matches!(error, StoreError::Refused { .. }), "{told}");
        assert!(told.contains("has no column note") && told.contains("Parcel"), "{told}");
    }
    run(format!("ALTER TABLE {name} ADD COLUMN note text NOT NULL DEFAULT 'again'")).await;
    assert_eq!(data(&*store, Read::Register(at(NOTE))).await, register("again".into()));
    assert!(write_at_last(&*store, assign(NOTE, "two".into())).await.is_ok());
    assert_eq!(data(&*store, Read::Register(at(NOTE))).await, register("two".into()));
}
