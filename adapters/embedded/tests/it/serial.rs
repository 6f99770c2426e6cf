//! Strict serializability: transactions that overlap in every way, replayed one after another.
//!
//! The version of a commit is its place in the order. Each transaction must have read the
//! model's values at its place; one that wrote nothing, the model's values at some place between
//! its begin and its end.

use std::sync::{Arc, Mutex};

use crate::support::{at, usual};
use mingle_model::{Level, Value};
use mingle_store::conformance::model::Model;
use mingle_store::random::next_random;
use mingle_store::test_world::{join_all, yield_now};
use mingle_store::{
    BoxFuture, Commit, Data, DataStore, Read, Session, StoreError, TestWorld, World, Write,
};
use mingle_store_embedded::{Embedded, EmbeddedConfig};
use tempfile::TempDir;

/// A transaction that took effect.
struct Done {
    /// Its place in the order, if it wrote anything.
    version: Option<u64>,
    /// The last commit that was acknowledged before it began.
    after: u64,
    /// The last commit that was acknowledged when it ended.
    until: u64,
    steps: Vec<Step>,
}

/// A step of a transaction.
#[derive(Debug)]
enum Step {
    Read(Read, Data),
    Write(Vec<Write>),
}

/// The transactions of all tasks of one run.
#[derive(Default)]
struct Run {
    done: Vec<Done>,
    last: u64,
    conflicts: u64,
}

const KEYS: [&str; 2] = ["a", "b"];

fn random_read(random: &mut u64) -> Read {
    let key = KEYS[(next_random(random) % 2) as usize];
    let n = Value::Int((next_random(random) % 3).cast_signed());
    match next_random(random) % 9 {
        0 => Read::Exists(at(key, 0).object),
        1 => Read::Register(at(key, 0)),
        2 => Read::Counter(at(key, 1)),
        3 => Read::LogLast(at(key, 2), 3),
        4 => Read::Contains(at(key, 3), n),
        5 => Read::SetSize(at(key, 3)),
        6 => Read::Elements(at(key, 3)),
        7 => Read::Entry(at(key, 4), n),
        _ => Read::Entries(at(key, 4)),
    }
}

fn random_write(random: &mut u64) -> Write {
    let key = KEYS[(next_random(random) % 2) as usize];
    let n = Value::Int((next_random(random) % 3).cast_signed());
    match next_random(random) % 10 {
        0 => Write::Create(at(key, 0).object),
        1 => Write::Delete(at(key, 0).object),
        2 => Write::Assign(at(key, 0), n),
        3 => Write::Add(at(key, 1), 1),
        4 => Write::Append(at(key, 2), n),
        5 => Write::Insert(at(key, 3), n),
        6 => Write::Remove(at(key, 3), n),
        7 => Write::Put(at(key, 4), n.clone(), n),
        8 => Write::Erase(at(key, 4), n),
        _ => Write::Clear(at(key, 3)),
    }
}

async fn transact(store: &Arc<dyn DataStore>, random: &mut u64, run: &Mutex<Run>) {
    let after = run.lock().expect("no panic").last;
    let mut transaction = store.begin(&Session::default()).await.expect("begins");
    let mut steps = Vec::new();
    let mut has_written = false;
    for _ in 0..next_random(random) % 4 {
        if next_random(random).is_multiple_of(3) {
            let flushed = vec![random_write(random)];
            transaction.flush(flushed.clone()).await.expect("flushes");
            steps.push(Step::Write(flushed));
            has_written = true;
        } else {
            let batch: Vec<Read> =
                (0..=next_random(random) % 2).map(|_| random_read(random)).collect();
            let answers = transaction.read(&batch).await.expect("reads");
            let answers = answers.into_iter().map(|answer| answer.data);
            let reads = batch.into_iter().zip(answers);
            steps.extend(reads.map(|(read, found)| Step::Read(read, found)));
        }
        yield_now().await;
    }
    let count = next_random(random) % 3;
    let writes: Vec<Write> = (0..count).map(|_| random_write(random)).collect();
    has_written |= !writes.is_empty();
    steps.push(Step::Write(writes.clone()));
    let commit = Commit { writes, ..Commit::default() };
    let result = transaction.commit(commit).await;
    let mut run = run.lock().expect("no panic");
    match result {
        Ok(committed) => {
            let version = has_written.then_some(committed.version.0);
            run.last = run.last.max(version.unwrap_or(0));
            let until = run.last;
            run.done.push(Done { version, after, until, steps });
        }
        Err(StoreError::Conflict) => run.conflicts += 1,
        Err(error) => panic!("{error}"),
    }
}

