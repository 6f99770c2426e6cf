//! How stores and replicas have answered, and what has failed behind the callers' backs: sums that an operator's figures are
//! made of.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_model::Name;
use mingle_store::StoreError;

use crate::metrics;
use crate::runtime::Runtime;

/// A task that fails again and again is logged once in so long.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// How a store, or a replica of it, has answered since the process began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The store.
    pub store: Name,
    /// Its replica; none for the one copy.
    pub replica: Option<Name>,
    /// Reads of the runtime's own records that it has answered, one round trip each.
    pub answers: u64,
    /// How long these took together.
    pub took: Duration,
    /// Requests that failed, of transactions too, by [`metrics::reason`].
    pub errors: BTreeMap<&'static str, u64>,
}

#[derive(Default)]
struct Counts {
    answers: u64,
    took: Duration,
    errors: BTreeMap<&'static str, u64>,
}

/// The failures of one task.
#[derive(Default)]
struct Failures {
    all: u64,
    /// Those that were not logged since the last one that was.
    unlogged: u64,
    logged: Option<Duration>,
}

impl Failures {
    /// One more, at a time. If it is to be logged, how many were not since the last one.
    fn add(&mut self, now: Duration) -> Option<u64> {
        self.all += 1;
        if self.logged.is_some_and(|last| now < last.saturating_add(LOG_EVERY)) {
            self.unlogged += 1;
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

/// All sums.
#[derive(Default)]
pub(crate) struct Sums {
    places: BTreeMap<(usize, Option<Name>), Counts>,
    tasks: BTreeMap<&'static str, Failures>,
    refused: BTreeMap<Name, u64>,
}

impl Runtime {
    /// How each store and replica has answered that was asked.
    pub fn answered(&self) -> Vec<Answered> {
        let sums = self.sums();
        let all = sums.places.iter().map(|((store, replica), counts)| Answered {
            store: self.name_at(*store),
            replica: replica.clone(),
            answers: counts.answers,
            took: counts.took,
            errors: counts.errors.clone(),
        });
        all.collect()
    }

    /// How often each task behind the callers' backs has failed. Each is tried again.
    pub fn background_failures(&self) -> BTreeMap<&'static str, u64> {
        self.sums().tasks.iter().map(|(task, failures)| (*task, failures.all)).collect()
    }

    /// How many calls were refused since a store is away, by store.
    pub fn refused_away(&self) -> BTreeMap<Name, u64> {
        self.sums().refused.clone()
    }

    /// A place has answered a read of records.
    pub(crate) fn note_time(&self, store: usize, replica: Option<&Name>, took: Duration) {
        let mut sums = self.sums();
        let counts = sums.places.entry((store, replica.cloned())).or_default();
        counts.answers += 1;
        counts.took += took;
    }

    /// A request at a place has failed.
    pub(crate) fn note_error(&self, store: usize, replica: Option<&Name>, error: &StoreError) {
        let reason = metrics::reason(error);
        metrics::store_failed(&self.name_at(store), replica.map_or("", |name| name), reason);
        let mut sums = self.sums();
        let counts = sums.places.entry((store, replica.cloned())).or_default();
        *counts.errors.entry(reason).or_default() += 1;
    }

    /// A call was refused since a store is away.
    pub(crate) fn note_refused(&self, store: &Name) {
        metrics::refused_away(store);
        *self.sums().refused.entry(store.clone()).or_default() += 1;
    }

    /// Says that something behind the callers' backs has failed, which is tried again: in the log once in a while.
    pub(crate) fn note_failed<T>(&self, task: &'static str, result: &Result<T, StoreError>) {
        let Err(error) = result else { return };
        metrics::behind_failed(task);
        let now = self.world.elapsed();
        if let Some(unlogged) = self.sums().tasks.entry(task).or_default().add(now) {
            tracing::warn!(%error, task, unlogged, "failed in the background, and is tried again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_logged_once_in_a_while_with_the_number_of_those_between() {
        let mut failures = Failures::default();
        let at = Duration::from_secs;
        assert_eq!(failures.add(at(5)), Some(0));
        assert_eq!((failures.add(at(6)), failures.add(at(64))), (None, None));
        assert_eq!(failures.add(at(65)), Some(2));
        assert_eq!((failures.add(at(66)), failures.all), (None, 5));
    }
}
