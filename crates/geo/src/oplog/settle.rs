//! Items with nothing left to fold: some are blank, others remember operation ids, and others wait
//! for the horizon.

use std::sync::Arc;

use super::{At, Item, OpLog};
use crate::key::Key;
use crate::limits::{FOLDS_PER_TICK_MAX, FORGETS_PER_TICK_MAX};
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
            if let Some(due_us) = item.due_us {
                self.due.remove(&(due_us, key.clone()));
            }
            self.items.remove(key);
            self.keys.remove(key);
            return;
        }
        if item.base.state.remembers_ids() && !item.is_remembering {
            item.is_remembering = true;
            self.remembering.push_back(key.clone());
        }
        let due_us = item.base.state.due_us();
        if due_us != item.due_us {
            let before = std::mem::replace(&mut item.due_us, due_us);
            if let Some(before) = before {
                self.due.remove(&(before, key.clone()));
            }
            self.due.extend(due_us.map(|due_us| (due_us, key.clone())));
        }
    }

    /// Raises the horizon: all operations older than `horizon_us`, in microseconds since 1970, are
    /// here.
    pub fn raise_horizon(&mut self, horizon_us: u64) {
        self.horizon_us = self.horizon_us.max(horizon_us);
    }

    /// Returns the horizon at which the next item can be settled.
    pub fn first_due_us(&self) -> Option<u64> {
        self.due.first().map(|(due_us, _)| *due_us)
    }

    /// Settles a bounded number of unchanged items that the horizon has reached.
    pub(super) fn settle_some(&mut self, snapshot: &Vector) {
        for _ in 0..FOLDS_PER_TICK_MAX {
            if self.first_due_us().is_none_or(|due_us| due_us > self.horizon_us) {
                break;
            }
            let Some((_, key)) = self.due.pop_first() else { break };
            let Some(item) = self.items.get_mut(&key) else { continue };
            item.due_us = None;
            // An item with operations to fold is settled with them.
            if item.entries.is_empty() && snapshot.covers(&item.base.snapshot) {
                let mut state = (*item.base.state).clone();
                state.settle(self.horizon_us);
                item.base = At { snapshot: *snapshot, state: Arc::new(state) };
                item.cached = item.base.clone();
                self.settle(&key);
            }
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