/// Returns the model after a transaction, if the transaction's reads match the model.
fn step(model: &Model, done: &Done) -> Option<Model> {
    let mut model = model.clone();
    for step in &done.steps {
        match step {
            Step::Read(read, found) if model.read(read) == *found => {}
            Step::Read(..) => return None,
            Step::Write(writes) => model.write_all(writes),
        }
    }
    Some(model)
}

/// Replays the transactions in the order of versions.
fn replay(seed: u64, in_turns: bool, run: &mut Run) {
    run.done.sort_by_key(|done| done.version);
    let writing: Vec<&Done> = run.done.iter().filter(|d| d.version.is_some()).collect();
    let mut states = vec![Model::default()];
    for (index, done) in writing.iter().enumerate() {
        let place = index as u64 + 1;
        assert_eq!(done.version, Some(place), "seed {seed}: versions count commits");
        assert!(done.after < place, "seed {seed}: commit {place} began after it");
        let next = step(&states[index], done);
        states
            .push(next.unwrap_or_else(|| panic!("seed {seed}, commit {place}: {:?}", done.steps)));
    }
    for done in run.done.iter().filter(|done| done.version.is_none()) {
        let until = if in_turns {
            done.until as usize
        } else {
            // A commit that a thread has not noted yet may have been seen by another.
            states.len() - 1
        };
        let range = done.after as usize..=until;
        let mut candidates = states[range.clone()].iter();
        let fits_somewhere = candidates.any(|model| step(model, done).is_some());
        assert!(fits_somewhere, "seed {seed}, read only, {range:?}: {:?}", done.steps);
    }
}

fn check(seed: u64, config: EmbeddedConfig, each: u64) -> u64 {
    let world = TestWorld::new(seed);
    let clock: Arc<dyn World> = world.clone();
    let store = Embedded::open(config, usual(Level::Linearizable), clock).expect("opens");
    let run = Mutex::new(Run::default());
    let task = |task: u64| -> BoxFuture<'_, ()> {
        let (store, run) = (&store, &run);
        let mut random = seed * 1000 + task;
        Box::pin(async move {
            for _ in 0..each {
                transact(store, &mut random, run).await;
            }
        })
    };
    world.block_on(join_all((0..5).map(task).collect()));
    let mut run = run.into_inner().expect("no panic");
    replay(seed, true, &mut run);
    run.conflicts
}

#[test]
fn overlapping_transactions_have_an_order_in_memory() {
    let conflicts: u64 = (1..40).map(|seed| check(seed, EmbeddedConfig::in_memory(), 60)).sum();
    assert!(conflicts > 100, "only {conflicts} conflicts: hardly anything overlapped");
}

#[test]
fn overlapping_transactions_have_an_order_in_a_folder() {
    let folder = TempDir::new().expect("a temporary folder");
    check(99, EmbeddedConfig::in_folder(folder.path()), 60);
}

/// Threads instead of turns: the machine decides the overlaps, but the guarantees still hold.
#[test]
fn threads_have_an_order() {
    let folder = TempDir::new().expect("a temporary folder");
    for config in [EmbeddedConfig::in_memory(), EmbeddedConfig::in_folder(folder.path())] {
        let world = TestWorld::new(1);
        let clock: Arc<dyn World> = world.clone();
        let store = Embedded::open(config, usual(Level::Snapshot), clock).expect("opens");
        let run = Mutex::new(Run::default());
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let (world, store, run) = (&world, &store, &run);
                scope.spawn(move || {
                    let mut random = thread + 1;
                    for _ in 0..80 {
                        world.block_on(transact(store, &mut random, run));
                    }
                });
            }
        });
        replay(1, false, &mut run.into_inner().expect("no panic"));
    }
}
