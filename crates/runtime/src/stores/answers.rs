//! Counters of the answers of stores and replicas, and of failures of background tasks, for an
//! operator's metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_model::Name;
use mingle_store::StoreError;

use crate::observe::metrics;
use crate::stores::Stores;

/// The interval between log lines of a task that fails again and again.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// The answers of a store, or of a replica of it, since the process began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The store.
    pub store: Name,
    /// Its replica; none for the one copy.
    pub replica: Option<Name>,
    /// Reads of the runtime's own records that it has answered, one round trip each.
    pub answers: u64,
    /// The total time of these answers.
    pub took: Duration,
    /// Failed requests, those of transactions included, by [`metrics::reason`].
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
    /// The failures since the last one that was logged.
    unlogged: u64,
    logged: Option<Duration>,
}

impl Failures {
    /// Counts a failure. Returns the number of unlogged ones before it if it is to be logged.
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

/// All counters.
#[derive(Default)]
pub(crate) struct Sums {
    places: BTreeMap<(usize, Option<Name>), Counts>,
    tasks: BTreeMap<&'static str, Failures>,
    refused: BTreeMap<Name, u64>,
}

impl Stores {
    /// Returns the answers of each store and replica that was asked.
    pub(crate) fn answered(&self) -> Vec<Answered> {
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

    /// Returns the number of failures of each background task. Each is tried again.
    pub(crate) fn background_failures(&self) -> BTreeMap<&'static str, u64> {
        self.sums().tasks.iter().map(|(task, failures)| (*task, failures.all)).collect()
    }

    /// Returns the number of calls that were refused because a store is away, by store.
    pub(crate) fn refused_away(&self) -> BTreeMap<Name, u64> {
        self.sums().refused.clone()
    }

    /// Records that a place has answered a read of records.
    pub(crate) fn note_time(&self, store: usize, replica: Option<&Name>, took: Duration) {
        let mut sums = self.sums();
        let counts = sums.places.entry((store, replica.cloned())).or_default();
        counts.answers += 1;
        counts.took += took;
    }

    /// Records that a request at a place has failed.
    pub(crate) fn note_error(&self, store: usize, replica: Option<&Name>, error: &StoreError) {
        let reason = metrics::reason(error);
        metrics::store_failed(&self.name_at(store), replica.map_or("", |name| name), reason);
        let mut sums = self.sums();
        let counts = sums.places.entry((store, replica.cloned())).or_default();
        *counts.errors.entry(reason).or_default() += 1;
    }

    /// Records that a call was refused because a store is away.
    pub(crate) fn note_refused(&self, store: &Name) {
        metrics::refused_away(store);
        *self.sums().refused.entry(store.clone()).or_default() += 1;
    }

    /// Records the failure of a background task, which is tried again; logs it once in a while.
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
