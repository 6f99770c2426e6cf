//! The coverage of a run: a path that is never reached is not tested.

use std::collections::BTreeMap;

use mingle_geo::counters::Counters;

macro_rules! seen {
    ($($(#[$of:meta])* $variant:ident = $name:literal,)*) => {
        /// A coverage point of a run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Seen {
            $($variant,)*
        }

        /// The names of the coverage points, in order.
        const NAMES: &[&str] = &[$($name,)*];
    };
}

seen! {
    Aborted = "transaction aborted",
    AdmitAskedOften = "admission asked of several",
    Advanced = "partition advanced for others",
    AttachFailed = "attach failed",
    AttachWaited = "attach waited",
    BarrierAcrossLoss = "barrier across a loss",
    BarrierFailed = "barrier failed",
    BarrierUniform = "barrier told uniform",
    Checkpoint = "log written anew",
    ClientVanished = "client vanished",
    ClockAhead = "clock ahead refused",
    ClockSteppedBack = "clock stepped back",
    CommitAsked = "commit asked for again",
    CommitFoundElsewhere = "commit found at another data center",
    CoordinatorVanished = "client vanished inside a commit",
    Committed = "transaction committed",
    Conflict = "strong transaction conflicted",
    Cut = "link cut",
    CutSettles = "cut that one alone has reached",
    Delayed = "link delayed",
    DiskLost = "replica started as its old self on an empty disk",
    DiskFull = "write waited for a full disk",
    DurableCommit = "durable commit",
    Fenced = "data center fenced",
    FencedAlive = "data center fenced that was alive",
    FencedLater = "later incarnation of a data center fenced after it had come up",
    FencedLate = "fence with a late batch",
    FencedRefused = "fenced data center refused its clients",
    FloorRaisedPast = "session raised to its process's floor",
    FencedStopped = "fenced data center was told and stopped",
    Held = "link held messages",
    IdRefused = "operation id below the floor refused",
    ImplicitAttach = "barrier or read ahead of the data center",
    Joined = "tokens joined",
    LogFull = "write refused by a full log",
    LeaderLost = "leader lost between vote and decision",
    Lost = "data center lost",
    LossAccepted = "loss accepted",
    LossCertain = "lost transactions named for certain",
    LossNamed = "lost transactions named",
    LostInFlight = "message lost in flight",
    Moved = "session moved with its token",
    Paused = "replica stood still",
    ParticipantsDecided = "participants decided without coordinator",
    ParticipantRefused = "participant refused",
    PreparedTwice = "transaction prepared over a restart",
    Queried = "votes asked for by another replica",
    ReadFailed = "read failed",
    ReadOwn = "own write read",
    Rejoined = "data center rejoined",
    RejoinedBusy = "data center that comes up refused its clients",
    RejoinedCommitted = "commit at a data center that rejoined",
    RejoinedLate = "message of the incarnation before came late",
    RejoinedLeads = "data center that rejoined leads",
    RejoinedStrong = "strong commit at a data center that rejoined",
    RejoinedUnderFaults = "data center rejoined under faults",
    Refused = "prepared transaction refused",
    Repeated = "message repeated",
    Restarted = "replica restarted",
    Resolved = "strong transaction finished by another replica",
    Resumed = "session resumed",
    SecondLoss = "second loss beside one that is given up",
    Siblings = "siblings read",
    Slowed = "replica slowed",
    SnapshotTooOld = "too old snapshot refused",
    StrongApart = "strong commit while another was cut off for long",
    StrongAsked = "strong commit found by asking",
    StrongCommitted = "strong transaction committed",
    StrongOnlyRefused = "causal write to a strong key refused",
    StrongReadOnly = "strong transaction that only read",
    StrongRepeated = "strong transaction tried again",
    TornWrite = "torn write",
    TransactionTooOld = "too old transaction refused",
    TransferBegun = "state transfer begun",
    TransferDone = "state transfer complete",
    TransferServed = "state transfer served",
    Unknown = "commit not answered",
    Withheld = "withdrawal withheld",
    WayCut = "link between two replicas cut in one direction",
    WaitTimedOut = "wait for a prepared transaction was too long",
    WriteFailed = "write failed",
}

/// The counts of the coverage points.
#[derive(Clone, Debug)]
pub(super) struct Reach(Vec<u64>);

impl Default for Reach {
    fn default() -> Self {
        Self(vec![0; NAMES.len()])
    }
}

impl Reach {
    pub fn saw(&mut self, what: Seen) {
        self.0[what as usize] += 1;
    }

    /// Returns the counts by name, including the zeros.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        NAMES.iter().zip(&self.0).map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }
}

/// The sums of the replicas' own counters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met(Counters);

impl Met {
    /// Adds the counters of one replica since its start.
    pub fn add(&mut self, other: &Counters) {
        let sum = &mut self.0;
        let Counters {
            reads,
            reads_waited,
            too_old,
            ahead,
            clock_ahead,
            repeats,
            late_prepares,
            resolved,
            gaps,
            forwards,
            transfers,
            joins,
            folds_pinned,
            past_waited,
            full,
        } = other;
        sum.reads += reads;
        sum.reads_waited += reads_waited;
        sum.too_old += too_old;
        sum.ahead += ahead;
        sum.clock_ahead += clock_ahead;
        sum.repeats += repeats;
        sum.late_prepares += late_prepares;
        sum.resolved += resolved;
        sum.gaps += gaps;
        sum.forwards += forwards;
        sum.transfers += transfers;
        sum.joins += joins;
        sum.folds_pinned += folds_pinned;
        sum.past_waited += past_waited;
        sum.full += full;
    }

    /// Returns the counts by name.
    pub fn counts(&self) -> impl Iterator<Item = (String, u64)> {
        let Counters { reads_waited, too_old, ahead, clock_ahead, .. } = self.0;
        let Counters { repeats, late_prepares, resolved, gaps, forwards, .. } = self.0;
        let Counters { reads, transfers, joins, folds_pinned, past_waited, full, .. } = self.0;
        let counts = [
            ("core: barrier or attach waited", past_waited),
            ("core: clock ahead refused", clock_ahead),
            ("core: commit sent again", repeats),
            ("core: fold pinned by a snapshot", folds_pinned),
            ("core: forwarded batch", forwards),
            ("core: full log refused", full),
            ("core: gap noticed", gaps),
            ("core: participants decided", resolved),
            ("core: preparation after its refusal", late_prepares),
            ("core: read", reads),
            ("core: read waited for a prepared transaction", reads_waited),
            ("core: snapshot ahead refused", ahead),
            ("core: snapshot too old refused", too_old),
            ("core: state transfer", transfers),
            ("core: states that were folded apart are joined", joins),
        ];
        counts.into_iter().map(|(name, count)| (name.to_owned(), count))
    }
}
