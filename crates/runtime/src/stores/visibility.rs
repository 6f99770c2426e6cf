//! Transactions known to be at every replica of a store, for which no waiting is needed there.
//!
//! A transaction that finds the witness rows of others must pass on those for which it would have
//! to wait at stores that it does not visit itself: a reader of its writes must find, at every
//! store, the writes that they depend on (the technical report, §4). This is not needed for a
//! transaction whose commit witness, or a floor above it, is at every replica of a store: it is
//! *through* there. Commit witnesses stay in place and floors never sink, so this is permanent, and
//! is remembered.
//!
//! A caller never asks for this itself. The transactions that it passes on are looked for in the
//! background, by one task for each replica, so that a replica that is away holds up only its own
//! task. The next transaction that finds the same rows leaves out those that were found. So the
//! rows passed on are bounded by the transactions begun within the last [`LOOK_AFTER`], or
//! unfinished, and not by all that are still to be cleaned up.
//!
//! While a replica is away, no transaction becomes through at its store. If the store counts what
//! its replicas have seen, and there are more than [`PASSED_ON_MAX`], transactions known to be at
//! *one* replica are passed on as the stamp that this replica had seen by then: one stamp per
//! store, however many transactions it stands for. A transaction that finds it waits until its own
//! replica has caught up, as the tracking set demands anyway.
//!
//! At a store of level `eventual` nothing is passed on to other objects: causality is promised from
//! `causal` on (P6), and a transaction that accesses an object written by another one finds its row
//! there (P4).
//!
//! So one transaction leaves at most its own row on each object that it writes, and for each store
//! that it does not visit [`PASSED_ON_MAX`] more rows, and one for each transaction that no task
//! has found yet. The simulation of outages demands at most ten rows for each open transaction
//! (`testing/sim/tests/it/outage.rs`), also where all calls write one object.

use std::collections::{BTreeMap, BTreeSet};

use mingle_lang::Plan;
use mingle_lang::hir::StoreId;
use mingle_model::{Level, Name, Stamp, TransactionId};
use mingle_store::record::read_floor;
use mingle_store::{Commit, Data, Read, Session as StoreSession, StoreError};

use crate::api::error::Error;
use crate::api::session::Session;
use crate::api::settings::{
    LOOK_AFTER, LOOK_AGAIN_AFTER, LOOKED_FOR_MAX, PASSED_ON_MAX, SESSION_PRUNE_AT,
};
use crate::mutants::Mutant;
use crate::observe::stats::Counted;
use crate::protocol::wait_set::WaitSet;
use crate::stores::Stores;
use crate::stores::records::{is_visible, visible_reads};
use crate::stores::visibility_cache::VisibilityCache;

/// The transactions to look for at replicas.
#[derive(Default)]
pub(crate) struct Looked {
    wanted: BTreeMap<Place, BTreeSet<TransactionId>>,
    /// Replicas at which a task looks.
    busy: BTreeSet<Place>,
}

/// A replica of a store, or its one copy.
type Place = (usize, Option<Name>);

impl Looked {
    /// Adds transactions to look for; true if no task looks at that place yet.
    fn want(&mut self, place: &Place, ids: &[TransactionId]) -> bool {
        let wanted = self.wanted.entry(place.clone()).or_default();
        let room = LOOKED_FOR_MAX.saturating_sub(wanted.len());
        wanted.extend(ids.iter().take(room));
        !wanted.is_empty() && self.busy.insert(place.clone())
    }

    /// Takes the transactions to look for at a place; if there are none, marks its task as ended.
    fn take(&mut self, place: &Place) -> BTreeSet<TransactionId> {
        let wanted = self.wanted.remove(place).unwrap_or_default();
        if wanted.is_empty() {
            self.busy.remove(place);
        }
        wanted
    }
}

impl Stores {
    /// True if every replica of a store is known to have a transaction's effects there.
    pub(crate) fn is_through(&self, store: usize, id: TransactionId) -> bool {
        let replicas = self.replicas(store);
        let known = self.cache();
        match self.mutant {
            Mutant::AllPassedOn => return false,
            Mutant::ThroughAtOne => {
                return replicas.iter().any(|it| known.is_visible(store, it.as_ref(), id));
            }
            _ => {}
        }
        replicas.iter().all(|replica| known.is_visible(store, replica.as_ref(), id))
    }

