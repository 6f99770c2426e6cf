//! The changes that a new version of a program may make, and the migration of tables.

use std::sync::Arc;

use crate::support::{self, RealWorld, data, open, server, unique, write};
use mingle_model::{FieldType, Level, Ref, Type, Value};
use mingle_store::{Address, Data, Read, StoreSchema, Write};
use mingle_store_postgres::{
    Migrate, OpenError, Postgres, PostgresConfig, migrate, plan_migration,
};

type Fields<'a> = &'a [(&'a str, FieldType)];

fn program(fields: Fields<'_>) -> StoreSchema {
    support::schema(Level::Linearizable, &[], &[("Note", Type::String, fields)])
}

fn int() -> FieldType {
    FieldType::Register(Type::Int)
}

async fn config() -> Option<PostgresConfig> {
    let mut config = PostgresConfig::at(server().await?);
    config.schema = Some(unique("migrated"));
    Some(config)
}

async fn refusal(config: &PostgresConfig, schema: StoreSchema) -> OpenError {
    match Postgres::connect(config.clone(), schema, RealWorld::make()).await {
        Ok(_) => panic!("the store opened"),
        Err(error) => error,
    }
}

fn at(field: u16) -> Address {
    Address { object: Ref::new("Note", Value::from("a")), field }
}

#[tokio::test]
async fn what_is_added_is_added_and_what_is_gone_stays() {
    let Some(config) = config().await else { return };
    let first = program(&[("a", int()), ("b", FieldType::Counter)]);
    let store = open(config.clone(), first).await;
    write(&*store, vec![Write::Assign(at(0), Value::Int(1)), Write::Add(at(1), 2)])
        .await
        .expect("a commit");
    drop(store);
    let second = program(&[("c", FieldType::Log(Type::Int)), ("a", int())]);
    let store = open(config.clone(), second).await;
    assert_eq!(data(&*store, Read::Register(at(1))).await, Data::Register(Some(Value::Int(1))));
    assert_eq!(data(&*store, Read::LogSize(at(0))).await, Data::Count(0));
    write(&*store, vec![Write::Append(at(0), Value::Int(9))]).await.expect("a line");
    drop(store);
    let third = program(&[("b", FieldType::Counter), ("a", int())]);
    let store = open(config, third).await;
    assert_eq!(data(&*store, Read::Counter(at(0))).await, Data::Counter(2), "it was kept");
}

#[tokio::test]
async fn what_would_be_read_otherwise_is_refused() {
    let Some(config) = config().await else { return };
    let point: &[(&str, Type)] = &[("x", Type::Int)];
    let fields = [("a", int()), ("p", FieldType::Register(Type::Struct("Point".into())))];
    let make = |point: &[(&str, Type)], key: Type, fields: Fields<'_>| {
        support::schema(Level::Linearizable, &[("Point", point)], &[("Note", key, fields)])
    };
    let store = open(config.clone(), make(point, Type::String, &fields)).await;
    write(&*store, vec![Write::Assign(at(0), Value::Int(1))]).await.expect("a commit");
    drop(store);
    let wider: &[(&str, Type)] = &[("x", Type::Int), ("y", Type::Int)];
    let text = [("a", FieldType::Register(Type::String)), fields[1].clone()];
    let mut moved = make(point, Type::String, &fields);
    let mut schema = (*moved.schema).clone();
    let mut note = (*schema.objects["Note"]).clone();
    note.store = "elsewhere".into();
    schema.objects.insert("Note".into(), Arc::new(note));
    moved.schema = Arc::new(schema);
    let mut renamed = make(point, Type::String, &fields);
    renamed.store = "other".into();
    let cases = [
        (make(point, Type::String, &text), "field Note.a as `int`, but the program says `string`"),
        (make(point, Type::Int, &fields), "the key of object Note as `string`"),
        (make(wider, Type::String, &fields), "struct Point as `{ x: int }`"),
        (moved, "object Note as `in shop`, but the program says `in elsewhere`"),
        (renamed, "the name of the store as `shop`"),
    ];
    for (schema, words) in cases {
        let error = refusal(&config, schema).await;
        assert!(matches!(error, OpenError::Changed { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    open(config, make(point, Type::String, &fields)).await;
}

#[tokio::test]
async fn tables_are_made_when_told() {
    let Some(mut config) = config().await else { return };
    config.migrate = Migrate::Refuse;
    let schema = program(&[("a", int())]);
    let error = refusal(&config, schema.clone()).await;
    assert!(matches!(error, OpenError::Missing { .. }), "{error}");
    let planned = plan_migration(config.clone(), schema.clone(), RealWorld::make()).await;
    let planned = planned.expect("a plan");
    assert!(planned.sql().contains("CREATE TABLE"), "{}", planned.sql());
    assert!(matches!(refusal(&config, schema.clone()).await, OpenError::Missing { .. }), "a plan");
    let done = migrate(config.clone(), schema.clone(), RealWorld::make()).await;
    assert_eq!(done, Ok(planned));
    let store = open(config.clone(), schema.clone()).await;
    write(&*store, vec![Write::Assign(at(0), Value::Int(1))]).await.expect("a commit");
    let wider = program(&[("a", int()), ("b", FieldType::Set(Type::Int))]);
    let planned = plan_migration(config.clone(), wider.clone(), RealWorld::make()).await;
    let sql = planned.expect("a plan").sql();
    assert!(sql.contains("\"Note.b\"") && !sql.contains("CREATE SCHEMA"), "{sql}");
    let nothing = plan_migration(config, schema, RealWorld::make()).await.expect("a plan");
    assert_eq!(nothing.statements, Vec::<String>::new());
}

#[tokio::test]
async fn those_that_open_at_once_make_tables_once() {
    let Some(config) = config().await else { return };
    let schema = program(&[("a", int()), ("b", FieldType::Set(Type::String))]);
    let open = || {
        let (config, schema) = (config.clone(), schema.clone());
        tokio::spawn(async move { Postgres::connect(config, schema, RealWorld::make()).await })
    };
    let opening: Vec<_> = (0..4).map(|_| open()).collect();
    for opened in opening {
        let store = opened.await.expect("no panic").unwrap_or_else(|error| panic!("{error}"));
        write(&*store, vec![Write::Insert(at(1), Value::from("x"))]).await.ok();
    }
}

#[tokio::test]
async fn what_cannot_be_is_said() {
    let Some(url) = server().await else { return };
    let schema = program(&[("a", int())]);
    let weak = StoreSchema { level: Level::Causal, ..schema.clone() };
    let error = refusal(&PostgresConfig::at(&url), weak).await;
    assert!(error.to_string().contains("linearizable and snapshot"), "{error}");
    let error = refusal(&PostgresConfig::at("postgres://x@127.0.0.1:1/x"), schema.clone()).await;
    assert!(matches!(error, OpenError::Unavailable { .. }), "{error}");
    let error = refusal(&PostgresConfig::at("no address"), schema.clone()).await;
    assert!(matches!(error, OpenError::Config { .. }), "{error}");
    let mut none = PostgresConfig::at(&url);
    none.pool = 0;
    let error = refusal(&none, schema).await;
    assert!(error.to_string().contains("pool: expected at least 1"), "{error}");
}

#[tokio::test]
async fn functions_of_an_older_version_are_made_anew() {
    let Some(config) = config().await else { return };
    let schema = || program(&[("a", int())]);
    drop(open(config.clone(), schema()).await);
    let own = config.schema.clone().expect("it was given");
    let sql = format!(
        "UPDATE {own}.mingle_catalog SET type = '1' WHERE field = 'functions'; \
         DROP FUNCTION {own}.mingle_stop"
    );
    support::client(&config.url).await.batch_execute(&sql).await.expect("an older store");
    let migration = plan_migration(config.clone(), schema(), RealWorld::make()).await;
    let sql = migration.expect("a plan").sql();
    assert!(sql.contains("mingle_stop"), "{sql}");
    let store = open(config, schema()).await;
    write(&*store, vec![Write::Assign(at(0), Value::Int(1))]).await.expect("a commit");
}
