//! What this engine promises beyond the suite.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mingle_model::{Level, Type, Value};
use mingle_store::{
    Commit, Data, DataStore, Read, Session, StoreError, StoreOperation, StoreSchema, TestWorld,
    World, Write,
};
use mingle_store_embedded::limits::BACKLOG_MAX;
use mingle_store_embedded::storage::memory::MemoryStorage;
use mingle_store_embedded::storage::{Changes, Direction, Snapshot, Storage, StorageError};
use mingle_store_embedded::{Embedded, EmbeddedConfig};
use support::{at, data, read, session, usual, write};
use tempfile::TempDir;

const DELAY: Duration = Duration::from_millis(40);

fn open(world: &Arc<TestWorld>, config: EmbeddedConfig, schema: StoreSchema) -> Arc<dyn DataStore> {
    let world: Arc<dyn World> = world.clone();
    Embedded::open(config, schema, world).expect("the store opens")
}

#[test]
fn writes_that_read_nothing_never_conflict() {
    let world = TestWorld::new(1);
    let store = open(
        &world,
        EmbeddedConfig::in_memory(),
        usual(Level::Linearizable),
    );
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
            let committed = transaction.commit(Commit { id: None, writes }).await;
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
    let reads = [
        Read::Register(at("a", 0)),
        Read::Counter(at("a", 1)),
        Read::SetSize(at("a", 3)),
    ];
    let found = data(&world, &store, &Session::default(), &reads);
    let total = threads * each;
    let expected = [
        Data::Register(Some(Value::Int(total))),
        Data::Counter(total.into()),
        Data::Count(total.cast_unsigned()),
    ];
    assert_eq!(found, expected);
}

/// Whether it took effect.
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
    match transaction.commit(Commit { id: None, writes }).await {
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
            assert_eq!(
                found,
                [Data::Counter(all.into()), Data::Count(all)],
                "{level}, {name}"
            );
        }
    }
}

#[test]
fn an_update_takes_its_delay_and_no_more() {
    let world = TestWorld::new(1);
    let config = EmbeddedConfig::in_memory()
        .with_replicas(3)
        .with_delay(DELAY, Duration::ZERO);
    let store = open(&world, config, usual(Level::Causal));
    let add = vec![Write::Add(at("a", 1), 1)];
    world
        .block_on(write(&store, &session("r2"), add))
        .expect("a commit");
    let see = |replica| {
        data(
            &world,
            &store,
            &session(replica),
            &[Read::Counter(at("a", 1))],
        )
    };
    assert_eq!(see("r2"), [Data::Counter(1)], "its own replica");
    let moment = Duration::from_nanos(1);
    world.advance(DELAY.saturating_sub(moment));
    assert_eq!(see("r1"), [Data::Counter(0)], "before the delay is over");
    world.advance(moment);
    assert_eq!(see("r1"), [Data::Counter(1)], "when it is over");
    assert_eq!(see("r3"), [Data::Counter(1)], "at every replica");
}

/// Rows in memory that the test can look at.
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
        world
            .block_on(write(&store, &session("r1"), add))
            .expect("a commit");
        world.advance(Duration::from_millis(1));
    }
    let mut waiting = 0;
    let view = rows.snapshot().expect("memory does not fail");
    let count = &mut |_: &[u8], _: &[u8]| {
        waiting += 1;
        true
    };
    view.scan(b"u", None, Direction::Forward, count)
        .expect("memory does not fail");
    assert!(
        (1..=BACKLOG_MAX + 2).contains(&waiting),
        "{waiting} updates wait"
    );
    let found = data(&world, &store, &session("r2"), &[Read::Counter(at("a", 1))]);
    let all = i128::try_from(BACKLOG_MAX * 2).expect("a small number");
    assert_eq!(found, [Data::Counter(all)]);
}

