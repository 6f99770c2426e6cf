//! The entries of a partition's log, and the decision that votes imply.

use std::sync::Arc;

use mingle_model::TransactionId;
use serde::{Deserialize, Serialize};

use super::configuration::Configuration;
use super::conflict::Touch;
use crate::members::Quorum;
use crate::timestamp::{DcId, PartitionId, Timestamp};
use crate::types::Update;
use crate::vector::Vector;

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// A transaction requests the partition's vote.
    Prepare(Arc<Proposal>),
    /// A transaction that is not prepared here never will be. A replica that finishes it proposes
    /// this where this partition has not voted.
    Refuse {
        /// The transaction.
        id: TransactionId,
        /// The time when it began, in microseconds since 1970.
        begun_us: u64,
    },
    /// A transaction has ended. All such entries of one transaction have the same decision.
    Decide {
        /// The transaction.
        id: TransactionId,
        /// The time when it began, in microseconds since 1970.
        begun_us: u64,
        /// The decision.
        decision: Decision,
    },
    /// Nothing commits here at or below `to` any more (`HEARTBEAT_STRONG`, 3:9).
    Advance {
        /// The timestamp.
        to: Timestamp,
    },
    /// The configuration of the group ends here, and this one begins. Later entries in the old
    /// configuration's log have no effect.
    Stop(Configuration),
    /// An incarnation of a data center is given up (see [`members`](crate::members)). This entry
    /// and the following ones occur only in the first partition's log.
    Fence {
        /// The data center.
        dc: DcId,
        /// The incarnation to give up.
        incarnation: u32,
        /// The numbers of other data centers that are needed.
        quorum: Quorum,
    },
    /// A data center reports on one that is being given up: it accepts no more of its transactions.
    Frozen {
        /// The data center that is given up.
        dc: DcId,
        /// Its incarnation.
        incarnation: u32,
        /// The reporting data center.
        by: DcId,
        /// All partitions of the reporter have the other's transactions up to here on disk.
        known: Timestamp,
        /// The epoch of the report: `known` has not changed since it began, or the reporter has
        /// reached the cut in it.
        epoch: u32,
    },
    /// The next incarnation of a data center that was cut off becomes a member.
    Admit {
        /// The data center.
        dc: DcId,
        /// The new incarnation.
        incarnation: u32,
    },
}

/// A strong transaction, as one of its partitions is asked to certify it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The transaction's id.
    pub id: TransactionId,
    /// The time when it began, in microseconds since 1970.
    pub begun_us: u64,
    /// All participating partitions, including this one, in order.
    pub participants: Vec<PartitionId>,
    /// The items of this partition that it read or writes, with labels.
    pub touches: Vec<Touch>,
    /// Its operations here; none if it only read.
    pub updates: Vec<Update>,
    /// The snapshot on which it ran; uniform, except for its strong entry.
    pub snap_vec: Vector,
    /// The clock of the proposing replica, so that strong timestamps follow time.
    pub clock: Timestamp,
    /// The strong timestamp that all partitions of the proposer's data center have delivered:
    /// `stable_vec[strong]`.
    pub stable: Timestamp,
    /// The strong timestamp that all replicas of this partition have delivered, as far as the
    /// proposer knows.
    pub everywhere: Timestamp,
    /// The strong timestamp that `f + 1` replicas of this partition have delivered, as far as the
    /// proposer knows. A replica that lacks transactions below it finds them there.
    pub uniform: Timestamp,
}

/// A partition's answer to a prepare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Vote {
    /// It may commit, at this timestamp or above.
    Yes(Timestamp),
    /// It must abort: a transaction that it conflicts with is not in its snapshot. A retry on a
    /// snapshot that covers this vector may succeed.
    Conflict(Vector),
    /// It must abort: it was refused, or is too old.
    No,
}

/// The outcome of a strong transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// It committed, at this strong timestamp.
    Commit(Timestamp),
    /// It did not commit, and never will.
    Abort,
}

/// Computes the decision from the votes of all participants. `None` if votes are missing and all
/// others are yes. Any process that knows the votes knows the decision.
///
/// # Examples
///
/// ```
/// use mingle_geo::Timestamp;
/// use mingle_geo::certify::{Decision, Vote, decide};
///
/// let yes = |at| Some(Vote::Yes(Timestamp(at)));
/// assert_eq!(decide([yes(3), yes(7)]), Some(Decision::Commit(Timestamp(7))));
/// assert_eq!(decide([yes(3), None]), None);
/// assert_eq!(decide([None, Some(Vote::No)]), Some(Decision::Abort));
/// ```
pub fn decide(votes: impl IntoIterator<Item = Option<Vote>>) -> Option<Decision> {
    let (mut highest, mut is_whole) = (Timestamp::ZERO, true);
    for vote in votes {
        match vote {
            Some(Vote::Yes(proposed)) => highest = highest.max(proposed),
            Some(Vote::Conflict(_) | Vote::No) => return Some(Decision::Abort),
            None => is_whole = false,
        }
    }
    is_whole.then_some(Decision::Commit(highest))
}
