//! The transactions that this origin has begun, and their states.

pub(crate) mod lane;
mod left;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mingle_model::{Name, Origin, TransactionId};

use crate::api::settings::BATCH;
use crate::in_flight::table::lane::Lane;
pub(crate) use crate::in_flight::table::left::{DeferredWitness, Left};

/// A floor that is to stand for commit witnesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) store: usize,
    pub(crate) replica: Option<Name>,
    /// The last transaction below the floor.
    pub(crate) last: TransactionId,
    /// The number of commit witnesses that it stands for.
    pub(crate) count: u64,
}

/// The state of a transaction of this origin.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// Its task runs.
    Running,
    /// Its caller has been answered; it is being finished. It concerns at most these stores, if they are
    /// known.
    Following(Option<BTreeSet<usize>>),
    /// It cannot be finished for now, and no task works on it. It had left these records, and concerns at
    /// most these stores, if they are known.
    Parked(Left, Option<BTreeSet<usize>>),
    /// It is over, and has left these records.
    Over(Left),
}

/// The numbers of this origin's transactions.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) open: usize,
    /// Transactions whose phases run, or are still to run.
    pub(crate) running: usize,
    pub(crate) parked: usize,
    /// The time at which the oldest one began.
    pub(crate) oldest: Option<Duration>,
    /// By store, the number of transactions that are over and have left records, and the time at
    /// which the oldest of them began.
    pub(crate) to_clean: BTreeMap<usize, (usize, Duration)>,
}

/// This origin's transactions.
pub(crate) struct Table {
    pub(crate) origin: Origin,
    next: u64,
    open: BTreeMap<u64, Entry>,
    /// The times at which they began.
    begun: BTreeMap<u64, Duration>,
    /// The progress of clean-up, by store.
    lanes: BTreeMap<usize, Lane>,
    /// True while a task raises floors for deferred commit witnesses.
    pub(crate) is_settling: bool,
    /// The floors that stand for deferred commit witnesses, by store.
    settled: BTreeMap<usize, u64>,
    /// Stores that have a sign of life of this origin.
    pub(crate) leased: BTreeSet<usize>,
    pub(crate) beats: u64,
    /// The only id to give out, if the transactions are another process's.
    only: Option<TransactionId>,
    /// A store has promised that an id never commits: nothing may be tried with it again.
    pub(crate) is_spent: bool,
}