#[test]
fn a_session_at_no_replica_is_refused_with_the_names() {
    let world = TestWorld::new(1);
    let config = EmbeddedConfig::in_memory().with_replicas(2);
    let store = open(&world, config, usual(Level::Eventual));
    let error = world
        .block_on(read(&store, &session("oslo"), &[]))
        .unwrap_err();
    let expected = "store notes refuses: it has no replica oslo; it has r1, r2";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn the_same_seed_delivers_in_the_same_order() {
    let run = |seed| {
        let world = TestWorld::new(seed);
        let config = EmbeddedConfig::in_memory()
            .with_replicas(3)
            .with_delay(DELAY, DELAY);
        let store = open(&world, config, usual(Level::Eventual));
        let mut seen = Vec::new();
        for n in 0..30i64 {
            let replica = session(["r1", "r2", "r3"][n as usize % 3]);
            let writes = vec![Write::Assign(at("a", 0), Value::Int(n))];
            world
                .block_on(write(&store, &replica, writes))
                .expect("a commit");
            world.advance(DELAY / 7);
            seen.push(data(
                &world,
                &store,
                &session("r1"),
                &[Read::Register(at("a", 0))],
            ));
        }
        seen
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

fn operation(is_command: bool, parameters: &[Type], body: Option<&str>) -> StoreOperation {
    let named = parameters.iter().map(|t| ("p".into(), t.clone()));
    StoreOperation {
        is_command,
        parameters: named.collect(),
        result: (!is_command).then_some(Type::Int),
        body: body.map(str::to_owned),
    }
}

fn with_operations(level: Level, operations: &[(&str, StoreOperation)]) -> StoreSchema {
    let mut schema = usual(level);
    let operations = operations.iter().map(|(n, o)| ((*n).into(), o.clone()));
    schema.operations = operations.collect::<BTreeMap<_, _>>();
    schema
}

fn query(operation: &str, arguments: &[Value]) -> Read {
    Read::Query {
        operation: operation.into(),
        arguments: arguments.to_vec(),
    }
}

fn builtins(level: Level) -> StoreSchema {
    let key = [Type::String];
    let query = |body| operation(false, &key, Some(body));
    with_operations(
        level,
        &[
            ("lines", query("builtin:size Note.lines")),
            ("total", query("builtin:size Note.count")),
            ("number", query("builtin:value Note.number")),
            ("tags", query("builtin:value Note.tags")),
            (
                "exists",
                operation(
                    false,
                    &[Type::Ref("Note".into())],
                    Some("builtin:exists Note"),
                ),
            ),
            ("all", operation(false, &[], Some("builtin:keys Note"))),
            (
                "say",
                operation(
                    true,
                    &[Type::String, Type::Int],
                    Some("builtin:append Note.lines"),
                ),
            ),
            (
                "pay",
                operation(
                    true,
                    &[Type::String, Type::Int],
                    Some("builtin:add Note.count"),
                ),
            ),
            ("bare", operation(false, &key, None)),
        ],
    )
}

fn check_builtins(level: Level, replicas: usize) {
    let world = TestWorld::new(1);
    let config = EmbeddedConfig::in_memory()
        .with_replicas(replicas)
        .with_delay(Duration::from_hours(1), Duration::ZERO);
    let store = open(&world, config, builtins(level));
    let names: Vec<Session> = match replicas {
        1 => vec![Session::default(); 3],
        _ => ["r1", "r2", "r3"].map(session).to_vec(),
    };
    let (a, int) = (Value::from("a"), Value::Int);
    for (index, place) in names.iter().enumerate() {
        let n = int(index as i64);
        let command = |name: &str, arguments: &[Value]| Write::Command {
            operation: name.into(),
            arguments: arguments.to_vec(),
        };
        let writes = vec![
            command("say", &[a.clone(), n.clone()]),
            command("pay", &[a.clone(), int(10)]),
            Write::Insert(at("a", 3), n.clone()),
            Write::Create(at(&format!("b{index}"), 0).object),
        ];
        world
            .block_on(write(&store, place, writes))
            .expect("a commit");
    }
    // Nothing is delivered, and yet a query sees all of it, everywhere.
    for place in &names {
        let object = Value::Ref(at("b2", 0).object);
        let reads = [
            query("lines", std::slice::from_ref(&a)),
            query("total", std::slice::from_ref(&a)),
            query("number", std::slice::from_ref(&a)),
            query("tags", std::slice::from_ref(&a)),
            query("exists", &[object]),
            query("all", &[]),
        ];
        let expected = [
            int(3),
            int(30),
            int(0),
            Value::list([int(0), int(1), int(2)]),
            Value::Bool(true),
            Value::list(["a", "b0", "b1", "b2"].map(Value::from)),
        ];
        let found = data(&world, &store, place, &reads);
        assert_eq!(found, expected.map(Data::Result), "at {place:?}");
    }
    let bare = query("bare", std::slice::from_ref(&a));
    let error = world
        .block_on(read(&store, &names[0], &[bare]))
        .unwrap_err();
    assert!(
        error.to_string().contains("operation bare has no body"),
        "{error}"
    );
}

#[test]
fn builtin_operations_at_a_serializable_store() {
    check_builtins(Level::Linearizable, 1);
}

#[test]
fn builtin_operations_see_all_replicas() {
    check_builtins(Level::Causal, 3);
    check_builtins(Level::Eventual, 3);
}

#[test]
fn a_query_sees_what_its_transaction_flushed() {
    for level in [Level::Linearizable, Level::Causal] {
        let world = TestWorld::new(1);
        let store = open(&world, EmbeddedConfig::in_memory(), builtins(level));
        world.block_on(async {
            let mut transaction = store.begin(&Session::default()).await.expect("begins");
            let append = |n| Write::Append(at("a", 2), Value::Int(n));
            transaction
                .flush(vec![append(1), append(2)])
                .await
                .expect("flushes");
            let lines = [query("lines", &[Value::from("a")])];
            let answers = transaction.read(&lines).await.expect("reads");
            assert_eq!(answers[0].data, Data::Result(Value::Int(2)), "{level}");
        });
    }
}

#[test]
fn a_query_is_validated_like_the_read_that_it_is() {
    let world = TestWorld::new(1);
    let store = open(
        &world,
        EmbeddedConfig::in_memory(),
        builtins(Level::Linearizable),
    );
    world.block_on(async {
        for (read, key) in [
            (query("all", &[]), "new"),
            (query("lines", &[Value::from("a")]), "a"),
        ] {
            let mut transaction = store.begin(&Session::default()).await.expect("begins");
            transaction.read(&[read]).await.expect("reads");
            let append = |key| vec![Write::Append(at(key, 2), Value::Int(1))];
            write(&store, &Session::default(), append(key))
                .await
                .expect("commits");
            let writes = append("other");
            let result = transaction.commit(Commit { id: None, writes }).await;
            assert_eq!(result, Err(StoreError::Conflict), "a phantom {key}");
        }
    });
}

#[test]
fn a_body_that_does_not_fit_is_refused_at_open() {
    let check = |operation: StoreOperation, part: &str| {
        let schema = with_operations(Level::Causal, &[("op", operation)]);
        let world = TestWorld::new(1);
        let error = match Embedded::open(EmbeddedConfig::in_memory(), schema, world) {
            Ok(_) => panic!("it was accepted, though {part}"),
            Err(error) => error.to_string(),
        };
        assert!(
            error.contains("operation op") && error.contains(part),
            "{error}"
        );
    };
    let key = [Type::String];
    let query = |body| operation(false, &key, Some(body));
    check(query("builtin:size"), "expected `builtin:size KIND.FIELD`");
    check(query("select 1"), "expected `builtin:size KIND.FIELD`");
    check(
        query("builtin:size Nothing.lines"),
        "no object Nothing lives in this store",
    );
    check(
        query("builtin:size Note.nothing"),
        "object Note has no field nothing",
    );
    check(
        query("builtin:size Note.number"),
        "cannot be used on Note.number, a int",
    );
    check(query("builtin:size Note"), "needs a field");
    check(
        query("builtin:append Note.lines"),
        "is a command, but is declared as a query",
    );
    let wrong = operation(false, &[Type::Int], Some("builtin:size Note.lines"));
    check(
        wrong,
        "the body takes (string), but the declaration says (int)",
    );
}

#[test]
fn bounds_are_refused_with_their_numbers() {
    let world = TestWorld::new(1);
    for level in [Level::Linearizable, Level::Eventual] {
        let store = open(&world, EmbeddedConfig::in_memory(), usual(level));
        let add = vec![Write::Add(at("a", 1), i128::MAX)];
        let error = world
            .block_on(write(&store, &Session::default(), add))
            .unwrap_err();
        assert!(error.to_string().contains("beyond 2^90"), "{error}");
    }
}
