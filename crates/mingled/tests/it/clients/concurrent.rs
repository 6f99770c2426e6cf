//! Commands of concurrent clients at three data centers, judged by the checkers of histories: causal
//! ones by causal convergence, those on keys of `strong_only` by strict serializability.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use mingle_checker::{
    History, INITIAL, Interval, Kind, Model, Operation, Outcome, Transaction, check,
};
use mingle_model::random::Random;
use mingle_model::{Level, Name};
use redis_protocol::resp2::types::OwnedFrame;

use super::serving::Serving;
use super::{Raw, seed};

/// The clients of each data center.
const CLIENTS: usize = 2;

/// The transactions of each client.
const TRANSACTIONS: usize = 40;

/// The keys of each kind.
const KEYS: usize = 4;

/// One client with its random choices.
struct Client<'a> {
    raw: Raw,
    random: Random,
    session: i64,
    began: Instant,
    /// The numbers of transactions and of written values.
    numbers: &'a AtomicI64,
    is_strong: bool,
}

impl Client<'_> {
    fn number(&self) -> i64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn key(&mut self) -> i64 {
        self.random.below(KEYS) as i64
    }

    fn name(&self, key: i64) -> String {
        format!("{}-{key}", if self.is_strong { "strong" } else { "plain" })
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn operation(&self, kind: Kind, key: i64, value: i64) -> Operation {
        let (store, level) =
            if self.is_strong { ("s", Level::Linearizable) } else { ("c", Level::Causal) };
        let store = Name::from(store);
        Operation { kind, key, value, store, level, version: None }
    }

    /// Runs a transaction, and returns what happened.
    fn transact(&mut self) -> Transaction {
        let begin = self.now();
        let (outcome, operations) = match self.random.below(6) {
            0 if !self.is_strong => self.read(),
            1 if !self.is_strong => self.write(),
            2 => self.watched(),
            _ => self.several(),
        };
        let interval = Interval { begin, end: self.now() };
        Transaction {
            id: self.number(),
            session: self.session,
            outcome,
            interval: self.is_strong.then_some(interval),
            commit: None,
            is_final: false,
            operations,
        }
    }

    fn read(&mut self) -> (Outcome, Vec<Operation>) {
        let keys = [self.key(), self.key()];
        let found = self.raw.call(&["MGET", &self.name(keys[0]), &self.name(keys[1])]);
        let OwnedFrame::Array(found) = found else { panic!("{found:?}") };
        let found = keys.iter().zip(&found);
        let reads = found.map(|(key, found)| self.operation(Kind::Read, *key, value(found)));
        (Outcome::Committed, reads.collect())
    }

    fn write(&mut self) -> (Outcome, Vec<Operation>) {
        let (key, number) = (self.key(), self.number());
        let reply = self.raw.call(&["SET", &self.name(key), &number.to_string()]);
        assert_eq!(reply, OwnedFrame::SimpleString("OK".into()));
        (Outcome::Committed, vec![self.operation(Kind::Write, key, number)])
    }

    /// Reads and writes several keys with `MULTI`.
    fn several(&mut self) -> (Outcome, Vec<Operation>) {
        assert_eq!(self.raw.ask("MULTI"), "+OK");
        let mut asked = Vec::new();
        for _ in 0..=self.random.below(2) {
            let key = self.key();
            assert_eq!(self.raw.ask(&format!("GET {}", self.name(key))), "+QUEUED");
            asked.push((Kind::Read, key, INITIAL));
        }
        // A write of a key under `strong_only` makes the transaction strong.
        for _ in 0..=self.random.below(2) {
            let (key, number) = (self.key(), self.number());
            assert_eq!(self.raw.ask(&format!("SET {} {number}", self.name(key))), "+QUEUED");
            asked.push((Kind::Write, key, number));
        }
        self.executed(&asked)
    }

    /// Changes a key that it watches.
    fn watched(&mut self) -> (Outcome, Vec<Operation>) {
        let (key, number) = (self.key(), self.number());
        let name = self.name(key);
        assert_eq!(self.raw.ask(&format!("WATCH {name}")), "+OK");
        let seen = value(&self.raw.call(&["GET", &name]));
        assert_eq!(self.raw.ask("MULTI"), "+OK");
        assert_eq!(self.raw.ask(&format!("SET {name} {number}")), "+QUEUED");
        let (outcome, mut operations) = self.executed(&[(Kind::Write, key, number)]);
        operations.insert(0, self.operation(Kind::Read, key, seen));
        (outcome, operations)
    }

    /// Sends `EXEC`, and returns the operations with the values that its reads found.
    fn executed(&mut self, asked: &[(Kind, i64, i64)]) -> (Outcome, Vec<Operation>) {
        let reply = self.raw.call(&["EXEC"]);
        let (outcome, found) = match reply {
            OwnedFrame::Array(found) => (Outcome::Committed, found),
            OwnedFrame::Null => (Outcome::Aborted, Vec::new()),
            OwnedFrame::Error(text) if text.starts_with("CONFLICT") => {
                (Outcome::Aborted, Vec::new())
            }
            OwnedFrame::Error(text) if text.starts_with("UNKNOWN") => {
                (Outcome::Unknown, Vec::new())
            }
            other => panic!("{other:?}"),
        };
        let mut operations = Vec::new();
        for (place, (kind, key, number)) in asked.iter().enumerate() {
            match (kind, found.get(place)) {
                (Kind::Write, _) => operations.push(self.operation(Kind::Write, *key, *number)),
                (Kind::Read, Some(found)) => {
                    operations.push(self.operation(Kind::Read, *key, value(found)));
                }
                (Kind::Read, None) => {}
            }
        }
        (outcome, operations)
    }
}

