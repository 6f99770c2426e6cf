//! Timestamps, and who gave them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How many low bits of a timestamp name the partition that gave it.
pub const PARTITION_BITS: u32 = 12;

/// A data center holds at most this many partitions.
pub const PARTITIONS_MAX: usize = 1 << PARTITION_BITS;

/// A data center, numbered from 0; or [`DcId::STRONG`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct DcId(pub u8);

impl DcId {
    /// The column of vectors that counts strong transactions, which no data center owns.
    pub const STRONG: Self = Self(7);
}

impl fmt::Display for DcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::STRONG { f.write_str("strong") } else { write!(f, "d{}", self.0) }
    }
}

/// A partition of the keys, numbered from 0 alike in all data centers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct PartitionId(pub u16);

/// A hybrid logical timestamp: microseconds above, the partition that gave it in the low
/// [`PARTITION_BITS`]. So no two partitions of a data center ever give the same one, and a
/// transaction's local timestamp, which is the highest that its partitions gave, is its own.
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
    /// Before all others.
    pub const ZERO: Self = Self(0);

    /// The timestamp of this partition at `micros` microseconds; what does not fit is cut to the
    /// highest that does.
    pub fn new(micros: u64, partition: PartitionId) -> Self {
        let micros = micros.min(u64::MAX >> PARTITION_BITS);
        Self(micros << PARTITION_BITS | u64::from(partition.0) & (PARTITIONS_MAX as u64 - 1))
    }

    /// Its microseconds.
    pub fn micros(self) -> u64 {
        self.0 >> PARTITION_BITS
    }

    /// The highest timestamp below this one.
    pub fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.micros(), self.0 & (PARTITIONS_MAX as u64 - 1))
    }
}

/// The time as the shell sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Microseconds since 1970, as the machine's clock has them: it may be off, jump and step back.
    pub wall_us: u64,
    /// Microseconds of a clock that only goes forward, for waits; where it begins is of no matter.
    pub mono_us: u64,
}

/// Where one operation stands in the one total order of all operations: by timestamp, then origin,
/// then place in its transaction. It extends causality, since a transaction's timestamp is above
/// every entry of its snapshot, and it is the order of last writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    /// The transaction's timestamp at its origin.
    pub timestamp: Timestamp,
    /// The data center that committed it, or [`DcId::STRONG`].
    pub origin: DcId,
    /// The operation's place among those of its transaction at this partition.
    pub index: u32,
}

impl Version {
    /// The same number for all operations of a transaction, and as good as never that of another
    /// transaction; not 0.
    pub fn digest(&self) -> u64 {
        let Self { timestamp, origin, .. } = self;
        mingle_model::random::mix(timestamp.0.rotate_left(8) ^ u64::from(origin.0) << 1 | 1).max(1)
    }
}