    /// Records the knowledge that a visible commit witness at a replica gives.
    pub(crate) fn note_visible(
        &self,
        store: usize,
        replica: Option<&Name>,
        id: TransactionId,
        seen: &Stamp,
    ) {
        let is_many = self.is_many(store);
        let mut known = self.cache();
        known.note_visible(store, replica, id);
        if !is_many {
            // Replicas that agree are treated as one.
            known.note_visible(store, None, id);
        } else if !seen.is_empty() {
            known.note_seen_with(store, id, seen);
        }
    }

    /// True if [`Self::is_through`] holds at the store of this name.
    pub(crate) fn is_through_at(&self, store: &str, id: TransactionId) -> bool {
        self.store_called(store).is_some_and(|store| self.is_through(store, id))
    }

    /// Returns the waits and stamps that must be passed on with this transaction's writes. Leaves
    /// out the store `here` and the `later` stores, where it leaves commit witnesses,
    /// transactions that are through, and stores of level `eventual`. Starts to look for the rest.
    pub(crate) fn to_pass_on(
        &self,
        waits: &WaitSet,
        here: usize,
        later: &BTreeSet<Name>,
    ) -> WaitSet {
        let mut told = WaitSet::default();
        if waits.is_empty() {
            return told;
        }
        for (name, stamp) in waits.seen() {
            told.saw(name, stamp);
        }
        let visited: BTreeSet<usize> =
            later.iter().filter_map(|name| self.store_called(name)).chain([here]).collect();
        let stamped: BTreeSet<&Name> = visited.iter().map(|store| self.stamped(*store)).collect();
        let own = self.name_at(here);
        for name in waits.stores().filter(|name| !later.contains(*name) && **name != own) {
            let writers = || waits.waits_at(name).filter(|(_, awaited)| !awaited.is_reader);
            let Some(store) = self.store_called(name) else {
                writers().for_each(|(id, why)| told.wait_at(name, id, why.clone()));
                continue;
            };
            let is_eventual = self.all[store].capabilities().level == Level::Eventual;
            if is_eventual && self.mutant != Mutant::AllPassedOn {
                continue;
            }
            let open: Vec<_> = writers().filter(|(id, _)| !self.is_through(store, *id)).collect();
            let ids: Vec<TransactionId> = open.iter().map(|(id, _)| *id).collect();
            self.look_for(store, &ids);
            let joins = self.mutant != Mutant::AllPassedOn
                && open.len() > PASSED_ON_MAX
                && !stamped.contains(self.stamped(store));
            for (id, awaited) in open {
                let seen = if joins { self.cache().seen_with(store, id).cloned() } else { None };
                match seen {
                    Some(seen) => told.saw(self.stamped(store), &seen),
                    None => told.wait_at(name, id, awaited.clone()),
                }
            }
        }
        told
    }

    /// Drops from a session the transactions known to be through, and starts to look for the
    /// others.
    ///
    /// At a store of level `eventual`, a session with many waits also drops those that its own replica
    /// has, and leans on that replica instead ([`Leans`](crate::protocol::leans::Leans)).
    pub(crate) fn relieve(&self, session: &Session) {
        let wait_set = session.worklist();
        let is_long = wait_set.len() > SESSION_PRUNE_AT;
        for name in wait_set.stores() {
            let Some(store) = self.store_called(name) else { continue };
            let is_eventual = self.all[store].capabilities().level == Level::Eventual;
            let ids = wait_set.waits_at(name).map(|(id, _)| id);
            let (over, mut left): (Vec<_>, Vec<_>) =
                ids.partition(|id| self.is_through(store, *id));
            session.is_over(name, over);
            // A session that leans on two replicas of a store drops no more there.
            if let (true, Ok(own)) = (is_long && is_eventual, self.home_at([store], session)) {
                let own = self.replica_at(store, own.as_ref());
                let is_here = |id: &_| self.cache().is_visible(store, own.as_ref(), *id);
                let here: Vec<_> = left.extract_if(.., |id| is_here(id)).collect();
                session.lean(name, own.as_ref(), here);
            }
            self.look_for(store, &left);
        }
        self.release(session);
    }

