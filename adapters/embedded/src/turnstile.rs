//! Commits pass one after another; those that wait for a disk pass it together.
//!
//! A commit is validated and applied while no other is, which orders the commits. On a disk, a
//! commit waits for `fsync`, so the thread that gets through takes along all waiting jobs, and one
//! `fsync` serves all of them.

use std::sync::{Arc, Mutex, PoisonError};

use crate::core::Core;
use crate::limits::GROUP_MAX;

/// The place for a job's result.
pub struct Slot<T>(Mutex<Option<T>>);

impl<T> Slot<T> {
    /// An empty slot.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(None)))
    }

    /// Puts the result.
    pub fn fill(&self, result: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Jobs that wait, and the gate that one group at a time goes through.
pub struct Turnstile<J> {
    waiting: Mutex<Vec<J>>,
    gate: Mutex<()>,
}

impl<J> Default for Turnstile<J> {
    fn default() -> Self {
        Self { waiting: Mutex::new(Vec::new()), gate: Mutex::new(()) }
    }
}

/// An engine that settles jobs in groups.
pub trait Settle: Send + Sync + 'static {
    /// A commit, or another job that writes.
    type Job: Send + 'static;

    /// The store.
    fn core(&self) -> &Core;

    /// Returns the turnstile of its jobs.
    fn turnstile(&self) -> &Turnstile<Self::Job>;

    /// Runs all jobs in this order in one commit of the storage, and fills their slots.
    fn settle(&self, jobs: Vec<Self::Job>);
}

/// Runs a job, on a thread that may block if the storage is a disk; returns the result from the
/// job's slot.
pub async fn submit<E: Settle, T>(engine: &Arc<E>, slot: Arc<Slot<T>>, job: E::Job) -> T {
    let turnstile = engine.turnstile();
    if engine.core().storage.is_durable() {
        turnstile.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(job);
        let blocking = Arc::clone(engine);
        let work = Box::new(move || drain(&*blocking));
        engine.core().world.run_blocking(work).await;
    } else {
        let _gate = turnstile.gate.lock().expect(CORRUPT);
        engine.settle(vec![job]);
    }
    slot.take().expect("whoever took the job filled its slot before leaving the gate")
}

const CORRUPT: &str = "no commit before this one found the store corrupt";

/// Settles groups of jobs until none of those that waited before remains.
fn drain<E: Settle>(engine: &E) {
    let turnstile = engine.turnstile();
    let _gate = turnstile.gate.lock().expect(CORRUPT);
    loop {
        let jobs: Vec<E::Job> = {
            let mut waiting = turnstile.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let count = waiting.len().min(GROUP_MAX);
            waiting.drain(..count).collect()
        };
        if jobs.is_empty() {
            return;
        }
        engine.settle(jobs);
    }
}
