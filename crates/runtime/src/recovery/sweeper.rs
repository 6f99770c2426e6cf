//! Finishing and cleaning up after origins that are gone.
//!
//! An origin that gives no sign of life for the length of a lease is taken for dead. That is a
//! guess, so no promise rests on it. First its fence is put up at every replica of every store;
//! from then on no store lets it begin a transaction. Its transactions begun by then are finished,
//! its floor is raised above all that it can ever have begun, and then its records are deleted. If
//! it was alive after all, it meets its fence and goes on as another origin.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Name, Origin, TransactionId, WitnessRow};
use mingle_store::{Bytes, Data, Read, RecordKey, RecordKind, StoreError, Write};

use crate::api::error::Error;
use crate::execute::helper::{Helped, Helper};
use crate::in_flight::table::Left;
use crate::mutants::Mutant;
use crate::observe::stats::Counted;
use crate::recovery::Recovery;
use crate::stores::records::{is_visible, visible_reads};

/// The result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Transactions that were finished.
    pub finished: Vec<TransactionId>,
    /// Transactions that could not be finished, and why.
    pub left: Vec<(TransactionId, String)>,
    /// Origins after which everything was cleaned up.
    pub cleaned: Vec<Origin>,
    /// Origins that were taken for dead and still have records at stores: not all of them could be
    /// finished, or are everywhere yet.
    pub open: Vec<Origin>,
}

/// The lowest floors of origins at stores, as far as they were asked for.
type Floors = BTreeMap<(usize, Origin), u64>;

/// The records of one origin at stores.
#[derive(Default)]
struct Trace {
    /// Records by store.
    records: BTreeSet<(usize, RecordKey)>,
    /// Witness rows by store.
    rows: BTreeMap<usize, Vec<WitnessRow>>,
    /// The number of its holds: they are given back, and never only deleted.
    holds: usize,
}

impl Recovery {
    /// Finds the records of other origins, finishes their transactions, and cleans up.
    /// `assumes_dead` waits for no lease; use it only if no other process is there.
    pub(crate) async fn sweep(&self, assumes_dead: bool) -> Result<Swept, Error> {
        self.sweep_now(assumes_dead, false).await.map_err(Error::Store)
    }

    /// Sweeps as [`Runtime::sweep`](crate::Runtime::sweep) without waiting for leases, and tries parked transactions once
    /// more, this runtime's own as well.
    pub(crate) async fn recover_all(&self) -> Result<Swept, Error> {
        let mut swept = self.sweep_now(true, true).await.map_err(Error::Store)?;
        self.recover_own(true, &mut swept).await.map_err(Error::Store)?;
        Ok(swept)
    }

    /// Finishes the parked transactions of this origin, or learns that another process has.
    pub(crate) async fn recover_own(
        &self,
        insists: bool,
        swept: &mut Swept,
    ) -> Result<(), StoreError> {
        if !self.in_flight.table().has_parked() {
            return Ok(());
        }
        let own = self.in_flight.table().origin();
        let deadline = self.stores.world.elapsed() + self.stores.settings.deadline;
        for (id, place) in self.intents_of(own).await.0 {
            let Some(mut left) = self.in_flight.table().parked(id) else { continue };
            let helper =
                Helper { replica: None, chain: Vec::new(), deadline, insists, pushes: false };
            match self.executor.help(id, &place, helper).await {
                Ok(Helped::Finished) => {
                    self.executor.leaves(id, &place, &mut left).await?;
                    self.in_flight.is_over(id, left);
                    swept.finished.push(id);
                }
                Ok(Helped::Over) => self.in_flight.is_over(id, Left::default()),
                Ok(_) => {}
                Err(error) => swept.left.push((id, error.to_string())),
            }
        }
        Ok(())
    }

