//! The settings of a session.

use mingle_model::Origin;

use crate::config::Certification;
use crate::flaw::Planted;
use crate::timestamp::DcId;

/// The settings of a session.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// A unique id of this incarnation of the session.
    pub id: Origin,
    /// The data center that it uses.
    pub dc: DcId,
    /// The incarnation of the data center. If it is unknown, attaching finds it.
    pub incarnation: u32,
    /// The number of partitions.
    pub partition_count: u16,
    /// True if a commit is acknowledged only once it is uniform.
    pub is_durable: bool,
    /// A request without an answer is repeated after this time.
    pub retry_ms: u64,
    /// A call without an answer fails after this time.
    pub deadline_ms: u64,
    /// The maximum age of a handout for new transactions. With an older one, the first read of
    /// several partitions takes two rounds and returns a newer snapshot.
    pub handout_ms_max: u64,
    /// The kind of certification; replicas must have the same setting.
    pub certification: Certification,
    /// A planted mistake; see [`flaw`](crate::flaw).
    pub planted: Planted,
}

impl SessionConfig {
    /// Returns the usual settings.
    pub fn new(id: Origin, dc: DcId, partition_count: u16) -> Self {
        Self {
            id,
            dc,
            incarnation: 0,
            partition_count,
            is_durable: false,
            retry_ms: 500,
            deadline_ms: 10_000,
            handout_ms_max: 50,
            certification: Certification::Partitions,
            planted: Planted::default(),
        }
    }
}
