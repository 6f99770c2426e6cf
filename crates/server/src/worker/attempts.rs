//! Attempts, each of which runs once although it may be requested several times, and their answers.
//!
//! An answer is kept for a while, so that a client that has lost it can ask again. If a client asks
//! for an unknown attempt, it is told so, and from then on the attempt is not run, even if its request
//! still arrives. All this is a convenience: a forgotten outcome is looked up in the store.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use tokio::sync::watch;

use crate::limits::{WORKER_ANSWER_BYTES_KEPT_MAX, WORKER_ANSWERS_KEPT_MAX};
use crate::problem::{Code, Problem};

/// The client, the store, and the attempt's number.
pub(super) type Key = (String, String, u128);

/// The outcome of an attempt.
pub(super) type Outcome = Result<Bytes, Problem>;

pub(super) struct Attempts {
    inner: Mutex<Inner>,
    kept: Duration,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<Key, Entry>,
    /// Attempts that do not run, in the order in which they ended, with their bytes.
    ended: VecDeque<(Instant, Key, usize)>,
    bytes: usize,
}

enum Entry {
    Running(watch::Receiver<Option<Outcome>>),
    Ended(Outcome),
    /// The attempt must not run any more.
    Void,
}

/// The next step for an attempt that has arrived.
pub(super) enum Entered {
    /// The caller must run the attempt and report its outcome to this turn.
    New(Turn),
    /// The attempt arrived before.
    Known(Waiting),
}

/// The outcome of an attempt, now or later.
pub(super) enum Waiting {
    Ended(Outcome),
    Running(watch::Receiver<Option<Outcome>>),
}

/// An attempt that is being run.
pub(super) struct Turn {
    attempts: Arc<super::Work>,
    key: Key,
    told: watch::Sender<Option<Outcome>>,
}

impl Attempts {
    pub(super) fn new(kept: Duration) -> Self {
        Self { inner: Mutex::default(), kept }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an attempt that has arrived, and returns the next step.
    pub(super) fn enter(work: &Arc<super::Work>, key: Key) -> Result<Entered, Problem> {
        let mut inner = work.attempts.lock();
        match inner.entries.get(&key) {
            Some(Entry::Running(outcome)) => {
                return Ok(Entered::Known(Waiting::Running(outcome.clone())));
            }
            Some(Entry::Ended(outcome)) => {
                return Ok(Entered::Known(Waiting::Ended(outcome.clone())));
            }
            Some(Entry::Void) => return Err(unknown()),
            None => {}
        }
        let (told, outcome) = watch::channel(None);
        inner.entries.insert(key.clone(), Entry::Running(outcome));
        Ok(Entered::New(Turn { attempts: work.clone(), key, told }))
    }

    /// The outcome of an attempt; an unknown attempt is marked as never to be run.
    pub(super) fn ask(&self, key: Key) -> Result<Waiting, Problem> {
        let mut inner = self.lock();
        match inner.entries.get(&key) {
            Some(Entry::Running(outcome)) => Ok(Waiting::Running(outcome.clone())),
            Some(Entry::Ended(outcome)) => Ok(Waiting::Ended(outcome.clone())),
            Some(Entry::Void) => Err(unknown()),
            None => {
                inner.end(key, Entry::Void, self.kept);
                Err(unknown())
            }
        }
    }

    pub(super) fn sweep(&self) {
        self.lock().forget(self.kept);
    }
}

impl Inner {
    fn end(&mut self, key: Key, entry: Entry, kept: Duration) {
        let bytes = match &entry {
            Entry::Ended(Ok(bytes)) => bytes.len(),
            _ => 0,
        };
        self.bytes += bytes;
        self.ended.push_back((Instant::now(), key.clone(), bytes));
        self.entries.insert(key, entry);
        self.forget(kept);
    }

    fn forget(&mut self, kept: Duration) {
        while let Some((at, ..)) = self.ended.front() {
            let is_full = self.ended.len() > WORKER_ANSWERS_KEPT_MAX
                || (self.bytes > WORKER_ANSWER_BYTES_KEPT_MAX && self.ended.len() > 1);
            if at.elapsed() < kept && !is_full {
                return;
            }
            if let Some((_, key, bytes)) = self.ended.pop_front() {
                self.bytes -= bytes;
                self.entries.remove(&key);
            }
        }
    }
}

impl Turn {
    /// Ends the attempt with this outcome.
    pub(super) fn end(self, outcome: Outcome) {
        let attempts = &self.attempts.attempts;
        // A refusal is kept as well. A refused attempt has run nothing, so the client may send it again.
        let entry = Entry::Ended(outcome.clone());
        attempts.lock().end(self.key.clone(), entry, attempts.kept);
        let _ = self.told.send(Some(outcome));
    }
}

impl Waiting {
    /// The outcome, if it arrives in time.
    pub(super) async fn within(self, patience: Duration) -> Outcome {
        let mut outcome = match self {
            Self::Ended(outcome) => return outcome,
            Self::Running(outcome) => outcome,
        };
        let told = async {
            let told = outcome.wait_for(Option::is_some).await;
            told.ok().and_then(|told| told.clone())
        };
        match tokio::time::timeout(patience, told).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) => Err(Problem::new(Code::Unknown, "the attempt broke off")),
            Err(_) => {
                let detail = "the attempt still runs";
                Err(Problem::new(Code::InProgress, detail).retryable(true))
            }
        }
    }
}

fn unknown() -> Problem {
    let detail = "there was no such attempt, or it is forgotten; it will not be run any more";
    Problem::new(Code::UnknownAttempt, detail)
}