    /// True if every replica of a store has a transaction's commit witness (the same copy, if there
    /// are several) or its floor.
    async fn is_witnessed(&self, id: TransactionId, store: usize) -> Result<bool, StoreError> {
        let mut copy: Option<Bytes> = None;
        for replica in self.stores.replicas(store) {
            let reads = visible_reads(id);
            let answers = self.stores.read_records(store, replica, &reads).await?;
            if !is_visible(id, &answers) {
                return Ok(false);
            }
            if let Some(Data::Record(Some(first))) = answers.into_iter().next()
                && *copy.get_or_insert_with(|| first.clone()) != first
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// True if some replica of a store has a transaction's commit witness, or its floor: the other
    /// replicas will get it.
    pub(crate) async fn is_witnessed_anywhere(
        &self,
        id: TransactionId,
        store: usize,
    ) -> Result<bool, StoreError> {
        for replica in self.stores.replicas(store) {
            let reads = visible_reads(id);
            let answers = self.stores.read_records(store, replica, &reads).await?;
            if is_visible(id, &answers) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) async fn sweep_now(
        &self,
        assumes_dead: bool,
        insists: bool,
    ) -> Result<Swept, StoreError> {
        let mut swept = Swept::default();
        let traces = self.traces().await?;
        let own = self.in_flight.table().origin();
        let mut dead = Vec::new();
        for (origin, trace) in traces {
            let rest = self.drop_garbage(origin, trace).await?;
            let has_rest = !rest.records.is_empty() || !rest.rows.is_empty() || rest.holds > 0;
            if origin != own && has_rest && (assumes_dead || self.is_dead(origin).await) {
                dead.push(origin);
            }
        }
        let mut failed = None;
        for origin in dead {
            match self.finish_origin(origin, insists, &mut swept).await {
                Ok(true) => {
                    self.watched().leases.remove(&origin);
                    swept.cleaned.push(origin);
                }
                Ok(false) => swept.open.push(origin),
                // The other origins may not need the part that failed.
                Err(error) => {
                    failed = Some(error);
                    swept.open.push(origin);
                }
            }
        }
        // A caller that assumes death must learn of the error; the rest of the work is done.
        match failed.filter(|_| assumes_dead) {
            Some(error) => Err(error),
            None => Ok(swept),
        }
    }

    /// Returns the records of all origins, at the first replica of each store.
    async fn traces(&self) -> Result<BTreeMap<Origin, Trace>, StoreError> {
        let mut traces: BTreeMap<Origin, Trace> = BTreeMap::new();
        let (mut answered, mut failed) = (false, None);
        for store in 0..self.stores.all.len() {
            match self.traces_at(store, &mut traces).await {
                Ok(()) => answered = true,
                Err(error) => failed = Some(error),
            }
        }
        // The records at stores that answer can be handled all the same.
        match failed.filter(|_| !answered) {
            Some(error) => Err(error),
            None => Ok(traces),
        }
    }

    async fn traces_at(
        &self,
        store: usize,
        traces: &mut BTreeMap<Origin, Trace>,
    ) -> Result<(), StoreError> {
        for kind in TRACES.into_iter().chain([RecordKind::Hold]) {
            for (key, value) in self.stores.all_records(store, None, kind, None).await? {
                let Some(origin) = key.origin() else { continue };
                let trace = traces.entry(origin).or_default();
                // The mark of a hold that was given up before it stood has no content. Below a floor it is
                // garbage: the guards of the hold's commit ask for the floor too.
                if kind == RecordKind::Hold && !value.is_empty() {
                    trace.holds += 1;
                } else {
                    trace.records.insert((store, key));
                }
            }
        }
        for row in self.stores.all_rows(store, None, None).await? {
            let trace = traces.entry(row.id.origin).or_default();
            trace.rows.entry(store).or_default().push(row);
        }
        Ok(())
    }

    /// True if no transaction has to wait any more because of a row at a store: the floors of the stores that
    /// it names are everywhere, and so is what its session had seen. A row that names no known store ends
    /// with the floor of its own one. The row's transaction need not have visited that store: rows are passed on.
    async fn is_over_at(
        &self,
        store: usize,
        row: &WitnessRow,
        floors: &mut Floors,
    ) -> Result<bool, StoreError> {
        let named: Vec<usize> =
            row.stores.iter().filter_map(|name| self.stores.store_called(name)).collect();
        let is_known = !named.is_empty() && named.len() == row.stores.len();
        for at in if is_known { named } else { vec![store] } {
            if self.floor_at(at, row.id.origin, floors).await? < row.id.sequence {
                return Ok(false);
            }
        }
        for (place, stamp) in &row.seen {
            let Some(at) = self.stores.store_called(place) else { continue };
            if !self.stores.seen_everywhere(at, stamp).await.covers(stamp) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the lowest floor of an origin at any replica of a store, asked for once.
    async fn floor_at(
        &self,
        store: usize,
        origin: Origin,
        floors: &mut Floors,
    ) -> Result<u64, StoreError> {
        if let Some(floor) = floors.get(&(store, origin)) {
            return Ok(*floor);
        }
        // Those of a store that is away may be lower than any that is known: no row ends there.
        let floor = match self.stores.floor_at(store, origin).await {
            Ok(floor) => floor,
            Err(StoreError::Unavailable { .. } | StoreError::Unknown { .. }) => 0,
            Err(error) => return Err(error),
        };
        floors.insert((store, origin), floor);
        Ok(floor)
    }

    /// Deletes the records below the floor, which arrived after their transaction was cleaned up.
    /// Returns the rest.
    async fn drop_garbage(&self, origin: Origin, trace: Trace) -> Result<Trace, StoreError> {
        let mut rest = Trace { holds: trace.holds, ..Trace::default() };
        if self.stores.mutant == Mutant::NothingDeleted {
            return Ok(trace);
        }
        let mut floors = Floors::new();
        for store in 0..self.stores.all.len() {
            let records: Vec<&RecordKey> =
                trace.records.iter().filter(|(at, _)| *at == store).map(|(_, key)| key).collect();
            let rows = trace.rows.get(&store).map(Vec::as_slice).unwrap_or_default();
            if records.is_empty() && rows.is_empty() {
                continue;
            }
            let floor = self.floor_at(store, origin, &mut floors).await?;
            let mut writes = Vec::new();
            for key in records {
                let is_below = match key.transaction() {
                    Some((id, _)) => id.sequence <= floor,
                    None => floor == u64::MAX,
                };
                if is_below {
                    writes.push(Write::Discard(key.clone()));
                } else {
                    rest.records.insert((store, key.clone()));
                }
            }
            let mut forgotten = BTreeSet::new();
            for row in rows {
                if !self.is_over_at(store, row, &mut floors).await? {
                    rest.rows.entry(store).or_default().push(row.clone());
                } else if forgotten.insert(row.id) {
                    writes.push(Write::Forget(row.id));
                }
            }
            self.stores.write_in_batches(store, None, writes).await?;
        }
        Ok(rest)
    }

    /// Finishes and cleans up after an origin; false if something of it is left.
    async fn finish_origin(
        &self,
        origin: Origin,
        insists: bool,
        swept: &mut Swept,
    ) -> Result<bool, StoreError> {
        // Any process can finish these transactions at any time. Clean-up demands more: all of them
        // must be known, and no new one may follow.
        let fenced = self.is_fenced(origin).await;
        let is_fenced =
            self.stores.mutant == Mutant::SweepWithoutFence || matches!(fenced, Ok(true));
        self.give_back_undecided(origin).await?;
        let (intents, is_all) = self.intents_of(origin).await;
        let deadline = self.stores.world.elapsed() + self.stores.settings.deadline;
        let mut is_finished = is_all;
        for (id, place) in &intents {
            let helper =
                Helper { replica: None, chain: Vec::new(), deadline, insists, pushes: false };
            match self.executor.help(*id, place, helper).await {
                Ok(Helped::Finished) => {
                    self.stores.stats.count(Counted::Swept);
                    swept.finished.push(*id);
                }
                Ok(Helped::Over | Helped::NotFound) => {}
                Ok(Helped::Busy) => is_finished = false,
                Err(error) => {
                    swept.left.push((*id, error.to_string()));
                    is_finished = false;
                }
            }
        }
        fenced?;
        for (id, place) in &intents {
            let mut left = Left::default();
            self.executor.leaves(*id, place, &mut left).await?;
            for store in left.witnesses {
                is_finished = is_finished && self.is_witnessed(*id, store).await?;
            }
        }
        if !is_fenced || !is_finished || !self.is_seen(origin).await? {
            return Ok(false);
        }
        self.give_back_holds(origin).await?;
        if self.stores.mutant == Mutant::FloorAfterDeletion {
            self.delete_all(origin).await?;
        }
        let last = TransactionId { origin, sequence: u64::MAX };
        let all: BTreeSet<usize> = (0..self.stores.all.len()).collect();
        for store in &all {
            self.stores.raise_at(*store, None, last).await?;
        }
        if !self.stores.is_raised(last, &all).await? {
            return Ok(false);
        }
        if self.stores.mutant != Mutant::NothingDeleted {
            self.delete_all(origin).await?;
        }
        Ok(true)
    }

    /// Gives back what transactions of an origin hold that never commit: none can begin any more, and those that
    /// had begun are finished, so their phases at the stores of their holds have removed these.
    async fn give_back_holds(&self, origin: Origin) -> Result<(), StoreError> {
        for store in 0..self.stores.all.len() {
            let kind = RecordKind::Hold;
            for (key, _) in self.stores.all_records(store, None, kind, Some(origin)).await? {
                self.executor.give_back_one(store, &key, false).await?;
            }
        }
        Ok(())
    }

    /// Gives back holds too early, as a planted fault.
    async fn give_back_undecided(&self, origin: Origin) -> Result<(), StoreError> {
        if self.stores.mutant != Mutant::HoldReleasedUndecided {
            return Ok(());
        }
        self.give_back_holds(origin).await
    }

    /// Puts up an origin's fence; true if every replica of every store has it.
    async fn is_fenced(&self, origin: Origin) -> Result<bool, StoreError> {
        let key = RecordKey::of_origin(RecordKind::Fence, origin);
        let mut is_everywhere = true;
        for store in 0..self.stores.all.len() {
            if self.stores.floor_at(store, origin).await? == u64::MAX {
                // An earlier sweep got this far. A fence would be garbage there.
                continue;
            }
            let write = Write::Record(key.clone(), Bytes::from([1].as_slice()));
            self.stores.write_records(store, None, vec![write]).await?;
            for replica in self.stores.replicas(store) {
                let read = [Read::Record(key.clone())];
                let answers = self.stores.read_records(store, replica, &read).await?;
                is_everywhere &= matches!(answers.first(), Some(Data::Record(Some(_))));
            }
        }
        Ok(is_everywhere)
    }

    /// Returns an origin's transactions with the stores of their intents, and true if these are all
    /// (they are not if a store is away).
    async fn intents_of(&self, origin: Origin) -> (BTreeMap<TransactionId, Name>, bool) {
        let (mut intents, mut is_all) = (BTreeMap::new(), true);
        for store in 0..self.stores.all.len() {
            for replica in self.stores.replicas(store) {
                let kind = RecordKind::Intent;
                let found =
                    self.stores.all_records(store, replica.as_ref(), kind, Some(origin)).await;
                is_all &= found.is_ok();
                let found = found.unwrap_or_default();
                let ids = found.iter().filter_map(|(key, _)| key.transaction());
                intents.extend(ids.map(|(id, _)| (id, self.stores.name_at(store))));
            }
        }
        (intents, is_all)
    }

    /// True if every replica has the stamps that an origin's rows say its sessions had seen.
    async fn is_seen(&self, origin: Origin) -> Result<bool, StoreError> {
        for store in 0..self.stores.all.len() {
            for replica in self.stores.replicas(store) {
                for row in self.stores.all_rows(store, replica.as_ref(), Some(origin)).await? {
                    for (place, stamp) in &row.seen {
                        let Some(at) = self.stores.store_called(place) else { continue };
                        let everywhere = self.stores.all[at].everywhere().await?;
                        if !everywhere.covers(stamp) {
                            return Ok(false);
                        }
                    }
                }
            }
        }
        Ok(true)
    }

    /// Deletes all records of an origin except its floors; its intents last.
    async fn delete_all(&self, origin: Origin) -> Result<(), StoreError> {
        for kinds in [&TRACES[1..], &TRACES[..1]] {
            for store in 0..self.stores.all.len() {
                let mut writes = Vec::new();
                for kind in kinds {
                    let records = self.stores.all_records(store, None, *kind, Some(origin)).await?;
                    writes.extend(records.into_iter().map(|(key, _)| Write::Discard(key)));
                }
                let rows = self.stores.all_rows(store, None, Some(origin)).await?;
                let ids: BTreeSet<TransactionId> = rows.iter().map(|row| row.id).collect();
                writes.extend(ids.into_iter().map(Write::Forget));
                self.stores.write_in_batches(store, None, writes).await?;
            }
        }
        Ok(())
    }
}

/// The kinds of records that an origin leaves besides its floors: intents first.
const TRACES: [RecordKind; 6] = [
    RecordKind::Intent,
    RecordKind::Fixed,
    RecordKind::Parked,
    RecordKind::Witness,
    RecordKind::Lease,
    RecordKind::Fence,
];
