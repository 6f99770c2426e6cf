//! What stands in the log of a partition, and what follows from it for one transaction.

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
    /// A transaction asks for the partition's vote.
    Prepare(Arc<Proposal>),
    /// A transaction that is not prepared here never will be: proposed by whoever finishes it where
    /// this partition has not voted.
    Refuse {
        /// The transaction.
        id: TransactionId,
        /// When it began, in microseconds since 1970.
        begun_us: u64,
    },
    /// A transaction has ended. All that are proposed of one transaction say the same.
    Decide {
        /// The transaction.
        id: TransactionId,
        /// When it began, in microseconds since 1970.
        begun_us: u64,
        /// How.
        decision: Decision,
    },
    /// Nothing commits here at or below this any more (`HEARTBEAT_STRONG`, 3:9).
    Advance {
        /// That timestamp.
        to: Timestamp,
    },
    /// The configuration of the group ends here, and this one begins. What comes after it in the log of
    /// that configuration has no effect.
    Stop(Configuration),
    /// An incarnation of a data center is given up (see [`members`](crate::members)). This and what
    /// follows stand in the first partition's log alone.
    Fence {
        /// The data center.
        dc: DcId,
        /// Which incarnation of it.
        incarnation: u32,
        /// How many others have a say.
        quorum: Quorum,
    },
    /// A data center reports on one that is given up: it takes nothing of it any more.
    Frozen {
        /// On which.
        dc: DcId,
        /// Which incarnation of it.
        incarnation: u32,
        /// Who reports.
        by: DcId,
        /// Up to where all its partitions have the other's transactions, on disk.
        known: Timestamp,
        /// Since when that has not changed, or in which it has reached the cut.
        epoch: u32,
    },
    /// The next incarnation of a data center that was cut off belongs to the system.
    Admit {
        /// The data center.
        dc: DcId,
        /// Which incarnation of it.
        incarnation: u32,
    },
}

/// A strong transaction as one of its partitions is asked to certify it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// Its id.
    pub id: TransactionId,
    /// When it began, in microseconds since 1970.
    pub begun_us: u64,
    /// All partitions that take part, this one included, in order.
    pub participants: Vec<PartitionId>,
    /// The items of this partition that it read or writes, with labels.
    pub touches: Vec<Touch>,
    /// What it does here; nothing, if it only read.
    pub updates: Vec<Update>,
    /// The snapshot on which it ran; uniform, but for its strong entry.
    pub snap_vec: Vector,
    /// The clock of whoever proposes it, so that strong timestamps follow time.
    pub clock: Timestamp,
    /// What all partitions of the proposer's data center have delivered: `stable_vec[strong]`.
    pub stable: Timestamp,
    /// What all replicas of this partition have delivered, as far as the proposer knows.
    pub everywhere: Timestamp,
    /// What `f + 1` replicas of this partition have delivered, as far as the proposer knows: whoever lacks
    /// it finds it there.
    pub uniform: Timestamp,
}

/// What a partition says to a preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Vote {
    /// It may commit, at this timestamp or above.
    Yes(Timestamp),
    /// It has to abort: a transaction that it conflicts with is not in its snapshot. It may succeed
    /// on a snapshot that covers this.
    Conflict(Vector),
    /// It has to abort: it was refused, or is too old.
    No,
}

/// How a strong transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// It committed, at this strong timestamp.
    Commit(Timestamp),
    /// It did not, and never will.
    Abort,
}

/// What the votes of all participants come to: none while some are missing and the others are for
/// it. Whoever knows the votes knows the decision.
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
