//! The clean-up of one store: how far this origin's floor has risen there, and the records that may be
//! removed.
//!
//! Each store has a lane of its own, so that a store or replica that is away delays only the records that
//! need it. The floor of a store rises over a transaction that is over, in the order of numbers, if
//!
//! - the transaction does not concern the store, or
//! - every replica of the store has its commit witness, or the floor that stands for an omitted one; and, if
//!   the store holds its intent, the floors of its other stores are everywhere. So the floor of the intent's
//!   store comes last, and a process that finds it knows that the transaction is everywhere.
//!
//! It also rises over a transaction that is still being finished, or is parked, if its program does not name
//! the store.
//!
//! Once every replica of the store has the floor, commit witnesses below it are removed there, and intents.
//! Witness rows name *other* stores, so they are removed once the floors of all of these are everywhere
//! ([`Table::is_through`]).
//!
//! # Example
//!
//! The intents of (7,1) and (7,2) are at `bank`. (7,1) has written `feed`, whose replica r3 is away, and
//! (7,2) has written `wall`.
//!
//! ```text
//!          floor rises to   removed
//!   wall   2                the commit witness of (7,2), and its rows at `bank` and `wall`
//!   feed   0, r3 is asked   nothing
//!   bank   0                nothing else: the floor must not pass (7,1), whose intent is still needed
//!   r3 is back
//!   feed   1                the commit witness of (7,1), and its rows
//!   bank   2                both intents
//! ```
//!
//! No lanes can wait for each other in a circle: the floor of an intent's store waits for floors up to that
//! transaction, and these wait only for transactions with lower numbers.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Origin, TransactionId};

use crate::api::settings::BATCH;
use crate::in_flight::table::{Entry, Left, Table};

/// The progress of clean-up at one store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lane {
    /// The floor that was written last by clean-up.
    raised: u64,
    /// The floor that every replica has.
    everywhere: u64,
    /// The number of parts of each commit witness below `raised` that is still there.
    parts: BTreeMap<u64, u32>,
    /// True while a task cleans the store.
    is_running: bool,
}

/// The records at one store that can be removed now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Removable {
    /// Transactions whose commit witness is not needed any more, with the number of its parts.
    pub(crate) witnesses: Vec<(TransactionId, u32)>,
    /// Transactions whose rows no other transaction has to wait for, apart from the stamps in them.
    pub(crate) rows: Vec<(TransactionId, Left)>,
    /// Transactions whose intent is not needed any more.
    pub(crate) intents: Vec<TransactionId>,
}

impl Removable {
    pub(crate) fn is_empty(&self) -> bool {
        self.witnesses.is_empty() && self.rows.is_empty() && self.intents.is_empty()
    }
}

impl Table {
    fn lane(&mut self, store: usize) -> &mut Lane {
        self.lanes.entry(store).or_default()
    }

    fn floor_everywhere(&self, store: usize) -> u64 {
        self.lanes.get(&store).map_or(0, |lane| lane.everywhere)
    }

    fn floor_raised(&self, store: usize) -> u64 {
        self.lanes.get(&store).map_or(0, |lane| lane.raised)
    }

    /// Returns the stores among these whose lanes have no task yet, and marks them as running.
    pub(super) fn start_lanes(&mut self, left: &Left) -> Vec<usize> {
        if self.only.is_some() {
            // The transaction is another process's.
            return Vec::new();
        }
        let mut stores = left.stores();
        stores.retain(|store| !std::mem::replace(&mut self.lane(*store).is_running, true));
        stores.into_iter().collect()
    }

    /// True if the task of a lane has nothing more to do and ends: no transaction that is over has
    /// records at the store.
    pub(crate) fn end_lane(&mut self, origin: Origin, store: usize) -> bool {
        if self.origin != origin {
            // A new origin starts lanes of its own.
            return true;
        }
        let is_left = |entry: &Entry| matches!(entry, Entry::Over(left) if left.concerns(store));
        let is_idle = !self.open.values().any(is_left);
        if is_idle {
            self.lane(store).is_running = false;
        }
        is_idle
    }

    /// Returns the floor that was raised at a store and is not known to be everywhere.
    pub(crate) fn unconfirmed(&self, store: usize) -> Option<TransactionId> {
        let raised = self.floor_raised(store);
        let is_open = raised > self.floor_everywhere(store);
        is_open.then_some(TransactionId { origin: self.origin, sequence: raised })
    }

    /// Records that every replica of a store has this floor.
    pub(crate) fn confirm(&mut self, store: usize, floor: TransactionId) {
        if self.origin == floor.origin {
            let lane = self.lane(store);
            lane.everywhere = floor.sequence.max(lane.everywhere);
        }
    }

    /// Records that clean-up has raised the floor of a store, and the number of parts of each commit
    /// witness that it has found.
    pub(crate) fn raise(
        &mut self,
        store: usize,
        floor: TransactionId,
        parts: BTreeMap<TransactionId, u32>,
    ) {
        if self.origin == floor.origin {
            let lane = self.lane(store);
            lane.raised = floor.sequence.max(lane.raised);
            let below = parts.into_iter().filter(|(id, _)| id.sequence <= floor.sequence);
            lane.parts.extend(below.map(|(id, parts)| (id.sequence, parts)));
        }
    }

