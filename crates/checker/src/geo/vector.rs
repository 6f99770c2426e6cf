//! Vectors of timestamps, as the store recorded them.

use std::fmt;

/// At most this many data centers.
pub const DCS_MAX: usize = 7;

/// The column of strong transactions in vectors, used as the number of their data center.
pub const STRONG: u8 = 7;

/// The number of low bits of a timestamp that are no part of its time.
const TIME_BITS: u32 = 12;

/// Returns the time of a timestamp, in microseconds of the store's clocks.
pub fn time_us(timestamp: u64) -> u64 {
    timestamp >> TIME_BITS
}

/// A timestamp for each data center, and in the last column, [`STRONG`], for strong transactions.
///
/// # Examples
///
/// ```
/// use mingle_checker::geo::Vector;
///
/// let seen = Vector::of([(0, 5), (1, 3)]);
/// assert!(seen.covers(&Vector::of([(1, 3)])));
/// assert!(!seen.covers(&Vector::of([(2, 1)])));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vector([u64; DCS_MAX + 1]);

impl Vector {
    /// The vector of zeros.
    pub const ZERO: Self = Self([0; DCS_MAX + 1]);

    /// Creates a vector with these entries, by column, and 0 elsewhere.
    ///
    /// # Panics
    ///
    /// For a column above [`STRONG`].
    pub fn of(entries: impl IntoIterator<Item = (u8, u64)>) -> Self {
        let mut vector = Self::ZERO;
        for (column, timestamp) in entries {
            vector.0[usize::from(column)] = timestamp;
        }
        vector
    }

    /// Returns the entry of a column; 0 for a column that does not exist.
    pub fn get(&self, column: u8) -> u64 {
        self.0.get(usize::from(column)).copied().unwrap_or(0)
    }

    /// Returns the vector with one entry replaced.
    ///
    /// # Panics
    ///
    /// For a column above [`STRONG`].
    #[must_use]
    pub fn with(mut self, column: u8, timestamp: u64) -> Self {
        self.0[usize::from(column)] = timestamp;
        self
    }

    /// True if each entry is at least that of `other`.
    pub fn covers(&self, other: &Self) -> bool {
        // Avoids branches: most comparisons are of vectors that are near each other.
        self.0.iter().zip(&other.0).filter(|(have, want)| have < want).count() == 0
    }

    /// Raises each entry to at least that of `other`.
    pub fn join(&mut self, other: &Self) {
        for (entry, other) in self.0.iter_mut().zip(&other.0) {
            *entry = (*entry).max(*other);
        }
    }

    /// Returns the lower of both, entry by entry.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        let mut least = *self;
        for (entry, other) in least.0.iter_mut().zip(&other.0) {
            *entry = (*entry).min(*other);
        }
        least
    }

    /// Returns the highest entry.
    pub fn highest(&self) -> u64 {
        self.0.iter().copied().max().unwrap_or(0)
    }

    /// Returns each entry with its column.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u64)> {
        (0..=STRONG).zip(self.0)
    }
}

impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "[";
        for (column, entry) in self.iter().filter(|(_, entry)| *entry != 0) {
            match column {
                STRONG => write!(f, "{separator}strong:{entry}")?,
                _ => write!(f, "{separator}d{column}:{entry}")?,
            }
            separator = " ";
        }
        f.write_str(if separator == "[" { "[]" } else { "]" })
    }
}
