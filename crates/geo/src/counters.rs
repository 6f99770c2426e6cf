//! Event counts of a replica, for operators and for tests that must know which cases they reached.

/// The number of events of each kind since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads received.
    pub reads: u64,
    /// Reads that waited for a transaction prepared below their snapshot.
    pub reads_waited: u64,
    /// Requests refused because their snapshot was folded away.
    pub too_old: u64,
    /// Requests refused because their snapshot contains transactions that are not here.
    pub ahead: u64,
    /// Timestamps refused because they were too far in the future.
    pub clock_ahead: u64,
    /// Repeated commits and prepares that were answered from memory.
    pub repeats: u64,
    /// Prepares that came after the transaction was refused.
    pub late_prepares: u64,
    /// Transactions that participants finished without their coordinator.
    pub resolved: u64,
    /// Received intervals that began above the known timestamp.
    pub gaps: u64,
    /// Forwarded batches of another data center's transactions.
    pub forwards: u64,
    /// Completed state transfers to this replica.
    pub transfers: u64,
    /// Completed transfers that joined the state folded here with the state folded at the sender.
    pub joins: u64,
    /// Items folded less far than uniformity allows, because a lower snapshot may still be read.
    pub folds_pinned: u64,
    /// Barriers and attaches that waited.
    pub past_waited: u64,
    /// Writes refused because the data that cannot be folded reached its bound.
    pub full: u64,
}
