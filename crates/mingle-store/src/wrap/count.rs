//! Counts round trips and outcomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_model::{Stamp, TransactionId};

use crate::operation::{Answer, Read, Write};
use crate::store::{
    Capabilities, Commit, Committed, DataStore, Outcome, Session, StoreError, Transaction,
};
use crate::world::BoxFuture;

/// How often a store was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions begun.
    pub transactions: u64,
    /// Batches of reads: a round trip each.
    pub reads: u64,
    /// Single reads in those batches.
    pub units_read: u64,
    /// Flushes: a round trip each.
    pub flushes: u64,
    /// Commits of transactions that wrote something, or had guards: a round trip each.
    pub commits: u64,
    /// Writes, flushed or sent with a commit.
    pub writes: u64,
    /// Questions for an outcome: a round trip each.
    pub outcomes: u64,
    /// Questions for what every replica has seen: a round trip each.
    pub everywheres: u64,
    /// Answers that were [`StoreError::Conflict`].
    pub conflicts: u64,
    /// Answers that were any other error.
    pub errors: u64,
}

impl Counts {
    /// All round trips.
    pub fn round_trips(&self) -> u64 {
        self.reads + self.flushes + self.commits + self.outcomes + self.everywheres
    }
}

/// Counters that go on while others look at them.
#[derive(Debug, Default)]
pub struct Counters {
    transactions: AtomicU64,
    reads: AtomicU64,
    units_read: AtomicU64,
    flushes: AtomicU64,
    commits: AtomicU64,
    writes: AtomicU64,
    outcomes: AtomicU64,
    everywheres: AtomicU64,
    conflicts: AtomicU64,
    errors: AtomicU64,
}

fn add(counter: &AtomicU64, amount: usize) {
    counter.fetch_add(amount as u64, Ordering::Relaxed);
}

impl Counters {
    /// The counts so far.
    pub fn now(&self) -> Counts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            transactions: get(&self.transactions),
            reads: get(&self.reads),
            units_read: get(&self.units_read),
            flushes: get(&self.flushes),
            commits: get(&self.commits),
            writes: get(&self.writes),
            outcomes: get(&self.outcomes),
            everywheres: get(&self.everywheres),
            conflicts: get(&self.conflicts),
            errors: get(&self.errors),
        }
    }

    fn note<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        match &result {
            Ok(_) => {}
            Err(StoreError::Conflict) => add(&self.conflicts, 1),
            Err(_) => add(&self.errors, 1),
        }
        result
    }
}

/// A store whose calls are counted.
///
/// # Examples
///
/// ```no_run
/// # fn wrap(store: std::sync::Arc<dyn mingle_store::DataStore>) {
/// let (store, counters) = mingle_store::wrap::count::CountingStore::new(store);
/// // … run a transaction on `store` …
/// assert_eq!(counters.now().round_trips(), 2);
/// # }
/// ```
pub struct CountingStore {
    inner: Arc<dyn DataStore>,
    counters: Arc<Counters>,
}

impl CountingStore {
    /// Counts calls of `inner`; the counters are shared.
    pub fn new(inner: Arc<dyn DataStore>) -> (Arc<Self>, Arc<Counters>) {
        let counters = Arc::new(Counters::default());
        let store = Self { inner, counters: Arc::clone(&counters) };
        (Arc::new(store), counters)
    }
}

impl DataStore for CountingStore {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            add(&self.counters.transactions, 1);
            let inner = self.counters.note(self.inner.begin(session).await)?;
            let transaction: Box<dyn Transaction> = Box::new(Counting {
                inner,
                counters: Arc::clone(&self.counters),
                has_flushed: false,
            });
            Ok(transaction)
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(async move {
            add(&self.counters.outcomes, 1);
            self.counters.note(self.inner.outcome(id).await)
        })
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        Box::pin(async move {
            add(&self.counters.everywheres, 1);
            self.counters.note(self.inner.everywhere().await)
        })
    }
}

struct Counting {
    inner: Box<dyn Transaction>,
    counters: Arc<Counters>,
    has_flushed: bool,
}

impl Transaction for Counting {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        add(&self.counters.reads, 1);
        add(&self.counters.units_read, reads.len());
        Box::pin(async move { self.counters.note(self.inner.read(reads).await) })
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.has_flushed |= !writes.is_empty();
        add(&self.counters.flushes, 1);
        add(&self.counters.writes, writes.len());
        Box::pin(async move { self.counters.note(self.inner.flush(writes).await) })
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        add(&self.counters.writes, commit.writes.len());
        if self.has_flushed || !commit.is_empty() {
            add(&self.counters.commits, 1);
        }
        Box::pin(async move {
            let counters = self.counters;
            counters.note(self.inner.commit(commit).await)
        })
    }
}
