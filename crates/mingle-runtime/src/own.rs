//! What this origin has begun, and where it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mingle_model::{Name, Origin, Stamp, TransactionId};
use mingle_store::Write;

use crate::limits::BATCH;

/// What a transaction leaves at its stores, by their indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// Its intent.
    pub(crate) intent: Option<usize>,
    /// A commit witness.
    pub(crate) witnesses: BTreeSet<usize>,
    /// A commit witness, if somebody put one there.
    pub(crate) maybe: BTreeSet<usize>,
    /// Witness rows.
    pub(crate) rows: BTreeSet<usize>,
    /// What its rows say that its session had seen.
    pub(crate) seen: BTreeMap<Name, Stamp>,
    /// One of its commit witnesses, if that was not written yet.
    pub(crate) owed: Option<Box<Owed>>,
}

/// A commit witness that was not written: this origin's floor stands for it, if it is raised soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owed {
    /// Where.
    pub(crate) store: usize,
    /// The replica at which its phase has committed.
    pub(crate) replica: Option<Name>,
    /// A time before its transaction was decided.
    pub(crate) since: Duration,
    /// When its phase had committed.
    pub(crate) committed: Duration,
    /// The witness.
    pub(crate) writes: Arc<[Write]>,
    /// Somebody here has begun to write it: it may be there.
    pub(crate) is_tried: bool,
    /// It was written after all. A floor stands for it as well, so that those after it need not be
    /// written too; to be cleaned up, it must be everywhere by itself.
    pub(crate) is_written: bool,
}

/// A floor that is to stand for commit witnesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) store: usize,
    pub(crate) replica: Option<Name>,
    /// Up to which transaction.
    pub(crate) last: TransactionId,
    /// For how many.
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

/// Where a transaction of this origin stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// Its task runs.
    Running,
    /// Its caller has been answered; it is being finished.
    Following,
    /// It cannot be finished for now, and nobody is at it. This is what it had left.
    Parked(Left),
    /// It is over, and has left this.
    Over(Left),
}

/// How many transactions of this origin there are.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) open: usize,
    /// Those whose phases run, or are still to run.
    pub(crate) running: usize,
    pub(crate) parked: usize,
    /// When the oldest one began.
    pub(crate) oldest: Option<Duration>,
    /// Those that are over and have left something, by store, and when the oldest of them began.
    pub(crate) to_clean: BTreeMap<usize, (usize, Duration)>,
}

/// This origin's transactions.
pub(crate) struct Own {
    pub(crate) origin: Origin,
    next: u64,
    open: BTreeMap<u64, Entry>,
    /// When each of them began.
    begun: BTreeMap<u64, Duration>,
    pub(crate) is_cleaning: bool,
    /// The floor that was written last.
    pub(crate) raised: u64,
    /// Whether somebody raises floors for what is owed.
    pub(crate) is_settling: bool,
    /// The floors that stand for what was owed, by store.
    settled: BTreeMap<usize, u64>,
    /// Stores that have a sign of life of this origin.
    pub(crate) leased: BTreeSet<usize>,
    pub(crate) beats: u64,
    /// The one id that there is to give, where the transactions are another process's.
    only: Option<TransactionId>,
    /// An id was said never to commit: nothing may be tried with it again.
    pub(crate) is_spent: bool,
}

impl Own {
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

    /// Of an attempt that runs on behalf of another process: it has this id to give, and cleans up
    /// nothing.
    pub(crate) fn lent(id: TransactionId) -> Self {
        Self { only: Some(id), is_cleaning: true, ..Self::new(id.origin) }
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// An id for a transaction that others may have to finish, or wait for.
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

    /// An id that only serves to ask for an outcome.
    pub(crate) fn allocate_void(&mut self, now: Duration) -> TransactionId {
        let id = self.allocate(now);
        self.over(id, Left::default());
        id
    }

    /// Whether a transaction's own task still runs.
    pub(crate) fn is_running(&self, id: TransactionId) -> bool {
        id.origin == self.origin && self.open.get(&id.sequence) == Some(&Entry::Running)
    }

    /// A transaction's caller waits no longer.
    pub(crate) fn gives_up(&mut self, id: TransactionId) {
        if id.origin == self.origin
            && let Some(entry) = self.open.get_mut(&id.sequence)
        {
            *entry = Entry::Following;
        }
    }

    /// A transaction cannot be finished for now.
    pub(crate) fn parks(&mut self, id: TransactionId, left: Left) {
        if id.origin == self.origin
            && let Some(entry @ Entry::Following) = self.open.get_mut(&id.sequence)
        {
            *entry = Entry::Parked(left);
        }
    }

    /// Whether any transaction of this origin could not be finished.
    pub(crate) fn has_parked(&self) -> bool {
        self.open.values().any(|entry| matches!(entry, Entry::Parked(_)))
    }

    /// What a transaction of this origin had left that could not be finished.
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
        // What leaves nothing needs no floor.
        while let Some(first) = self.open.first_entry()
            && matches!(first.get(), Entry::Over(left) if left.is_empty())
        {
            let (sequence, _) = first.remove_entry();
            self.begun.remove(&sequence);
        }
    }

