//! Support for several tests.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mingle_model::{
    Field, FieldType, Level, ObjectType, Ref, Schema, StructType, Time, Type, Value,
};
use mingle_services::Engine;
use mingle_store::{
    Address, Answer, BoxFuture, Commit, Committed, Data, DataStore, Read, Session, StoreError,
    StoreSchema, World, Write,
};
use mingle_store_postgres::{Postgres, PostgresConfig};
use tokio_postgres::{Client, NoTls};

/// The real clock, and tokio's tasks.
pub struct RealWorld {
    start: Instant,
    drawn: AtomicU64,
}

impl RealWorld {
    pub fn make() -> Arc<dyn World> {
        Arc::new(Self { start: Instant::now(), drawn: AtomicU64::new(1) })
    }
}

impl World for RealWorld {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn random(&self) -> u64 {
        self.drawn.fetch_add(1, Ordering::Relaxed)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(tokio::spawn(task));
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        Box::pin(async move { work() })
    }
}

/// Returns the address of a server of this process; none if PostgreSQL is not installed here.
pub async fn server() -> Option<String> {
    Some(mingle_services::shared(Engine::Postgres).await?.url().to_owned())
}

/// Opens a connection of the test's own.
pub async fn client(url: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.expect("the server takes connections");
    tokio::spawn(connection);
    client
}

/// Returns a name that is unique on this server.
pub fn unique(name: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{name}_{}_{}_{number}", std::process::id(), since.as_micros())
}

/// Commits writes in a transaction of their own.
pub async fn write(store: &dyn DataStore, writes: Vec<Write>) -> Result<Committed, StoreError> {
    let transaction = store.begin(&Session::default()).await?;
    transaction.commit(Commit { writes, ..Commit::default() }).await
}

/// Reads in a transaction of their own.
pub async fn read(store: &dyn DataStore, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
    let mut transaction = store.begin(&Session::default()).await?;
    let answers = transaction.read(reads).await?;
    transaction.commit(Commit::default()).await?;
    Ok(answers)
}

/// Returns the result of one read.
pub async fn data(store: &dyn DataStore, one: Read) -> Data {
    let answers = read(store, &[one]).await.expect("the read succeeds");
    answers.into_iter().next().expect("one answer").data
}

/// The names and types of an object's fields.
pub type Fields<'a> = &'a [(&'a str, FieldType)];

/// Returns a schema of objects with these keys and fields, all in the store `shop`.
pub fn schema(
    level: Level,
    structs: &[(&str, &[(&str, Type)])],
    objects: &[(&str, Type, Fields<'_>)],
) -> StoreSchema {
    let mut schema = Schema::default();
    for (name, fields) in structs {
        let fields = fields.iter().map(|(name, inner)| ((*name).into(), inner.clone()));
        let declared = StructType { name: (*name).into(), fields: fields.collect() };
        schema.structs.insert((*name).into(), Arc::new(declared));
    }
    for (name, key_type, fields) in objects {
        let field = |(name, field_type): &(&str, FieldType)| Field {
            name: (*name).into(),
            field_type: field_type.clone(),
            default: match field_type {
                FieldType::Register(Type::Ref(_)) => Value::NONE,
                FieldType::Register(inner) => schema.default_of(inner),
                _ => Value::list([]),
            },
        };
        let object = ObjectType {
            name: (*name).into(),
            store: "shop".into(),
            key_name: "key".into(),
            key_type: key_type.clone(),
            fields: fields.iter().map(field).collect(),
        };
        schema.objects.insert((*name).into(), Arc::new(object));
    }
    StoreSchema {
        store: "shop".into(),
        level,
        schema: Arc::new(schema),
        operations: BTreeMap::new(),
    }
}

/// Returns a schema with fields of every shape: `number` (0), `count` (1), `tags` (2), `marks` (3),
/// `lines` (4), of objects `Note` with a string key.
pub fn notes(level: Level) -> StoreSchema {
    let fields = [
        ("number", FieldType::Register(Type::Int)),
        ("count", FieldType::Counter),
        ("tags", FieldType::Set(Type::String)),
        ("marks", FieldType::Map(Type::String, Type::Int)),
        ("lines", FieldType::Log(Type::String)),
    ];
    schema(level, &[], &[("Note", Type::String, &fields)])
}

/// Returns a field of the `Note` with this key.
pub fn at(key: &str, field: u16) -> Address {
    Address { object: Ref::new("Note", Value::from(key)), field }
}

/// Opens a store, in a schema of its own unless `config` says otherwise.
pub async fn open(mut config: PostgresConfig, schema: StoreSchema) -> Arc<Postgres> {
    config.schema = config.schema.or_else(|| Some(unique("test")));
    let store = Postgres::connect(config, schema, RealWorld::make()).await;
    store.unwrap_or_else(|error| panic!("{error}"))
}
