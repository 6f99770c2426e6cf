//! Messages between coordinators, participants and the replicas of a partition.

use mingle_model::TransactionId;
use serde::{Deserialize, Serialize};

use super::configuration::Moved;
use super::entry::{Decision, Entry, Proposal, Vote};
use super::mirror::GroupRecord;
use crate::message::Address;
use crate::record::Alarm;
use crate::replica::Delivery;
use crate::timestamp::{PartitionId, Timestamp};

/// A message with its destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupEnvelope {
    /// The destination.
    pub to: Address,
    /// The content.
    pub message: GroupMessage,
}

/// Any message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupMessage {
    /// Coordinator to participant: certify this. The receiver fills in the clock and the delivery
    /// progress. It answers with [`Voted`](Self::Voted) once the vote is chosen. The request may be
    /// repeated.
    Certify(Proposal),
    /// The vote of a partition.
    Voted(Voted),
    /// To a participant: the outcome of the transaction.
    Decided {
        /// The transaction.
        id: TransactionId,
        /// The time when it began, in microseconds since 1970.
        begun_us: u64,
        /// The outcome.
        decision: Decision,
    },
    /// A question for the vote on this transaction. The answer is [`Voted`](Self::Voted).
    Query {
        /// The transaction.
        id: TransactionId,
        /// The time when it began, in microseconds since 1970.
        begun_us: u64,
        /// If true, a partition without a vote refuses the transaction first, so that there is an
        /// answer.
        must_refuse: bool,
    },
    /// Later commits here must be above `to`, since a transaction at another partition waits to
    /// become visible.
    Advance {
        /// The timestamp.
        to: Timestamp,
    },
    /// To the leader: append these entries, unless the log has them.
    Propose(Vec<Entry>),
    /// Between the replicas of a partition: the number of the configuration, and a message of the
    /// consensus library in its own encoding.
    Consensus(Vec<u8>),
    /// To a replica of the same partition in a newer configuration: a question for that
    /// configuration. The answer is [`Moved`](Self::Moved).
    Ask {
        /// The sender's configuration; 0 if it has none.
        configuration: u32,
        /// The incarnation of the sender's data center.
        incarnation: u32,
    },
    /// The group continues in another configuration, which begins like this. This is a decided
    /// fact.
    Moved(Moved),
}

/// See [`GroupMessage::Voted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voted {
    /// The transaction.
    pub id: TransactionId,
    /// The voting partition.
    pub partition: PartitionId,
    /// The vote; `None` if none is known and the transaction was not refused.
    pub vote: Option<Vote>,
    /// The outcome of the transaction, if the partition knows it.
    pub decision: Option<Decision>,
    /// True if the transaction began too long ago for the partition to remember its outcome.
    pub is_forgotten: bool,
}

/// An event that concerns a replica's part in its group.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupInput {
    /// A message arrived.
    Message {
        /// The sender; the shell guarantees that it is correct.
        from: Address,
        /// The content.
        message: GroupMessage,
    },
    /// Time passed.
    Tick,
    /// Everything up to the [`GroupOutput::Persist`] of this index is on disk.
    Persisted {
        /// Its index.
        index: u64,
    },
    /// The connection to the sibling in this data center was lost and is up again; messages in
    /// flight are lost. Both ends are told.
    Reconnected {
        /// The sibling's data center.
        dc: crate::timestamp::DcId,
    },
    /// The delivery progress, as the partition's replica knows it.
    Delivered {
        /// All partitions of this data center have delivered up to here: `stable_vec[strong]`.
        stable: Timestamp,
        /// This partition has delivered up to here in all data centers: the minimum of
        /// `known_vec[strong]`.
        everywhere: Timestamp,
        /// This partition has delivered up to here in `f + 1` data centers.
        uniform: Timestamp,
    },
    /// Add this entry about members to the log ([`Entry::Fence`] and those that follow from it).
    Members(Entry),
}

/// An action for the caller; the caller performs them in order.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupOutput {
    /// Send this now.
    Send(GroupEnvelope),
    /// Append these records. Once these and all earlier ones are on disk, send `then` and report
    /// [`GroupInput::Persisted`] with this index.
    Persist {
        /// The number of this request, counted from 1 since the start.
        index: u64,
        /// The records to write; may be empty.
        records: Vec<GroupRecord>,
        /// The messages to send after the write.
        then: Vec<GroupEnvelope>,
    },
    /// Give this to the partition's replica ([`Input::Deliver`](crate::replica::Input::Deliver)).
    Deliver(Delivery),
    /// The replica lacks strong transactions that are no longer kept, so it needs a state transfer.
    /// This is repeated until the transfer is complete.
    Behind,
    /// Notify the operator.
    Alarm(Alarm),
}
