//! Histories of many concurrent clients, checked for strict serializability: an order of all
//! transactions must explain the reads, and a transaction that ended before another began must
//! precede it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use crate::support::{self, at, notes, open};
use mingle_checker::history::{Interval, Kind, Operation, Transaction};
use mingle_checker::{History, Model, Outcome, check};
use mingle_model::random::Random;
use mingle_model::{Level, Value};
use mingle_store::{Commit, Data, DataStore, Read, Session, StoreError, Write};
use mingle_store_postgres::{Postgres, PostgresConfig};

const CLIENTS: u64 = 6;
const TRANSACTIONS: usize = 60;
const KEYS: usize = 8;

/// Returns the read of a key: a register for the first half of the keys, an entry of one map for
/// the others.
fn read_of(key: usize) -> Read {
    if key < KEYS / 2 {
        return Read::Register(at(&format!("k{key}"), 0));
    }
    Read::Entry(at("map", 3), Value::from(format!("{key}")))
}

fn write_of(key: usize, value: i64) -> Write {
    if key < KEYS / 2 {
        return Write::Assign(at(&format!("k{key}"), 0), Value::Int(value));
    }
    Write::Put(at("map", 3), Value::from(format!("{key}")), Value::Int(value))
}

struct Client {
    store: Arc<Postgres>,
    level: Level,
    session: i64,
    random: Random,
    start: Instant,
    next: Arc<AtomicI64>,
}

impl Client {
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn operation(&self, kind: Kind, key: usize, value: i64) -> Operation {
        let (store, level) = ("shop".into(), self.level);
        Operation { kind, key: key as i64, value, store, level, version: None }
    }

    /// Runs one transaction; none if it met a conflict.
    async fn transaction(&mut self) -> Option<Transaction> {
        let begin = self.now();
        let mut open = self.store.begin(&Session::default()).await.expect("a transaction");
        let mut operations = Vec::new();
        for _ in 0..=self.random.below(3) {
            let keys: Vec<usize> =
                (0..=self.random.below(2)).map(|_| self.random.below(KEYS)).collect();
            let reads: Vec<Read> = keys.iter().map(|key| read_of(*key)).collect();
            let answers = match open.read(&reads).await {
                Err(StoreError::Conflict) => return None,
                other => other.expect("a read"),
            };
            for (key, answer) in keys.iter().zip(answers) {
                let value = match answer.data {
                    Data::Register(Some(Value::Int(value))) => value,
                    Data::Register(None) => 0,
                    other => panic!("a register reads as {other:?}"),
                };
                operations.push(self.operation(Kind::Read, *key, value));
            }
        }
        let mut writes = Vec::new();
        let mut left: Vec<usize> = (0..KEYS).collect();
        for _ in 0..self.random.below(3) {
            let key = left.swap_remove(self.random.below(left.len()));
            let value = self.next.fetch_add(1, Ordering::Relaxed);
            operations.push(self.operation(Kind::Write, key, value));
            writes.push(write_of(key, value));
        }
        match open.commit(Commit { writes, ..Commit::default() }).await {
            Err(StoreError::Conflict) => return None,
            other => drop(other.expect("a commit")),
        }
        Some(Transaction {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            session: self.session,
            outcome: Outcome::Committed,
            interval: Some(Interval { begin, end: self.now() }),
            commit: None,
            is_final: false,
            operations,
        })
    }
}

async fn history_is_strictly_serializable(level: Level, seed: u64) {
    let Some(url) = support::server().await else { return };
    let store = open(PostgresConfig::at(url), notes(level)).await;
    let (start, next) = (Instant::now(), Arc::new(AtomicI64::new(1)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let mut client = Client {
                store: Arc::clone(&store),
                level,
                session: number.cast_signed(),
                random: Random::new(seed * 100 + number),
                start,
                next: Arc::clone(&next),
            };
            tokio::spawn(async move {
                let mut done = Vec::new();
                for _ in 0..TRANSACTIONS {
                    done.extend(client.transaction().await);
                }
                done
            })
        })
        .collect();
    let mut transactions = Vec::new();
    for client in clients {
        transactions.extend(client.await.expect("no client panics"));
    }
    let count = transactions.len();
    println!("seed {seed}: {count} transactions committed");
    assert!(count > 100, "seed {seed}: only {count} transactions committed");
    let history = History::new(transactions).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let verdict = check(&history, Model::StrictSerializability);
    assert!(verdict.is_satisfied(), "seed {seed}: {verdict}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn linearizable() {
    for seed in 1..=4 {
        history_is_strictly_serializable(Level::Linearizable, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot() {
    for seed in 5..=8 {
        history_is_strictly_serializable(Level::Snapshot, seed).await;
    }
}
