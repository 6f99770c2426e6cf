//! Circuit breakers: calls that need a store that is away are refused at once.
//!
//! A transaction that has committed at its first store waits for a later store that is away, and
//! transactions that access its objects wait with it. So a store that is away would hold up more
//! and more transactions that never visit it. Once a store, or a replica, has failed for
//! [`AWAY_AFTER`] without any answer, its circuit is open: a call that would have to visit it is
//! refused at once, before it writes anything, with the store's name and the time without answers.
//! A call that waits for an earlier store alone (`until`) is not refused. A background task asks
//! until the store answers, and closes the circuit. Transactions that have begun keep trying all
//! the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use mingle_lang::Plan;
use mingle_model::{Level, Name, TransactionId};
use mingle_store::{Once, Read, RecordKind, StoreError};

use crate::api::call::Call;
use crate::api::error::Error;
use crate::api::settings::{AWAY_AFTER, AWAY_FAILURES, PROBE_EVERY, PROBE_EVERY_MAX};
use crate::interpreter::instructions::visits;
use crate::mutants::Mutant;
use crate::observe::metrics;
use crate::stores::Stores;

/// A replica of a store, or its one copy.
type Place = (usize, Option<Name>);

/// A place that has failed, and has not answered since.
#[derive(Clone, Debug)]
struct Failing {
    since: Duration,
    failures: u32,
    reason: String,
    is_open: bool,
}

/// The places that fail.
#[derive(Default)]
pub(crate) struct Circuits(BTreeMap<Place, Failing>);

impl Circuits {
    /// Records a failure of a place; true if its circuit opens with this failure.
    fn fails(&mut self, place: &Place, now: Duration, reason: String) -> bool {
        let failing = self.0.entry(place.clone()).or_insert_with(|| Failing {
            since: now,
            failures: 0,
            reason: String::new(),
            is_open: false,
        });
        (failing.failures, failing.reason) = (failing.failures.saturating_add(1), reason);
        let is_away =
            failing.failures >= AWAY_FAILURES && now >= failing.since.saturating_add(AWAY_AFTER);
        is_away && !std::mem::replace(&mut failing.is_open, true)
    }

    /// Records an answer of a place; true if its circuit was open.
    fn answers(&mut self, place: &Place) -> bool {
        // Usually no place fails.
        !self.0.is_empty() && self.0.remove(place).is_some_and(|failing| failing.is_open)
    }

    fn open(&self, place: &Place) -> Option<&Failing> {
        self.0.get(place).filter(|failing| failing.is_open)
    }
}

/// A store or a replica that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Away {
    /// The store.
    pub store: Name,
    /// Its replica; none for the one copy.
    pub replica: Option<Name>,
    /// The time for which it has not answered.
    pub since: Duration,
    /// The last error.
    pub reason: String,
}

impl fmt::Display for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store {}", self.store)?;
        if let Some(replica) = &self.replica {
            write!(f, " (replica {replica})")?;
        }
        write!(f, " has not answered for {} s", self.since.as_secs())
    }
}

impl Away {
    fn to_error(&self) -> StoreError {
        let replica =
            self.replica.as_ref().map_or(String::new(), |name| format!("replica {name} "));
        let (seconds, last) = (self.since.as_secs(), &self.reason);
        StoreError::Unavailable {
            store: self.store.clone(),
            reason: format!(
                "{replica}has not answered for {seconds} s, so nothing is begun that has to visit it; last: {last}"
            ),
        }
    }
}

impl Away {
    /// Builds the error for a transaction that waits at `at` for `id`, which must visit this store.
    pub(crate) fn holds_up(&self, id: TransactionId, at: &Name) -> StoreError {
        let (seconds, last) = (self.since.as_secs(), &self.reason);
        StoreError::Unavailable {
            store: self.store.clone(),
            reason: format!(
                "has not answered for {seconds} s; transaction {id}, for which this one has to wait at {at}, has to visit it first; last: {last}"
            ),
        }
    }
}

impl Stores {
    /// Returns the stores and replicas that do not answer at present.
    pub(crate) fn away(&self) -> Vec<Away> {
        let now = self.world.elapsed();
        let circuits = self.circuits();
        let open = circuits.0.iter().filter(|(_, failing)| failing.is_open);
        open.map(|(place, failing)| self.away_of(place, failing, now)).collect()
    }

    fn away_of(&self, (store, replica): &Place, failing: &Failing, now: Duration) -> Away {
        Away {
            store: self.name_at(*store),
            replica: replica.clone(),
            since: now.saturating_sub(failing.since),
            reason: failing.reason.clone(),
        }
    }