    /// The first transactions that are over without a gap.
    pub(crate) fn ready(&self) -> Vec<(TransactionId, Left)> {
        let mut ready = Vec::new();
        for (sequence, entry) in self.open.iter().take(BATCH) {
            let Entry::Over(left) = entry else { break };
            let id = TransactionId { origin: self.origin, sequence: *sequence };
            ready.push((id, left.clone()));
        }
        ready
    }

    /// Up to which transaction this origin's floor was raised at a store for what was owed there.
    pub(crate) fn settled(&self, store: usize) -> u64 {
        self.settled.get(&store).copied().unwrap_or(0)
    }

    fn is_owed(&self, sequence: u64, left: &Left) -> bool {
        let is_owed = |owed: &Owed| !owed.is_written && self.settled(owed.store) < sequence;
        left.owed.as_deref().is_some_and(is_owed)
    }

    /// Whether any commit witness is owed.
    pub(crate) fn owes(&self) -> bool {
        self.open.iter().any(|(sequence, entry)| match entry {
            Entry::Over(left) => self.is_owed(*sequence, left),
            _ => false,
        })
    }

    /// The floors that can be raised for what is owed: as far as all transactions are over, and wherever
    /// they have been is owed too, or was, at the same replica. Another replica may lack what that one has: it
    /// has to wait until a floor is everywhere, and its transactions are cleaned up.
    pub(crate) fn due(&self) -> Vec<Due> {
        let mut due: BTreeMap<usize, Due> = BTreeMap::new();
        let mut replicas: BTreeMap<usize, &Option<Name>> = BTreeMap::new();
        let mut closed = BTreeSet::new();
        for (sequence, entry) in self.open.iter().take(BATCH) {
            let Entry::Over(left) = entry else { break };
            let last = TransactionId { origin: self.origin, sequence: *sequence };
            for store in left.witnesses.union(&left.maybe).copied() {
                let owed = left.owed.as_ref().filter(|owed| owed.store == store);
                let owed = owed.filter(|owed| {
                    *replicas.entry(store).or_insert(&owed.replica) == &owed.replica
                });
                let Some(owed) = owed else {
                    closed.insert(store);
                    continue;
                };
                if closed.contains(&store) || self.settled(store) >= *sequence {
                    continue;
                }
                let replica = owed.replica.clone();
                let due = due.entry(store).or_insert(Due { store, replica, last, count: 0 });
                (due.last, due.count) = (last, due.count + u64::from(!owed.is_written));
            }
        }
        due.into_values().filter(|due| due.count > 0).collect()
    }

    /// What is owed of phases that had committed by a time, in order.
    pub(crate) fn owed_since(&self, time: Duration) -> Vec<(u64, Box<Owed>)> {
        let late = self.open.iter().filter_map(|(sequence, entry)| match entry {
            Entry::Over(left) if self.is_owed(*sequence, left) => {
                let owed = left.owed.clone().filter(|owed| owed.committed <= time)?;
                Some((*sequence, owed))
            }
            _ => None,
        });
        late.collect()
    }

    /// A floor stands for what was owed.
    pub(crate) fn settle(&mut self, due: &Due) {
        if due.last.origin == self.origin {
            let settled = self.settled.entry(due.store).or_default();
            *settled = due.last.sequence.max(*settled);
        }
    }

    /// Whether a commit witness was left out, and nobody here has begun to write it.
    pub(crate) fn is_left_out(&self, id: TransactionId) -> bool {
        match self.open.get(&id.sequence).filter(|_| id.origin == self.origin) {
            Some(Entry::Over(left)) => left.owed.as_ref().is_some_and(|owed| !owed.is_tried),
            _ => false,
        }
    }

    fn owing(&mut self, origin: Origin, sequence: u64) -> Option<&mut Option<Box<Owed>>> {
        match self.open.get_mut(&sequence).filter(|_| origin == self.origin) {
            Some(Entry::Over(left)) => Some(&mut left.owed),
            _ => None,
        }
    }

    /// A commit witness that was left out may be there from now on.
    pub(crate) fn tries(&mut self, origin: Origin, sequence: u64) {
        if let Some(Some(owed)) = self.owing(origin, sequence) {
            owed.is_tried = true;
        }
    }

