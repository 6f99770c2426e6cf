//! Vectors of timestamps (UniStore §5.1, §6.1).
//!
//! There is one entry per data center and one for strong transactions, stored inline: one cache
//! line, no allocation.

use std::fmt;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

use crate::timestamp::{DcId, Timestamp};

/// The maximum number of data centers.
pub const DCS_MAX: usize = 7;

/// A timestamp for each data center and one for strong transactions. As a snapshot it contains
/// exactly the transactions whose commit vector it [`covers`](Self::covers).
///
/// # Examples
///
/// ```
/// use mingle_geo::{DcId, Timestamp, Vector};
///
/// let (mut snapshot, mut commit) = (Vector::ZERO, Vector::ZERO);
/// snapshot[DcId(0)] = Timestamp(5);
/// commit[DcId(1)] = Timestamp(3);
/// assert!(!snapshot.covers(&commit));
/// snapshot.join(&commit);
/// assert!(snapshot.covers(&commit));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Vector([Timestamp; DCS_MAX + 1]);

impl Vector {
    /// The vector that covers no transaction.
    pub const ZERO: Self = Self([Timestamp::ZERO; DCS_MAX + 1]);

    /// True if each entry is at least the same entry of `other`.
    pub fn covers(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(have, want)| have >= want)
    }

    /// Raises each entry to at least the same entry of `other`.
    pub fn join(&mut self, other: &Self) {
        for (entry, other) in self.0.iter_mut().zip(&other.0) {
            *entry = (*entry).max(*other);
        }
    }

    /// Lowers each entry to at most the same entry of `other`.
    pub fn meet(&mut self, other: &Self) {
        for (entry, other) in self.0.iter_mut().zip(&other.0) {
            *entry = (*entry).min(*other);
        }
    }

    /// Lowers one entry to at most `most`.
    pub fn clip(&mut self, dc: DcId, most: Timestamp) {
        self[dc] = self[dc].min(most);
    }

    /// Returns this vector with one entry replaced.
    pub fn with(mut self, dc: DcId, timestamp: Timestamp) -> Self {
        self[dc] = timestamp;
        self
    }

    /// Returns the highest entry, including the entry of strong transactions.
    pub fn highest(&self) -> Timestamp {
        self.0.iter().copied().max().unwrap_or(Timestamp::ZERO)
    }

    /// Returns each entry with its column.
    pub fn iter(&self) -> impl Iterator<Item = (DcId, Timestamp)> {
        self.0.iter().enumerate().map(|(index, entry)| (DcId(index as u8), *entry))
    }
}

impl Default for Vector {
    fn default() -> Self {
        Self::ZERO
    }
}

/// An id outside the vector's columns yields [`Timestamp::ZERO`].
impl Index<DcId> for Vector {
    type Output = Timestamp;

    fn index(&self, dc: DcId) -> &Timestamp {
        self.0.get(usize::from(dc.0)).unwrap_or(&Timestamp::ZERO)
    }
}

/// # Panics
///
/// If the id is neither below [`DCS_MAX`] nor [`DcId::STRONG`]. Ids from outside are checked on
/// arrival.
impl IndexMut<DcId> for Vector {
    fn index_mut(&mut self, dc: DcId) -> &mut Timestamp {
        &mut self.0[usize::from(dc.0)]
    }
}

impl fmt::Debug for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (dc, entry) in self.iter().filter(|(_, entry)| *entry != Timestamp::ZERO) {
            write!(f, " {dc}:{entry}")?;
        }
        f.write_str(" ]")
    }
}

impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Computes `uniformVec` (2:33-36): for each column, the highest timestamp that this data center
/// and `f` others have reached.
///
/// The paper takes, over all groups of `f + 1` data centers that include `d`, the maximum of each
/// group's minimum. The best group is this data center with the `f` others that are furthest ahead.
/// So each entry is the smaller of this data center's own entry and the `f`-th highest entry of the
/// others.
///
/// `stable_matrix` has one row per data center; `own` is the row of this one.
pub fn uniform_of(stable_matrix: &[Vector], own: DcId, f: usize) -> Vector {
    let mut uniform = Vector::ZERO;
    for index in 0..stable_matrix.len() {
        let column = DcId(index as u8);
        let mut entry = stable_matrix[usize::from(own.0)][column];
        if f > 0 {
            let mut others = [Timestamp::ZERO; DCS_MAX];
            let mut count = 0;
            for (row, vector) in stable_matrix.iter().enumerate() {
                if row != usize::from(own.0) {
                    others[count] = vector[column];
                    count += 1;
                }
            }
            others[..count].sort_unstable_by(|a, b| b.cmp(a));
            // With fewer than `f` others there is no such group, and nothing is uniform.
            let furthest = others[..count].get(f - 1).copied().unwrap_or(Timestamp::ZERO);
            entry = entry.min(furthest);
        }
        uniform[column] = entry;
    }
    uniform
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes lines 2:33-36 literally: all groups, their minima, and the maximum of these.
    fn uniform_by_groups(matrix: &[Vector], own: usize, f: usize) -> Vector {
        let mut uniform = Vector::ZERO;
        for group in 0u32..1 << matrix.len() {
            if group.count_ones() as usize != f + 1 || group & 1 << own == 0 {
                continue;
            }
            for column in (0..matrix.len()).map(|column| DcId(column as u8)) {
                let members = (0..matrix.len()).filter(|row| group & 1 << row != 0);
                let least = members.map(|row| matrix[row][column]).min().unwrap_or_default();
                uniform[column] = uniform[column].max(least);
            }
        }
        uniform
    }

    proptest! {
        #[test]
        fn uniform_is_the_best_group(
            rows in prop::collection::vec(prop::collection::vec(0u64..9, 7), 1..=7),
            own in 0usize..7,
            f in 0usize..4,
        ) {
            let own = own % rows.len();
            let matrix: Vec<Vector> = rows
                .iter()
                .map(|row| {
                    let mut vector = Vector::ZERO;
                    for column in 0..rows.len() {
                        vector[DcId(column as u8)] = Timestamp(row[column]);
                    }
                    vector
                })
                .collect();
            let found = uniform_of(&matrix, DcId(own as u8), f);
            prop_assert_eq!(found, uniform_by_groups(&matrix, own, f));
        }

        #[test]
        fn join_is_the_least_that_covers_both(a in prop::array::uniform8(0u64..9), b in prop::array::uniform8(0u64..9)) {
            let (a, b) = (Vector(a.map(Timestamp)), Vector(b.map(Timestamp)));
            let (mut join, mut meet) = (a, a);
            join.join(&b);
            meet.meet(&b);
            prop_assert!(join.covers(&a) && join.covers(&b));
            prop_assert!(a.covers(&meet) && b.covers(&meet));
            for (column, entry) in join.iter() {
                prop_assert!(entry == a[column] || entry == b[column]);
                prop_assert_eq!(meet[column], a[column].min(b[column]));
            }
        }
    }
}
