//! Barriers, and sessions that go on at another data center.

use serde::{Deserialize, Serialize};

use super::Handout;
use crate::error::Refusal;
use crate::timestamp::{DcId, Timestamp};
use crate::vector::Vector;

/// Session to replica: say when all of this is uniform. Answered by [`BarrierReply`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Barrier {
    /// The incarnation of the data center that is meant.
    pub incarnation: u32,
    /// Chosen by the session, given back in the answer.
    pub request: u64,
    /// The session's past.
    pub past_vec: Vector,
}

/// Replica to session: all of it is uniform; or not within the wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarrierReply {
    /// The request's.
    pub request: u64,
    /// How it went.
    pub result: Result<(), Refusal>,
    /// For later transactions.
    pub handout: Handout,
}

/// Session to a replica of another data center, or of its own again: go on here. Answered by
/// [`AttachReply`], first at once, and if that is `Waiting`, once more when the wait is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attach {
    /// Chosen by the session, given back in the answers.
    pub request: u64,
    /// The session's past.
    pub past_vec: Vector,
    /// The epoch of its vectors: what was cut off since may reach above the cut in them.
    pub epoch: u32,
    /// The latest epoch of which part of it is: who has not heard of that does not answer.
    pub newest: u32,
}

/// Replica to session: whether its past is here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttachReply {
    /// The incarnation of the data center that answers.
    pub incarnation: u32,
    /// The request's.
    pub request: u64,
    /// Whether the session can go on.
    pub result: Result<Attached, Refusal>,
    /// For later transactions.
    pub handout: Handout,
}

/// Whether a session's past is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attached {
    /// All of it.
    Resumed,
    /// Not yet; or never all of it, where some of what is missing [is lost](Missing::is_lost).
    Waiting(Vec<Missing>),
}

/// What a data center lacks of a session's past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Transactions of this data center.
    pub dc: DcId,
    /// It has what is up to here, and uniform.
    pub have: Timestamp,
    /// The session's past reaches to here.
    pub want: Timestamp,
    /// The incarnation that it was of is fenced, below that: it will never be here.
    pub is_lost: bool,
}
