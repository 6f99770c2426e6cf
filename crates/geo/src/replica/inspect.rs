//! Getters of a replica for its operator.

use std::sync::Arc;

use super::Replica;
use crate::committed::Committed;
use crate::config::Config;
use crate::counters::Counters;
use crate::derive::{Derive, Entries, Span};
use crate::members::Members;
use crate::timestamp::DcId;
use crate::vector::Vector;

impl Replica {
    /// Returns the members, as far as this replica knows them.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Returns its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the transactions that this replica has.
    pub fn known_vec(&self) -> Vector {
        self.known_vec
    }

    /// Returns the transactions that all partitions of its data center have.
    pub fn stable_vec(&self) -> Vector {
        self.stable_vec
    }

    /// Returns the transactions that are uniform.
    pub fn uniform_vec(&self) -> Vector {
        self.uniform_vec
    }

    /// Returns the snapshot up to which versions are folded.
    pub fn folded_vec(&self) -> Vector {
        self.pins.folded()
    }

    /// Returns its event counts.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the number of transactions that are prepared and not decided.
    pub fn prepared_count(&self) -> usize {
        self.prepared_causal.len()
    }

    /// Returns the number of waiting requests.
    pub fn waiting_count(&self) -> usize {
        self.waiting.count() + self.attaching.count()
    }

    /// Returns the number of operations that are not folded, and their approximate bytes.
    pub fn log_size(&self) -> (usize, usize) {
        (self.op_log.operation_count(), self.op_log.bytes())
    }

    /// Returns the approximate bytes of `origin`'s transactions that are kept for other data
    /// centers.
    pub fn kept_bytes(&self, origin: DcId) -> usize {
        self.committed_causal.get(usize::from(origin.0)).map_or(0, Committed::bytes)
    }

    /// Returns the number of remembered outcomes.
    pub fn outcome_count(&self) -> usize {
        self.outcomes.count()
    }

    /// Returns the keys of all items.
    pub fn keys(&self) -> impl Iterator<Item = &crate::key::Key> {
        self.op_log.keys(None)
    }

    /// Returns the keys of all items from `first` on, in order.
    pub fn keys_from(&self, first: &crate::key::Key) -> impl Iterator<Item = &crate::key::Key> {
        self.op_log.keys_from(first)
    }

    /// Keeps an index from now on, unless there is one of its name. It is kept as long as this replica lives, and
    /// has all items that are here already.
    pub fn derive(&mut self, by: &Arc<dyn Derive>) {
        self.op_log.derive(by);
    }

    /// Returns the entries of a part of an index, among which are all that hold at `snapshot`; `None` if there is
    /// no such index, the snapshot is not complete here, or it is older than the folded versions.
    pub fn entries(&self, span: &Span, snapshot: &Vector) -> Option<Entries> {
        let is_readable = self.known_vec.covers(snapshot) && snapshot.covers(&self.pins.folded());
        if is_readable { self.op_log.entries(span) } else { None }
    }

    /// Returns the state of an item at a snapshot, for inspection.
    ///
    /// # Errors
    ///
    /// The oldest snapshot at which it can be read.
    pub fn inspect(
        &self,
        key: &crate::key::Key,
        snapshot: &Vector,
    ) -> Result<Arc<crate::types::State>, Vector> {
        self.op_log.peek(key, snapshot)
    }
}