    /// It was written after all.
    pub(crate) fn has_written(&mut self, origin: Origin, sequence: u64) {
        if let Some(Some(owed)) = self.owing(origin, sequence) {
            owed.is_written = true;
        }
    }

    /// Up to which transaction of an origin clean-up may have removed commit witnesses.
    pub(crate) fn removed_up_to(&self, origin: Origin) -> u64 {
        // Of an origin that was given up, others clean up.
        if origin == self.origin { self.raised } else { u64::MAX }
    }

    pub(crate) fn cleaned(&mut self, origin: Origin, up_to: u64) {
        if origin == self.origin {
            self.open = self.open.split_off(&(up_to + 1));
            self.begun = self.begun.split_off(&(up_to + 1));
        }
    }

    /// How many transactions are not cleaned up.
    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }

    /// How much there is, and since when.
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

    /// Whether everything that this origin has begun is over and cleaned up.
    pub(crate) fn is_clean(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether nothing that this origin has begun goes on by itself.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_parked = |entry: &Entry| matches!(entry, Entry::Parked(_));
        let rests = |entry: &Entry| is_parked(entry) || matches!(entry, Entry::Over(_));
        // What comes after a parked one is cleaned up with it.
        self.open.values().all(rests) && self.open.values().next().is_none_or(is_parked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: usize = 1;

    fn owing(replica: &str) -> Left {
        let owed = Owed {
            store: STORE,
            replica: Some(replica.into()),
            since: Duration::ZERO,
            committed: Duration::ZERO,
            writes: Arc::new([]),
            is_tried: false,
            is_written: false,
        };
        Left { witnesses: [STORE].into(), owed: Some(Box::new(owed)), ..Left::default() }
    }

    /// Up to which transactions floors are due, and for how many.
    fn due(own: &Own) -> Vec<(u64, u64)> {
        own.due().iter().map(|due| (due.last.sequence, due.count)).collect()
    }

    #[test]
    fn a_floor_is_due_as_far_as_all_before_it_are_over() {
        let mut own = Own::new(Origin(1));
        let ids = [(); 4].map(|()| own.allocate(Duration::ZERO));
        own.over(ids[1], owing("r1"));
        assert_eq!((due(&own), own.owes()), (vec![], true), "the first one runs still");
        own.over(ids[0], Left { rows: [STORE].into(), ..Left::default() });
        own.over(ids[2], owing("r1"));
        assert_eq!(due(&own), [(3, 2)]);
        own.settle(&own.due()[0].clone());
        assert_eq!((due(&own), own.owes()), (vec![], false));
        own.over(ids[3], owing("r2"));
        assert_eq!(due(&own), [], "that replica may lack what the other one has");
        own.cleaned(Origin(1), 3);
        assert_eq!(due(&own), [(4, 1)]);
    }

    #[test]
    fn no_floor_is_raised_over_what_is_witnessed_otherwise_or_elsewhere() {
        for other in [Left { witnesses: [STORE].into(), ..Left::default() }, owing("r2")] {
            let mut own = Own::new(Origin(1));
            let ids = [(); 3].map(|()| own.allocate(Duration::ZERO));
            own.over(ids[0], owing("r1"));
            own.over(ids[1], other);
            own.over(ids[2], owing("r1"));
            assert_eq!(due(&own), [(1, 1)]);
        }
    }

    #[test]
    fn what_was_written_after_all_is_no_more_owed() {
        let mut own = Own::new(Origin(1));
        let (running, id) = (own.allocate(Duration::ZERO), own.allocate(Duration::ZERO));
        own.over(id, owing("r1"));
        assert!(own.is_left_out(id) && !own.is_left_out(running));
        assert_eq!(own.owed_since(Duration::ZERO).len(), 1);
        own.tries(id.origin, id.sequence);
        assert!(!own.is_left_out(id) && own.owes(), "it may be there, or not");
        own.has_written(id.origin, id.sequence);
        assert!(!own.owes() && own.owed_since(Duration::ZERO).is_empty());
    }

    #[test]
    fn what_was_written_after_all_keeps_no_floor_down() {
        let mut own = Own::new(Origin(1));
        let ids = [(); 3].map(|()| own.allocate(Duration::ZERO));
        for id in &ids[..2] {
            own.over(*id, owing("r1"));
        }
        own.tries(Origin(1), 1);
        own.has_written(Origin(1), 1);
        assert_eq!(due(&own), [(2, 1)], "for the one that was not");
        own.settle(&own.due()[0].clone());
        assert_eq!((due(&own), own.owes()), (vec![], false));
        own.over(ids[2], owing("r1"));
        own.has_written(Origin(1), 3);
        assert_eq!(due(&own), [], "it needs none");
    }

    #[test]
    fn sums_say_how_much_is_left_and_since_when() {
        let mut own = Own::new(Origin(1));
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
