//! Mutants, which are planted faults: each breaks a promise on purpose, and a checker must notice it.

/// A fault at run time, in an ordinary build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// No fault.
    #[default]
    None,
    /// No transaction waits for commit witnesses (P4).
    NoWitnessCheck,
    /// Witness rows on objects that are overwritten without having been read are not asked for
    /// (P4).
    BlindWrites,
    /// Awaited transactions are not passed on (P4).
    NoInheritance,
    /// A witness row replaces the existing ones (P4).
    RowsReplaced,
    /// The last phase leaves no witness rows (P4).
    NoRowsInLastPhase,
    /// The intent is written after the first commit (P3).
    IntentAfterCommit,
    /// There is no intent (P3).
    NoIntent,
    /// A commit witness is written without the guard that none exists (P3).
    UnguardedWitness,
    /// The commit witness is written before the effects, by itself (P3).
    WitnessBeforeEffects,
    /// A helper neither reads the floor nor guards its commit with it (P3).
    HelperSkipsFloor,
    /// The floor is raised after commit witnesses are deleted (P3).
    FloorAfterDeletion,
    /// Clean-up looks at one replica alone for commit witnesses (P3, P4).
    CleanedAtOneReplica,
    /// A commit witness does not hold the values of its phase (P3).
    MiddleValuesNotKept,
    /// Each helper has a time of day and random numbers of its own (P3).
    HelperDrawsAnew,
    /// Two helpers may send different operations under one operation id (P3).
    OperationsDiffer,
    /// A commit whose answer was lost is taken for not committed (P3).
    LostMeansNotCommitted,
    /// A commit whose answer was lost is taken for committed (P3).
    LostMeansCommitted,
    /// No process helps, and none sweeps (P3, P7).
    NobodyHelps,
    /// A sweep raises floors of an origin that may still begin transactions (P3).
    SweepWithoutFence,
    /// A helper runs a phase that has a home replica at its own replica (P3).
    HelperLeavesHome,
    /// Clean-up stops after the floor is raised.
    NothingDeleted,
    /// Witness rows are removed once the floor is above them at their own store (P4).
    RowsAtOwnFloor,
    /// The floor at the store of an intent does not wait for the other stores, so the intent is removed before
    /// the transaction is at every replica of them (P3, P4).
    IntentNotLast,
    /// A session drops its wait set (P4, P6).
    SessionDropsWorklist,
    /// A session forgets the stamps that it has seen (P6).
    SessionForgetsSeen,
    /// A session that moves takes its calls along at once, though only the replica of before has what it has
    /// seen there (P6).
    SessionLeansOnNone,
    /// The stamps that a session had seen are not left with its writes (P6).
    NoTrackingSet,
    /// The data that an endorsement read is not read again.
    EndorsementUnchecked,
    /// The data that an endorsement read is read again only after the first commit.
    RevalidatedAfterCommit,
    /// An `isolated` transaction leaves no read witnesses (P5).
    NoReadWitnesses,
    /// A writer does not wait for the readers of the objects that it overwrites (P5).
    ReadersNotAwaited,
    /// An `isolated` transaction waits for others only at stores that it visits itself (P5).
    WholeNotAwaited,
    /// An `isolated` transaction that was aborted commits all the same (P5).
    AbortIgnored,
    /// A transaction that one replica of a store has is taken to be at all of them, and is not
    /// passed on (P4).
    ThroughAtOne,
    /// A weaker answer is passed off as one of the store's own level.
    WeakerCalledOwn,
    /// A process that finishes a transaction asks again for answers that are pinned (P3).
    AnswersAskedAgain,
    /// An answer at the store's own level is not validated at the commit (P1).
    AnswersUnchecked,
    /// A session does not wait for the transactions that weaker answers have shown (P4).
    WeakerRowsIgnored,
    /// A query does not ask for the rows of open transactions (P4).
    QueriesBlind,
    /// The data that a command may have changed gets no witness rows (P4).
    CommandsLeaveNoRows,
    /// The phase of a counter's store does not know what the transaction holds there (P3).
    HoldNotSettled,
    /// A sweep gives back holds before it has finished the transactions of their origin (P3).
    HoldReleasedUndecided,
    /// What a transaction that never commits holds is not given back.
    HoldForgotten,
    /// A transaction passes on all that it met, through or not: rows multiply while a replica is
    /// away (P7).
    AllPassedOn,
    /// No store is taken to be away: calls begin that cannot be finished (P7).
    NobodyAway,
}

impl Mutant {
    /// All faults.
    pub const ALL: [Self; 43] = [
        Self::NoWitnessCheck,
        Self::BlindWrites,
        Self::NoInheritance,
        Self::RowsReplaced,
        Self::NoRowsInLastPhase,
        Self::IntentAfterCommit,
        Self::NoIntent,
        Self::UnguardedWitness,
        Self::WitnessBeforeEffects,
        Self::HelperSkipsFloor,
        Self::FloorAfterDeletion,
        Self::CleanedAtOneReplica,
        Self::MiddleValuesNotKept,
        Self::HelperDrawsAnew,
        Self::OperationsDiffer,
        Self::LostMeansNotCommitted,
        Self::LostMeansCommitted,
        Self::NobodyHelps,
        Self::SweepWithoutFence,
        Self::HelperLeavesHome,
        Self::NothingDeleted,
        Self::RowsAtOwnFloor,
        Self::IntentNotLast,
        Self::SessionDropsWorklist,
        Self::SessionForgetsSeen,
        Self::SessionLeansOnNone,
        Self::NoTrackingSet,
        Self::EndorsementUnchecked,
        Self::RevalidatedAfterCommit,
        Self::NoReadWitnesses,
        Self::ReadersNotAwaited,
        Self::WholeNotAwaited,
        Self::AbortIgnored,
        Self::ThroughAtOne,
        Self::WeakerCalledOwn,
        Self::AnswersAskedAgain,
        Self::AnswersUnchecked,
        Self::WeakerRowsIgnored,
        Self::QueriesBlind,
        Self::CommandsLeaveNoRows,
        Self::HoldNotSettled,
        Self::HoldReleasedUndecided,
        Self::HoldForgotten,
    ];

    /// The faults that break no promise of a transaction, but hold up others while a store is away.
    pub const OF_OUTAGES: [Self; 2] = [Self::AllPassedOn, Self::NobodyAway];
}
