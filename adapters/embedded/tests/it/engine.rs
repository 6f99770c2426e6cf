//! The guarantees of this engine beyond the suite.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{at, data, open, read, session, usual, write};
use mingle_model::{Level, Value};
use mingle_store::{Commit, Data, DataStore, Read, Session, StoreError, TestWorld, Write};
use mingle_store_embedded::limits::BACKLOG_MAX;
use mingle_store_embedded::storage::memory::MemoryStorage;
use mingle_store_embedded::storage::{Changes, Direction, Snapshot, Storage, StorageError};
use mingle_store_embedded::{Embedded, EmbeddedConfig};
use tempfile::TempDir;

const DELAY: Duration = Duration::from_millis(40);

#[test]
fn writes_that_read_nothing_never_conflict() {
    let world = TestWorld::new(1);
    let store = open(&world, EmbeddedConfig::in_memory(), usual(Level::Linearizable));
    world.block_on(async {
        let writes = |n| {
            vec![
                Write::Assign(at("a", 0), Value::Int(n)),
                Write::Add(at("a", 1), 1),
                Write::Append(at("a", 2), Value::Int(n)),
                Write::Insert(at("a", 3), Value::Int(1)),
                Write::Put(at("a", 4), Value::Int(1), Value::Int(n)),
            ]
        };
        let mut open = Vec::new();
        for n in 0..10 {
            let mut transaction = store.begin(&Session::default()).await.expect("begins");
            if n % 2 == 0 {
                transaction.flush(writes(n)).await.expect("flushes");
            }
            open.push(transaction);
        }
        for (n, transaction) in (0..10).zip(open) {
            let writes = if n % 2 == 0 { Vec::new() } else { writes(n) };
            let committed = transaction.commit(Commit { writes, ..Commit::default() }).await;
            committed.expect("no conflict");
        }
    });
    let reads = [Read::Counter(at("a", 1)), Read::LogSize(at("a", 2))];
    let found = data(&world, &store, &Session::default(), &reads);
    assert_eq!(found, [Data::Counter(10), Data::Count(10)]);
}

/// Real threads, each with read-modify-write transactions; with a disk they share commits.
fn hammer(config: EmbeddedConfig, threads: i64, each: i64) {
    let world = TestWorld::new(1);
    let store = open(&world, config, usual(Level::Linearizable));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (world, store) = (&world, &store);
            scope.spawn(move || {
                for n in 0..each {
                    while !world.block_on(increment(store, thread * each + n)) {}
                }
            });
        }
    });
    let reads = [Read::Register(at("a", 0)), Read::Counter(at("a", 1)), Read::SetSize(at("a", 3))];
    let found = data(&world, &store, &Session::default(), &reads);
    let total = threads * each;
    let expected = [
        Data::Register(Some(Value::Int(total))),
        Data::Counter(total.into()),
        Data::Count(total.cast_unsigned()),
    ];
    assert_eq!(found, expected);
}

