//! A store whose answers about commit witnesses can be made late, and whose refusals are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mingle_model::{Stamp, TransactionId};
use mingle_store::{
    Answer, BoxFuture, Capabilities, Commit, Committed, DataStore, Outcome, Read, RecordKind,
    Session, StoreError, Transaction, World, Write,
};

/// How late answers about commit witnesses are (MixT §8.3).
#[derive(Clone, Copy, Debug, Default)]
pub struct Lateness {
    /// Of so many percent of the questions.
    pub percent: u64,
    /// By so much.
    pub by: Duration,
}

/// What was seen of a store so far.
#[derive(Debug, Default)]
pub struct Seen {
    /// Batches with questions for commit witnesses. Cleaning up asks too.
    pub checks: AtomicU64,
    /// Commits that were refused because of witness rows that they did not know.
    pub witnessed: AtomicU64,
    /// Replicas that had not yet seen what a session had.
    pub behind: AtomicU64,
}

impl Seen {
    /// Checks, refusals for witness rows, refusals for being behind.
    pub fn now(&self) -> [u64; 3] {
        [&self.checks, &self.witnessed, &self.behind].map(|count| count.load(Ordering::Relaxed))
    }

    fn note<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        match &result {
            Err(StoreError::Witnessed { .. }) => self.witnessed.fetch_add(1, Ordering::Relaxed),
            Err(StoreError::Behind { .. }) => self.behind.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        result
    }
}

/// The store.
pub struct Probe {
    inner: Arc<dyn DataStore>,
    link: Link,
}

#[derive(Clone)]
struct Link {
    world: Arc<dyn World>,
    lateness: Lateness,
    seen: Arc<Seen>,
}

impl Probe {
    pub fn new(
        inner: Arc<dyn DataStore>,
        world: Arc<dyn World>,
        lateness: Lateness,
    ) -> (Arc<Self>, Arc<Seen>) {
        let seen = Arc::new(Seen::default());
        let link = Link { world, lateness, seen: seen.clone() };
        (Arc::new(Self { inner, link }), seen)
    }
}

impl DataStore for Probe {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            let inner = self.link.seen.note(self.inner.begin(session).await)?;
            let transaction: Box<dyn Transaction> =
                Box::new(Probed { inner, link: self.link.clone() });
            Ok(transaction)
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        self.inner.outcome(id)
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        self.inner.everywhere()
    }
}

struct Probed {
    inner: Box<dyn Transaction>,
    link: Link,
}

fn asks_for_witness(read: &Read) -> bool {
    matches!(read, Read::Record(key) if key.kind == RecordKind::Witness)
}

impl Transaction for Probed {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(async move {
            let Link { world, lateness, seen } = &self.link;
            if reads.iter().any(asks_for_witness) {
                seen.checks.fetch_add(1, Ordering::Relaxed);
                if world.random() % 100 < lateness.percent {
                    world.sleep(lateness.by).await;
                }
            }
            seen.note(self.inner.read(reads).await)
        })
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.flush(writes)
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let seen = self.link.seen.clone();
        let committed = self.inner.commit(commit);
        Box::pin(async move { seen.note(committed.await) })
    }
}
