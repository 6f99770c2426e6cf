//! Clean-up of this origin's transactions once they are over.
//!
//! One task for each store, a *lane* (`table/lane`), so that a store or a replica that is away holds up only
//! the records that need it. First every replica of the store must have the commit witnesses, or the floor
//! that stands for the omitted ones (`deferred`). Then the origin's floor is raised at the store, and every
//! replica must have it. Then the commit witnesses there are deleted. The floor at the store of an intent,
//! and with it the intent, comes last. So a process that slept through all of it finds the witness or the floor.
//!
//! A lane asks all replicas of its store side by side. While one is known to be away, the lane asks none of
//! them, since no floor could rise, and goes on removing records whose floors are everywhere. A lane keeps its
//! state, so it continues where it was when the replica is back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Weak;
use std::time::Duration;

use futures_util::future::join_all;
use mingle_model::{Name, Origin, Stamp, TransactionId};
use mingle_store::record::read_floor;
use mingle_store::{Bytes, Data, Read, RecordKey, RecordKind, StoreError, Write};

use crate::in_flight::InFlight;
use crate::in_flight::table::lane::Removable;
use crate::in_flight::table::{DeferredWitness, Left};
use crate::mutants::Mutant;
use crate::observe::metrics;
use crate::observe::stats::Counted;
use crate::protocol::intent::first_part;

/// The records that a store is asked for before clean-up.
struct Asked {
    /// The transactions whose commit witnesses are asked for.
    witnesses: Vec<(TransactionId, Wanted)>,
    /// The transactions for which the floor must stand above them, in place of a commit witness.
    deferred: Vec<u64>,
}

/// The condition under which a replica may lack a commit witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// It may always lack it: perhaps no process left one.
    Maybe,
    /// It may lack it only below the floor: it was everywhere before the floor was raised.
    Yes,
    /// It may lack it only if clean-up or a sweep has removed it: a floor was raised over it before
    /// it was everywhere.
    ByItself,
}

impl Asked {
    fn at(store: usize, ready: &[(TransactionId, Left)]) -> Self {
        let mut asked = Self { witnesses: Vec::new(), deferred: Vec::new() };
        for (id, left) in ready {
            let is_required = left.witnesses.contains(&store);
            let deferred = left.deferred.as_ref().filter(|deferred| deferred.store == store);
            match deferred {
                Some(deferred) if deferred.is_written => {
                    asked.witnesses.push((*id, Wanted::ByItself));
                }
                Some(_) => asked.deferred.push(id.sequence),
                None if is_required => asked.witnesses.push((*id, Wanted::Yes)),
                None if left.maybe.contains(&store) => {
                    asked.witnesses.push((*id, Wanted::Maybe));
                }
                None => {}
            }
        }
        asked
    }
}

impl InFlight {
    /// True if all that this runtime has begun is over and cleaned up, so that only floors are left
    /// of it.
    pub(crate) fn is_clean(&self) -> bool {
        let own = self.table();
        own.is_clean() && own.leased.is_empty()
    }

    /// Returns the number of transactions of this runtime that are not finished and cleaned up.
    pub(crate) fn open(&self) -> usize {
        self.table().open()
    }

