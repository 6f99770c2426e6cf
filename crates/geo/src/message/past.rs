//! Messages for barriers, and for sessions that move to another data center.

use serde::{Deserialize, Serialize};

use super::Handout;
use crate::error::Refusal;
use crate::timestamp::{DcId, Timestamp};
use crate::vector::Vector;

/// Session to replica: report when the session's past is uniform. The answer is a [`BarrierReply`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Barrier {
    /// The expected incarnation of the data center.
    pub incarnation: u32,
    /// A number chosen by the session and returned in the answer.
    pub request: u64,
    /// The session's past.
    pub past_vec: Vector,
}

/// Replica to session: the past is uniform, or was not within the wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarrierReply {
    /// The number of the request.
    pub request: u64,
    /// The result.
    pub result: Result<(), Refusal>,
    /// Vectors for later transactions.
    pub handout: Handout,
}

/// Session to a replica of another data center, or of its own again: continue here. The replica
/// answers at once with an [`AttachReply`]. If that is `Waiting`, it answers once more when the
/// wait is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attach {
    /// A number chosen by the session and returned in the answers.
    pub request: u64,
    /// The session's past.
    pub past_vec: Vector,
    /// The epoch of `past_vec`. The vector may reach above cuts of later epochs.
    pub epoch: u32,
    /// The latest epoch of any part of `past_vec`. A replica that does not know this epoch does not
    /// answer.
    pub newest: u32,
}

/// Replica to session: the result of an attach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttachReply {
    /// The incarnation of the answering data center.
    pub incarnation: u32,
    /// The number of the request.
    pub request: u64,
    /// The availability of the session's past, or the reason of a refusal.
    pub result: Result<Attached, Refusal>,
    /// Vectors for later transactions.
    pub handout: Handout,
}

/// The availability of a session's past at a data center.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attached {
    /// All of it is here.
    Resumed,
    /// Some of it is not here yet. It will never be complete if a missing part [is
    /// lost](Missing::is_lost).
    Waiting(Vec<Missing>),
}

/// The part of a session's past that a data center lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The origin of the missing transactions.
    pub dc: DcId,
    /// The answering data center has the uniform ones up to here.
    pub have: Timestamp,
    /// The session's past reaches to here.
    pub want: Timestamp,
    /// True if the origin's incarnation is fenced at a lower cut, so the missing part will never
    /// arrive.
    pub is_lost: bool,
}