impl Table {
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            origin,
            next: 1,
            open: BTreeMap::new(),
            begun: BTreeMap::new(),
            lanes: BTreeMap::new(),
            is_settling: false,
            settled: BTreeMap::new(),
            leased: BTreeSet::new(),
            beats: 0,
            only: None,
            is_spent: false,
        }
    }

    /// Creates the state for an attempt on behalf of another process: it gives out this id, and
    /// cleans up nothing.
    pub(crate) fn lent(id: TransactionId) -> Self {
        Self { only: Some(id), ..Self::new(id.origin) }
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Allocates an id for a transaction that others may have to finish, or wait for.
    pub(crate) fn allocate(&mut self, now: Duration) -> TransactionId {
        if let Some(id) = self.only {
            return id;
        }
        let id = TransactionId { origin: self.origin, sequence: self.next };
        self.next += 1;
        self.open.insert(id.sequence, Entry::Running);
        self.begun.insert(id.sequence, now);
        id
    }

    /// Allocates an id that only serves to ask for an outcome.
    pub(crate) fn allocate_void(&mut self, now: Duration) -> TransactionId {
        let id = self.allocate(now);
        self.over(id, Left::default());
        id
    }

    /// True if a transaction's own task still runs.
    pub(crate) fn is_running(&self, id: TransactionId) -> bool {
        id.origin == self.origin && self.open.get(&id.sequence) == Some(&Entry::Running)
    }

    /// Takes note that a transaction's caller waits no longer. It concerns at most these stores, if they
    /// are given.
    pub(crate) fn gives_up(&mut self, id: TransactionId, stores: Option<BTreeSet<usize>>) {
        if id.origin == self.origin
            && let Some(entry) = self.open.get_mut(&id.sequence)
        {
            *entry = Entry::Following(stores);
        }
    }

    /// Parks a transaction that cannot be finished for now.
    pub(crate) fn parks(&mut self, id: TransactionId, left: Left) {
        if id.origin == self.origin
            && let Some(entry) = self.open.get_mut(&id.sequence)
            && let Entry::Following(stores) = entry
        {
            *entry = Entry::Parked(left, stores.take());
        }
    }

    /// True if some transaction of this origin could not be finished.
    pub(crate) fn has_parked(&self) -> bool {
        self.open.values().any(|entry| matches!(entry, Entry::Parked(..)))
    }

    /// Returns the records that a parked transaction of this origin had left.
    pub(crate) fn parked(&self, id: TransactionId) -> Option<Left> {
        match self.open.get(&id.sequence).filter(|_| id.origin == self.origin) {
            Some(Entry::Parked(left, _)) => Some(left.clone()),
            _ => None,
        }
    }

    /// Takes note that a transaction is over and has left these records. Returns the stores whose lanes of
    /// clean-up must be started.
    pub(crate) fn over(&mut self, id: TransactionId, left: Left) -> Vec<usize> {
        if id.origin != self.origin || !self.open.contains_key(&id.sequence) {
            return Vec::new();
        }
        // A transaction that leaves nothing needs no floor.
        if left.is_removed() {
            self.open.remove(&id.sequence);
            self.begun.remove(&id.sequence);
            return Vec::new();
        }
        let stores = self.start_lanes(&left);
        self.open.insert(id.sequence, Entry::Over(left));
        stores
    }

    /// Returns the number up to which this origin's floor was raised at a store for omitted
    /// witnesses.
    pub(crate) fn settled(&self, store: usize) -> u64 {
        self.settled.get(&store).copied().unwrap_or(0)
    }

    fn is_deferred(&self, sequence: u64, left: &Left) -> bool {
        let is_deferred = |deferred: &DeferredWitness| {
            !deferred.is_written && self.settled(deferred.store) < sequence
        };
        left.deferred.as_deref().is_some_and(is_deferred)
    }

    /// True if some commit witness is still omitted.
    pub(crate) fn has_deferred(&self) -> bool {
        self.open.iter().any(|(sequence, entry)| match entry {
            Entry::Over(left) => self.is_deferred(*sequence, left),
            _ => false,
        })
    }

    /// Returns the floors that can be raised for deferred witnesses. A floor rises as far as all
    /// transactions are over, and as far as every witness at the store is or was omitted at the
    /// same replica. Another replica may lack witnesses of that one: it must wait until a floor
    /// is everywhere, and its transactions are cleaned up.
    pub(crate) fn due(&self) -> Vec<Due> {
        let mut due: BTreeMap<usize, Due> = BTreeMap::new();
        let mut replicas: BTreeMap<usize, &Option<Name>> = BTreeMap::new();
        let mut closed = BTreeSet::new();
        for (sequence, entry) in self.open.iter().take(BATCH) {
            let Entry::Over(left) = entry else { break };
            let last = TransactionId { origin: self.origin, sequence: *sequence };
            for store in left.witnesses.union(&left.maybe).copied() {
                let deferred = left.deferred.as_ref().filter(|deferred| deferred.store == store);
                let deferred = deferred.filter(|deferred| {
                    *replicas.entry(store).or_insert(&deferred.replica) == &deferred.replica
                });
                let Some(deferred) = deferred else {
                    closed.insert(store);
                    continue;
                };
                if closed.contains(&store) || self.settled(store) >= *sequence {
                    continue;
                }
                let replica = deferred.replica.clone();
                let due = due.entry(store).or_insert(Due { store, replica, last, count: 0 });
                (due.last, due.count) = (last, due.count + u64::from(!deferred.is_written));
            }
        }
        due.into_values().filter(|due| due.count > 0).collect()
    }

    /// Returns the deferred witnesses of phases that had committed by `time`, in order.
    pub(crate) fn deferred_since(&self, time: Duration) -> Vec<(u64, Box<DeferredWitness>)> {
        let late = self.open.iter().filter_map(|(sequence, entry)| match entry {
            Entry::Over(left) if self.is_deferred(*sequence, left) => {
                let deferred =
                    left.deferred.clone().filter(|deferred| deferred.committed <= time)?;
                Some((*sequence, deferred))
            }
            _ => None,
        });
        late.collect()
    }

    /// Takes note that a floor stands for the deferred witnesses.
    pub(crate) fn settle(&mut self, due: &Due) {
        if due.last.origin == self.origin {
            let settled = self.settled.entry(due.store).or_default();
            *settled = due.last.sequence.max(*settled);
        }
    }

    /// True if a commit witness was omitted, and this process has not begun to write it.
    pub(crate) fn is_left_out(&self, id: TransactionId) -> bool {
        match self.open.get(&id.sequence).filter(|_| id.origin == self.origin) {
            Some(Entry::Over(left)) => {
                left.deferred.as_ref().is_some_and(|deferred| !deferred.is_tried)
            }
            _ => false,
        }
    }

    fn deferred_of(
        &mut self,
        origin: Origin,
        sequence: u64,
    ) -> Option<&mut Option<Box<DeferredWitness>>> {
        match self.open.get_mut(&sequence).filter(|_| origin == self.origin) {
            Some(Entry::Over(left)) => Some(&mut left.deferred),
            _ => None,
        }
    }

    /// Takes note that a deferred commit witness may be there from now on.
    pub(crate) fn tries(&mut self, origin: Origin, sequence: u64) {
        if let Some(Some(deferred)) = self.deferred_of(origin, sequence) {
            deferred.is_tried = true;
        }
    }

    /// Takes note that it was written after all.
    pub(crate) fn has_written(&mut self, origin: Origin, sequence: u64) {
        if let Some(Some(deferred)) = self.deferred_of(origin, sequence) {
            deferred.is_written = true;
        }
    }

    /// Returns the number of transactions that are not cleaned up.
    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }

    /// Returns the numbers of transactions, and the times of the oldest ones.
    pub(crate) fn sums(&self) -> Sums {
        let oldest = self.begun.values().next().copied();
        let mut sums = Sums { open: self.open.len(), oldest, ..Sums::default() };
        for (sequence, entry) in &self.open {
            match entry {
                Entry::Running | Entry::Following(_) => sums.running += 1,
                Entry::Parked(..) => sums.parked += 1,
                Entry::Over(left) => {
                    let since = self.begun.get(sequence).copied().unwrap_or_default();
                    for store in left.stores() {
                        sums.to_clean.entry(store).or_insert((0, since)).0 += 1;
                    }
                }
            }
        }
        sums
    }

    /// True if everything that this origin has begun is over and cleaned up.
    pub(crate) fn is_clean(&self) -> bool {
        self.open.is_empty()
    }

    /// True if no transaction of this origin goes on by itself.
    pub(crate) fn is_at_rest(&self) -> bool {
        // Some transactions are cleaned up only after a parked one.
        let rests = |entry: &Entry| matches!(entry, Entry::Parked(..) | Entry::Over(_));
        self.open.values().all(rests) && self.lanes_rest()
    }
}

#[cfg(test)]
mod tests;
