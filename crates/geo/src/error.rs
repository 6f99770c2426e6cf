//! Reasons for refusals.

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
    /// The lowest allowed value.
    pub least: u64,
    /// The highest allowed value.
    pub most: u64,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, found, least, most } = self;
        write!(f, "{what} is {found}, expected {least} to {most}")
    }
}

impl std::error::Error for ConfigError {}

/// The reason why a request is refused. The request changed nothing, unless the variant says
/// otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The snapshot contains transactions that this replica lacks: attach first.
    Ahead {
        /// The origin of the missing transactions.
        dc: DcId,
        /// The replica has them up to here.
        have: Timestamp,
        /// The snapshot reaches up to here.
        want: Timestamp,
    },
    /// A timestamp too far in the future: the clock of some machine is wrong.
    ClockAhead {
        /// The timestamp.
        timestamp: Timestamp,
        /// The highest accepted timestamp.
        most: Timestamp,
    },
    /// The snapshot is older than the folded state.
    SnapshotTooOld {
        /// The oldest snapshot that can still be read.
        oldest: Vector,
    },
    /// The transaction began too long ago. Its outcome, if it was ever seen, is forgotten.
    TransactionTooOld {
        /// Transactions that began later than this, in microseconds since 1970, are accepted.
        floor_us: u64,
    },
    /// The transaction is aborted for good.
    Aborted,
    /// The strong transaction is aborted, because it conflicts with one that it has not seen. A
    /// retry on a snapshot that covers `until` may succeed.
    Conflict {
        /// The vector that the retry must cover.
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
    /// Only strong transactions may write the key.
    StrongOnly {
        /// The key.
        key: Key,
    },
    /// Operations with this id are no longer accepted: the floor of its origin has passed it.
    BelowFloor {
        /// The id.
        id: OpId,
    },
    /// The request contains too many elements.
    TooMany {
        /// The kind of element.
        what: Counted,
        /// The number found.
        found: u64,
        /// The maximum.
        most: u64,
    },
    /// The data that cannot be folded yet has reached its bound. Reads continue.
    Full {
        /// The bytes in use.
        bytes: u64,
        /// The maximum.
        most: u64,
    },
    /// This incarnation of the data center is given up, or is not the expected one: attach at
    /// another. Earlier requests may have been executed.
    Fenced {
        /// The data center.
        dc: DcId,
        /// The incarnation that was asked.
        incarnation: u32,
    },
    /// This incarnation of the data center has not yet copied the state of another one. Nothing of
    /// this request is on its disk, but an earlier or later copy of the request may still be
    /// executed.
    ComingUp {
        /// The data center.
        dc: DcId,
        /// The incarnation that is starting.
        incarnation: u32,
    },
    /// The membership of this data center cannot be changed here: this group does not decide it,
    /// there is no other data center, or it is not a member.
    NotMember {
        /// The data center of the request.
        dc: DcId,
        /// The incarnation of the request.
        incarnation: u32,
    },
    /// Too many requests are waiting.
    Busy,
    /// The wait was too long.
    TimedOut {
        /// The prepared transaction that blocked the request, if there was one.
        on: Option<TransactionId>,
    },
}

/// An element whose number is limited.
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
    /// True if the same request, unchanged, may succeed later.
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