    /// Ends a session's need for replicas whose state is known to be everywhere, and starts to look for
    /// the floors that tell so.
    fn release(&self, session: &Session) {
        let leans = session.leans();
        for name in leans.stores() {
            let Some(store) = self.store_called(name) else { continue };
            let replicas = self.replicas(store);
            let is_everywhere = |id: TransactionId| {
                let known = self.cache();
                replicas.iter().all(|replica| known.is_below_floor(store, replica.as_ref(), id))
            };
            session.release(name, is_everywhere);
            if session.leans_on(name).is_empty() {
                self.stats.count(Counted::LeanEnded);
            }
            let left: Vec<_> =
                leans.last(name).into_iter().filter(|id| !is_everywhere(*id)).collect();
            // As long as the session stays there, it is no hurry.
            let own = self.replica_at(store, session.replica().as_ref());
            if session.leans_on(name).iter().any(|replica| *replica != own) {
                self.look_for_unless(store, &left, VisibilityCache::is_below_floor);
            }
        }
    }

    /// Returns the replica at which a session's call of this plan runs: the one that the session leans on at a
    /// store that the plan visits, or else the session's own.
    ///
    /// # Errors
    ///
    /// If the session leans on several replicas there.
    pub(crate) fn home(&self, plan: &Plan, session: &Session) -> Result<Option<Name>, Error> {
        let visited = plan.phases.iter().filter_map(|phase| phase.store);
        self.home_at(visited.map(StoreId::index), session)
    }

    /// Returns the replica at which a session's accesses to these stores run, as [`Self::home`] does.
    pub(crate) fn home_at(
        &self,
        stores: impl IntoIterator<Item = usize>,
        session: &Session,
    ) -> Result<Option<Name>, Error> {
        let mut home = None;
        if self.mutant == Mutant::SessionLeansOnNone {
            return Ok(session.replica());
        }
        for store in stores {
            let capabilities = self.all[store].capabilities();
            for replica in session.leans_on(&capabilities.store) {
                // The state of a replica that was given up is with the others, or lost.
                let is_gone =
                    replica.as_ref().is_some_and(|it| !capabilities.replicas.contains(it));
                if is_gone {
                    continue;
                }
                if home.as_ref().is_some_and(|home| *home != replica) {
                    return Err(Error::Store(StoreError::Unavailable {
                        store: capabilities.store.clone(),
                        reason: "the session has seen data at two replicas that has not reached the others yet"
                            .to_owned(),
                    }));
                }
                home = Some(replica);
            }
        }
        Ok(home.unwrap_or_else(|| session.replica()))
    }

    /// Returns the stamp that every replica of a store has seen; asks for it if `wanted` is not known to be
    /// covered. If the store does not answer, the last one known.
    pub(crate) async fn seen_everywhere(&self, store: usize, wanted: &Stamp) -> Stamp {
        let known = self.cache().everywhere(store).map(|(stamp, _)| stamp.clone());
        if let Some(known) = known.filter(|known| known.covers(wanted)) {
            return known;
        }
        if !self.has_replica_away(store)
            && let Some(everywhere) = self.at_most_a_third(self.all[store].everywhere()).await
        {
            let now = self.world.elapsed();
            self.cache().note_everywhere(store, everywhere, now);
        }
        self.cache().everywhere(store).map(|(stamp, _)| stamp.clone()).unwrap_or_default()
    }

    /// Asks in the background for the stamp that every replica of a store has seen.
    pub(crate) fn ask_everywhere(&self, store: usize) {
        let (me, site) = (self.me.clone(), self.all[store].clone());
        let now = self.world.elapsed();
        let before = self.cache().everywhere(store).map(|(stamp, _)| stamp.clone());
        self.cache().note_everywhere(store, before.unwrap_or_default(), now);
        self.world.spawn(Box::pin(async move {
            if let Ok(everywhere) = site.everywhere().await
                && let Some(stores) = me.upgrade()
            {
                let now = stores.world.elapsed();
                stores.cache().note_everywhere(store, everywhere, now);
            }
        }));
    }

