//! Stores at real servers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mingle_model::{
    Field, FieldType, Level, ObjectType, Origin, Schema, TransactionId, Type, Value,
};
use mingle_runtime::TokioWorld;
use mingle_store::conformance::schema::store_schema;
use mingle_store::{
    Answer, Commit, Data, DataStore, Outcome, Read, Session, StoreError, StoreSchema, Write,
};
use mingle_store_redis::{OpenError, Redis, RedisConfig};

/// Returns a prefix that no other test of any process uses.
pub fn fresh_prefix() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("test:{}:{}:", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the settings of a separate store at a server.
pub fn config(url: &str) -> RedisConfig {
    RedisConfig { prefix: Some(fresh_prefix()), ..RedisConfig::at(url) }
}

/// Opens a store.
pub async fn connect(config: RedisConfig, schema: StoreSchema) -> Result<Arc<Redis>, OpenError> {
    Redis::connect(config, schema, Arc::new(TokioWorld::new())).await
}

/// Opens the suite's store at a server.
pub async fn open(config: RedisConfig) -> Arc<Redis> {
    connect(config, store_schema(Level::Linearizable)).await.expect("the store opens")
}

/// Commits writes in a transaction of their own.
pub async fn write(store: &Redis, writes: Vec<Write>) -> Result<(), StoreError> {
    let open = store.begin(&Session::default()).await?;
    open.commit(Commit { writes, ..Commit::default() }).await.map(|_| ())
}

/// Reads in a transaction of their own.
pub async fn read(store: &Redis, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
    let mut open = store.begin(&Session::default()).await?;
    let answers = open.read(reads).await?;
    open.commit(Commit::default()).await?;
    Ok(answers)
}

/// Returns the data of one read.
pub async fn data(store: &Redis, read: Read) -> Data {
    let mut answers = self::read(store, &[read]).await.expect("it reads");
    answers.remove(0).data
}

/// Returns a text value.
pub fn text(text: &str) -> Value {
    Value::from(text)
}

/// A separate client, which plays another application.
pub struct Other(redis::aio::MultiplexedConnection);

impl Other {
    /// Connects to a server.
    pub async fn at(url: &str) -> Self {
        let client = redis::Client::open(url).expect("an address");
        let connection = client.get_multiplexed_async_connection().await;
        Self(connection.expect("the server is there"))
    }

    /// Runs a command, given as words separated by spaces.
    pub async fn run(&mut self, command: &str) -> redis::Value {
        let words: Vec<&str> = command.split(' ').collect();
        self.words(&words).await
    }

    /// Runs a command.
    pub async fn words(&mut self, words: &[&str]) -> redis::Value {
        let mut command = redis::Cmd::new();
        command.arg(words);
        self.0.send_packed_command(&command).await.expect("the server does it")
    }

    /// Returns a number from the server's `INFO`, such as `total_commands_processed`.
    pub async fn info(&mut self, name: &str) -> u64 {
        let redis::Value::BulkString(found) = self.run("INFO").await else { return 0 };
        let found = String::from_utf8_lossy(&found).into_owned();
        let pairs: BTreeMap<&str, &str> =
            found.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
        pairs.get(name).and_then(|value| value.parse().ok()).expect("a number")
    }
}

/// Returns a string reply.
pub fn bulk(text: &str) -> redis::Value {
    redis::Value::BulkString(text.as_bytes().to_vec())
}

/// Returns an object with these fields, in store `suite`.
pub fn object(name: &str, key: (&str, Type), fields: &[(&str, FieldType)]) -> ObjectType {
    let field = |(name, field_type): &(&str, FieldType)| Field {
        name: (*name).into(),
        default: match field_type {
            FieldType::Register(Type::Ref(_) | Type::Struct(_)) => Value::NONE,
            FieldType::Register(inner) => Schema::default().default_of(inner),
            _ => Value::list([]),
        },
        field_type: field_type.clone(),
    };
    ObjectType {
        name: name.into(),
        store: "suite".into(),
        key_name: key.0.into(),
        key_type: key.1,
        fields: fields.iter().map(field).collect(),
    }
}

/// Returns a schema with these objects.
pub fn schema(objects: Vec<ObjectType>) -> StoreSchema {
    let mut schema = Schema::default();
    for object in objects {
        schema.objects.insert(object.name.clone(), Arc::new(object));
    }
    StoreSchema {
        store: "suite".into(),
        level: Level::Linearizable,
        schema: Arc::new(schema),
        operations: BTreeMap::new(),
    }
}

/// Returns an id of a test process.
pub fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(77), sequence }
}

/// Returns the reason of a refusal, or the text of any other result.
pub fn refusal<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Refused { reason, .. }) => reason,
        other => format!("no refusal, but {other:?}"),
    }
}

/// Asks again for a while if the server is away.
pub async fn outcome(store: &Redis, id: TransactionId) -> Outcome {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match store.outcome(id).await {
            Ok(outcome) => return outcome,
            Err(StoreError::Unavailable { .. }) if Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}
