//! The real world: the system's clock and timers, and tokio's tasks.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mingle_model::Time;
use mingle_store::{BoxFuture, Turn, World};
use tokio::sync::Semaphore;

/// The duration from which on a sleep may take a millisecond more than was asked for.
const LONG: Duration = Duration::from_millis(50);

/// The real clock and tokio's tasks. Its tasks run on the runtime on which it was made.
#[derive(Debug)]
pub struct TokioWorld {
    handle: tokio::runtime::Handle,
    start: Instant,
    seed: RandomState,
    drawn: AtomicU64,
    /// Tasks that may compute for long at a time.
    turns: Arc<Semaphore>,
}

impl TokioWorld {
    /// Creates a world on the current tokio runtime, which needs its timers (and its I/O, for
    /// stores in servers): `#[tokio::main]` enables both.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime. On one without timers every sleep panics.
    pub fn new() -> Self {
        let handle = tokio::runtime::Handle::current();
        // At least one thread is left to connections, timers and short calls.
        let turns = handle.metrics().num_workers().saturating_sub(1).max(1);
        Self {
            turns: Arc::new(Semaphore::new(turns)),
            handle,
            start: Instant::now(),
            seed: RandomState::new(),
            drawn: AtomicU64::new(0),
        }
    }
}

impl Default for TokioWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl World for TokioWorld {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Sleeps, precise to a tenth of a millisecond if the sleep is short: tokio's own timers count
    /// whole milliseconds, which doubles a distance of one. Long sleeps, mostly limits that are
    /// never reached, use tokio's timers: setting one wakes no thread, unlike one of `async-io`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        if duration >= LONG {
            let _entered = self.handle.enter();
            return Box::pin(tokio::time::sleep(duration));
        }
        Box::pin(async move {
            async_io::Timer::after(duration).await;
        })
    }

    fn random(&self) -> u64 {
        // A keyed hash of a counter, under keys that the system's randomness seeds.
        let mut hasher = self.seed.build_hasher();
        hasher.write_u64(self.drawn.fetch_add(1, Ordering::Relaxed));
        hasher.finish()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(self.handle.spawn(task));
    }

    fn is_here(&self) -> bool {
        tokio::runtime::Handle::try_current().is_ok_and(|here| here.id() == self.handle.id())
    }

    /// Waits for a turn. One task fewer than there are worker threads computes at a time. Each
    /// yields to connections and timers first, and then waits for its turn.
    fn turn(&self) -> BoxFuture<'static, Turn> {
        let turns = self.turns.clone();
        Box::pin(async move {
            tokio::task::yield_now().await;
            turns.acquire_owned().await.map_or_else(|_| Turn::default(), Turn::holding)
        })
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        let running = self.handle.spawn_blocking(work);
        Box::pin(async move {
            if let Err(error) = running.await
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        })
    }
}
