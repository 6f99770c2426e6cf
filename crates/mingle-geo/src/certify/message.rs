//! What is said between coordinators, participants and the replicas of a partition.

use mingle_model::TransactionId;
use serde::{Deserialize, Serialize};

use super::configuration::Moved;
use super::entry::{Decision, Entry, Proposal, Vote};
use super::mirror::GroupRecord;
use crate::message::Address;
use crate::record::Alarm;
use crate::replica::Delivery;
use crate::timestamp::{PartitionId, Timestamp};

/// A message with where it goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupEnvelope {
    /// Where it goes.
    pub to: Address,
    /// What it says.
    pub message: GroupMessage,
}

/// Any message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupMessage {
    /// Coordinator to participant: certify this. Clock and what was delivered are the receiver's to
    /// fill in. Answered by [`Voted`](Self::Voted), once the vote is chosen; may be sent again.
    Certify(Proposal),
    /// What a partition has voted.
    Voted(Voted),
    /// To a participant: the transaction has ended so.
    Decided {
        /// The transaction.
        id: TransactionId,
        /// When it began.
        begun_us: u64,
        /// How it ended.
        decision: Decision,
    },
    /// What is voted on this transaction? Answered by [`Voted`](Self::Voted).
    Query {
        /// The transaction.
        id: TransactionId,
        /// When it began.
        begun_us: u64,
        /// If nothing is, it is refused first, so that there is an answer.
        must_refuse: bool,
    },
    /// Nothing that commits here from now on may lie at or below this: something at another
    /// partition waits to become visible.
    Advance {
        /// That timestamp.
        to: Timestamp,
    },
    /// To the leader: append these, unless the log has them.
    Propose(Vec<Entry>),
    /// Between the replicas of a partition: the configuration in which this is said, and a message of
    /// the consensus library, in its own form.
    Consensus(Vec<u8>),
    /// To a replica of the same partition that is in a newer configuration: what has become of the
    /// group? Answered by [`Moved`](Self::Moved).
    Ask {
        /// In which configuration the sender is: 0 if in none.
        configuration: u32,
        /// Which incarnation of its data center it is.
        incarnation: u32,
    },
    /// The group goes on in another configuration, which begins like this: a decided fact.
    Moved(Moved),
}

/// See [`GroupMessage::Voted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voted {
    /// The transaction.
    pub id: TransactionId,
    /// Who has voted.
    pub partition: PartitionId,
    /// The vote; none if nothing is known and nothing was refused.
    pub vote: Option<Vote>,
    /// How the transaction ended, if the partition knows.
    pub decision: Option<Decision>,
    /// The transaction began too long ago for the partition to remember how it ended.
    pub is_forgotten: bool,
}

/// What happened to a replica's part in its group.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupInput {
    /// A message came.
    Message {
        /// From there; the shell vouches for it.
        from: Address,
        /// What it says.
        message: GroupMessage,
    },
    /// Time passed.
    Tick,
    /// Everything up to the [`GroupOutput::Persist`] of this index is on disk.
    Persisted {
        /// Its index.
        index: u64,
    },
    /// The connection to the sibling in this data center was lost and stands again: what was on its
    /// way is gone. Both ends are told.
    Reconnected {
        /// That data center.
        dc: crate::timestamp::DcId,
    },
    /// What was delivered, as the partition's replica knows.
    Delivered {
        /// By all partitions of this data center: `stable_vec[strong]`.
        stable: Timestamp,
        /// By this partition in all data centers: the least `known_vec[strong]`.
        everywhere: Timestamp,
        /// By this partition in `f + 1` data centers.
        uniform: Timestamp,
    },
    /// The log is to have this entry on members ([`Entry::Fence`] and those that follow from it).
    Members(Entry),
}

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupOutput {
    /// Send this now.
    Send(GroupEnvelope),
    /// Append these records; once they, and all of earlier ones, are on disk, send `then` and say
    /// [`GroupInput::Persisted`] with this index.
    Persist {
        /// Counts these, from 1, since the start.
        index: u64,
        /// What to write; may be empty.
        records: Vec<GroupRecord>,
        /// What to send then.
        then: Vec<GroupEnvelope>,
    },
    /// Give this to the partition's replica ([`Input::Deliver`](crate::replica::Input::Deliver)).
    Deliver(Delivery),
    /// The replica lacks strong transactions that are no longer kept: it needs a state transfer. Said
    /// until it has come.
    Behind,
    /// Tell whoever runs the system.
    Alarm(Alarm),
}
