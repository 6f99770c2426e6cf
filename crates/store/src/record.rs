//! Rows of the runtime's own, which stand beside the data of every store.

use std::fmt;
use std::sync::Arc;

use mingle_model::{Origin, TransactionId};
use serde::{Deserialize, Serialize};

/// Bytes of a record.
pub type Bytes = Arc<[u8]>;

/// The purpose of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RecordKind {
    /// The text of a program, by its hash: a helper of a transaction runs the program of its origin.
    Program,
    /// The data needed to finish a transaction, by its id and part.
    Intent,
    /// The operations of a phase that depend on more than recorded values, by id and phase:
    /// the first process to run the phase fixes them.
    Fixed,
    /// Why a transaction cannot be finished for now, by id.
    Parked,
    /// A commit witness (MixT §4.5), by id: the phase at this store has committed.
    Witness,
    /// Up to which number all transactions of an origin are over, by origin. Its value is a
    /// [`floor`].
    Floor,
    /// An origin that must not begin transactions any more, by origin.
    Fence,
    /// A sign of life of an origin, by origin.
    Lease,
    /// A call that was made with a key of its caller's, by a digest of that key.
    Called,
    /// A transaction that an operator has ended before it was finished, by id. Stays.
    Abandoned,
    /// What a transaction has taken from a bounded counter ahead of its first commit, by id and part. Its phase at
    /// this store removes it; if the transaction never commits, what it holds is given back with it.
    Hold,
}

impl RecordKind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Program,
        Self::Intent,
        Self::Fixed,
        Self::Parked,
        Self::Witness,
        Self::Floor,
        Self::Fence,
        Self::Lease,
        Self::Called,
        Self::Abandoned,
        Self::Hold,
    ];

    /// A byte that stands for it in the rows of a store, for ever the same.
    pub fn code(self) -> u8 {
        match self {
            Self::Program => 1,
            Self::Intent => 2,
            Self::Fixed => 3,
            Self::Parked => 4,
            Self::Witness => 5,
            Self::Floor => 6,
            Self::Fence => 7,
            Self::Lease => 8,
            Self::Called => 9,
            Self::Abandoned => 10,
            Self::Hold => 11,
        }
    }
}

/// Names a record within a store. Records of one kind are ordered by their keys' bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordKey {
    /// The purpose of the record.
    pub kind: RecordKind,
    /// Which one of that kind.
    pub key: Bytes,
}

impl RecordKey {
    /// The record of an origin.
    pub fn of_origin(kind: RecordKind, origin: Origin) -> Self {
        Self { kind, key: origin.0.to_be_bytes().into() }
    }

    /// The record of a transaction; `part` tells apart several of one kind.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_model::{Origin, TransactionId};
    /// use mingle_store::{RecordKey, RecordKind};
    ///
    /// let id = TransactionId { origin: Origin(7), sequence: 3 };
    /// let key = RecordKey::of(RecordKind::Intent, id, 2);
    /// assert_eq!(key.transaction(), Some((id, 2)));
    /// ```
    pub fn of(kind: RecordKind, id: TransactionId, part: u32) -> Self {
        let mut key = Vec::with_capacity(28);
        key.extend(id.origin.0.to_be_bytes());
        key.extend(id.sequence.to_be_bytes());
        key.extend(part.to_be_bytes());
        Self { kind, key: key.into() }
    }

    /// The transaction and part that the key names, if it is one of [`RecordKey::of`].
    pub fn transaction(&self) -> Option<(TransactionId, u32)> {
        let (origin, rest) = self.key.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let id = TransactionId {
            origin: Origin(u128::from_be_bytes(*origin)),
            sequence: u64::from_be_bytes(*sequence),
        };
        Some((id, u32::from_be_bytes(rest.try_into().ok()?)))
    }

    /// The origin that the key names, or whose transaction it names.
    pub fn origin(&self) -> Option<Origin> {
        let (origin, _) = self.key.split_first_chunk()?;
        Some(Origin(u128::from_be_bytes(*origin)))
    }
}

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.transaction(), self.origin()) {
            (Some((id, part)), _) => write!(f, "{:?} {id} part {part}", self.kind),
            (None, Some(origin)) if self.key.len() == 16 => {
                write!(f, "{:?} {:032x}", self.kind, origin.0)
            }
            _ => write!(f, "{:?} {:02x?}", self.kind, self.key),
        }
    }
}

/// The value of a [`RecordKind::Floor`].
pub fn floor(sequence: u64) -> Bytes {
    sequence.to_be_bytes().as_slice().into()
}

/// Returns the number in a [`floor`]; 0 if `value` is no floor.
pub fn read_floor(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_be_bytes)
}

/// A condition on a record that must hold when a commit takes effect; otherwise the commit is a
/// [`crate::StoreError::Conflict`].
///
/// At a store that is [`crate::Once::Serial`] it must hold of the state last committed at any
/// replica, at other stores of the state of the transaction's own replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Guard {
    /// There is no such record.
    Absent(RecordKey),
    /// There is no such [`floor`], or it is below this number.
    Below(RecordKey, u64),
}