/// Increments a number; true if the commit took effect.
async fn increment(store: &Arc<dyn DataStore>, n: i64) -> bool {
    let mut transaction = store.begin(&Session::default()).await.expect("begins");
    let reads = [Read::Register(at("a", 0))];
    let answers = transaction.read(&reads).await.expect("reads");
    let before = match &answers[0].data {
        Data::Register(Some(Value::Int(before))) => *before,
        _ => 0,
    };
    let writes = vec![
        Write::Assign(at("a", 0), Value::Int(before + 1)),
        Write::Add(at("a", 1), 1),
        Write::Insert(at("a", 3), Value::Int(n)),
    ];
    match transaction.commit(Commit { writes, ..Commit::default() }).await {
        Ok(_) => true,
        Err(StoreError::Conflict) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn threads_lose_no_update_in_memory() {
    hammer(EmbeddedConfig::in_memory(), 4, 200);
}

#[test]
fn threads_lose_no_update_in_a_folder() {
    let folder = TempDir::new().expect("a temporary folder");
    hammer(EmbeddedConfig::in_folder(folder.path()), 4, 40);
}

#[test]
fn threads_at_several_replicas_lose_nothing() {
    let folder = TempDir::new().expect("a temporary folder");
    for (level, config, each) in [
        (Level::Causal, EmbeddedConfig::in_memory(), 200),
        (Level::Eventual, EmbeddedConfig::in_memory(), 200),
        (Level::Causal, EmbeddedConfig::in_folder(folder.path()), 30),
    ] {
        let world = TestWorld::new(1);
        let config = config.with_replicas(3).with_delay(DELAY, DELAY);
        let store = open(&world, config, usual(level));
        let names = ["r1", "r2", "r3"];
        std::thread::scope(|scope| {
            for name in names {
                let (world, store) = (&world, &store);
                scope.spawn(move || {
                    for n in 0..each {
                        let writes = vec![
                            Write::Add(at("a", 1), 1),
                            Write::Append(at("a", 2), Value::Int(n)),
                        ];
                        let committed = world.block_on(write(store, &session(name), writes));
                        committed.expect("nothing conflicts here");
                        world.advance(DELAY / 10);
                        data(world, store, &session(name), &[Read::Counter(at("a", 1))]);
                    }
                });
            }
        });
        world.advance(DELAY * 2);
        for name in names {
            let reads = [Read::Counter(at("a", 1)), Read::LogSize(at("a", 2))];
            let found = data(&world, &store, &session(name), &reads);
            let all = each.cast_unsigned() * 3;
            assert_eq!(found, [Data::Counter(all.into()), Data::Count(all)], "{level}, {name}");
        }
    }
}

#[test]
fn an_update_takes_its_delay_and_no_more() {
    let world = TestWorld::new(1);
    let config = EmbeddedConfig::in_memory().with_replicas(3).with_delay(DELAY, Duration::ZERO);
    let store = open(&world, config, usual(Level::Causal));
    let add = vec![Write::Add(at("a", 1), 1)];
    world.block_on(write(&store, &session("r2"), add)).expect("a commit");
    let see = |replica| data(&world, &store, &session(replica), &[Read::Counter(at("a", 1))]);
    assert_eq!(see("r2"), [Data::Counter(1)], "its own replica");
    let moment = Duration::from_nanos(1);
    world.advance(DELAY.saturating_sub(moment));
    assert_eq!(see("r1"), [Data::Counter(0)], "before the delay is over");
    world.advance(moment);
    assert_eq!(see("r1"), [Data::Counter(1)], "when it is over");
    assert_eq!(see("r3"), [Data::Counter(1)], "at every replica");
}

/// Rows in memory that the test can inspect.
struct Shared(Arc<MemoryStorage>);

impl Storage for Shared {
    fn snapshot(&self) -> Result<Snapshot, StorageError> {
        self.0.snapshot()
    }

    fn commit(&self, changes: Changes) -> Result<(), StorageError> {
        self.0.commit(changes)
    }

    fn is_durable(&self) -> bool {
        false
    }
}

#[test]
fn what_waits_for_a_replica_that_nobody_visits_is_bounded() {
    let world = TestWorld::new(1);
    let config = EmbeddedConfig::in_memory()
        .with_replicas(2)
        .with_delay(Duration::from_millis(1), Duration::ZERO);
    let rows = Arc::new(MemoryStorage::default());
    let storage = Box::new(Shared(Arc::clone(&rows)));
    let schema = usual(Level::Causal);
    let store = Embedded::open_over(storage, &config, &schema, world.clone()).expect("opens");
    for _ in 0..BACKLOG_MAX * 2 {
        let add = vec![Write::Add(at("a", 1), 1)];
        world.block_on(write(&store, &session("r1"), add)).expect("a commit");
        world.advance(Duration::from_millis(1));
    }
    let mut waiting = 0;
    let view = rows.snapshot().expect("memory does not fail");
    let count = &mut |_: &[u8], _: &[u8]| {
        waiting += 1;
        true
    };
    view.scan(b"u", None, Direction::Forward, count).expect("memory does not fail");
    assert!((1..=BACKLOG_MAX + 2).contains(&waiting), "{waiting} updates wait");
    let found = data(&world, &store, &session("r2"), &[Read::Counter(at("a", 1))]);
    let all = i128::try_from(BACKLOG_MAX * 2).expect("a small number");
    assert_eq!(found, [Data::Counter(all)]);
}

#[test]
fn a_session_at_no_replica_is_refused_with_the_names() {
    let world = TestWorld::new(1);
    let config = EmbeddedConfig::in_memory().with_replicas(2);
    let store = open(&world, config, usual(Level::Eventual));
    let error = world.block_on(read(&store, &session("oslo"), &[])).unwrap_err();
    let expected = "store notes refuses: it has no replica oslo; it has r1, r2";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn the_same_seed_delivers_in_the_same_order() {
    let run = |seed| {
        let world = TestWorld::new(seed);
        let config = EmbeddedConfig::in_memory().with_replicas(3).with_delay(DELAY, DELAY);
        let store = open(&world, config, usual(Level::Eventual));
        let mut seen = Vec::new();
        for n in 0..30i64 {
            let replica = session(["r1", "r2", "r3"][n as usize % 3]);
            let writes = vec![Write::Assign(at("a", 0), Value::Int(n))];
            world.block_on(write(&store, &replica, writes)).expect("a commit");
            world.advance(DELAY / 7);
            seen.push(data(&world, &store, &session("r1"), &[Read::Register(at("a", 0))]));
        }
        seen
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn bounds_are_refused_with_their_numbers() {
    let world = TestWorld::new(1);
    for level in [Level::Linearizable, Level::Eventual] {
        let store = open(&world, EmbeddedConfig::in_memory(), usual(level));
        let add = vec![Write::Add(at("a", 1), i128::MAX)];
        let error = world.block_on(write(&store, &Session::default(), add)).unwrap_err();
        assert!(error.to_string().contains("beyond 2^90"), "{error}");
        // One value in memory, but one copy in the store for each write.
        let large = Value::from("x".repeat(16 << 20));
        let assign = |n| Write::Put(at("a", 4), Value::Int(n), large.clone());
        let writes = (0..65).map(assign).collect();
        let error = world.block_on(write(&store, &Session::default(), writes)).unwrap_err();
        assert!(error.to_string().contains("at most 1073741824 bytes"), "{error}");
    }
}
