//! Items with nothing left to fold: some are blank, others remember operation ids.

use std::sync::Arc;

use super::{At, Item, OpLog};
use crate::key::Key;
use crate::limits::FORGETS_PER_TICK_MAX;
use crate::types::{Mark, OpId};
use crate::vector::Vector;

impl Item {
    /// Forgets past ids in an item with nothing left to fold.
    fn forget(&mut self, snapshot: &Vector, is_past: &impl Fn(&OpId, &[Mark]) -> bool) {
        let is_later = snapshot.covers(&self.base.snapshot);
        if is_later && self.base.state.has_past_ids(is_past) {
            let mut state = (*self.base.state).clone();
            state.forget_ids(is_past);
            self.base = At { snapshot: *snapshot, state: Arc::new(state) };
            self.cached = self.base.clone();
        }
    }
}

impl OpLog {
    /// Settles an item with nothing left to fold: removes it if it is blank, or queues it if it
    /// remembers operation ids.
    pub(super) fn settle(&mut self, key: &Key) {
        let Some(item) = self.items.get_mut(key).filter(|item| item.entries.is_empty()) else {
            return;
        };
        if item.base.state.is_blank() {
            // From here on it is as if the item had never existed. Snapshots that could show the
            // difference are no longer read.
            self.floor.join(&item.base.snapshot);
            self.items.remove(key);
            self.keys.remove(key);
        } else if item.base.state.remembers_ids() && !item.is_remembering {
            item.is_remembering = true;
            self.remembering.push_back(key.clone());
        }
    }

    /// Makes a bounded number of unchanged items forget past ids.
    pub(super) fn forget_some(
        &mut self,
        snapshot: &Vector,
        is_past: &impl Fn(&OpId, &[Mark]) -> bool,
    ) {
        for _ in 0..self.remembering.len().min(FORGETS_PER_TICK_MAX) {
            let Some(key) = self.remembering.pop_front() else { break };
            let Some(item) = self.items.get_mut(&key) else { continue };
            item.is_remembering = false;
            if item.entries.is_empty() {
                item.forget(snapshot, is_past);
                self.settle(&key);
            }
        }
    }
}
