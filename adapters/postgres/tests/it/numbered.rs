//! Objects whose keys only the database can set.

use std::collections::BTreeMap;

use crate::support::{self, client, data, open, server, unique, write};
use mingle_model::{FieldType, Level, Ref, Type, Value};
use mingle_store::{Address, Data, Read, StoreError, StoreSchema, Write};
use mingle_store_postgres::{ObjectMapping, PostgresConfig};

fn program() -> StoreSchema {
    let fields = [("name", FieldType::Register(Type::String)), ("points", FieldType::Counter)];
    support::schema(Level::Linearizable, &[], &[("Customer", Type::Int, &fields)])
}

fn customer(id: i64, field: u16) -> Address {
    Address { object: Ref::new("Customer", Value::Int(id)), field }
}

#[tokio::test]
async fn rows_that_are_there_are_written_and_none_is_made() {
    let Some(url) = server().await else { return };
    let table = unique("numbered");
    let sql = format!(
        "CREATE TABLE {table} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
         name text NOT NULL, points integer NOT NULL DEFAULT 0); \
         INSERT INTO {table} (name) VALUES ('Ana'), ('Bob')"
    );
    let legacy = client(&url).await;
    legacy.batch_execute(&sql).await.expect("the table is made");
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    let mapping =
        ObjectMapping { table: table.clone(), key: vec!["id".into()], ..ObjectMapping::default() };
    config.objects = BTreeMap::from([("Customer".into(), mapping)]);
    let store = open(config, program()).await;
    let may_refuse = store.constraints_that_may_refuse();
    let says = |text: &String| text.starts_with("GENERATED ALWAYS id of");
    assert!(may_refuse["Customer"].writes.iter().any(says), "{may_refuse:?}");

    let name = |id, name: &str| Write::Assign(customer(id, 0), Value::from(name));
    write(&*store, vec![name(1, "Anna"), Write::Add(customer(1, 1), 7)]).await.expect("a row");
    write(&*store, vec![Write::Create(customer(2, 0).object)]).await.expect("it is there");
    write(&*store, vec![Write::Delete(customer(2, 0).object)]).await.expect("a row");
    let anna = Data::Register(Some(Value::from("Anna")));
    assert_eq!(data(&*store, Read::Register(customer(1, 0))).await, anna);
    assert_eq!(data(&*store, Read::Counter(customer(1, 1))).await, Data::Counter(7));
    assert_eq!(data(&*store, Read::Exists(customer(2, 0).object)).await, Data::Bool(false));

    for missing in [vec![name(9, "New")], vec![Write::Create(customer(9, 0).object)]] {
        let writes = [vec![Write::Add(customer(1, 1), 1)], missing].concat();
        let Err(StoreError::Refused { reason, .. }) = write(&*store, writes).await else {
            panic!("a row was made");
        };
        assert!(reason.contains("the database alone gives its id (GENERATED ALWAYS)"), "{reason}");
    }
    assert_eq!(data(&*store, Read::Counter(customer(1, 1))).await, Data::Counter(7));
    legacy.batch_execute(&format!("INSERT INTO {table} (name) VALUES ('Cem')")).await.expect("3");
    assert_eq!(data(&*store, Read::Exists(customer(3, 0).object)).await, Data::Bool(true));
}
