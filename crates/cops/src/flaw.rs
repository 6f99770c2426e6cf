//! Faults that are planted on purpose, to test that the checkers of the simulation notice them.

/// A mistake that a server or a client library can be told to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flaw {
    /// Replicated writes are applied without a check of their dependencies.
    DepsUnchecked,
    /// A dependency check of an operation is answered once a newer one of the key is there, which
    /// may be concurrent and have other dependencies.
    DepCheckByNewer,
    /// A dependency check has no deadline: if it is lost, it is not sent again.
    DepCheckWithoutDeadline,
    /// Node ids are signed 16-bit numbers, and their sign covers the time in a timestamp.
    SignedNodeIds,
    /// A read adds nothing to the context of its actor.
    ReadForgotten,
    /// A message that a broken connection lost is not sent again.
    NotRetried,
    /// COPS-RT: a transaction returns the results of its first round.
    OneRound,
    /// COPS-RT: dependencies are collected before the write is applied in all data centers.
    PrematureCollection,
    /// COPS-CD: concurrent versions are merged in the order of their arrival.
    MergeByArrival,
    /// COPS-CD: a write replaces all versions that are there, concurrent ones too.
    ConflictIgnored,
    /// Eiger: the interval of a slice without columns is ignored.
    EmptySliceWithoutInterval,
    /// Eiger: results of the second round are matched with requests by their position.
    MatchedByPosition,
    /// Eiger: an interval that ends at the largest EVT does not count as one that contains it.
    StrictLargestEvt,
    /// Eiger: the answer that a transaction was not committed at a time is used for later times.
    NotYetReused,
    /// Eiger: an addition in a write transaction is dropped below a newer addition.
    CounterInTransaction,
    /// Eiger: the sub-requests of a write transaction are not sent again if a connection loses them.
    TransactionNotRetried,
    /// Eiger: the client library forgets the dependencies of deleted columns.
    TombstoneForgotten,
    /// Eiger: a location with a pending transaction is read as if there were none.
    PendingIgnored,
    /// Eiger: a read waits for the commit of a pending transaction, instead of asking its coordinator.
    ReadWaits,
    /// Eiger: a replicated transaction below a newer value does not count as applied.
    OlderNotApplied,
}

impl Flaw {
    /// All planted faults.
    pub const ALL: [Self; 20] = [
        Self::DepsUnchecked,
        Self::DepCheckByNewer,
        Self::DepCheckWithoutDeadline,
        Self::SignedNodeIds,
        Self::ReadForgotten,
        Self::NotRetried,
        Self::OneRound,
        Self::PrematureCollection,
        Self::MergeByArrival,
        Self::ConflictIgnored,
        Self::EmptySliceWithoutInterval,
        Self::MatchedByPosition,
        Self::StrictLargestEvt,
        Self::NotYetReused,
        Self::CounterInTransaction,
        Self::TransactionNotRetried,
        Self::TombstoneForgotten,
        Self::PendingIgnored,
        Self::ReadWaits,
        Self::OlderNotApplied,
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::DepsUnchecked => "deps-unchecked",
            Self::DepCheckByNewer => "dep-check-by-newer",
            Self::DepCheckWithoutDeadline => "dep-check-without-deadline",
            Self::SignedNodeIds => "signed-node-ids",
            Self::ReadForgotten => "read-forgotten",
            Self::NotRetried => "not-retried",
            Self::OneRound => "one-round",
            Self::PrematureCollection => "premature-collection",
            Self::MergeByArrival => "merge-by-arrival",
            Self::ConflictIgnored => "conflict-ignored",
            Self::EmptySliceWithoutInterval => "empty-slice-without-interval",
            Self::MatchedByPosition => "matched-by-position",
            Self::StrictLargestEvt => "strict-largest-evt",
            Self::NotYetReused => "not-yet-reused",
            Self::CounterInTransaction => "counter-in-transaction",
            Self::TransactionNotRetried => "transaction-not-retried",
            Self::TombstoneForgotten => "tombstone-forgotten",
            Self::PendingIgnored => "pending-ignored",
            Self::ReadWaits => "read-waits",
            Self::OlderNotApplied => "older-not-applied",
        }
    }

    /// Returns the planted fault with that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flaw| flaw.name() == name)
    }
}
