//! One item of a partition: its base, and the operations above it.

use std::sync::Arc;

use crate::key::Key;
use crate::timestamp::Version;
use crate::tx::Transaction;
use crate::types::{Mark, OpId, State};
use crate::vector::Vector;

/// An item of a partition.
#[derive(Clone, Debug)]
pub struct Item {
    pub base: At,
    /// A state at a snapshot that covers the base's snapshot.
    pub cached: At,
    /// The operations that are not in the base, in version order.
    pub entries: Vec<Entry>,
    /// The number of leading entries that are all in `cached`.
    pub cached_count: usize,
    pub is_queued: bool,
    pub is_remembering: bool,
    /// The time under which it is in `due` of the log.
    pub due_us: Option<u64>,
}

/// A state at a snapshot: all operations whose commit vectors the snapshot covers.
#[derive(Clone, Debug)]
pub struct At {
    pub snapshot: Vector,
    pub state: Arc<State>,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub transaction: Arc<Transaction>,
    pub index: u32,
}

impl Entry {
    pub fn version(&self) -> Version {
        self.transaction.version(self.index)
    }

    pub fn key(&self) -> &Key {
        &self.transaction.updates[self.index as usize].key
    }

    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.transaction.updates[self.index as usize].op.weight()
    }

    pub fn id(&self) -> Option<&OpId> {
        self.transaction.updates[self.index as usize].id.as_ref()
    }

    pub fn is_in(&self, snapshot: &Vector) -> bool {
        snapshot.covers(&self.transaction.commit_vec)
    }

    pub fn apply(&self, state: &mut State) {
        let update = &self.transaction.updates[self.index as usize];
        state.apply(&self.transaction.cause(self.index), &update.op, update.id.as_ref());
    }
}

impl Item {
    pub fn new(key: &Key, floor: Vector, horizon_us: u64) -> Self {
        let state = Arc::new(State::absent(key.kind, horizon_us));
        Self::at(At { snapshot: floor, state })
    }

    pub fn at(base: At) -> Self {
        let (cached, entries) = (base.clone(), Vec::new());
        let (is_queued, is_remembering, due_us) = (false, false, None);
        Self { base, cached, entries, cached_count: 0, is_queued, is_remembering, due_us }
    }

    /// Caches a state that was read at a snapshot which covers the snapshot of `cached`.
    pub fn keep(&mut self, at: At) {
        let rest = self.entries[self.cached_count..].iter();
        let held = rest.take_while(|entry| at.snapshot.covers(&entry.transaction.commit_vec));
        self.cached_count += held.count();
        self.cached = at;
    }

    /// Returns the state `from`, which has the first `count` entries, advanced to `snapshot`, which
    /// covers the snapshot of `from`.
    pub fn advance(&self, from: &At, count: usize, snapshot: &Vector) -> Arc<State> {
        let mut state = None;
        for entry in &self.entries[count..] {
            let commit_vec = &entry.transaction.commit_vec;
            if snapshot.covers(commit_vec) && !from.snapshot.covers(commit_vec) {
                entry.apply(state.get_or_insert_with(|| (*from.state).clone()));
            }
        }
        state.map_or_else(|| from.state.clone(), Arc::new)
    }

    /// Folds the operations that `snapshot` covers into the base, and returns the bytes freed.
    pub fn fold(
        &mut self,
        snapshot: &Vector,
        horizon_us: u64,
        is_past: &impl Fn(&OpId, &[Mark]) -> bool,
    ) -> usize {
        if !snapshot.covers(&self.base.snapshot) || *snapshot == self.base.snapshot {
            return 0;
        }
        let mut state = if snapshot.covers(&self.cached.snapshot) {
            self.advance(&self.cached, self.cached_count, snapshot)
        } else {
            self.advance(&self.base, 0, snapshot)
        };
        if !self.entries.is_empty() {
            // A rerun that did not see the first run may be ordered before causes of the first run.
            let above = self.entries.iter().filter(|entry| !entry.is_in(snapshot));
            let above: Vec<&OpId> = above.filter_map(Entry::id).collect();
            let is_past = |id: &OpId, runs: &[Mark]| is_past(id, runs) && !above.contains(&id);
            Arc::make_mut(&mut state).forget_ids(is_past);
        }
        if state.due_us().is_some_and(|due_us| due_us <= horizon_us) {
            Arc::make_mut(&mut state).settle(horizon_us);
        }
        let mut freed = 0;
        self.entries.retain(|entry| {
            let is_folded = snapshot.covers(&entry.transaction.commit_vec);
            freed += if is_folded { entry.weight() } else { 0 };
            !is_folded
        });
        self.base = At { snapshot: *snapshot, state };
        self.cached_count = 0;
        if self.cached.snapshot.covers(snapshot) {
            self.keep(self.cached.clone());
        } else {
            self.cached = self.base.clone();
        }
        freed
    }
}
