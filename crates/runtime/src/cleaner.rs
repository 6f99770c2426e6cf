//! Clean-up of this origin's transactions once they are over.
//!
//! First every replica of every visited store must have the commit witnesses, or the floor that
//! stands for the omitted ones (`owed`). Then the origin's floor is raised at each store, and every
//! replica must have it. Then commit witnesses and witness rows are deleted, and last the intent.
//! So a process that slept through all of it finds the witness or the floor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Weak;
use std::time::Duration;

use mingle_model::{Name, Stamp, TransactionId};
use mingle_store::record::read_floor;
use mingle_store::{Bytes, Data, Read, RecordKey, RecordKind, StoreError, Write};

use crate::intent::first_part;
use crate::metrics;
use crate::own::{Left, Owed};
use crate::planted::Planted;
use crate::runtime::Runtime;
use crate::stats::Counted;

/// The result of a round of cleaning.
enum Round {
    /// Nothing can be cleaned.
    Idle,
    /// Something was cleaned.
    Cleaned,
    /// Something is not everywhere yet, or a store is away.
    Waits,
}

/// The records that a store is asked for before clean-up.
struct Asked {
    /// The transactions whose commit witnesses are asked for.
    witnesses: Vec<(TransactionId, Wanted)>,
    /// The transactions for which the floor must stand above them, in place of a commit witness.
    owed: Vec<u64>,
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
        let mut asked = Self { witnesses: Vec::new(), owed: Vec::new() };
        for (id, left) in ready {
            let is_required = left.witnesses.contains(&store);
            let owed = left.owed.as_ref().filter(|owed| owed.store == store);
            match owed {
                Some(owed) if owed.is_written => asked.witnesses.push((*id, Wanted::ByItself)),
                Some(_) => asked.owed.push(id.sequence),
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

impl Runtime {
    /// True if all that this runtime has begun is over and cleaned up, so that only floors are left
    /// of it.
    pub fn is_clean(&self) -> bool {
        let own = self.own();
        own.is_clean() && own.leased.is_empty()
    }

    /// Returns the number of transactions of this runtime that are not finished and cleaned up.
    pub fn open(&self) -> usize {
        self.own().open()
    }

    /// True if no transaction of this runtime goes on by itself: it is clean, or waits for parked
    /// transactions.
    pub fn is_at_rest(&self) -> bool {
        self.own().is_at_rest()
    }

    /// Allocates an id for a transaction that others may have to finish, or wait for.
    pub(crate) fn allocate(&self) -> TransactionId {
        let now = self.world.elapsed();
        self.own().allocate(now)
    }

    /// Takes note that a transaction of this origin is over.
    pub(crate) fn is_over(&self, id: TransactionId, left: Left) {
        let (is_first_owed, is_first_ready) = {
            let mut own = self.own();
            let is_owed = left.owed.is_some();
            own.over(id, left);
            metrics::open(own.open());
            let is_first_owed = is_owed && !std::mem::replace(&mut own.is_settling, true);
            let is_first_ready = !own.is_cleaning && !own.ready().is_empty();
            own.is_cleaning |= is_first_ready;
            (is_first_owed, is_first_ready)
        };
        if is_first_owed {
            self.see_to_owed();
        }
        if is_first_ready {
            self.see_to_cleaning();
        }
    }

    fn see_to_cleaning(&self) {
        let (me, world, pause) = (self.me.clone(), self.world.clone(), self.settings.clean_after);
        self.world.spawn(Box::pin(async move {
            world.sleep(pause).await;
            let mut waited = 0;
            while let Some(runtime) = Weak::upgrade(&me) {
                match runtime.clean_once().await {
                    Round::Idle => {
                        let mut own = runtime.own();
                        if own.ready().is_empty() {
                            own.is_cleaning = false;
                            return;
                        }
                    }
                    Round::Cleaned => waited = 0,
                    Round::Waits => waited += 1,
                }
                let pause = pause.max(runtime.backoff(waited + 4));
                drop(runtime);
                world.sleep(pause).await;
            }
        }));
    }

    async fn clean_once(&self) -> Round {
        let ready = self.own().ready();
        if ready.is_empty() {
            return Round::Idle;
        }
        let cleaned = self.clean(ready).await;
        self.note_failed("clean-up", &cleaned);
        match cleaned {
            Ok(true) => Round::Cleaned,
            // Failed steps are tried again.
            Ok(false) | Err(_) => Round::Waits,
        }
    }

    /// Cleans up after the transactions that are over everywhere; true if there was any.
    async fn clean(&self, mut ready: Vec<(TransactionId, Left)>) -> Result<bool, StoreError> {
        // A floor on its way is waited for. If it were raised again and again while more
        // transactions end, it would never be everywhere.
        let raised = self.own().raised;
        if ready.first().is_some_and(|(first, _)| first.sequence <= raised) {
            ready.retain(|(id, _)| id.sequence <= raised);
        }
        let parts = self.cut_at_what_is_missing(&mut ready).await?;
        let Some((last, _)) = ready.last() else { return Ok(false) };
        let last = *last;
        let stores: BTreeSet<usize> = ready.iter().flat_map(|(_, left)| left.stores()).collect();
        if self.planted == Planted::FloorAfterDeletion {
            self.delete(&ready, &parts).await?;
        }
        self.raise(last, &stores).await?;
        if !self.is_raised(last, &stores).await? {
            return Ok(false);
        }
        // Done before the deletion: a runtime that still remembers a row would pass it on, and no
        // process would remove the new row.
        self.known().drop_rows(last);
        if !matches!(self.planted, Planted::FloorAfterDeletion | Planted::NothingDeleted) {
            self.delete(&ready, &parts).await?;
        }
        let open = {
            let mut own = self.own();
            own.cleaned(last.origin, last.sequence);
            own.open()
        };
        metrics::open(open);
        self.stats.add(Counted::Cleaned, ready.len() as u64);
        Ok(true)
    }

    /// Cuts the list before the first transaction of which some replica lacks something. Returns
    /// the number of parts of each commit witness.
    async fn cut_at_what_is_missing(
        &self,
        ready: &mut Vec<(TransactionId, Left)>,
    ) -> Result<BTreeMap<(usize, TransactionId), u32>, StoreError> {
        let mut parts = BTreeMap::new();
        self.look_for_what_is_old(ready);
        for store in 0..self.stores.len() {
            self.cut_at_what_is_missing_at(store, ready, &mut parts).await?;
        }
        // That took time: witnesses that may have been written meanwhile are looked for in the next
        // round.
        let now = self.world.elapsed();
        let may_be_there = |(id, left): &(TransactionId, Left)| {
            let owed = left.owed.as_ref();
            let is_out = |owed: &Owed| !owed.is_written && !self.own().is_left_out(*id);
            owed.is_some_and(|owed| self.is_old(owed, now) || is_out(owed))
        };
        if let Some(at) = ready.iter().position(may_be_there) {
            ready.truncate(at);
        }
        self.cut_at_what_is_unseen(ready).await?;
        Ok(parts)
    }

    async fn cut_at_what_is_missing_at(
        &self,
        store: usize,
        ready: &mut Vec<(TransactionId, Left)>,
        parts: &mut BTreeMap<(usize, TransactionId), u32>,
    ) -> Result<(), StoreError> {
        let Asked { witnesses, owed } = Asked::at(store, ready);
        let Some(own) = ready.first().map(|(id, _)| id.origin) else { return Ok(()) };
        if witnesses.is_empty() && owed.is_empty() {
            return Ok(());
        }
        let removed = self.own().removed_up_to(own);
        let swept = self.gone_where_written(store, ready).await?;
        let read = |(id, _): &(TransactionId, Wanted)| {
            Read::Record(RecordKey::of(RecordKind::Witness, *id, 0))
        };
        let mut reads: Vec<Read> = witnesses.iter().map(read).collect();
        reads.push(Read::Record(RecordKey::of_origin(RecordKind::Floor, own)));
        // Of several copies of a phase each replica counts one; all must have counted the same.
        let mut copies: BTreeMap<TransactionId, Bytes> = BTreeMap::new();
        for replica in self.replicas_to_check(store) {
            let mut answers = self.read_records(store, replica, &reads).await?;
            // A witness that a sweep has deleted since the floor was raised was everywhere before.
            let raised = match answers.pop() {
                Some(Data::Record(Some(found))) => read_floor(&found),
                _ => 0,
            };
            if let Some(first) = owed.iter().find(|sequence| **sequence > raised) {
                ready.retain(|(id, _)| id.sequence < *first);
            }
            for ((id, wanted), data) in witnesses.iter().zip(answers) {
                match data {
                    Data::Record(Some(first)) => {
                        let count = first_part(&first).map_or(1, |(count, _)| count);
                        parts.insert((store, *id), count);
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
                            Wanted::ByItself => removed,
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
        let departed = self.stores[store].departed();
        let mut written: BTreeMap<&Option<Name>, Vec<TransactionId>> = BTreeMap::new();
        let mut gone = BTreeSet::new();
        for (id, left) in ready {
            let owed = left.owed.as_ref().filter(|owed| owed.store == store && owed.is_written);
            match owed.map(|owed| &owed.replica) {
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
            let answers = self.read_records(store, replica.clone(), &reads).await?;
            let is_gone = |data: &Data| !matches!(data, Data::Record(Some(_)));
            let pairs = ids.into_iter().zip(answers);
            gone.extend(pairs.filter(|(_, data)| is_gone(data)).map(|(id, _)| id));
        }
        Ok(gone)
    }

    /// Finds the omitted commit witnesses that other processes have had time to write.
    fn look_for_what_is_old(&self, ready: &mut [(TransactionId, Left)]) {
        let now = self.world.elapsed();
        for (_, left) in ready {
            if let Some(owed) = left.owed.take_if(|owed| self.is_old(owed, now)) {
                // The floor at its store stands for it, too.
                left.rows.insert(owed.store);
            }
        }
    }

    fn is_old(&self, owed: &Owed, now: Duration) -> bool {
        !owed.is_written && (owed.is_tried || owed.since + self.settings.fresh_for() <= now)
    }

    /// Cuts the list before the first transaction whose session had seen writes that some replica
    /// lacks.
    async fn cut_at_what_is_unseen(
        &self,
        ready: &mut Vec<(TransactionId, Left)>,
    ) -> Result<(), StoreError> {
        for (store, stamp) in seen_by(ready) {
            let Some(index) = self.store_called(&store) else { continue };
            let everywhere = self.stores[index].everywhere().await?;
            self.known().note_everywhere(index, everywhere.clone(), self.world.elapsed());
            if everywhere.covers(&stamp) {
                continue;
            }
            let lacks =
                |left: &Left| left.seen.get(&store).is_some_and(|seen| !everywhere.covers(seen));
            if let Some(at) = ready.iter().position(|(_, left)| lacks(left)) {
                ready.truncate(at);
            }
        }
        Ok(())
    }

    fn replicas_to_check(&self, store: usize) -> Vec<Option<Name>> {
        let mut replicas = self.replicas(store);
        if self.planted == Planted::CleanedAtOneReplica {
            replicas.truncate(1);
        }
        replicas
    }

    /// Raises the floor at the stores.
    async fn raise(&self, last: TransactionId, stores: &BTreeSet<usize>) -> Result<(), StoreError> {
        if self.own().raised >= last.sequence && self.own().origin == last.origin {
            return Ok(());
        }
        // Stores with several replicas come first: the floor is on its way there meanwhile.
        let (many, one): (Vec<usize>, Vec<usize>) =
            stores.iter().partition(|store| self.is_many(**store));
        for store in many.into_iter().chain(one) {
            if self.own().settled(store) < last.sequence {
                self.raise_at(store, None, last).await?;
            }
        }
        let mut own = self.own();
        if own.origin == last.origin {
            own.raised = last.sequence;
        }
        Ok(())
    }

    /// Deletes the records that the transactions have left; their intents last.
    async fn delete(
        &self,
        ready: &[(TransactionId, Left)],
        parts: &BTreeMap<(usize, TransactionId), u32>,
    ) -> Result<(), StoreError> {
        for store in 0..self.stores.len() {
            let mut writes = Vec::new();
            for (id, left) in ready {
                if left.rows.contains(&store) {
                    writes.push(Write::Forget(*id));
                }
                for part in 0..parts.get(&(store, *id)).copied().unwrap_or(0) {
                    writes.push(Write::Discard(RecordKey::of(RecordKind::Witness, *id, part)));
                }
            }
            self.write_in_batches(store, writes).await?;
        }
        for store in 0..self.stores.len() {
            let ids: Vec<TransactionId> = ready
                .iter()
                .filter(|(_, left)| left.intent == Some(store))
                .map(|(id, _)| *id)
                .collect();
            if let (Some(first), Some(last)) = (ids.first(), ids.last()) {
                let kinds = [RecordKind::Fixed, RecordKind::Parked, RecordKind::Intent];
                let mut writes = self.records_between(store, &kinds, *first, *last).await?;
                writes.retain(|write| match write {
                    Write::Discard(key) => {
                        key.transaction().is_some_and(|(id, _)| ids.contains(&id))
                    }
                    _ => false,
                });
                self.write_in_batches(store, writes).await?;
            }
        }
        Ok(())
    }

    /// Asks in the background for the stamp that every replica of a store has seen.
    pub(crate) fn ask_everywhere(&self, store: usize) {
        let (me, site) = (self.me.clone(), self.stores[store].clone());
        let now = self.world.elapsed();
        let before = self.known().everywhere(store).map(|(stamp, _)| stamp.clone());
        self.known().note_everywhere(store, before.unwrap_or_default(), now);
        self.world.spawn(Box::pin(async move {
            if let Ok(everywhere) = site.everywhere().await
                && let Some(runtime) = me.upgrade()
            {
                let now = runtime.world.elapsed();
                runtime.known().note_everywhere(store, everywhere, now);
            }
        }));
    }
}

fn seen_by(ready: &[(TransactionId, Left)]) -> BTreeMap<Name, Stamp> {
    let mut all: BTreeMap<Name, Stamp> = BTreeMap::new();
    for (store, stamp) in ready.iter().flat_map(|(_, left)| &left.seen) {
        all.entry(store.clone()).or_default().join(stamp);
    }
    all
}
