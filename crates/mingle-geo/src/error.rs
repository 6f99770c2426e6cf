//! Why something is refused.

use std::fmt;

use mingle_model::TransactionId;
use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::timestamp::{DcId, PartitionId, Timestamp};
use crate::types::OpId;
use crate::vector::Vector;

/// A setting that is out of its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The setting.
    pub what: &'static str,
    /// Its value.
    pub found: u64,
    /// The least that it may be.
    pub least: u64,
    /// The most that it may be.
    pub most: u64,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, found, least, most } = self;
        write!(f, "{what} is {found}, expected {least} to {most}")
    }
}

impl std::error::Error for ConfigError {}

/// Why a request is refused. Nothing was changed by it, unless it says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The snapshot holds transactions that this replica lacks: attach first.
    Ahead {
        /// Of which data center.
        dc: DcId,
        /// Up to where it has them.
        have: Timestamp,
        /// Up to where the snapshot reaches.
        want: Timestamp,
    },
    /// A timestamp too far in the future: somebody's clock is wrong.
    ClockAhead {
        /// The timestamp.
        timestamp: Timestamp,
        /// The highest that is accepted.
        most: Timestamp,
    },
    /// The snapshot is older than what was folded away.
    SnapshotTooOld {
        /// The oldest that can still be read.
        oldest: Vector,
    },
    /// The transaction began too long ago; how it ended, if it was ever seen, is forgotten.
    TransactionTooOld {
        /// Transactions that began later than this, in microseconds since 1970, are accepted.
        floor_us: u64,
    },
    /// The transaction is aborted, for good.
    Aborted,
    /// The strong transaction is aborted: it conflicts with one that it has not seen. Run again on a
    /// snapshot that covers this, it may succeed.
    Conflict {
        /// What it has to see.
        until: Vector,
    },
    /// The key belongs to another partition.
    WrongPartition {
        /// The key.
        key: Key,
        /// The partition of this replica.
        partition: PartitionId,
    },
    /// The operation does not fit the key's type.
    WrongKind {
        /// The key.
        key: Key,
    },
    /// Only strong transactions write the key.
    StrongOnly {
        /// The key.
        key: Key,
    },
    /// Operations of this id come no more: the floor of its origin has passed it.
    BelowFloor {
        /// The id.
        id: OpId,
    },
    /// More than one request may hold.
    TooMany {
        /// Of what.
        what: Counted,
        /// How many.
        found: u64,
        /// At most.
        most: u64,
    },
    /// What cannot be folded yet has reached its bound; reads go on.
    Full {
        /// How many bytes it takes.
        bytes: u64,
        /// At most.
        most: u64,
    },
    /// This incarnation of the data center is given up, or is not the one that was meant: attach at
    /// another. What was asked for before may have been done.
    Fenced {
        /// The data center.
        dc: DcId,
        /// The incarnation that was asked.
        incarnation: u32,
    },
    /// This incarnation of the data center has not taken over yet what the others have. Nothing of what
    /// was asked is on its disk: what was sent before, or is sent again, may still be done.
    ComingUp {
        /// The data center.
        dc: DcId,
        /// The incarnation that comes up.
        incarnation: u32,
    },
    /// Data centers cannot be given up here: nobody agrees on it, there is no other, or it does not
    /// stand in the system.
    NotMember {
        /// The data center that was meant.
        dc: DcId,
        /// Which incarnation of it.
        incarnation: u32,
    },
    /// Too many requests wait.
    Busy,
    /// The wait was too long.
    TimedOut {
        /// The prepared transaction that was waited for, if one was.
        on: Option<TransactionId>,
    },
}

/// What there can be too many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Counted {
    /// Operations of a transaction.
    Updates,
    /// Keys of a read.
    Keys,
    /// Participants of a transaction.
    Participants,
}

impl Refusal {
    /// Whether the same request may succeed later, without any change to it.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Ahead { .. }
                | Self::ClockAhead { .. }
                | Self::Full { .. }
                | Self::ComingUp { .. }
                | Self::Busy
                | Self::TimedOut { .. }
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ahead { dc, have, want } => {
                write!(f, "the snapshot reaches to {want} of {dc}, this replica to {have}")
            }
            Self::ClockAhead { timestamp, most } => {
                write!(f, "timestamp {timestamp} is too far ahead, at most {most} is accepted")
            }
            Self::SnapshotTooOld { oldest } => {
                write!(f, "the snapshot is too old, the oldest that can be read is {oldest}")
            }
            Self::TransactionTooOld { floor_us } => {
                write!(f, "the transaction is too old, expected one begun after {floor_us} us")
            }
            Self::Aborted => f.write_str("the transaction is aborted"),
            Self::Conflict { until } => {
                write!(f, "the transaction conflicts with what it has not seen, up to {until}")
            }
            Self::WrongPartition { key, partition } => {
                write!(f, "key {key:?} does not belong to partition {}", partition.0)
            }
            Self::WrongKind { key } => {
                write!(f, "the operation does not fit {key:?}, which is a {}", key.kind)
            }
            Self::StrongOnly { key } => {
                write!(f, "only strong transactions write {key:?}, and this one is causal")
            }
            Self::BelowFloor { id } => write!(
                f,
                "operation {}/{}/{} is below its origin's floor",
                id.transaction, id.phase, id.position
            ),
            Self::TooMany { what, found, most } => {
                write!(f, "{found} {what:?}, at most {most} are accepted")
            }
            Self::Full { bytes, most } => {
                write!(f, "{bytes} bytes of operations cannot be folded yet, at most {most}")
            }
            Self::Fenced { dc, incarnation } => {
                write!(f, "incarnation {incarnation} of {dc} is given up")
            }
            Self::ComingUp { dc, incarnation } => {
                write!(f, "incarnation {incarnation} of {dc} is still coming up")
            }
            Self::NotMember { dc, incarnation } => {
                write!(f, "incarnation {incarnation} of {dc} cannot be given up here")
            }
            Self::Busy => f.write_str("too many requests wait"),
            Self::TimedOut { on: Some(id) } => {
                write!(f, "the wait for prepared transaction {id} was too long")
            }
            Self::TimedOut { on: None } => f.write_str("the wait was too long"),
        }
    }
}

impl std::error::Error for Refusal {}
