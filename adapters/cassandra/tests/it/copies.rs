//! Copies of one operation, made by several helpers at several data centers, in any order.

use std::sync::Arc;

use mingle_model::random::next_random;
use mingle_model::{Level, Value};
use mingle_services::Engine;
use mingle_store::conformance::schema::{COUNT, LINES, MARKS, TAGS, TEXT, at, store_schema, thing};
use mingle_store::{
    Commit, Data, DataStore, Guard, OperationId, Outcome, Read, RecordKey, RecordKind, Session,
    StoreError, Write,
};
use mingle_store_cassandra::{Apart, Cassandra, CassandraConfig};

use crate::support::{CENTERS, config, connect, data, id, write};

fn text(text: &str) -> Value {
    Value::from(text)
}

fn reads() -> Vec<Read> {
    vec![
        Read::Exists(thing("x")),
        Read::Register(at("x", TEXT)),
        Read::Counter(at("x", COUNT)),
        Read::Elements(at("x", TAGS)),
        Read::Entries(at("x", MARKS)),
        Read::LogLast(at("x", LINES), u64::MAX),
    ]
}

async fn all(store: &Cassandra, center: &str) -> Vec<Data> {
    let mut open = store.begin(&Session::at(center)).await.expect("it begins");
    let answers = open.read(&reads()).await.expect("it reads");
    answers.into_iter().map(|answer| answer.data).collect()
}

async fn deliver(stores: &[Arc<Cassandra>]) {
    while stores[0].deliver_one().await.expect("it is delivered") {}
}

/// Two processes over replicas that receive each other's commits only on request.
async fn processes(url: &str, seed: u64) -> [Arc<Cassandra>; 2] {
    let config = CassandraConfig { apart: Some(Arc::new(Apart::new(seed))), ..config(url) };
    let schema = store_schema(Level::Eventual);
    let first = connect(config.clone(), schema.clone()).await.expect("it opens");
    [first, connect(config, schema).await.expect("it opens")]
}

