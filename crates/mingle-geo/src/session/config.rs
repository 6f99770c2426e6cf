//! What a session is told when it is made.

use mingle_model::Origin;

use crate::config::Certification;
use crate::flaw::Planted;
use crate::timestamp::DcId;

/// What a session is told when it is made.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Names this incarnation of the session for ever.
    pub id: Origin,
    /// The data center that it uses.
    pub dc: DcId,
    /// Which incarnation of it; where that is not known, attaching tells.
    pub incarnation: u32,
    /// How many partitions there are.
    pub partition_count: u16,
    /// Whether a commit is acknowledged only once it is uniform.
    pub is_durable: bool,
    /// What is not answered after this long is sent again.
    pub retry_ms: u64,
    /// A call that is not answered after this long fails.
    pub deadline_ms: u64,
    /// What replicas handed out is used for new transactions up to this age; after that the first
    /// read of several partitions takes two rounds, and shows what is newer.
    pub handout_ms_max: u64,
    /// Who certifies strong transactions, as replicas are told.
    pub certification: Certification,
    /// A mistake to make; see [`flaw`](crate::flaw).
    pub planted: Planted,
}

impl SessionConfig {
    /// The usual settings.
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
