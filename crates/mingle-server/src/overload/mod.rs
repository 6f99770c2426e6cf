//! Admission of calls by how long they take.
//!
//! Each transaction, and each kind of object that is looked at, is a sort of its own with a [`Limit`]: a store that is slow
//! or away takes the calls that visit it, and no others. Beyond the limit a call waits in a short queue, or is refused at
//! once with `overloaded` (503) and `Retry-After`, before it costs a store anything.
//!
//! The queue is what CoDel calls a good one (Nichols and Jacobson, "Controlling Queue Delay", 2012), with the adaptive
//! LIFO of Maurer, "Fail at Scale", 2015: it takes up bursts, and does not stand. A call waits for
//! [`TARGET`] at most; once the queue has not been empty for [`INTERVAL`], the newest call is next, since its caller still
//! waits, and none waits for longer than a twentieth of that.

mod limit;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

pub(crate) use limit::Ending;
use limit::Limit;

/// A call waits so long at most to be admitted.
pub(crate) const TARGET: Duration = Duration::from_millis(100);

/// A queue that was not empty for so long stands.
const INTERVAL: Duration = Duration::from_millis(100);

/// In a queue that stands a call waits so long at most.
const TARGET_STANDING: Duration = Duration::from_millis(5);

/// So many wait for each that may run.
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
    /// Since when a call has waited at every moment.
    waiting_since: Option<Duration>,
    refused: u64,
}

/// What is to be told of a sort.
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
    /// None if it says nothing of how long calls take.
    ending: Option<Ending>,
    /// True for one that counts as running.
    is_running: bool,
}

impl Admission {
    /// Of these sorts, of each of which at most so many calls run.
    pub(crate) fn new(sorts: impl Iterator<Item = String>, most: usize) -> Self {
        let sort = |name| (name, Arc::new(Sort::new(most)));
        Self { began: Instant::now(), sorts: sorts.map(sort).collect() }
    }

    /// Waits for a short time until a call of this sort may run; none if it may not. What has no limit is admitted
    /// without anything to hold.
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
                // Its turn may have come at this moment.
                turn.close();
                turn.try_recv().map(Some).map_err(|_| {
                    sort.lock().refused += 1;
                    Refused
                })
            }
        }
    }

    /// What is to be told of each sort.
    pub(crate) fn states(&self) -> impl Iterator<Item = (&str, State)> {
        self.sorts.iter().map(|(name, sort)| (name.as_str(), sort.lock().state()))
    }
}

/// There are too many calls of this sort.
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

    /// A call has ended; the next one runs.
    fn end(self: &Arc<Self>, began: Instant, took: Duration, ending: Option<Ending>) {
        let now = began.elapsed();
        let mut inner = self.lock();
        inner.end(now, took, ending);
        while let Some(next) = inner.next(now) {
            if let Err(mut gone) = next.send(Admitted::at(self, began)) {
                // No call waits there any more.
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
        // Those that have given up are not there any more.
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

    /// A call has ended.
    fn end(&mut self, now: Duration, took: Duration, ending: Option<Ending>) {
        self.running -= 1;
        if let Some(ending) = ending {
            self.limit.ended(now, took, ending, self.running);
        }
    }

    /// The next call that runs, if another one may.
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
    /// Of a call that counts as running.
    fn at(sort: &Arc<Sort>, began: Instant) -> Self {
        let (sort, since) = (Arc::clone(sort), Instant::now());
        Self { sort, began, since, ending: None, is_running: true }
    }

    /// The call has been answered: how long it took counts from now on, of a failure only if that was long.
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