    /// Looks for transactions at every replica of a store, in the background.
    fn look_for(&self, store: usize, ids: &[TransactionId]) {
        self.look_for_unless(store, ids, VisibilityCache::is_visible);
    }

    /// Looks for transactions at every replica of a store, in the background, unless this is known of
    /// them there.
    fn look_for_unless(
        &self,
        store: usize,
        ids: &[TransactionId],
        is_known: fn(&VisibilityCache, usize, Option<&Name>, TransactionId) -> bool,
    ) {
        if ids.is_empty() || self.is_worker {
            return;
        }
        for replica in self.replicas(store) {
            let known = self.cache();
            let is_new = |id: &TransactionId| !is_known(&known, store, replica.as_ref(), *id);
            let ids: Vec<TransactionId> = ids.iter().copied().filter(is_new).collect();
            drop(known);
            let place = (store, replica);
            if self.looked().want(&place, &ids) {
                self.look_at(place);
            }
        }
    }

    fn look_at(&self, place: Place) {
        let (me, world) = (self.me.clone(), self.world.clone());
        self.world.spawn(Box::pin(async move {
            loop {
                world.sleep(LOOK_AFTER).await;
                let Some(stores) = me.upgrade() else { return };
                let wanted = stores.looked().take(&place);
                if wanted.is_empty() {
                    return;
                }
                // A transaction that was not found here is looked for again once it is met again.
                let found = stores.look(&place, &wanted).await;
                stores.note_answer(place.0, place.1.as_ref(), &found);
                if found.is_err() {
                    drop(stores);
                    world.sleep(LOOK_AGAIN_AFTER).await;
                }
            }
        }));
    }

    async fn look(
        &self,
        (store, replica): &Place,
        wanted: &BTreeSet<TransactionId>,
    ) -> Result<(), StoreError> {
        let session = StoreSession { replica: replica.clone(), ..StoreSession::default() };
        let mut transaction = self.all[*store].begin(&session).await?;
        let reads: Vec<Read> = wanted.iter().flat_map(|id| visible_reads(*id)).collect();
        let answers = transaction.read(&reads).await?;
        let answers: Vec<Data> = answers.into_iter().map(|answer| answer.data).collect();
        let seen = transaction.commit(Commit::default()).await?.stamp;
        for (id, answers) in wanted.iter().zip(answers.chunks(2)) {
            if let [_, Data::Record(Some(floor))] = answers {
                self.cache().note_floor(*store, replica.as_ref(), id.origin, read_floor(floor));
            }
            if is_visible(*id, answers) {
                self.note_visible(*store, replica.as_ref(), *id, &seen);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use mingle_model::Origin;

    use super::*;

    fn id(sequence: u64) -> TransactionId {
        TransactionId { origin: Origin(1), sequence }
    }

    #[test]
    fn one_task_looks_at_each_place_until_nobody_is_wanted() {
        let mut looked = Looked::default();
        let (here, there) = ((0, None), (0, Some(Name::from("r2"))));
        assert!(!looked.want(&here, &[]), "for nobody");
        assert!(looked.want(&here, &[id(1)]));
        assert!(!looked.want(&here, &[id(2), id(1)]), "somebody looks there");
        assert!(looked.want(&there, &[id(1)]), "at another place nobody does");
        assert_eq!(looked.take(&here), BTreeSet::from([id(1), id(2)]));
        assert!(!looked.want(&here, &[id(3)]), "it is at it still");
        assert_eq!(looked.take(&here).len(), 1);
        assert_eq!(looked.take(&here).len(), 0);
        assert!(looked.want(&here, &[id(4)]), "it had ended");
    }

    #[test]
    fn whom_to_look_for_is_bounded() {
        let mut looked = Looked::default();
        let many: Vec<TransactionId> = (1..=2 * LOOKED_FOR_MAX as u64).map(id).collect();
        looked.want(&(0, None), &many);
        looked.want(&(0, None), &many[LOOKED_FOR_MAX..]);
        assert_eq!(looked.take(&(0, None)).len(), LOOKED_FOR_MAX);
    }
}