fn value(found: &OwnedFrame) -> i64 {
    match found {
        OwnedFrame::Null => INITIAL,
        OwnedFrame::BulkString(bytes) => {
            let text = std::str::from_utf8(bytes).expect("a number");
            text.parse().expect("a number")
        }
        other => panic!("{other:?}"),
    }
}

/// Runs all clients at once, and returns the history.
fn history(serving: &Serving, is_strong: bool, seed: u64) -> Vec<Transaction> {
    let (numbers, began) = (AtomicI64::new(0), Instant::now());
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..3 * CLIENTS)
            .map(|number| {
                let (raw, numbers) = (serving.client(number % 3), &numbers);
                let random = Random::new(seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9));
                let session = number as i64;
                let mut client = Client { raw, random, session, began, numbers, is_strong };
                scope
                    .spawn(move || (0..TRANSACTIONS).map(|_| client.transact()).collect::<Vec<_>>())
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("it ends")).collect()
    })
}

/// Returns the number of committed reads of another session's value: without them a history says little.
fn reads_of_others(transactions: &[Transaction]) -> usize {
    let committed = || transactions.iter().filter(|it| it.outcome == Outcome::Committed);
    let of = |kind: Kind| {
        committed().flat_map(move |transaction| {
            let operations = transaction.operations.iter().filter(move |it| it.kind == kind);
            operations.map(move |it| ((it.key, it.value), transaction.session))
        })
    };
    let writers: BTreeMap<(i64, i64), i64> = of(Kind::Write).collect();
    of(Kind::Read)
        .filter(|(at, reader)| writers.get(at).is_some_and(|writer| writer != reader))
        .count()
}

#[test]
fn concurrent_commands_are_causal_and_strong_ones_strictly_serializable() {
    let serving = Serving::started(3, &["--strong-only", "strong-*"]);
    let seed = seed();
    for (is_strong, model) in [(false, Model::CausalPlus), (true, Model::StrictSerializability)] {
        let transactions = history(&serving, is_strong, seed);
        let others = reads_of_others(&transactions);
        assert!(others > TRANSACTIONS / 2, "seed {seed}: {others} reads of other clients' values");
        let history = History::new(transactions).expect("values are written once");
        let verdict = check(&history, model);
        assert!(verdict.is_satisfied(), "seed {seed}, {model}: {verdict}");
    }
}
