//! A copy of all items of a node at one vector, read part by part while transactions go on.
//!
//! All partitions of the node are asked at once, so the vector is one that each of them has. It is held
//! ([`Replica::hold`](mingle_geo::Replica::hold)) for [`HOLD_MS`] after each part; a reader that is slower than that
//! begins again. So a reader that goes away holds up nothing for long.

use std::fmt;

use mingle_geo::floors::Raised;
use mingle_geo::{DcId, HeldPart, Key, Now, PartitionId, Vector};

use super::Node;

/// The time for which a copy waits for its reader, in milliseconds.
pub const HOLD_MS: u64 = 10_000;

/// The maximum number of items that are looked at for one part.
const ITEMS_MAX: usize = 500;

/// The approximate maximum of a part's bytes; a part with one item may have more.
const BYTES_MAX: usize = 128 << 10;

/// The part of a partition's bound on versions that are not folded ([`log_bytes_max`](mingle_geo::Config)) beyond which a
/// copy is given up, so that it does not make the partition refuse writes.
const LOG_PARTS: usize = 2;

/// A copy that has begun.
#[derive(Clone, Debug, PartialEq)]
pub struct Copying {
    /// The vector of its items.
    pub at: Vector,
    /// The epoch to which the vector belongs.
    pub epoch: u32,
    /// The floors of operation ids, by data center and origin.
    pub floors: Vec<(DcId, Raised)>,
}

/// The reason why a copy cannot begin or go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// This data center copies the data of another one, was given up, or has no partition.
    NotServing,
    /// The partitions have not reached the wanted vector.
    Behind {
        /// The wanted vector.
        wanted: Box<Vector>,
        /// The vector that all partitions have.
        found: Box<Vector>,
    },
    /// The vector is not held any more: the reader was too slow, or the members have changed.
    Passed,
    /// A partition of this number does not exist.
    NoPartition(PartitionId),
    /// A partition has too many versions that cannot be folded.
    Full {
        /// Their bytes.
        found: usize,
        /// The maximum.
        most: usize,
    },
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotServing => f.write_str("this data center does not serve clients"),
            Self::Behind { wanted, found } => {
                write!(f, "the partitions have reached {found}, expected {wanted}")
            }
            Self::Passed => write!(
                f,
                "the snapshot is not held any more: the next part was not asked for within {HOLD_MS} ms, or the \
                 data centers have changed"
            ),
            Self::NoPartition(partition) => write!(f, "there is no partition {}", partition.0),
            Self::Full { found, most } => write!(
                f,
                "a partition has {found} bytes of versions above the snapshot, at most {most} are kept for it"
            ),
        }
    }
}

impl std::error::Error for CopyError {}

impl Node {
    /// Returns the vector that all partitions have: of other data centers, the transactions that are uniform.
    ///
    /// # Errors
    ///
    /// [`CopyError::NotServing`].
    pub fn copyable(&self) -> Result<Vector, CopyError> {
        let cores = || self.hosted.values().map(|hosted| hosted.replica.replica());
        let known = cores().map(mingle_geo::Replica::known_vec).reduce(|mut least, known_vec| {
            least.meet(&known_vec);
            least
        });
        let known = known.filter(|_| !cores().any(|core| core.is_coming_up() || core.is_over()));
        let known = known.ok_or(CopyError::NotServing)?;
        let mut at = Vector::ZERO;
        for core in cores() {
            at.join(&core.uniform_vec());
            // It may come from a transfer, and is uniform.
            at.join(&core.folded_vec());
        }
        at.meet(&known);
        Ok(at.with(self.dc, known[self.dc]).with(DcId::STRONG, known[DcId::STRONG]))
    }

    /// Returns the newest entries of this data center and of strong transactions that any partition has.
    pub fn newest(&self) -> Vector {
        let mut newest = Vector::ZERO;
        for hosted in self.hosted.values() {
            let known_vec = hosted.replica.replica().known_vec();
            for entry in [self.dc, DcId::STRONG] {
                newest[entry] = newest[entry].max(known_vec[entry]);
            }
        }
        newest
    }

    /// Begins a copy, in place of one that was begun before.
    ///
    /// # Errors
    ///
    /// If this data center does not serve, or the partitions have not reached `wanted` yet.
    pub fn begin_copy(&mut self, now: Now, wanted: &Vector) -> Result<Copying, CopyError> {
        let at = self.copyable()?;
        let mut wanted = *wanted;
        for hosted in self.hosted.values() {
            // A state transfer may have brought one partition further than the others.
            wanted.join(&hosted.replica.replica().folded_vec());
        }
        if !at.covers(&wanted) {
            return Err(CopyError::Behind { wanted: Box::new(wanted), found: Box::new(at) });
        }
        let epochs = self.hosted.values().map(|of| of.replica.replica().members().epoch());
        let epoch = epochs.max().unwrap_or_default();
        let mut floors: Vec<(DcId, Raised)> = Vec::new();
        for hosted in self.hosted.values() {
            floors.extend(hosted.replica.replica().op_floors());
        }
        self.hold(now, at).inspect_err(|_| self.end_copy())?;
        Ok(Copying { at, epoch, floors })
    }

    /// Returns the items of a partition that follow a key.
    ///
    /// # Errors
    ///
    /// If the vector is not held any more, or holding it takes too much memory. The copy has ended then.
    pub fn copy_part(
        &mut self,
        now: Now,
        copying: (&Vector, u32),
        partition: PartitionId,
        after: Option<&Key>,
    ) -> Result<HeldPart, CopyError> {
        self.part_of_copy(now, copying, partition, after).inspect_err(|_| self.end_copy())
    }

    fn part_of_copy(
        &mut self,
        now: Now,
        (at, epoch): (&Vector, u32),
        partition: PartitionId,
        after: Option<&Key>,
    ) -> Result<HeldPart, CopyError> {
        for hosted in self.hosted.values() {
            let core = hosted.replica.replica();
            if core.members().epoch() != epoch {
                return Err(CopyError::Passed);
            }
            let (found, most) = (core.log_size().1, core.config().log_bytes_max / LOG_PARTS);
            if found > most {
                return Err(CopyError::Full { found, most });
            }
        }
        self.hold(now, *at)?;
        let hosted = self.hosted.get(&partition).ok_or(CopyError::NoPartition(partition))?;
        let part = hosted.replica.replica().held_part(after, at, ITEMS_MAX, BYTES_MAX);
        part.map_err(|_| CopyError::Passed)
    }

    fn hold(&mut self, now: Now, at: Vector) -> Result<(), CopyError> {
        let until_us = now.mono_us.saturating_add(HOLD_MS * 1_000);
        for hosted in self.hosted.values_mut() {
            hosted.replica.hold(at, until_us).map_err(|_| CopyError::Passed)?;
        }
        Ok(())
    }

    /// Ends a copy: its vector is not held any more.
    pub fn end_copy(&mut self) {
        for hosted in self.hosted.values_mut() {
            hosted.replica.release();
        }
    }
}
