//! The records that a transaction leaves at its stores.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mingle_model::{Name, Stamp};
use mingle_store::Write;

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

impl Left {
    pub(crate) fn stores(&self) -> BTreeSet<usize> {
        let mut stores: BTreeSet<usize> = self.intent.into_iter().collect();
        stores.extend(&self.witnesses);
        stores.extend(&self.maybe);
        stores.extend(&self.rows);
        stores
    }

    /// True if a transaction has left, or may have left, records at a store.
    pub(crate) fn concerns(&self, store: usize) -> bool {
        self.intent == Some(store) || self.has_witness(store) || self.rows.contains(&store)
    }

    /// True if a commit witness is at a store, or may be there.
    pub(crate) fn has_witness(&self, store: usize) -> bool {
        self.witnesses.contains(&store) || self.maybe.contains(&store)
    }

    /// True if none of its records is left.
    pub(crate) fn is_removed(&self) -> bool {
        self.intent.is_none()
            && self.witnesses.is_empty()
            && self.maybe.is_empty()
            && self.rows.is_empty()
            && self.deferred.is_none()
    }
}
