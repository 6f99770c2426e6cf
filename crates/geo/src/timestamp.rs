//! Timestamps, and ids of data centers and partitions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of low bits of a timestamp that name its partition.
pub const PARTITION_BITS: u32 = 12;

/// The maximum number of partitions in a data center.
pub const PARTITIONS_MAX: usize = 1 << PARTITION_BITS;

/// A data center, numbered from 0; or [`DcId::STRONG`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct DcId(pub u8);

impl DcId {
    /// The vector column of strong transactions, which no data center owns.
    pub const STRONG: Self = Self(7);
}

impl fmt::Display for DcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::STRONG { f.write_str("strong") } else { write!(f, "d{}", self.0) }
    }
}

/// A partition of the keys, numbered from 0 in the same way in all data centers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct PartitionId(pub u16);

/// A hybrid logical timestamp: microseconds in the high bits, the partition that gave it in the low
/// [`PARTITION_BITS`]. So no two partitions of a data center ever give the same timestamp. A
/// transaction's local timestamp is the highest that its partitions gave, so it is unique too.
///
/// # Examples
///
/// ```
/// use mingle_geo::{PartitionId, Timestamp};
///
/// let at = Timestamp::new(1_000, PartitionId(3));
/// assert_eq!(at.micros(), 1_000);
/// assert!(at < Timestamp::new(1_000, PartitionId(4)));
/// assert!(at < Timestamp::new(1_001, PartitionId(0)));
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The lowest timestamp.
    pub const ZERO: Self = Self(0);

    /// Returns the timestamp of this partition at `micros` microseconds; a value too large is
    /// lowered to the highest that fits.
    pub fn new(micros: u64, partition: PartitionId) -> Self {
        let micros = micros.min(u64::MAX >> PARTITION_BITS);
        Self(micros << PARTITION_BITS | u64::from(partition.0) & (PARTITIONS_MAX as u64 - 1))
    }

    /// Returns its microseconds.
    pub fn micros(self) -> u64 {
        self.0 >> PARTITION_BITS
    }

    /// Returns the highest timestamp below this one.
    pub fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.micros(), self.0 & (PARTITIONS_MAX as u64 - 1))
    }
}

/// The current time, as given by the shell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Microseconds since 1970 by the machine's clock, which may be wrong, jump and step back.
    pub wall_us: u64,
    /// Microseconds of a clock that only goes forward, with any starting point. It is used for
    /// waits.
    pub mono_us: u64,
}

/// The position of an operation in the total order of all operations: by timestamp, then origin,
/// then index in its transaction. The order extends causality, since a transaction's timestamp is
/// above every entry of its snapshot. It is also the last-writer order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    /// The transaction's timestamp at its origin.
    pub timestamp: Timestamp,
    /// The data center that committed it, or [`DcId::STRONG`].
    pub origin: DcId,
    /// The operation's index in its transaction at this partition.
    pub index: u32,
}

impl Version {
    /// Returns a nonzero number that all operations of a transaction share. Another transaction has
    /// the same number only with negligible probability.
    pub fn digest(&self) -> u64 {
        let Self { timestamp, origin, .. } = self;
        mingle_model::random::mix(timestamp.0.rotate_left(8) ^ u64::from(origin.0) << 1 | 1).max(1)
    }
}
