//! The conflict index that votes use: undecided transactions with a yes vote, and committed
//! transactions, item by item.

use std::collections::BTreeMap;

use mingle_model::TransactionId;
use serde::{Deserialize, Serialize};

use super::certifier::CertifierConfig;
use super::conflict::{Class, Touch};
use crate::flaw::Flaw;
use crate::key::Key;
use crate::timestamp::{DcId, Timestamp};
use crate::vector::Vector;

/// The touches of each item, with their transactions' timestamps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    items: BTreeMap<Key, Item>,
    /// The items that committed transactions touched, by strong timestamp.
    touched: BTreeMap<Timestamp, Vec<Key>>,
    /// The number of items in `touched`, with repetitions.
    count: usize,
    /// The join of the dropped commit vectors: a snapshot that does not cover it may conflict with
    /// a dropped transaction.
    floor: Vector,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Item {
    /// The join of the commit vectors, by class: a snapshot that covers it contains all of the
    /// transactions.
    committed: BTreeMap<Class, Vector>,
    /// Undecided transactions, with their proposed timestamps.
    undecided: Vec<(TransactionId, Class, Timestamp)>,
}

impl Index {
    /// Returns the vector that a snapshot must cover so that these touches conflict with no
    /// transaction outside it; `None` if `snap_vec` is sufficient.
    pub fn in_the_way(
        &self,
        config: &CertifierConfig,
        touches: &[Touch],
        snap_vec: &Vector,
    ) -> Option<Vector> {
        let makes = |flaw| config.planted.is(flaw);
        let covers = |commit_vec: &Vector| {
            let strong = DcId::STRONG;
            let is_reached = snap_vec[strong] >= commit_vec[strong];
            snap_vec.covers(commit_vec) || is_reached && makes(Flaw::StrongEntryOnly)
        };
        let conflict = |a: &Class, b: &Class| {
            let are_labels = matches!((a, b), (Class::Labelled(_), Class::Labelled(_)));
            config.conflicts.of_classes(a, b) && !(are_labels && makes(Flaw::LabelsIgnored))
        };
        let mut missing = Vector::ZERO;
        if !snap_vec.covers(&self.floor) && !makes(Flaw::FloorIgnored) {
            missing.join(&self.floor);
        }
        for touch in touches {
            let (Some(item), class) = (self.items.get(&touch.key), touch.class()) else { continue };
            for (other, commit_vec) in &item.committed {
                if conflict(&class, other) && !covers(commit_vec) {
                    missing.join(commit_vec);
                }
            }
            for (_, other, proposed) in &item.undecided {
                if conflict(&class, other) && !makes(Flaw::UndecidedIgnored) {
                    missing.join(&Vector::ZERO.with(DcId::STRONG, *proposed));
                }
            }
        }
        (missing != Vector::ZERO).then_some(missing)
    }

    /// Adds an undecided transaction with a yes vote.
    pub fn hold(&mut self, id: TransactionId, touches: &[Touch], proposed: Timestamp) {
        for touch in touches {
            let item = self.items.entry(touch.key.clone()).or_default();
            item.undecided.push((id, touch.class(), proposed));
        }
    }

    /// Removes an undecided transaction, which is decided.
    pub fn release(&mut self, id: TransactionId, touches: &[Touch]) {
        for touch in touches {
            if let Some(item) = self.items.get_mut(&touch.key) {
                item.undecided.retain(|(other, ..)| *other != id);
                if item.undecided.is_empty() && item.committed.is_empty() {
                    self.items.remove(&touch.key);
                }
            }
        }
    }

    /// Adds the touches of a committed transaction.
    pub fn add(&mut self, touches: &[Touch], commit_vec: &Vector) {
        for touch in touches {
            let item = self.items.entry(touch.key.clone()).or_default();
            item.committed.entry(touch.class()).or_default().join(commit_vec);
            self.touched.entry(commit_vec[DcId::STRONG]).or_default().push(touch.key.clone());
            self.count += 1;
        }
    }

    /// Drops the oldest touches until at most `most` are left, and raises the floor to cover them.
    pub fn bound(&mut self, most: usize) {
        while self.count > most
            && let Some((timestamp, keys)) = self.touched.pop_first()
        {
            self.count -= keys.len();
            for key in keys {
                let Some(item) = self.items.get_mut(&key) else { continue };
                let floor = &mut self.floor;
                item.committed.retain(|_, commit_vec| {
                    let is_newer = commit_vec[DcId::STRONG] > timestamp;
                    if !is_newer {
                        floor.join(commit_vec);
                    }
                    is_newer
                });
                if item.undecided.is_empty() && item.committed.is_empty() {
                    self.items.remove(&key);
                }
            }
        }
    }

    /// Returns the number of remembered touches of committed transactions.
    pub fn len(&self) -> usize {
        self.count
    }
}
