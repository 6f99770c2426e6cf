//! Admission of calls by their durations.
//!
//! Each transaction, and each kind of object that callers read, is a sort of its own with a
//! [`Limit`]: a store that is slow or away delays only the calls that visit it. Beyond the limit a
//! call waits in a short queue, or is refused at once with `overloaded` (503) and `Retry-After`,
//! before it costs a store anything.
//!
//! The queue is a good queue in the sense of CoDel (Nichols and Jacobson, "Controlling Queue
//! Delay", 2012): it absorbs bursts and does not stand. It has the adaptive LIFO of Maurer, "Fail
//! at Scale", 2015. A call waits for at most [`TARGET`]. Once the queue has not been empty for
//! [`INTERVAL`], it is a standing queue: the newest call is next, because its caller still waits,
//! and no call waits for longer than a twentieth of [`TARGET`].

mod limit;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

pub(crate) use limit::Ending;
use limit::Limit;

/// The maximum time that a call waits to be admitted.
pub(crate) const TARGET: Duration = Duration::from_millis(100);

/// The time without being empty after which a queue is standing.
const INTERVAL: Duration = Duration::from_millis(100);

/// The maximum time that a call waits in a standing queue.
const TARGET_STANDING: Duration = Duration::from_millis(5);

/// The number of calls that may wait for each call that may run.
const WAITING_PER_RUNNING: usize = 1;

/// The sorts of calls, each with its limit.
pub(crate) struct Admission {
    began: Instant,
    sorts: HashMap<String, Arc<Sort>>,
}

/// Calls of one sort.
pub(crate) struct Sort {
    inner: Mutex<Inner>,
}

struct Inner {
    limit: Limit,
    running: usize,
    waiting: VecDeque<oneshot::Sender<Admitted>>,
    /// The time since which at least one call has always been waiting.
    waiting_since: Option<Duration>,
    refused: u64,
}

/// The figures of a sort.
pub(crate) struct State {
    pub(crate) limit: usize,
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) refused: u64,
}

/// One call that was admitted.
pub(crate) struct Admitted {
    sort: Arc<Sort>,
    began: Instant,
    since: Instant,
    /// The ending; none if the duration of this call must not be counted.
    ending: Option<Ending>,
    /// True if the call counts as running.
    is_running: bool,
}

impl Admission {
    /// Creates the admission of these sorts; at most `most` calls of each run at a time.
    pub(crate) fn new(sorts: impl Iterator<Item = String>, most: usize) -> Self {
        let sort = |name| (name, Arc::new(Sort::new(most)));
        Self { began: Instant::now(), sorts: sorts.map(sort).collect() }
    }

    /// Waits for a short time until a call of this sort may run; refuses it if that time passes. A
    /// name without a limit is admitted at once and gets no [`Admitted`].
    pub(crate) async fn admit(&self, name: &str) -> Result<Option<Admitted>, Refused> {
        let Some(sort) = self.sorts.get(name) else { return Ok(None) };
        let now = self.began.elapsed();
        let entered = sort.lock().enter(now);
        match entered {
            Entered::Runs => Ok(Some(Admitted::at(sort, self.began))),
            Entered::Refused => Err(Refused),
            Entered::Waits(mut turn, patience) => {
                if let Ok(Ok(admitted)) = tokio::time::timeout(patience, &mut turn).await {
                    return Ok(Some(admitted));
                }
                // The call's turn may have come at this moment.
                turn.close();
                turn.try_recv().map(Some).map_err(|_| {
                    sort.lock().refused += 1;
                    Refused
                })
            }
        }
    }

    /// Returns the figures of each sort.
    pub(crate) fn states(&self) -> impl Iterator<Item = (&str, State)> {
        self.sorts.iter().map(|(name, sort)| (name.as_str(), sort.lock().state()))
    }
}

/// The error for too many calls of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

enum Entered {
    Runs,
    Waits(oneshot::Receiver<Admitted>, Duration),
    Refused,
}

impl Sort {
    fn new(most: usize) -> Self {
        let (limit, waiting) = (Limit::new(most, Duration::ZERO), VecDeque::new());
        let inner = Inner { limit, running: 0, waiting, waiting_since: None, refused: 0 };
        Self { inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a call has ended, and starts the next one.
    fn end(self: &Arc<Self>, began: Instant, took: Duration, ending: Option<Ending>) {
        let now = began.elapsed();
        let mut inner = self.lock();
        inner.end(now, took, ending);
        while let Some(next) = inner.next(now) {
            if let Err(mut gone) = next.send(Admitted::at(self, began)) {
                // That call has given up waiting.
                gone.is_running = false;
                inner.running -= 1;
            }
        }
    }
}

impl Inner {
    fn enter(&mut self, now: Duration) -> Entered {
        if self.running < self.limit.get() {
            self.begin();
            return Entered::Runs;
        }
        // Calls that have given up are removed from the queue.
        self.waiting.retain(|turn| !turn.is_closed());
        if self.waiting.is_empty() {
            self.waiting_since = Some(now);
        }
        if self.waiting.len() >= self.limit.get() * WAITING_PER_RUNNING {
            self.refused += 1;
            return Entered::Refused;
        }
        let (turn, waits) = oneshot::channel();
        self.waiting.push_back(turn);
        Entered::Waits(waits, if self.stands(now) { TARGET_STANDING } else { TARGET })
    }

    fn stands(&self, now: Duration) -> bool {
        self.waiting_since.is_some_and(|since| now >= since.saturating_add(INTERVAL))
    }

    fn begin(&mut self) {
        self.running += 1;
        self.limit.runs(self.running);
    }

    /// Records that a call has ended.
    fn end(&mut self, now: Duration, took: Duration, ending: Option<Ending>) {
        self.running -= 1;
        if let Some(ending) = ending {
            self.limit.ended(now, took, ending, self.running);
        }
    }

    /// Takes the next call to run, if another one may run.
    fn next(&mut self, now: Duration) -> Option<oneshot::Sender<Admitted>> {
        if self.running >= self.limit.get() {
            return None;
        }
        self.waiting.retain(|turn| !turn.is_closed());
        let newest_first = self.stands(now);
        let next = if newest_first { self.waiting.pop_back() } else { self.waiting.pop_front() };
        if next.is_some() {
            self.begin();
        } else {
            self.waiting_since = None;
        }
        next
    }

    fn state(&self) -> State {
        let waiting = self.waiting.iter().filter(|turn| !turn.is_closed()).count();
        State { limit: self.limit.get(), running: self.running, waiting, refused: self.refused }
    }
}

impl Admitted {
    /// Creates the admission of a call that counts as running.
    fn at(sort: &Arc<Sort>, began: Instant) -> Self {
        let (sort, since) = (Arc::clone(sort), Instant::now());
        Self { sort, began, since, ending: None, is_running: true }
    }

    /// Records that the call has been answered: its duration is counted, that of a failure only if
    /// it was long.
    pub(crate) fn is_answered(&mut self, ending: Ending) {
        self.ending = Some(ending);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if self.is_running {
            self.sort.end(self.began, self.since.elapsed(), self.ending);
        }
    }
}
