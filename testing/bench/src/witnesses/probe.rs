//! A store with optional delays of its answers about commit witnesses, and with counts of its
//! refusals.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mingle_store::wrap::layer::{Layer, Layered, Request, Work};
use mingle_store::{DataStore, Read, RecordKind, StoreError, World};

/// The delay of answers about commit witnesses (MixT §8.3).
#[derive(Clone, Copy, Debug, Default)]
pub struct Lateness {
    /// The delayed percentage of the questions.
    pub percent: u64,
    /// The delay.
    pub by: Duration,
}

/// The counts of a store so far.
#[derive(Debug, Default)]
pub struct Seen {
    /// Batches with questions for commit witnesses, including those of cleaning up.
    pub checks: AtomicU64,
    /// Commits that were refused because of unknown witness rows.
    pub witnessed: AtomicU64,
    /// Refusals of replicas that had not yet seen the session's past.
    pub behind: AtomicU64,
}

impl Seen {
    /// Returns the counts of checks, refusals for witness rows, and refusals for being behind.
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

/// The layer that delays and counts.
#[derive(Clone)]
pub struct Probe {
    world: Arc<dyn World>,
    lateness: Lateness,
    seen: Arc<Seen>,
}

impl Probe {
    pub fn new(
        inner: Arc<dyn DataStore>,
        world: Arc<dyn World>,
        lateness: Lateness,
    ) -> (Arc<Layered<Self>>, Arc<Seen>) {
        let seen = Arc::new(Seen::default());
        (Layered::around(inner, Self { world, lateness, seen: seen.clone() }), seen)
    }
}

fn asks_for_witness(read: &Read) -> bool {
    matches!(read, Read::Record(key) if key.kind == RecordKind::Witness)
}

impl Layer for Probe {
    async fn call<T: Send>(
        &self,
        request: Request<'_>,
        work: Work<'_, T>,
    ) -> Result<T, StoreError> {
        match request {
            Request::Read(reads) if reads.iter().any(asks_for_witness) => {
                self.seen.checks.fetch_add(1, Ordering::Relaxed);
                if self.world.random() % 100 < self.lateness.percent {
                    self.world.sleep(self.lateness.by).await;
                }
            }
            Request::Begin | Request::Read(_) | Request::Commit { .. } => {}
            Request::Flush { .. } | Request::Outcome | Request::Everywhere => return work().await,
        }
        self.seen.note(work().await)
    }
}
