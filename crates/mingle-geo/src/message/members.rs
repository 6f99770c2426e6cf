//! Giving up data centers, and admitting them anew; see [`members`](crate::members).

use serde::{Deserialize, Serialize};

use crate::error::Refusal;
use crate::members::Members;
use crate::timestamp::DcId;

/// Anyone to a replica of the first partition: give up this incarnation of a data center. Answered by
/// [`MembersReply`] with what is decided so far; to be sent again until that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// Given back in the answer.
    pub request: u64,
    /// The data center.
    pub dc: DcId,
    /// Which incarnation of it.
    pub incarnation: u32,
}

/// Anyone to a replica of the first partition: the next incarnation of a data center that was cut off
/// is to belong to the system. Answered like [`Fence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admit {
    /// Given back in the answer.
    pub request: u64,
    /// The data center.
    pub dc: DcId,
    /// Which incarnation of it.
    pub incarnation: u32,
}

/// Answers [`Fence`] and [`Admit`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MembersReply {
    /// The request's.
    pub request: u64,
    /// Who belongs to the system, as far as the replica knows; or why it cannot be changed so.
    pub result: Result<Members, Refusal>,
}
