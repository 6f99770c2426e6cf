//! What a replica has met: for those who run it, and for tests that must know what they reached.

/// How often something happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads that came.
    pub reads: u64,
    /// Of these, those that waited for what was prepared below their snapshot.
    pub reads_waited: u64,
    /// Requests refused because their snapshot was folded away.
    pub too_old: u64,
    /// Requests refused because their snapshot holds what is not here.
    pub ahead: u64,
    /// Timestamps refused because they were too far in the future.
    pub clock_ahead: u64,
    /// Commits and preparations that were answered from memory: they were sent again.
    pub repeats: u64,
    /// Preparations that came after the transaction was refused.
    pub late_prepares: u64,
    /// Transactions that participants ended without their coordinator.
    pub resolved: u64,
    /// Intervals that did not follow on what was known.
    pub gaps: u64,
    /// Batches of another data center's transactions that were forwarded.
    pub forwards: u64,
    /// State transfers to this replica that are complete.
    pub transfers: u64,
    /// Of these, those in which what was folded here was joined with what was folded there.
    pub joins: u64,
    /// Items that were folded less far than is uniform, since something may still be read below.
    pub folds_pinned: u64,
    /// Barriers and attaches that waited.
    pub past_waited: u64,
    /// Writes refused because what cannot be folded had reached its bound.
    pub full: u64,
}
