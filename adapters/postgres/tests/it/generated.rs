//! Columns that the database computes: they are read, and never written.

use std::collections::BTreeMap;

use crate::support::{self, client, data, open, server, unique, write};
use mingle_model::{FieldType, Level, Ref, Type, Value};
use mingle_store::{Address, Data, Read, StoreError, Write};
use mingle_store_postgres::{ObjectMapping, PostgresConfig};

const NET: u16 = 0;
const GROSS: u16 = 1;
const LABEL: u16 = 2;

fn invoice(number: i64, field: u16) -> Address {
    Address { object: Ref::new("Invoice", Value::Int(number)), field }
}

#[tokio::test]
async fn computed_columns_are_read_and_never_written() {
    let Some(url) = server().await else { return };
    let table = unique("generated");
    let sql = format!(
        "CREATE TABLE {table} (id bigint PRIMARY KEY, net bigint NOT NULL, \
         gross bigint NOT NULL GENERATED ALWAYS AS (net + net * 20 / 100) STORED, \
         label text GENERATED ALWAYS AS ('INV-' || id::text) STORED)"
    );
    client(&url).await.batch_execute(&sql).await.expect("the table is made");
    let fields = [
        ("net", FieldType::Register(Type::Int)),
        ("gross", FieldType::Register(Type::Int)),
        ("label", FieldType::Register(Type::Option(Type::String.into()))),
    ];
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    let mapping =
        ObjectMapping { table: table.clone(), key: vec!["id".into()], ..ObjectMapping::default() };
    config.objects = BTreeMap::from([("Invoice".into(), mapping)]);
    let schema = support::schema(Level::Linearizable, &[], &[("Invoice", Type::Int, &fields)]);
    let store = open(config, schema).await;
    let may_refuse = store.constraints_that_may_refuse();
    let read_only: Vec<&str> =
        may_refuse["Invoice"].read_only.keys().map(|field| &**field).collect();
    assert_eq!(read_only, ["gross", "label"]);

    let net = |number, amount| Write::Assign(invoice(number, NET), Value::Int(amount));
    write(&*store, vec![net(1, 1_000)]).await.expect("a new row");
    let register = |value: Value| Data::Register(Some(value));
    assert_eq!(data(&*store, Read::Register(invoice(1, GROSS))).await, register(Value::Int(1_200)));
    let label = register(Value::some("INV-1".into()));
    assert_eq!(data(&*store, Read::Register(invoice(1, LABEL))).await, label);
    write(&*store, vec![net(1, 2_000)]).await.expect("a changed row");
    assert_eq!(data(&*store, Read::Register(invoice(1, GROSS))).await, register(Value::Int(2_400)));

    let gross = Write::Assign(invoice(1, GROSS), Value::Int(1));
    let refused = write(&*store, vec![net(1, 5), gross]).await;
    let Err(StoreError::Violated { violation, .. }) = refused else { panic!("{refused:?}") };
    assert!(violation.message.contains("\"gross\" can only be read"), "{}", violation.message);
    assert_eq!(data(&*store, Read::Register(invoice(1, NET))).await, register(Value::Int(2_000)));
}
