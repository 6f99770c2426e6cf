//! Guards at several replicas, and witness rows beside features specific to this engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{at, data, open, read, session, usual, write};
use mingle_model::{Level, Origin, RowKind, TransactionId, Type, Value, WitnessRow};
use mingle_store::record::floor;
use mingle_store::{
    Commit, Data, DataStore, Guard, Once, Read, RecordKey, RecordKind, StoreError, StoreOperation,
    StoreSchema, TestWorld, Write,
};
use mingle_store_embedded::EmbeddedConfig;

const DELAY: Duration = Duration::from_millis(10);

fn id() -> TransactionId {
    TransactionId { origin: Origin(3), sequence: 4 }
}

fn witness() -> RecordKey {
    RecordKey::of(RecordKind::Witness, id(), 0)
}

fn floor_key() -> RecordKey {
    RecordKey::of_origin(RecordKind::Floor, Origin(3))
}

fn setup(level: Level, once: Once) -> (Arc<TestWorld>, Arc<dyn DataStore>) {
    let world = TestWorld::new(1);
    let config = EmbeddedConfig::in_memory().with_replicas(2).with_delay(DELAY, Duration::ZERO);
    let store = open(&world, config.with_once(once), usual(level));
    assert_eq!(store.capabilities().once, once);
    (world, store)
}

/// Adds to a counter at a replica, once.
fn take(world: &TestWorld, store: &Arc<dyn DataStore>, replica: &str) -> Result<(), StoreError> {
    world.block_on(async {
        let transaction = store.begin(&session(replica)).await?;
        let value = replica.as_bytes().into();
        let writes = vec![Write::Record(witness(), value), Write::Add(at("a", 1), 1)];
        let guards = vec![Guard::Absent(witness()), Guard::Below(floor_key(), id().sequence)];
        transaction.commit(Commit { writes, guards, ..Commit::default() }).await.map(|_| ())
    })
}

fn sums(world: &TestWorld, store: &Arc<dyn DataStore>) -> [Data; 2] {
    world.advance(DELAY);
    ["r1", "r2"].map(|replica| {
        let found = data(world, store, &session(replica), &[Read::Counter(at("a", 1))]);
        found.into_iter().next().expect("one answer")
    })
}

#[test]
fn one_replica_takes_it_where_the_store_is_serial() {
    for level in [Level::Causal, Level::Eventual] {
        let (world, store) = setup(level, Once::Serial);
        assert_eq!(take(&world, &store, "r1"), Ok(()));
        assert_eq!(take(&world, &store, "r2"), Err(StoreError::Conflict), "{level}");
        assert_eq!(sums(&world, &store), [Data::Counter(1), Data::Counter(1)], "{level}");
        assert_eq!(take(&world, &store, "r2"), Err(StoreError::Conflict), "{level}, delivered");
    }
}

#[test]
fn each_replica_takes_it_where_it_judges_alone() {
    for level in [Level::Causal, Level::Eventual] {
        let (world, store) = setup(level, Once::Home);
        assert_eq!(take(&world, &store, "r1"), Ok(()));
        assert_eq!(take(&world, &store, "r1"), Err(StoreError::Conflict), "{level}, at home");
        assert_eq!(take(&world, &store, "r2"), Ok(()), "{level}: it does not know of r1");
        assert_eq!(sums(&world, &store), [Data::Counter(2), Data::Counter(2)], "{level}");
        for replica in ["r1", "r2"] {
            assert_eq!(take(&world, &store, replica), Err(StoreError::Conflict), "{level}");
        }
    }
}

