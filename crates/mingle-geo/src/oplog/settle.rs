//! Items of which nothing is left to fold: in some nothing stands, others remember operation ids.

use std::sync::Arc;

use super::{At, Item, OpLog};
use crate::key::Key;
use crate::limits::FORGETS_PER_TICK_MAX;
use crate::types::{Mark, OpId};
use crate::vector::Vector;

impl Item {
    /// Forgets ids that are past in an item of which nothing is left to fold.
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
    /// Of an item of which nothing is left to fold: leaves it out if nothing stands in it, and notes
    /// that it remembers ids if it does.
    pub(super) fn settle(&mut self, key: &Key) {
        let Some(item) = self.items.get_mut(key).filter(|item| item.entries.is_empty()) else {
            return;
        };
        if item.base.state.is_blank() {
            // It is as if it had never been there; snapshots that could tell the difference are not read
            // any more.
            self.floor.join(&item.base.snapshot);
            self.items.remove(key);
            self.keys.remove(key);
        } else if item.base.state.remembers_ids() && !item.is_remembering {
            item.is_remembering = true;
            self.remembering.push_back(key.clone());
        }
    }

    /// Has a bounded number of items forget ids that are past, of those that are not changed any more.
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
