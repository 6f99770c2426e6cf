//! Counts round trips and outcomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::layer::{Layer, Layered, Request, Work};
use crate::store::{Commit, Committed, DataStore, StoreError, Transaction};
use crate::world::BoxFuture;

/// The number of calls of a store, by kind.
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
    /// Commits of transactions that wrote data, or had guards: a round trip each.
    pub commits: u64,
    /// Writes, flushed or sent with a commit.
    pub writes: u64,
    /// Queries for an outcome: a round trip each.
    pub outcomes: u64,
    /// Queries for the stamp that every replica has seen: a round trip each.
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

/// Counters that can be read while they count.
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

    fn count(&self, request: Request<'_>) {
        match request {
            Request::Begin => add(&self.transactions, 1),
            Request::Read(reads) => {
                add(&self.reads, 1);
                add(&self.units_read, reads.len());
            }
            Request::Flush { writes } => {
                add(&self.flushes, 1);
                add(&self.writes, writes);
            }
            Request::Commit { is_empty, .. } => add(&self.commits, usize::from(!is_empty)),
            Request::Outcome => add(&self.outcomes, 1),
            Request::Everywhere => add(&self.everywheres, 1),
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
pub type CountingStore = Layered<Counting>;

/// The layer that counts.
#[derive(Clone)]
pub struct Counting {
    counters: Arc<Counters>,
}

impl CountingStore {
    /// Counts calls of `inner`; the counters are shared.
    pub fn new(inner: Arc<dyn DataStore>) -> (Arc<Self>, Arc<Counters>) {
        let counters = Arc::new(Counters::default());
        (Self::around(inner, Counting { counters: Arc::clone(&counters) }), counters)
    }
}

impl Layer for Counting {
    fn call<T: Send>(
        &self,
        request: Request<'_>,
        work: Work<'_, T>,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        self.counters.count(request);
        async move { self.counters.note(work().await) }
    }

    fn commit(
        self,
        request: Request<'static>,
        inner: Box<dyn Transaction>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        self.counters.count(request);
        add(&self.counters.writes, commit.writes.len());
        Box::pin(async move { self.counters.note(inner.commit(commit).await) })
    }
}
