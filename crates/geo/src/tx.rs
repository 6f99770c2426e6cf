//! Committed transactions, as sent between data centers and stored in logs.

use mingle_model::TransactionId;
use serde::{Deserialize, Serialize};

use crate::timestamp::{DcId, Timestamp, Version};
use crate::types::{Cause, Update};
use crate::vector::Vector;

/// A committed transaction, as one partition has it. All its operations share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// Its id.
    pub id: TransactionId,
    /// The time when it began, in microseconds since 1970.
    pub begun_us: u64,
    /// The data center that committed it, or [`DcId::STRONG`].
    pub origin: DcId,
    /// Its commit vector: its snapshot, with the entry of its origin replaced by its timestamp.
    pub commit_vec: Vector,
    /// The entry of its origin in its snapshot.
    pub snapshot_own: Timestamp,
    /// Its operations at this partition.
    pub updates: Vec<Update>,
}

impl Transaction {
    /// Returns its timestamp at its origin.
    pub fn timestamp(&self) -> Timestamp {
        self.commit_vec[self.origin]
    }

    /// Returns the version of its operation at `index`.
    pub fn version(&self, index: u32) -> Version {
        Version { timestamp: self.timestamp(), origin: self.origin, index }
    }

    /// Returns its snapshot.
    pub fn snap_vec(&self) -> Vector {
        self.commit_vec.with(self.origin, self.snapshot_own)
    }

    /// Returns the cause of its operation at `index`.
    pub fn cause(&self, index: u32) -> Cause {
        Cause { version: self.version(index), seen: self.snap_vec() }
    }

    /// Returns a rough count of its bytes of memory.
    pub fn weight(&self) -> usize {
        let updates = self.updates.iter();
        size_of::<Self>()
            + updates.map(|update| update.key.weight() + update.op.weight()).sum::<usize>()
    }
}

/// The outcome of a transaction, as a data center remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It committed, with this commit vector.
    Committed(Vector),
    /// It did not commit and never will.
    Aborted,
}
