//! What this origin has begun, and where it stands.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Name, Origin, Stamp, TransactionId};

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

/// This origin's transactions.
pub(crate) struct Own {
    pub(crate) origin: Origin,
    next: u64,
    open: BTreeMap<u64, Entry>,
    pub(crate) is_cleaning: bool,
    /// The floor that was written last.
    pub(crate) raised: u64,
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
            is_cleaning: false,
            raised: 0,
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
    pub(crate) fn allocate(&mut self) -> TransactionId {
        if let Some(id) = self.only {
            return id;
        }
        let id = TransactionId { origin: self.origin, sequence: self.next };
        self.next += 1;
        self.open.insert(id.sequence, Entry::Running);
        id
    }

    /// An id that only serves to ask for an outcome.
    pub(crate) fn allocate_void(&mut self) -> TransactionId {
        let id = self.allocate();
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
            first.remove();
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

    pub(crate) fn cleaned(&mut self, origin: Origin, up_to: u64) {
        if origin == self.origin {
            self.open = self.open.split_off(&(up_to + 1));
        }
    }

    /// How many transactions are not cleaned up.
    pub(crate) fn open(&self) -> usize {
        self.open.len()
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