/// Returns the writes of an operation, with each kind of change.
fn effects(number: u64) -> Vec<Write> {
    let own = text(&number.to_string());
    vec![
        Write::Assign(at("x", TEXT), own.clone()),
        Write::Add(at("x", COUNT), 1 << number),
        Write::Insert(at("x", TAGS), own.clone()),
        Write::Insert(at("x", TAGS), text("shared")),
        Write::Put(at("x", MARKS), own.clone(), Value::Int(number as i64)),
        Write::Append(at("x", LINES), own.clone()),
        Write::Append(at("x", LINES), own),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn of_copies_in_any_order_one_counts() {
    const SEED: u64 = 31;
    println!("seed {SEED}");
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let mut random = SEED;
    for round in 0..3 {
        let stores = processes(server.url(), SEED + round).await;
        let start = stores[0].time();
        let mut made = [0; 6];
        for _ in 0..30 {
            let number = next_random(&mut random) % 6;
            made[number as usize] += 1;
            let store = &stores[next_random(&mut random) as usize % 2];
            let center = CENTERS[next_random(&mut random) as usize % 3];
            let open = store.begin(&Session::at(center)).await.expect("it begins");
            let commit = Commit {
                writes: effects(number),
                operation: Some(OperationId { id: id(number), phase: 2 }),
                time: start + 1_000 * number,
                ..Commit::default()
            };
            open.commit(commit).await.expect("it is written");
            if next_random(&mut random).is_multiple_of(2) {
                stores[0].deliver_one().await.expect("it is delivered");
            }
        }
        deliver(&stores).await;
        let numbers: Vec<u64> = (0..6).filter(|number| made[*number as usize] > 0).collect();
        let texts: Vec<Value> = numbers.iter().map(|number| text(&number.to_string())).collect();
        let mut tags = texts.clone();
        tags.push(text("shared"));
        let marks = numbers.iter().map(|n| (text(&n.to_string()), Value::Int(*n as i64)));
        let lines = texts.iter().flat_map(|line| [line.clone(), line.clone()]);
        let expected = vec![
            Data::Bool(true),
            Data::Register(texts.last().cloned()),
            Data::Counter(numbers.iter().map(|number| 1i128 << number).sum()),
            Data::Values(tags),
            Data::Entries(marks.collect()),
            Data::Values(lines.collect()),
        ];
        for center in CENTERS {
            assert_eq!(all(&stores[0], center).await, expected, "round {round}, at {center}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_copy_brings_nothing_back() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let stores = processes(server.url(), 5).await;
    let operation = |time| Commit {
        writes: effects(1),
        operation: Some(OperationId { id: id(1), phase: 2 }),
        time,
        ..Commit::default()
    };
    let time = stores[0].time();
    let begin = async |store: &Arc<Cassandra>, center: &str| {
        store.begin(&Session::at(center)).await.expect("it begins")
    };
    begin(&stores[0], "dc1").await.commit(operation(time)).await.expect("it is written");
    deliver(&stores).await;
    // Removes all of it, and writes a part again.
    write(&stores[1], "dc2", vec![Write::Delete(thing("x"))]).await.expect("it is deleted");
    write(&stores[1], "dc2", vec![Write::Insert(at("x", TAGS), text("new"))]).await.unwrap();
    begin(&stores[1], "dc3").await.commit(operation(time)).await.expect("it is written");
    deliver(&stores).await;
    let expected = vec![
        Data::Bool(true),
        Data::Register(None),
        Data::Counter(0),
        Data::Values(vec![text("new")]),
        Data::Entries(vec![]),
        Data::Values(vec![]),
    ];
    for center in CENTERS {
        assert_eq!(all(&stores[0], center).await, expected, "at {center}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_exists_with_its_register_alone_and_is_gone_with_it() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let stores = processes(server.url(), 7).await;
    let operation = Commit {
        writes: vec![Write::Assign(at("x", TEXT), text("x"))],
        operation: Some(OperationId { id: id(1), phase: 1 }),
        time: stores[0].time(),
        ..Commit::default()
    };
    let copy = async |store: &Arc<Cassandra>, center: &str| {
        let open = store.begin(&Session::at(center)).await.expect("it begins");
        open.commit(operation.clone()).await.expect("it is written");
        deliver(&stores).await;
    };
    let change = async |change: Write| {
        write(&stores[1], "dc2", vec![change]).await.expect("it is written");
        deliver(&stores).await;
    };
    let exists = async || data(&stores[1], "dc3", Read::Exists(thing("x"))).await;
    assert_eq!(exists().await, Data::Bool(false));
    copy(&stores[0], "dc1").await;
    assert_eq!(exists().await, Data::Bool(true));
    change(Write::Delete(thing("x"))).await;
    assert_eq!(exists().await, Data::Bool(false));
    copy(&stores[1], "dc1").await;
    assert_eq!(exists().await, Data::Bool(false), "a late copy brought it back");
    // An object without a register has a row for its existence.
    change(Write::Insert(at("x", TAGS), text("a"))).await;
    change(Write::Remove(at("x", TAGS), text("a"))).await;
    assert_eq!(exists().await, Data::Bool(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_removal_spares_what_came_after_it() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let stores = processes(server.url(), 6).await;
    write(&stores[0], "dc1", effects(1)).await.expect("it is written");
    deliver(&stores).await;
    let removal = Commit {
        writes: vec![
            Write::Remove(at("x", TAGS), text("1")),
            Write::Erase(at("x", MARKS), text("1")),
            Write::Clear(at("x", LINES)),
        ],
        operation: Some(OperationId { id: id(2), phase: 2 }),
        time: stores[0].time(),
        ..Commit::default()
    };
    let open = stores[0].begin(&Session::at("dc1")).await.expect("it begins");
    open.commit(removal.clone()).await.expect("it is written");
    deliver(&stores).await;
    write(&stores[0], "dc2", effects(1)).await.expect("it is written again");
    deliver(&stores).await;
    let before = all(&stores[0], "dc2").await;
    let open = stores[1].begin(&Session::at("dc3")).await.expect("it begins");
    open.commit(removal).await.expect("it is written");
    deliver(&stores).await;
    for center in CENTERS {
        assert_eq!(all(&stores[1], center).await, before, "at {center}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_processes_that_take_a_record_one_wins() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let config = config(server.url());
    let schema = store_schema(Level::Eventual);
    let one = connect(config.clone(), schema.clone()).await.expect("it opens");
    let other = connect(config, schema).await.expect("it opens");
    for sequence in 0..8 {
        let key = RecordKey::of(RecordKind::Fixed, id(sequence), 0);
        let next = RecordKey::of(RecordKind::Fixed, id(sequence), 1);
        let take = async |store: &Arc<Cassandra>, center: &str, value: &str| {
            let open = store.begin(&Session::at(center)).await?;
            let bytes = || value.as_bytes().into();
            let writes = vec![
                Write::Record(key.clone(), bytes()),
                Write::Record(next.clone(), bytes()),
                Write::Add(at("won", COUNT), 1),
            ];
            let guards = vec![Guard::Absent(key.clone())];
            open.commit(Commit { writes, guards, ..Commit::default() }).await.map(|_| ())
        };
        let (first, second) = tokio::join!(take(&one, "dc1", "one"), take(&other, "dc3", "other"));
        let wins = [&first, &second].into_iter().filter(|result| result.is_ok()).count();
        for result in [first, second] {
            let is_fine =
                matches!(result, Ok(()) | Err(StoreError::Conflict | StoreError::Unknown { .. }));
            assert!(is_fine, "{result:?}");
        }
        assert!(wins <= 1, "both took record {sequence}");
        let (found, part) = (
            data(&one, "dc2", Read::Record(key.clone())).await,
            data(&one, "dc2", Read::Record(next.clone())).await,
        );
        assert_eq!(found, part, "parts of one record of two processes");
        assert_ne!(found, Data::Record(None), "nobody took it");
        let count = data(&other, "dc3", Read::Counter(at("won", COUNT))).await;
        assert_eq!(count, Data::Counter(i128::from(sequence) + 1), "what goes with it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_claims_to_know_what_nobody_decided() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let store = connect(config(server.url()), store_schema(Level::Eventual)).await.unwrap();
    assert_eq!(store.outcome(id(1)).await, Ok(Outcome::Unknown));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_finds_the_record_of_a_large_commit_finds_all_of_it() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    for seed in 1..=3 {
        let stores = processes(server.url(), seed).await;
        let key = RecordKey::of(RecordKind::Intent, id(1), 0);
        // The writes exceed one batch by far, in many partitions.
        let long = "x".repeat(5_000);
        let mut writes: Vec<Write> = (0..40)
            .map(|n| Write::Assign(at(&format!("{n}"), TEXT), text(&format!("{n} {long}"))))
            .collect();
        writes.push(Write::Record(key.clone(), b"intent".as_slice().into()));
        write(&stores[0], "dc1", writes).await.expect("it is written");
        let mut early = 0;
        loop {
            // The other process did not take part in the write.
            let record = data(&stores[1], "dc2", Read::Record(key.clone())).await;
            if record != Data::Record(None) {
                let reads: Vec<Read> =
                    (0..40).map(|n| Read::Register(at(&format!("{n}"), TEXT))).collect();
                let mut open = stores[1].begin(&Session::at("dc2")).await.expect("it begins");
                for (n, answer) in open.read(&reads).await.expect("it reads").iter().enumerate() {
                    let expected = text(&format!("{n} {long}"));
                    assert_eq!(answer.data, Data::Register(Some(expected)), "seed {seed}");
                }
                early += 1;
            }
            if !stores[0].deliver_one().await.expect("it is delivered") {
                break;
            }
        }
        assert!(early > 0, "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_floors_the_higher_one_stands() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let stores = processes(server.url(), 9).await;
    let key = RecordKey::of_origin(RecordKind::Floor, id(1).origin);
    for (store, number) in [(0, 100), (1, 90), (0, 95)] {
        let floor = Write::Record(key.clone(), mingle_store::record::floor(number));
        write(&stores[store], CENTERS[store], vec![floor]).await.expect("it is written");
    }
    deliver(&stores).await;
    for center in CENTERS {
        let found = data(&stores[0], center, Read::Record(key.clone())).await;
        assert_eq!(found, Data::Record(Some(mingle_store::record::floor(100))), "at {center}");
    }
}