    /// Refuses a call that has to visit a store that is away, before anything is written.
    pub(crate) fn refuse_if_away(&self, plan: &Plan, call: &Call) -> Result<(), Error> {
        let home = self.home(plan, &call.session)?;
        if self.circuits().0.is_empty() {
            return Ok(());
        }
        let phases = plan.phases.iter().enumerate();
        for (index, phase) in phases.filter(|(_, phase)| phase.code.iter().any(visits)) {
            let Some(store) = phase.store.map(mingle_lang::hir::StoreId::index) else { continue };
            let is_later = plan.first_write.is_some_and(|first| index > first);
            if let Some(away) = self.away_for(store, home.as_ref(), is_later) {
                self.note_refused(&away.store);
                return Err(Error::Store(away.to_error()));
            }
            if call.until.as_ref() == Some(&self.name_at(store)) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the stores that are away, or have a replica that is.
    pub(crate) fn stores_with_failures(&self) -> BTreeSet<usize> {
        let circuits = self.circuits();
        let open = circuits.0.iter().filter(|(_, failing)| failing.is_open);
        open.map(|((store, _), _)| *store).collect()
    }

    /// True if calls that visit the store, or one of its replicas, are refused at present.
    pub(crate) fn has_replica_away(&self, store: usize) -> bool {
        let circuits = self.circuits();
        !circuits.0.is_empty()
            && circuits.0.iter().any(|((at, _), failing)| *at == store && failing.is_open)
    }

    /// Returns the replica for writes of records that reach all replicas: none, the replica of the store's
    /// choice, unless a replica is away and another one is not.
    pub(crate) fn answering(&self, store: usize) -> Option<Name> {
        if !self.is_many(store) || !self.has_replica_away(store) {
            return None;
        }
        let replicas = self.replicas(store);
        let circuits = self.circuits();
        replicas.into_iter().find(|it| circuits.open(&(store, it.clone())).is_none()).flatten()
    }

    /// Returns the failure of the store or replica that a phase of a session at `home` visits, if
    /// any.
    pub(crate) fn away_for(
        &self,
        store: usize,
        home: Option<&Name>,
        is_later: bool,
    ) -> Option<Away> {
        let capabilities = self.all[store].capabilities();
        let own = (store, self.replica_at(store, home));
        let (now, circuits) = (self.world.elapsed(), self.circuits());
        let failing = circuits.open(&own)?;
        // A later phase goes to another replica if all replicas are equally good.
        let is_anywhere = capabilities.once == Once::ById
            || capabilities.serializable
            || capabilities.level == Level::Linearizable;
        let is_open = |replica: &Name| circuits.open(&(store, Some(replica.clone()))).is_some();
        if is_later && is_anywhere && !capabilities.replicas.iter().all(is_open) {
            return None;
        }
        Some(self.away_of(&own, failing, now))
    }

    /// Records the answer or error of a place.
    pub(crate) fn note_answer<T>(
        &self,
        store: usize,
        replica: Option<&Name>,
        answer: &Result<T, StoreError>,
    ) {
        if self.mutant == Mutant::NobodyAway {
            return;
        }
        if let Err(error) = answer {
            self.note_error(store, replica, error);
        }
        let place = (store, replica.cloned());
        let Err(error @ (StoreError::Unavailable { .. } | StoreError::Unknown { .. })) = answer
        else {
            if self.circuits().answers(&place) {
                self.has_returned(&place);
            }
            return;
        };
        let reason = match error {
            StoreError::Unavailable { reason, .. } => reason.clone(),
            other => other.to_string(),
        };
        let opens = self.circuits().fails(&place, self.world.elapsed(), reason);
        if opens {
            let (store, replica) = (self.name_at(store), place.1.as_deref().unwrap_or(""));
            tracing::warn!(%store, replica, %error, "does not answer; calls that visit it are refused");
            metrics::is_away(&store, replica, true);
            self.probe(place);
        }
    }

    fn has_returned(&self, (store, replica): &Place) {
        let (store, replica) = (self.name_at(*store), replica.as_deref().unwrap_or(""));
        tracing::info!(%store, replica, "answers again");
        metrics::is_away(&store, replica, false);
    }

    /// Asks a place that is away until it answers.
    fn probe(&self, place: Place) {
        let (me, world) = (self.me.clone(), self.world.clone());
        self.world.spawn(Box::pin(async move {
            let mut pause = PROBE_EVERY;
            loop {
                world.sleep(pause).await;
                pause = (pause * 2).min(PROBE_EVERY_MAX);
                let Some(stores) = me.upgrade() else { return };
                if stores.circuits().open(&place).is_none() {
                    return;
                }
                let read = [Read::Records {
                    kind: RecordKind::Lease,
                    from: [].as_slice().into(),
                    limit: 1,
                }];
                // The answer is recorded in `read_records`.
                let _ = stores.read_records(place.0, place.1.clone(), &read).await;
            }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circuit_opens_once_it_has_failed_for_long_enough() {
        let mut circuits = Circuits::default();
        let place = (0, None);
        let at = |tenths: u32| AWAY_AFTER * tenths / 10;
        let fails =
            |circuits: &mut Circuits, tenths| circuits.fails(&place, at(tenths), "cut off".into());
        for tenths in 0..5 {
            assert!(!fails(&mut circuits, tenths), "not long enough");
        }
        assert!(fails(&mut circuits, 10));
        assert!(!fails(&mut circuits, 11), "it is open already");
        assert!(circuits.open(&place).is_some_and(|failing| failing.since.is_zero()));
        assert!(circuits.open(&(1, None)).is_none(), "another store");
        assert!(circuits.answers(&place) && circuits.open(&place).is_none());
        assert!(!fails(&mut circuits, 20) && !fails(&mut circuits, 31), "too few by now");
        assert!(!circuits.answers(&place), "it was not open");
    }
}
