//! What a replica tells whoever runs it.

use std::sync::Arc;

use super::Replica;
use crate::committed::Committed;
use crate::config::Config;
use crate::counters::Counters;
use crate::members::Members;
use crate::timestamp::DcId;
use crate::vector::Vector;

impl Replica {
    /// Who belongs to the system, as far as it knows.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What this replica has.
    pub fn known_vec(&self) -> Vector {
        self.known_vec
    }

    /// What its data center has.
    pub fn stable_vec(&self) -> Vector {
        self.stable_vec
    }

    /// What is uniform.
    pub fn uniform_vec(&self) -> Vector {
        self.uniform_vec
    }

    /// The snapshot up to which versions are folded.
    pub fn folded_vec(&self) -> Vector {
        self.pins.folded()
    }

    /// What it has met.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How many transactions are prepared and not decided.
    pub fn prepared_count(&self) -> usize {
        self.prepared_causal.len()
    }

    /// How many requests wait.
    pub fn waiting_count(&self) -> usize {
        self.waiting.count() + self.attaching.count()
    }

    /// How many operations are not folded, and about how many bytes they take.
    pub fn log_size(&self) -> (usize, usize) {
        (self.op_log.operation_count(), self.op_log.bytes())
    }

    /// About how many bytes of transactions of `origin` are kept for other data centers.
    pub fn kept_bytes(&self, origin: DcId) -> usize {
        self.committed_causal.get(usize::from(origin.0)).map_or(0, Committed::bytes)
    }

    /// How many outcomes of transactions are remembered.
    pub fn outcome_count(&self) -> usize {
        self.outcomes.count()
    }

    /// The keys of all items.
    pub fn keys(&self) -> impl Iterator<Item = &crate::key::Key> {
        self.op_log.keys(None)
    }

    /// The keys of all items from `first` on, in order.
    pub fn keys_from(&self, first: &crate::key::Key) -> impl Iterator<Item = &crate::key::Key> {
        self.op_log.keys_from(first)
    }

    /// The state of an item at a snapshot, for inspection.
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
