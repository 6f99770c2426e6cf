//! The transactions that this origin has begun, and their states.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mingle_model::{Name, Origin, Stamp, TransactionId};
use mingle_store::Write;

use crate::api::settings::BATCH;

/// The records that a transaction leaves at its stores, by the stores' indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// The store of its intent.
    pub(crate) intent: Option<usize>,
    /// The stores with a commit witness.
    pub(crate) witnesses: BTreeSet<usize>,
    /// The stores with a commit witness if some process left one there.
    pub(crate) maybe: BTreeSet<usize>,
    /// The stores with witness rows.
    pub(crate) rows: BTreeSet<usize>,
    /// The stamps in its rows that its session had seen.
    pub(crate) seen: BTreeMap<Name, Stamp>,
    /// A commit witness that was not written yet, if any.
    pub(crate) deferred: Option<Box<DeferredWitness>>,
}

/// A commit witness that was not written: this origin's floor stands for it, if raised soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeferredWitness {
    /// The store where it is omitted.
    pub(crate) store: usize,
    /// The replica at which its phase has committed.
    pub(crate) replica: Option<Name>,
    /// A time before its transaction was decided.
    pub(crate) since: Duration,
    /// The time by which its phase had committed.
    pub(crate) committed: Duration,
    /// The witness.
    pub(crate) writes: Arc<[Write]>,
    /// This process has begun to write it: it may be there.
    pub(crate) is_tried: bool,
    /// It was written after all. A floor stands for it as well, so that later ones need not be
    /// written too. To be cleaned up, it must be everywhere by itself.
    pub(crate) is_written: bool,
}

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

impl Left {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn stores(&self) -> BTreeSet<usize> {
        let mut stores: BTreeSet<usize> = self.intent.into_iter().collect();
        stores.extend(&self.witnesses);
        stores.extend(&self.maybe);
        stores.extend(&self.rows);
        stores
    }
}

