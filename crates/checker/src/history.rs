//! Histories as data: the sessions' reads and writes of registers, with their answers.

use std::collections::{HashMap, HashSet};
use std::fmt;

use mingle_model::{Level, Name};

/// The value of every register before its first write. No write writes it.
pub const INITIAL: i64 = 0;

/// The outcome of a transaction, as far as its session knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It took effect.
    Committed,
    /// It did not take effect.
    Aborted,
    /// The answer to its commit was lost. It took effect if a transaction that took effect read
    /// from it; otherwise it makes no difference, because no transaction saw it.
    Unknown,
}

impl Outcome {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Aborted => "aborted",
            Self::Unknown => "unknown",
        }
    }
}

/// The kind of an operation: read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It returned its value.
    Read,
    /// It wrote its value.
    Write,
}

/// One read or write of a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The kind of the operation.
    pub kind: Kind,
    /// The register. A key belongs to one store.
    pub key: i64,
    /// The value read or written; a read before any write returns [`INITIAL`].
    pub value: i64,
    /// The store that the key belongs to.
    pub store: Name,
    /// The level of that store (MixT §4.1: each event has one).
    pub level: Level,
    /// For writes, if the store recorded it: the place among the writes of the key.
    pub version: Option<u64>,
}

/// The begin and end of a transaction, on one clock for all sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// It took effect no earlier than this.
    pub begin: u64,
    /// It took effect no later than this, if it is known to have committed.
    pub end: u64,
}

/// The operations of one session that form one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its unique number.
    pub id: i64,
    /// Its session. The transactions of a session follow each other in the order of the history.
    pub session: i64,
    /// Its outcome.
    pub outcome: Outcome,
    /// Its interval, if recorded.
    pub interval: Option<Interval>,
    /// Its place among all commits, if recorded; it orders the writes that have no version.
    pub commit: Option<u64>,
    /// True if it read after the system had come to rest: updates had stopped, and every replica
    /// had had the time to receive them.
    pub is_final: bool,
    /// Its operations, in order.
    pub operations: Vec<Operation>,
}

/// A well-formed history: transaction numbers are unique, values are unique for each key, a key has
/// one store and a store one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    transactions: Vec<Transaction>,
}

/// The reason why transactions do not form a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The index of the transaction with the fault.
    pub transaction: usize,
    /// The index of its operation, if the fault concerns one.
    pub operation: Option<usize>,
    /// One line, without a full stop.
    pub message: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Malformed {}

impl History {
    /// Checks that transactions form a history.
    ///
    /// # Errors
    ///
    /// If they are not well-formed; returns the first fault.
    pub fn new(transactions: Vec<Transaction>) -> Result<Self, Malformed> {
        let mut seen = Seen::default();
        for (index, transaction) in transactions.iter().enumerate() {
            seen.transaction(transaction).map_err(|message| Malformed {
                transaction: index,
                operation: None,
                message,
            })?;
            for (place, operation) in transaction.operations.iter().enumerate() {
                seen.operation(transaction, operation).map_err(|message| Malformed {
                    transaction: index,
                    operation: Some(place),
                    message,
                })?;
            }
        }
        Ok(Self { transactions })
    }

    /// Returns the transactions; those of one session are in its order.
    pub fn transactions(&self) -> &[Transaction] {
        &self.transactions
    }

    /// Returns the history with only the operations that `keep` accepts, without empty
    /// transactions. Part of a well-formed history is well-formed.
    pub(crate) fn keep(&self, keep: impl Fn(&Transaction, usize) -> bool) -> Self {
        let kept = self.transactions.iter().filter_map(|transaction| {
            let operations = transaction.operations.iter().enumerate();
            let operations: Vec<Operation> = operations
                .filter(|(place, _)| keep(transaction, *place))
                .map(|(_, operation)| operation.clone())
                .collect();
            let is_empty = operations.is_empty();
            (!is_empty).then(|| Transaction { operations, ..transaction.clone() })
        });
        Self { transactions: kept.collect() }
    }
}

impl History {
    /// Replaces the recorded order of writes, given the index of the transaction and the key.
    pub(crate) fn record(&mut self, number: impl Fn(usize, i64) -> Option<u64>) {
        for (index, transaction) in self.transactions.iter_mut().enumerate() {
            transaction.commit = None;
            for operation in &mut transaction.operations {
                operation.version = match operation.kind {
                    Kind::Read => None,
                    Kind::Write => number(index, operation.key),
                };
            }
        }
    }
}

/// The values that must be unique, and those that must agree.
#[derive(Default)]
struct Seen {
    ids: HashSet<i64>,
    commits: HashMap<u64, i64>,
    values: HashMap<(i64, i64), i64>,
    versions: HashMap<(i64, u64), (i64, i64)>,
    stores: HashMap<i64, Name>,
    levels: HashMap<Name, Level>,
}

impl Seen {
    fn transaction(&mut self, transaction: &Transaction) -> Result<(), String> {
        let id = transaction.id;
        if id < 0 {
            return Err(format!("transaction {id}: expected a number that is not negative"));
        }
        if !self.ids.insert(id) {
            return Err(format!("transaction {id} is there twice, expected another number"));
        }
        if let Some(Interval { begin, end }) = transaction.interval
            && begin > end
        {
            return Err(format!("transaction {id} begins at {begin}, after its end at {end}"));
        }
        if let Some(commit) = transaction.commit
            && let Some(other) = self.commits.insert(commit, id)
        {
            return Err(format!("transactions {other} and {id} both have commit {commit}"));
        }
        Ok(())
    }

    fn operation(&mut self, of: &Transaction, operation: &Operation) -> Result<(), String> {
        let Operation { kind, key, value, store, level, version } = operation;
        let known = self.stores.entry(*key).or_insert_with(|| store.clone());
        if known != store {
            return Err(format!("key {key} is at store {store}, expected {known} as before"));
        }
        let known = *self.levels.entry(store.clone()).or_insert(*level);
        if known != *level {
            return Err(format!("store {store} has level {level}, expected {known} as before"));
        }
        if *kind == Kind::Read {
            return match version {
                Some(_) => Err(format!("a read of key {key} has a version, expected none")),
                None => Ok(()),
            };
        }
        if *value == INITIAL {
            return Err(format!(
                "key {key} is written {INITIAL}, which it holds before any write; \
                 expected another value"
            ));
        }
        if let Some(other) = self.values.insert((*key, *value), of.id) {
            return Err(format!(
                "value {value} of key {key} is written twice, in transactions {other} and {}; \
                 expected each value once",
                of.id
            ));
        }
        if let Some(version) = version
            && let Some((other, _)) = self.versions.insert((*key, *version), (of.id, *value))
        {
            return Err(format!(
                "version {version} of key {key} is written twice, in transactions {other} and {}",
                of.id
            ));
        }
        Ok(())
    }
}
