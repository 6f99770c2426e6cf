//! Messages that fence data centers and admit them again; see [`members`](crate::members).

use serde::{Deserialize, Serialize};

use crate::error::Refusal;
use crate::members::Members;
use crate::timestamp::DcId;

/// Any client to a replica of the first partition: give up this incarnation of a data center. The
/// answer is a [`MembersReply`] with the current decision. The sender repeats the request until the
/// answer shows it done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// A number that is returned in the answer.
    pub request: u64,
    /// The data center.
    pub dc: DcId,
    /// The incarnation to give up.
    pub incarnation: u32,
}

/// Any client to a replica of the first partition: admit the next incarnation of a data center that
/// was cut off. It is answered and repeated like [`Fence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admit {
    /// A number that is returned in the answer.
    pub request: u64,
    /// The data center.
    pub dc: DcId,
    /// The incarnation to admit.
    pub incarnation: u32,
}

/// The answer to [`Fence`] and [`Admit`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MembersReply {
    /// The number of the request.
    pub request: u64,
    /// The members, as far as the replica knows them, or the reason why the change is impossible.
    pub result: Result<Members, Refusal>,
}