/// The state of a transaction of this origin.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// Its task runs.
    Running,
    /// Its caller has been answered; it is being finished.
    Following,
    /// It cannot be finished for now, and no task works on it. It had left these records.
    Parked(Left),
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
    pub(crate) is_cleaning: bool,
    /// The floor that was written last.
    pub(crate) raised: u64,
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
            is_cleaning: false,
            raised: 0,
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
        Self { only: Some(id), is_cleaning: true, ..Self::new(id.origin) }
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

    /// Takes note that a transaction's caller waits no longer.
    pub(crate) fn gives_up(&mut self, id: TransactionId) {
        if id.origin == self.origin
            && let Some(entry) = self.open.get_mut(&id.sequence)
        {
            *entry = Entry::Following;
        }
    }

    /// Parks a transaction that cannot be finished for now.
    pub(crate) fn parks(&mut self, id: TransactionId, left: Left) {
        if id.origin == self.origin
            && let Some(entry @ Entry::Following) = self.open.get_mut(&id.sequence)
        {
            *entry = Entry::Parked(left);
        }
    }

    /// True if some transaction of this origin could not be finished.
    pub(crate) fn has_parked(&self) -> bool {
        self.open.values().any(|entry| matches!(entry, Entry::Parked(_)))
    }

    /// Returns the records that a parked transaction of this origin had left.
    pub(crate) fn parked(&self, id: TransactionId) -> Option<Left> {
        match self.open.get(&id.sequence).filter(|_| id.origin == self.origin) {
            Some(Entry::Parked(left)) => Some(left.clone()),
            _ => None,
        }
    }

    pub(crate) fn over(&mut self, id: TransactionId, left: Left) {
        if id.origin == self.origin
            && let Some(entry) = self.open.get_mut(&id.sequence)
        {
            *entry = Entry::Over(left);
        }
        // A transaction that leaves nothing needs no floor.
        while let Some(first) = self.open.first_entry()
            && matches!(first.get(), Entry::Over(left) if left.is_empty())
        {
            let (sequence, _) = first.remove_entry();
            self.begun.remove(&sequence);
        }
    }

    /// Returns the first transactions that are over without a gap.
    pub(crate) fn ready(&self) -> Vec<(TransactionId, Left)> {
        let mut ready = Vec::new();
        for (sequence, entry) in self.open.iter().take(BATCH) {
            let Entry::Over(left) = entry else { break };
            let id = TransactionId { origin: self.origin, sequence: *sequence };
            ready.push((id, left.clone()));
        }
        ready
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

    /// Returns the number up to which clean-up may have removed an origin's commit witnesses.
    pub(crate) fn removed_up_to(&self, origin: Origin) -> u64 {
        // Other processes clean up after an origin that was given up.
        if origin == self.origin { self.raised } else { u64::MAX }
    }

    pub(crate) fn cleaned(&mut self, origin: Origin, up_to: u64) {
        if origin == self.origin {
            self.open = self.open.split_off(&(up_to + 1));
            self.begun = self.begun.split_off(&(up_to + 1));
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
                Entry::Running | Entry::Following => sums.running += 1,
                Entry::Parked(_) => sums.parked += 1,
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
        let is_parked = |entry: &Entry| matches!(entry, Entry::Parked(_));
        let rests = |entry: &Entry| is_parked(entry) || matches!(entry, Entry::Over(_));
        // Transactions after a parked one are cleaned up with it.
        self.open.values().all(rests) && self.open.values().next().is_none_or(is_parked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: usize = 1;

    fn deferred_of(replica: &str) -> Left {
        let deferred = DeferredWitness {
            store: STORE,
            replica: Some(replica.into()),
            since: Duration::ZERO,
            committed: Duration::ZERO,
            writes: Arc::new([]),
            is_tried: false,
            is_written: false,
        };
        Left { witnesses: [STORE].into(), deferred: Some(Box::new(deferred)), ..Left::default() }
    }

    /// Returns the last transaction and the count of each floor that is due.
    fn due(own: &Table) -> Vec<(u64, u64)> {
        own.due().iter().map(|due| (due.last.sequence, due.count)).collect()
    }

    #[test]
    fn a_floor_is_due_as_far_as_all_before_it_are_over() {
        let mut own = Table::new(Origin(1));
        let ids = [(); 4].map(|()| own.allocate(Duration::ZERO));
        own.over(ids[1], deferred_of("r1"));
        assert_eq!((due(&own), own.has_deferred()), (vec![], true), "the first one runs still");
        own.over(ids[0], Left { rows: [STORE].into(), ..Left::default() });
        own.over(ids[2], deferred_of("r1"));
        assert_eq!(due(&own), [(3, 2)]);
        own.settle(&own.due()[0].clone());
        assert_eq!((due(&own), own.has_deferred()), (vec![], false));
        own.over(ids[3], deferred_of("r2"));
        assert_eq!(due(&own), [], "that replica may lack what the other one has");
        own.cleaned(Origin(1), 3);
        assert_eq!(due(&own), [(4, 1)]);
    }

    #[test]
    fn no_floor_is_raised_over_what_is_witnessed_otherwise_or_elsewhere() {
        for other in [Left { witnesses: [STORE].into(), ..Left::default() }, deferred_of("r2")] {
            let mut own = Table::new(Origin(1));
            let ids = [(); 3].map(|()| own.allocate(Duration::ZERO));
            own.over(ids[0], deferred_of("r1"));
            own.over(ids[1], other);
            own.over(ids[2], deferred_of("r1"));
            assert_eq!(due(&own), [(1, 1)]);
        }
    }

    #[test]
    fn what_was_written_after_all_is_no_more_owed() {
        let mut own = Table::new(Origin(1));
        let (running, id) = (own.allocate(Duration::ZERO), own.allocate(Duration::ZERO));
        own.over(id, deferred_of("r1"));
        assert!(own.is_left_out(id) && !own.is_left_out(running));
        assert_eq!(own.deferred_since(Duration::ZERO).len(), 1);
        own.tries(id.origin, id.sequence);
        assert!(!own.is_left_out(id) && own.has_deferred(), "it may be there, or not");
        own.has_written(id.origin, id.sequence);
        assert!(!own.has_deferred() && own.deferred_since(Duration::ZERO).is_empty());
    }

    #[test]
    fn what_was_written_after_all_keeps_no_floor_down() {
        let mut own = Table::new(Origin(1));
        let ids = [(); 3].map(|()| own.allocate(Duration::ZERO));
        for id in &ids[..2] {
            own.over(*id, deferred_of("r1"));
        }
        own.tries(Origin(1), 1);
        own.has_written(Origin(1), 1);
        assert_eq!(due(&own), [(2, 1)], "for the one that was not");
        own.settle(&own.due()[0].clone());
        assert_eq!((due(&own), own.has_deferred()), (vec![], false));
        own.over(ids[2], deferred_of("r1"));
        own.has_written(Origin(1), 3);
        assert_eq!(due(&own), [], "it needs none");
    }

    #[test]
    fn sums_say_how_much_is_left_and_since_when() {
        let mut own = Table::new(Origin(1));
        let at = Duration::from_secs;
        let ids = [1, 2, 3].map(|second| own.allocate(at(second)));
        own.over(ids[1], Left { rows: [0, 1].into(), ..Left::default() });
        own.over(ids[2], Left { rows: [1].into(), ..Left::default() });
        let sums = own.sums();
        assert_eq!((sums.open, sums.running, sums.parked, sums.oldest), (3, 1, 0, Some(at(1))));
        assert_eq!(sums.to_clean, [(0, (1, at(2))), (1, (2, at(2)))].into());
        own.gives_up(ids[0]);
        own.parks(ids[0], Left::default());
        let sums = own.sums();
        assert_eq!((sums.running, sums.parked), (0, 1));
        own.over(ids[0], Left::default());
        assert_eq!(own.sums().oldest, Some(at(2)), "one that leaves nothing is gone at once");
        own.cleaned(Origin(1), 2);
        let sums = own.sums();
        assert_eq!((sums.open, sums.oldest), (1, Some(at(3))));
        own.cleaned(Origin(1), 3);
        assert_eq!((own.sums().open, own.sums().oldest), (0, None));
    }
}