    /// Returns the transactions over which the floor of a store rises next, in order, if every replica
    /// there has what they have left. If `is_early`, the floor at the store of an intent does not wait for the
    /// others, as a planted fault.
    pub(crate) fn batch(&self, store: usize, is_early: bool) -> Vec<(TransactionId, Left)> {
        let mut batch = Vec::new();
        for (sequence, entry) in self.open.range(self.floor_raised(store) + 1..) {
            let left = match entry {
                Entry::Following(stores) | Entry::Parked(_, stores)
                    if stores.as_ref().is_some_and(|stores| !stores.contains(&store)) =>
                {
                    continue;
                }
                Entry::Running | Entry::Following(_) | Entry::Parked(..) => break,
                Entry::Over(left) => left,
            };
            if !left.concerns(store) {
                continue;
            }
            let holds_intent = left.intent == Some(store) && !is_early;
            if batch.len() == BATCH || holds_intent && !self.is_through(*sequence, left, store) {
                break;
            }
            batch.push((TransactionId { origin: self.origin, sequence: *sequence }, left.clone()));
        }
        batch
    }

    /// Records that a transaction that is over may have rows at a store.
    pub(crate) fn may_have_rows(&mut self, id: TransactionId, store: usize) {
        if id.origin == self.origin
            && let Some(Entry::Over(left)) = self.open.get_mut(&id.sequence)
        {
            left.rows.insert(store);
        }
    }

    /// True if the floor at every store of a transaction, except `other`, is everywhere and above it.
    fn is_through(&self, sequence: u64, left: &Left, other: usize) -> bool {
        let mut stores = left.stores().into_iter().filter(|store| *store != other);
        stores.all(|store| self.floor_everywhere(store) >= sequence)
    }

    /// Returns the records at a store that can be removed. `agree` tells of a store that its replicas have
    /// the same state: a transaction that has begun there is at all of them.
    /// If `is_early`, rows are removed with the floor of their own store, as a planted fault.
    pub(crate) fn removable(
        &self,
        store: usize,
        agree: impl Fn(usize) -> bool,
        is_early: bool,
    ) -> Removable {
        let mut removable = Removable::default();
        let everywhere = self.floor_everywhere(store);
        for (sequence, entry) in &self.open {
            let Entry::Over(left) = entry else { continue };
            let id = TransactionId { origin: self.origin, sequence: *sequence };
            if left.rows.contains(&store) && removable.rows.len() < BATCH {
                let exempt = left.intent.filter(|intent| agree(*intent)).unwrap_or(usize::MAX);
                let is_early = is_early && *sequence <= everywhere;
                if is_early || self.is_through(*sequence, left, exempt) {
                    removable.rows.push((id, left.clone()));
                }
            }
            if *sequence > everywhere {
                continue;
            }
            if left.has_witness(store) && removable.witnesses.len() < BATCH {
                let parts = self.lanes.get(&store).and_then(|lane| lane.parts.get(sequence));
                removable.witnesses.push((id, parts.copied().unwrap_or(0)));
            }
            if left.intent == Some(store) && removable.intents.len() < BATCH {
                removable.intents.push(id);
            }
        }
        removable
    }

    /// Records that these records of a store are removed. Returns the number of transactions of which
    /// nothing is left.
    pub(crate) fn removed(&mut self, store: usize, removed: &Removable) -> u64 {
        let ids = removed.witnesses.iter().map(|(id, _)| *id);
        let ids = ids.chain(removed.rows.iter().map(|(id, _)| *id)).chain(removed.intents.clone());
        let ids: BTreeSet<TransactionId> = ids.filter(|id| id.origin == self.origin).collect();
        let is_among = |all: &[TransactionId], id| all.binary_search(&id).is_ok();
        let witnesses: Vec<TransactionId> = removed.witnesses.iter().map(|(id, _)| *id).collect();
        let rows: Vec<TransactionId> = removed.rows.iter().map(|(id, _)| *id).collect();
        let mut count = 0;
        for id in ids {
            let Some(Entry::Over(left)) = self.open.get_mut(&id.sequence) else { continue };
            if is_among(&witnesses, id) {
                left.witnesses.remove(&store);
                left.maybe.remove(&store);
                left.deferred.take_if(|deferred| deferred.store == store);
            }
            if is_among(&rows, id) {
                left.rows.remove(&store);
            }
            if is_among(&removed.intents, id) {
                left.intent = None;
            }
            if left.is_removed() {
                self.open.remove(&id.sequence);
                self.begun.remove(&id.sequence);
                count += 1;
            }
        }
        let lane = self.lane(store);
        for id in &witnesses {
            lane.parts.remove(&id.sequence);
        }
        count
    }

    /// True if clean-up can do nothing at any store at present.
    pub(super) fn lanes_rest(&self) -> bool {
        let over = self.open.values().filter_map(|entry| match entry {
            Entry::Over(left) => Some(left.stores()),
            _ => None,
        });
        let stores: BTreeSet<usize> = over.flatten().collect();
        stores.into_iter().all(|store| {
            self.unconfirmed(store).is_none()
                && self.batch(store, false).is_empty()
                && self.removable(store, |_| false, false).is_empty()
        })
    }
}

#[cfg(test)]
mod tests;
