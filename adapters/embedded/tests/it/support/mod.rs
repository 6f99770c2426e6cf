//! Shared parts of several tests.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::{Field, FieldType, Level, ObjectType, Ref, Schema, Type, Value};
use mingle_store::{
    Address, Answer, Commit, Committed, Data, DataStore, Read, Session, StoreError, StoreSchema,
    TestWorld, World, Write,
};
use mingle_store_embedded::{Embedded, EmbeddedConfig};

pub mod disk;
pub mod members;

/// A schema of one object `Note` with a string key and these fields.
pub fn schema(level: Level, fields: &[(&str, FieldType)]) -> StoreSchema {
    let field = |(name, field_type): &(&str, FieldType)| Field {
        name: (*name).into(),
        field_type: field_type.clone(),
        default: match field_type {
            FieldType::Register(inner) => Schema::default().default_of(inner),
            _ => Value::list([]),
        },
    };
    let object = ObjectType {
        name: "Note".into(),
        store: "notes".into(),
        key_name: "key".into(),
        key_type: Type::String,
        fields: fields.iter().map(field).collect(),
    };
    let mut schema = Schema::default();
    schema.objects.insert("Note".into(), Arc::new(object));
    StoreSchema {
        store: "notes".into(),
        level,
        schema: Arc::new(schema),
        operations: BTreeMap::new(),
    }
}

/// The usual fields: `number` (0), `count` (1), `lines` (2), `tags` (3), `marks` (4).
pub fn usual(level: Level) -> StoreSchema {
    let fields = [
        ("number", FieldType::Register(Type::Int)),
        ("count", FieldType::Counter),
        ("lines", FieldType::Log(Type::Int)),
        ("tags", FieldType::Set(Type::Int)),
        ("marks", FieldType::Map(Type::Int, Type::Int)),
    ];
    schema(level, &fields)
}

/// An open store.
pub fn open(
    world: &Arc<TestWorld>,
    config: EmbeddedConfig,
    schema: StoreSchema,
) -> Arc<dyn DataStore> {
    let world: Arc<dyn World> = world.clone();
    Embedded::open(config, schema, world).expect("the store opens")
}

/// A field of the `Note` with this key.
pub fn at(key: &str, field: u16) -> Address {
    Address { object: Ref::new("Note", Value::from(key)), field }
}

/// A session at a replica.
pub fn session(replica: &str) -> Session {
    Session::at(replica)
}

/// Commits writes in a transaction of their own.
pub async fn write(
    store: &Arc<dyn DataStore>,
    session: &Session,
    writes: Vec<Write>,
) -> Result<Committed, StoreError> {
    let transaction = store.begin(session).await?;
    transaction.commit(Commit { writes, ..Commit::default() }).await
}

/// Reads in a transaction of their own.
pub async fn read(
    store: &Arc<dyn DataStore>,
    session: &Session,
    reads: &[Read],
) -> Result<Vec<Answer>, StoreError> {
    let mut transaction = store.begin(session).await?;
    let answers = transaction.read(reads).await?;
    transaction.commit(Commit::default()).await?;
    Ok(answers)
}

/// Returns the data of reads that must succeed.
pub fn data(
    world: &TestWorld,
    store: &Arc<dyn DataStore>,
    at: &Session,
    reads: &[Read],
) -> Vec<Data> {
    let answers = world.block_on(read(store, at, reads)).expect("the read succeeds");
    answers.into_iter().map(|answer| answer.data).collect()
}

/// The writes of the `n`th of a series of commits.
pub fn nth(n: u64) -> Vec<Write> {
    let value = Value::Int(i64::try_from(n).expect("a small number"));
    vec![
        Write::Assign(at("a", 0), value.clone()),
        Write::Add(at("b", 1), n.into()),
        Write::Append(at("c", 2), value.clone()),
        Write::Insert(at("d", 3), value.clone()),
        Write::Remove(at("d", 3), Value::Int(n.cast_signed() - 1)),
        Write::Put(at("e", 4), Value::Int(n.cast_signed() % 7), value),
    ]
}

/// Returns the number of commits of the series; checks that the store holds exactly those, each whole.
pub fn count_series(world: &TestWorld, store: &Arc<dyn DataStore>, at_session: &Session) -> u64 {
    let reads = [
        Read::LogLast(at("c", 2), u64::MAX),
        Read::Register(at("a", 0)),
        Read::Counter(at("b", 1)),
        Read::Elements(at("d", 3)),
        Read::Entries(at("e", 4)),
    ];
    let found = data(world, store, at_session, &reads);
    let Data::Values(lines) = &found[0] else {
        panic!("lines are {:?}", found[0]);
    };
    let count = lines.len() as u64;
    let int = |n: u64| Value::Int(n.cast_signed());
    let all: Vec<Value> = (1..=count).map(int).collect();
    assert_eq!(*lines, all, "the log");
    let last = (count > 0).then(|| int(count));
    assert_eq!(found[1], Data::Register(last.clone()), "the register");
    let sum = i128::from(count) * (i128::from(count) + 1) / 2;
    assert_eq!(found[2], Data::Counter(sum), "the counter");
    assert_eq!(found[3], Data::Values(last.into_iter().collect()), "the set");
    let entries: BTreeMap<Value, Value> = (1..=count).map(|n| (int(n % 7), int(n))).collect();
    assert_eq!(found[4], Data::Entries(entries.into_iter().collect()), "the map");
    count
}
