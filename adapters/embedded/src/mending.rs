//! Reopening of a failed disk, at the first call to the store after some time.
//!
//! Nothing runs in the background: the first call that begins a transaction, asks for an outcome or for the
//! store's [health](mingle_store::DataStore::health) at least [`REOPEN_EVERY`] after the failure reopens it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_store::StoreError;

use crate::core::Core;
use crate::limits::REOPEN_EVERY;
use crate::storage::StorageError;

/// The health of a store's disk.
#[derive(Default)]
pub struct Health(Mutex<State>);

#[derive(Default)]
enum State {
    /// As far as is known.
    #[default]
    Well,
    /// It has failed: why, and when the next attempt to open it again may begin.
    Broken { why: String, retry_at: Duration },
    /// It is being opened again; why it had failed.
    Reopening { why: String },
}

impl Health {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the disk has failed.
    pub fn is_broken(&self) -> bool {
        !matches!(*self.lock(), State::Well)
    }

    /// Returns the reason why nothing is served; none if the disk works.
    pub fn trouble(&self) -> Option<String> {
        match &*self.lock() {
            State::Well => None,
            State::Broken { why, .. } | State::Reopening { why } => Some(why.clone()),
        }
    }

    /// Notes that the disk failed, or failed again while it was opened. The first reason stays.
    pub fn fail(&self, why: String, now: Duration) {
        let mut state = self.lock();
        if !matches!(*state, State::Broken { .. }) {
            *state = State::Broken { why, retry_at: now + REOPEN_EVERY };
        }
    }

    /// Begins an attempt to open it again, if it is time for one.
    fn begin(&self, now: Duration) -> Option<Attempt<'_>> {
        let mut state = self.lock();
        let State::Broken { why, retry_at } = &*state else { return None };
        if now < *retry_at {
            return None;
        }
        let why = why.clone();
        *state = State::Reopening { why: why.clone() };
        Some(Attempt { health: self, now, why })
    }
}

/// An attempt to open a disk again; dropped, it has failed.
struct Attempt<'a> {
    health: &'a Health,
    now: Duration,
    why: String,
}

impl Attempt<'_> {
    fn end(mut self, done: Result<(), StorageError>) {
        match done {
            Ok(()) => {
                let mut state = self.health.lock();
                if matches!(*state, State::Reopening { .. }) {
                    *state = State::Well;
                }
            }
            Err(error) => {
                self.why = format!("its disk failed, and it does not open again: {error}");
            }
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut state = self.health.lock();
        if let State::Reopening { .. } = *state {
            let why = std::mem::take(&mut self.why);
            *state = State::Broken { why, retry_at: self.now + REOPEN_EVERY };
        }
    }
}

/// An engine whose disk can be opened again.
pub trait Mend: Send + Sync + 'static {
    /// The store.
    fn core(&self) -> &Core;

    /// Reopens the disk, and reloads from it the engine's state in memory.
    ///
    /// # Errors
    ///
    /// The reason why that fails.
    fn reopen(&self) -> Result<(), StorageError>;
}

/// Sees that the store serves: opens its disk again if that failed a while ago.
///
/// # Errors
///
/// [`StoreError::Unavailable`], with the reason.
pub async fn serve<E: Mend>(engine: &Arc<E>) -> Result<(), StoreError> {
    let core = engine.core();
    if core.is_broken() {
        let blocking = Arc::clone(engine);
        core.world.run_blocking(Box::new(move || attempt(&*blocking))).await;
    }
    core.check()
}

fn attempt(engine: &impl Mend) {
    let core = engine.core();
    if let Some(attempt) = core.health.begin(core.world.elapsed()) {
        attempt.end(engine.reopen());
    }
}
