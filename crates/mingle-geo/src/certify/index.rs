//! What a vote compares with: transactions for which it voted and that are undecided, and those
//! that committed, item by item.

use std::collections::BTreeMap;

use mingle_model::TransactionId;
use serde::{Deserialize, Serialize};

use super::certifier::CertifierConfig;
use super::conflict::{Class, Touch};
use crate::flaw::Flaw;
use crate::key::Key;
use crate::timestamp::{DcId, Timestamp};
use crate::vector::Vector;

/// Who has touched which item, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    items: BTreeMap<Key, Item>,
    /// When items were last touched by a transaction that committed.
    touched: BTreeMap<Timestamp, Vec<Key>>,
    /// How many items are in `touched`, with repetitions.
    count: usize,
    /// The join of what was dropped: a snapshot that does not cover it may conflict with that.
    floor: Vector,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Item {
    /// The join of the commit vectors, by class: a snapshot that covers it has all of them.
    committed: BTreeMap<Class, Vector>,
    /// Of undecided transactions, what they proposed.
    undecided: Vec<(TransactionId, Class, Timestamp)>,
}

impl Index {
    /// What a snapshot must cover for these touches to conflict with nothing that is not in it; none
    /// if it covers that.
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

    /// A transaction that touches these is voted for.
    pub fn hold(&mut self, id: TransactionId, touches: &[Touch], proposed: Timestamp) {
        for touch in touches {
            let item = self.items.entry(touch.key.clone()).or_default();
            item.undecided.push((id, touch.class(), proposed));
        }
    }

    /// That transaction is decided.
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

    /// A transaction that touches these has committed.
    pub fn add(&mut self, touches: &[Touch], commit_vec: &Vector) {
        for touch in touches {
            let item = self.items.entry(touch.key.clone()).or_default();
            item.committed.entry(touch.class()).or_default().join(commit_vec);
            self.touched.entry(commit_vec[DcId::STRONG]).or_default().push(touch.key.clone());
            self.count += 1;
        }
    }

    /// Drops the oldest until so many are left, and raises the floor above what was dropped.
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

    /// How many touches of transactions that committed it remembers.
    pub fn len(&self) -> usize {
        self.count
    }
}