#[test]
fn a_floor_holds_at_every_replica_of_a_serial_store_and_is_what_replicas_end_up_with() {
    let (world, store) = setup(Level::Causal, Once::Serial);
    let raise = |replica, number| {
        let record = vec![Write::Record(floor_key(), floor(number))];
        world.block_on(write(&store, &session(replica), record)).expect("a commit");
    };
    // The clock of r1 is ahead of the clock of r2, which has not seen anything yet.
    for number in 1..=3 {
        raise("r1", number);
    }
    raise("r2", 9);
    for replica in ["r1", "r2"] {
        assert_eq!(take(&world, &store, replica), Err(StoreError::Conflict));
    }
    world.advance(DELAY);
    for replica in ["r1", "r2"] {
        let found = data(&world, &store, &session(replica), &[Read::Record(floor_key())]);
        assert_eq!(found, [Data::Record(Some(floor(9)))], "what guards were judged by");
    }
}

fn row(object: Option<&str>) -> WitnessRow {
    WitnessRow {
        object: object.map(|key| at(key, 0).object),
        id: id(),
        kind: RowKind::Write,
        intent: "accounts".into(),
        stores: vec!["accounts".into()],
        seen: Vec::new(),
    }
}

/// Returns the usual schema with the command `pay`, which adds to a counter, and the query `total`.
fn with_operations(level: Level) -> StoreSchema {
    let operation = |is_command, parameters: &[Type], body: &str| StoreOperation {
        is_command,
        parameters: parameters.iter().map(|t| ("p".into(), t.clone())).collect(),
        result: (!is_command).then_some(Type::Int),
        body: Some(body.to_owned()),
        builtin: None,
    };
    let mut schema = usual(level);
    schema.operations = BTreeMap::from([
        ("pay".into(), operation(true, &[Type::String, Type::Int], "builtin:add Note.count")),
        ("total".into(), operation(false, &[Type::String], "builtin:size Note.count")),
    ]);
    schema
}

#[test]
fn a_command_must_know_the_rows_of_what_it_writes() {
    for level in Level::ALL {
        let world = TestWorld::new(1);
        let store = open(&world, EmbeddedConfig::in_memory(), with_operations(level));
        let arguments = |key: &str| vec![Value::from(key), Value::Int(5)];
        let pay = |key: &str| Write::Command { operation: "pay".into(), arguments: arguments(key) };
        let commit = |commit| {
            world.block_on(async {
                let transaction = store.begin(&session("r1")).await.expect("begins");
                transaction.commit(commit).await.map(|_| ())
            })
        };
        let write = |write| commit(Commit { writes: vec![write], ..Commit::default() });
        assert_eq!(write(Write::Witness(row(Some("a")))), Ok(()));
        let rows = vec![row(Some("a"))];
        assert_eq!(write(pay("a")), Err(StoreError::Witnessed { rows }), "{level}");
        assert_eq!(write(pay("b")), Ok(()), "{level}, another object");
        assert_eq!(write(Write::Forget(id())), Ok(()));
        assert_eq!(write(Write::Witness(row(None))), Ok(()));
        let rows = vec![row(None)];
        assert_eq!(write(pay("b")), Err(StoreError::Witnessed { rows }), "{level}, the store");
        let known = [id()].into();
        let knowing = Commit { writes: vec![pay("a")], known, ..Commit::default() };
        assert_eq!(commit(knowing), Ok(()), "{level}, knowing");
    }
}

#[test]
fn a_query_comes_with_the_rows_of_the_whole_store_alone() {
    for level in Level::ALL {
        let world = TestWorld::new(1);
        let store = open(&world, EmbeddedConfig::in_memory(), with_operations(level));
        let rows = vec![Write::Witness(row(Some("a"))), Write::Witness(row(None))];
        world.block_on(write(&store, &session("r1"), rows)).expect("a commit");
        let query = Read::Query { operation: "total".into(), arguments: vec![Value::from("a")] };
        let reads = [query, Read::Counter(at("a", 1))];
        let answers = world.block_on(read(&store, &session("r1"), &reads)).expect("reads");
        assert_eq!(answers[0].witnesses, [row(None)], "{level}, the query");
        assert_eq!(answers[1].witnesses, [row(Some("a")), row(None)], "{level}, the object");
    }
}