    /// True if no transaction of this runtime goes on by itself: it is clean, or waits for parked
    /// transactions.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.table().is_at_rest()
    }

    /// Allocates an id for a transaction that others may have to finish, or wait for.
    pub(crate) fn allocate(&self) -> TransactionId {
        let now = self.stores.world.elapsed();
        self.table().allocate(now)
    }

    /// Takes note that a transaction of this origin is over.
    pub(crate) fn is_over(&self, id: TransactionId, left: Left) {
        let (is_first_deferred, stores, origin) = {
            let mut own = self.table();
            let is_deferred = left.deferred.is_some();
            let stores = own.over(id, left);
            metrics::open(own.open());
            let is_first = is_deferred && !std::mem::replace(&mut own.is_settling, true);
            (is_first, stores, own.origin())
        };
        if is_first_deferred {
            self.see_to_deferred();
        }
        for store in stores {
            self.clean_store(origin, store);
        }
    }

    /// Cleans a store in a task of its own, until no transaction that is over has records there.
    fn clean_store(&self, origin: Origin, store: usize) {
        let (me, world, pause) =
            (self.me.clone(), self.stores.world.clone(), self.stores.settings.clean_after);
        self.stores.world.spawn(Box::pin(async move {
            world.sleep(pause).await;
            let mut waited = 0;
            while let Some(in_flight) = Weak::upgrade(&me) {
                let cleaned = in_flight.clean_once(store).await;
                in_flight.stores.note_failed("clean-up", &cleaned);
                if in_flight.table().end_lane(origin, store) {
                    return;
                }
                // Failed steps are tried again.
                waited = if matches!(cleaned, Ok(true)) { 0 } else { waited + 1 };
                let pause = pause.max(in_flight.stores.backoff(waited + 4));
                drop(in_flight);
                world.sleep(pause).await;
            }
        }));
    }

    /// Removes the records of a store that are not needed any more, and raises the floor there; true if there
    /// was anything to do.
    async fn clean_once(&self, store: usize) -> Result<bool, StoreError> {
        // Other stores may have let go of these since the last round.
        let has_removed = self.remove(store).await?;
        if self.stores.has_replica_away(store) || !self.advance(store).await? {
            return Ok(has_removed);
        }
        self.remove(store).await?;
        Ok(true)
    }

    /// Raises the floor of a store as far as every replica has what it stands for; true if a floor is
    /// everywhere that was not before.
    async fn advance(&self, store: usize) -> Result<bool, StoreError> {
        // A floor on its way is waited for. If it were raised again and again while more
        // transactions end, it would never be everywhere.
        let unconfirmed = self.table().unconfirmed(store);
        let floor = match unconfirmed {
            Some(floor) => floor,
            None => match self.raise(store).await? {
                Some(floor) => floor,
                None => return Ok(false),
            },
        };
        let is_everywhere = self.stores.is_raised(floor, &BTreeSet::from([store])).await?;
        if is_everywhere {
            self.table().confirm(store, floor);
        }
        Ok(is_everywhere)
    }

    /// Raises the floor of a store over the next transactions that are at every replica there.
    async fn raise(&self, store: usize) -> Result<Option<TransactionId>, StoreError> {
        let is_early = self.stores.mutant == Mutant::IntentNotLast;
        let mut batch = self.table().batch(store, is_early);
        if batch.is_empty() {
            return Ok(None);
        }
        let parts = self.cut_at_what_is_missing(store, &mut batch).await?;
        let Some((last, _)) = batch.last() else { return Ok(None) };
        let last = *last;
        if self.stores.mutant == Mutant::FloorAfterDeletion {
            self.delete(store, &all_of(store, &batch, &parts)).await?;
        }
        if self.table().settled(store) < last.sequence {
            self.stores.raise_at(store, None, last).await?;
        }
        self.table().raise(store, last, parts);
        Ok(Some(last))
    }

    /// Removes the records of a store that are not needed any more; true if there was any.
    async fn remove(&self, store: usize) -> Result<bool, StoreError> {
        let (mut removable, is_early) = {
            let own = self.table();
            let is_early = self.stores.mutant == Mutant::RowsAtOwnFloor;
            (own.removable(store, |other| !self.stores.is_many(other), is_early), is_early)
        };
        if !is_early {
            self.keep_what_is_unseen(&mut removable).await;
        }
        if removable.is_empty() {
            return Ok(false);
        }
        // Done before the deletion: a runtime that still remembers a row would pass it on, and no
        // process would remove the new row.
        self.stores.cache().drop_rows(removable.rows.iter().map(|(id, _)| *id));
        if !matches!(self.stores.mutant, Mutant::FloorAfterDeletion | Mutant::NothingDeleted) {
            self.delete(store, &removable).await?;
        }
        let (open, count) = {
            let mut own = self.table();
            let count = own.removed(store, &removable);
            (own.open(), count)
        };
        metrics::open(open);
        self.stores.stats.add(Counted::Cleaned, count);
        Ok(true)
    }

    /// Cuts the list before the first transaction of which some replica of the store lacks something.
    /// Returns the number of parts of each commit witness.
    async fn cut_at_what_is_missing(
        &self,
        store: usize,
        batch: &mut Vec<(TransactionId, Left)>,
    ) -> Result<BTreeMap<TransactionId, u32>, StoreError> {
        let mut parts = BTreeMap::new();
        self.look_for_what_is_old(store, batch);
        self.cut_at_what_is_missing_at(store, batch, &mut parts).await?;
        // That took time: witnesses that may have been written meanwhile are looked for in the next
        // round.
        let now = self.stores.world.elapsed();
        let may_be_there = |(id, left): &(TransactionId, Left)| {
            let deferred = left.deferred.as_ref().filter(|deferred| deferred.store == store);
            let is_out =
                |deferred: &DeferredWitness| !deferred.is_written && !self.table().is_left_out(*id);
            deferred.is_some_and(|deferred| self.is_old(deferred, now) || is_out(deferred))
        };
        if let Some(at) = batch.iter().position(may_be_there) {
            batch.truncate(at);
        }
        Ok(parts)
    }

    async fn cut_at_what_is_missing_at(
        &self,
        store: usize,
        ready: &mut Vec<(TransactionId, Left)>,
        parts: &mut BTreeMap<TransactionId, u32>,
    ) -> Result<(), StoreError> {
        let Asked { witnesses, deferred } = Asked::at(store, ready);
        let Some(own) = ready.first().map(|(id, _)| id.origin) else { return Ok(()) };
        if witnesses.is_empty() && deferred.is_empty() {
            return Ok(());
        }
        let swept = self.gone_where_written(store, ready).await?;
        let read = |(id, _): &(TransactionId, Wanted)| {
            Read::Record(RecordKey::of(RecordKind::Witness, *id, 0))
        };
        let mut reads: Vec<Read> = witnesses.iter().map(read).collect();
        reads.push(Read::Record(RecordKey::of_origin(RecordKind::Floor, own)));
        // Of several copies of a phase each replica counts one; all must have counted the same.
        let mut copies: BTreeMap<TransactionId, Bytes> = BTreeMap::new();
        let replicas = self.replicas_to_check(store).into_iter();
        let asked = replicas.map(|replica| self.stores.read_records(store, replica, &reads));
        for answers in join_all(asked).await {
            let mut answers = answers?;
            // A witness that a sweep has deleted since the floor was raised was everywhere before.
            let raised = match answers.pop() {
                Some(Data::Record(Some(found))) => read_floor(&found),
                _ => 0,
            };
            if let Some(first) = deferred.iter().find(|sequence| **sequence > raised) {
                ready.retain(|(id, _)| id.sequence < *first);
            }
            for ((id, wanted), data) in witnesses.iter().zip(answers) {
                match data {
                    Data::Record(Some(first)) => {
                        let count = first_part(&first).map_or(1, |(count, _)| count);
                        parts.insert(*id, count);
                        if *copies.entry(*id).or_insert_with(|| first.clone()) != first {
                            ready.retain(|(other, _)| other < id);
                        }
                    }
                    _ => {
                        let gone = match wanted {
                            Wanted::Maybe => u64::MAX,
                            Wanted::Yes => raised,
                            Wanted::ByItself if raised == u64::MAX => raised,
                            Wanted::ByItself if swept.contains(id) => raised,
                            Wanted::ByItself => 0,
                        };
                        if id.sequence > gone {
                            ready.retain(|(other, _)| other < id);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the transactions whose late commit witness is gone from the replica where it was
    /// written. The sweep of another process found the floor of this origin over it at every
    /// replica, and removed it. It will not come back, and the floor stands for it from then on.
    async fn gone_where_written(
        &self,
        store: usize,
        ready: &[(TransactionId, Left)],
    ) -> Result<BTreeSet<TransactionId>, StoreError> {
        let departed = self.stores.all[store].departed();
        let mut written: BTreeMap<&Option<Name>, Vec<TransactionId>> = BTreeMap::new();
        let mut gone = BTreeSet::new();
        for (id, left) in ready {
            let deferred = left
                .deferred
                .as_ref()
                .filter(|deferred| deferred.store == store && deferred.is_written);
            match deferred.map(|deferred| &deferred.replica) {
                Some(Some(replica)) if departed.contains(replica) => {
                    gone.insert(*id);
                }
                Some(replica) => written.entry(replica).or_default().push(*id),
                None => {}
            }
        }
        for (replica, ids) in written {
            let read =
                |id: &TransactionId| Read::Record(RecordKey::of(RecordKind::Witness, *id, 0));
            let reads: Vec<Read> = ids.iter().map(read).collect();
            let answers = self.stores.read_records(store, replica.clone(), &reads).await?;
            let is_gone = |data: &Data| !matches!(data, Data::Record(Some(_)));
            let pairs = ids.into_iter().zip(answers);
            gone.extend(pairs.filter(|(_, data)| is_gone(data)).map(|(id, _)| id));
        }
        Ok(gone)
    }

    /// Finds the deferred commit witnesses at a store that other processes have had time to write.
    fn look_for_what_is_old(&self, store: usize, batch: &mut [(TransactionId, Left)]) {
        let now = self.stores.world.elapsed();
        let is_here = |deferred: &DeferredWitness| deferred.store == store;
        for (id, left) in batch {
            let old =
                left.deferred.take_if(|deferred| is_here(deferred) && self.is_old(deferred, now));
            if old.is_some() {
                // The process that wrote it has left rows, too.
                self.table().may_have_rows(*id, store);
            }
        }
    }

    fn is_old(&self, deferred: &DeferredWitness, now: Duration) -> bool {
        !deferred.is_written
            && (deferred.is_tried || deferred.since + self.stores.settings.fresh_for() <= now)
    }

    /// Keeps the rows of transactions whose session had seen writes that some replica lacks.
    async fn keep_what_is_unseen(&self, removable: &mut Removable) {
        for (store, stamp) in seen_by(&removable.rows) {
            let Some(index) = self.stores.store_called(&store) else { continue };
            let everywhere = self.stores.seen_everywhere(index, &stamp).await;
            removable.rows.retain(|(_, left)| {
                left.seen.get(&store).is_none_or(|seen| everywhere.covers(seen))
            });
        }
    }

    fn replicas_to_check(&self, store: usize) -> Vec<Option<Name>> {
        let mut replicas = self.stores.replicas(store);
        if self.stores.mutant == Mutant::CleanedAtOneReplica {
            replicas.truncate(1);
        }
        replicas
    }

    /// Deletes records at a store; intents last.
    async fn delete(&self, store: usize, removable: &Removable) -> Result<(), StoreError> {
        let replica = self.stores.answering(store);
        let mut writes: Vec<Write> =
            removable.rows.iter().map(|(id, _)| Write::Forget(*id)).collect();
        for (id, parts) in &removable.witnesses {
            let key = |part| RecordKey::of(RecordKind::Witness, *id, part);
            writes.extend((0..*parts).map(|part| Write::Discard(key(part))));
        }
        self.stores.write_in_batches(store, replica.as_ref(), writes).await?;
        let ids = &removable.intents;
        if let (Some(first), Some(last)) = (ids.first(), ids.last()) {
            let kinds = [RecordKind::Fixed, RecordKind::Parked, RecordKind::Intent];
            let mut writes = self.stores.records_between(store, &kinds, *first, *last).await?;
            writes.retain(|write| match write {
                Write::Discard(key) => key.transaction().is_some_and(|(id, _)| ids.contains(&id)),
                _ => false,
            });
            self.stores.write_in_batches(store, replica.as_ref(), writes).await?;
        }
        Ok(())
    }
}

/// Returns all records that transactions have left at a store.
fn all_of(
    store: usize,
    batch: &[(TransactionId, Left)],
    parts: &BTreeMap<TransactionId, u32>,
) -> Removable {
    let mut all = Removable::default();
    for (id, left) in batch {
        if left.has_witness(store) {
            all.witnesses.push((*id, parts.get(id).copied().unwrap_or(0)));
        }
        if left.rows.contains(&store) {
            all.rows.push((*id, left.clone()));
        }
        if left.intent == Some(store) {
            all.intents.push(*id);
        }
    }
    all
}

fn seen_by(ready: &[(TransactionId, Left)]) -> BTreeMap<Name, Stamp> {
    let mut all: BTreeMap<Name, Stamp> = BTreeMap::new();
    for (store, stamp) in ready.iter().flat_map(|(_, left)| &left.seen) {
        all.entry(store.clone()).or_default().join(stamp);
    }
    all
}
