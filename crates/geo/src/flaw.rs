//! Faults that are planted on purpose, to test that the checkers of promises detect them.
//!
//! Each is a mistake that such a protocol invites, or that another system has made. Planting one
//! requires the feature `planted`.

use serde::{Deserialize, Serialize};

/// A mistake that a replica or a session can be told to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Flaw {
    /// `known_vec[d]` goes past transactions that are prepared.
    KnownPastPrepared,
    /// Two transactions of a replica get the same timestamp, and the second is taken for the first.
    EqualTimestamps,
    /// A prepare uses the machine's clock, although a later timestamp was announced.
    PrepareBelowAnnounced,
    /// The clock's ceiling on disk is not read at a restart.
    ClockBack,
    /// A heartbeat is believed although transactions below it are missing.
    HeartbeatOverGap,
    /// A timestamp need not be above its transaction's snapshot entries of other data centers.
    UnmergedClocks,
    /// Reads do not wait for transactions prepared below their snapshot.
    ReadDoesNotWait,
    /// The coordinator commits once the first participant is prepared.
    CommitAtFirstAck,
    /// The snapshots that a session read are not joined into its past.
    ReadNotJoined,
    /// A transaction that was prepared for long is dropped, regardless of the other participants.
    StaleDropped,
    /// A refusal is not remembered: a later prepare is accepted.
    LatePrepare,
    /// Prepares and commits are acknowledged before they are on disk.
    AckBeforeDisk,
    /// Vectors are announced before their transactions are on disk.
    VectorBeforeDisk,
    /// A transaction that `f` data centers have counts as uniform.
    GroupsOfF,
    /// `stable_vec` leaves out partitions that have fallen silent.
    SilentSkipped,
    /// Remote transactions are shown once they are stable here, uniform or not.
    RemoteWhenStable,
    /// Transactions of other data centers are not forwarded.
    NoForwarding,
    /// Transactions are no longer kept for other data centers once `f + 1` data centers have them.
    ForwardLogDropped,
    /// A client's vector is taken over unchecked.
    ClientVectorMerged,
    /// Attach ignores the session's past in the entry of one data center.
    AttachIgnoresEntry,
    /// Operations that running transactions may still read separately are folded.
    FoldAboveH,
    /// A snapshot that is too old is answered from the newer folded state.
    TooOldFromBase,
    /// A state transfer loses the receiver's own transactions.
    TransferLoses,
    /// A state transfer counts the receiver's own transactions twice.
    TransferDoubles,
    /// A replica that receives another replica's folded state drops its own folded state.
    BaseReplaced,
    /// A folded snapshot need not contain all transactions up to its entries.
    FoldNotClosed,
    /// Every run of a repeated operation id counts.
    OperationIdsIgnored,
    /// A repeated commit request is executed again.
    CommitRepeated,
    /// A strong transaction is certified though its snapshot is not uniform.
    BarrierSkipped,
    /// Items that a strong transaction only read are not certified.
    ReadSetDropped,
    /// Undecided transactions with a yes vote do not conflict with others.
    UndecidedIgnored,
    /// Only the strong entry of a conflicting transaction's vector is compared with the snapshot.
    StrongEntryOnly,
    /// Transactions dropped from the conflict index do not conflict with others.
    FloorIgnored,
    /// Causal transactions may write keys reserved for strong transactions.
    StrongOnlyIgnored,
    /// Labels never conflict with each other.
    LabelsIgnored,
    /// A leader votes from its memory, before the prepare is in the log.
    VoteFromMemory,
    /// A participant without a vote answers no, but does not refuse the transaction.
    AbortWithoutRefuse,
    /// A prepare counts although it comes after a refusal.
    RefusalOverruled,
    /// A repeated prepare is certified again.
    CertifiedTwice,
    /// Each participant commits at the timestamp that it proposed itself.
    OwnTimestamp,
    /// A strong timestamp need not be above its transaction's snapshot.
    ProposalBelowSnapshot,
    /// Transactions are delivered though lower ones are undecided.
    DeliveryPastUndecided,
    /// Partitions that hold back others are not advanced.
    AdvanceForgotten,
    /// Transactions left by a coordinator are never finished.
    UndecidedLeft,
    /// The messages and decisions of the consensus are used before its writes are on disk.
    DecisionBeforeDisk,
    /// The writes of the consensus reach the disk in another order.
    PersistsReordered,
    /// A delta of decided entries is merged as the consensus library does it.
    DeltaMerged,
    /// A follower takes the entries that it accepted itself for chosen, without a majority.
    ChosenWithoutMajority,
    /// A batch that a fenced incarnation sends late is accepted.
    FencedAccepted,
    /// A replica with an empty disk continues as its old self, which may have voted.
    EmptyDiskVotes,
    /// A new incarnation of a data center serves and announces before it has copied another one's
    /// state.
    ServesUntransferred,
    /// A session uses handouts of another incarnation of its data center as if from the attached
    /// one.
    IncarnationsMixed,
    /// The end of a sync releases the messages of records that were appended while it was under way.
    SyncReleasesLater,
    /// A damaged entry of the journal is skipped, and the entries behind it are read.
    MiddleSkipped,
    /// A process goes on after a later start of its journal has taken its place, and the others take its
    /// messages.
    IdentityShared,
    /// Messages of an earlier connection are taken, also a second time.
    FrameReplayed,
    /// Sessions do not begin above what their process has acknowledged.
    ProcessFloorIgnored,
    /// A reader takes an item's life for ended by its machine's clock, not by its snapshot.
    LifeByClock,
    /// The horizon of items leaves out the strong entry.
    HorizonWithoutStrong,
    /// The horizon of items is the entry of the own data center alone, so that late facts about
    /// deadlines are ignored.
    HorizonOfOwnEntry,
    /// Additions to items are settled above the horizon.
    SettledAboveHorizon,
    /// A removal of additions to an item is replicated without the additions that it takes away.
    RemovalUnmeasured,
    /// A removal of elements of a list takes the first elements with their values.
    PulledByValue,
    /// The partitions of a data center do not tell each other what is uniform.
    UniformUntold,
    /// The report of a data center that was admitted again counts for its previous incarnation.
    SuccessorReports,
}

/// The planted mistake: none, unless made from a [`Flaw`]. As bytes it is a number, which is 0 for
/// none with and without the feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub struct Planted(#[cfg(feature = "planted")] Option<Flaw>);

impl Planted {
    /// True if this mistake is planted.
    #[cfg(feature = "planted")]
    pub fn is(self, flaw: Flaw) -> bool {
        self.0 == Some(flaw)
    }

    /// Returns false: without the feature no mistake is planted.
    #[cfg(not(feature = "planted"))]
    #[expect(clippy::unused_self, reason = "there is something in it with the feature")]
    pub fn is(self, _: Flaw) -> bool {
        false
    }
}

impl From<Planted> for u8 {
    #[cfg(feature = "planted")]
    fn from(planted: Planted) -> Self {
        planted.0.map_or(0, |flaw| flaw as Self + 1)
    }

    #[cfg(not(feature = "planted"))]
    fn from(_: Planted) -> Self {
        0
    }
}

impl TryFrom<u8> for Planted {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        #[cfg(feature = "planted")]
        if let Some(flaw) = Flaw::ALL.into_iter().find(|flaw| *flaw as u8 + 1 == number) {
            return Ok(flaw.into());
        }
        let refused = || format!("a planted mistake, number {number}, outside a simulation");
        (number == 0).then(Self::default).ok_or_else(refused)
    }
}

#[cfg(feature = "planted")]
impl From<Flaw> for Planted {
    fn from(flaw: Flaw) -> Self {
        Self(Some(flaw))
    }
}

#[cfg(feature = "planted")]
impl Flaw {
    /// All mistakes.
    pub const ALL: [Self; 65] = [
        Self::KnownPastPrepared,
        Self::EqualTimestamps,
        Self::PrepareBelowAnnounced,
        Self::ClockBack,
        Self::HeartbeatOverGap,
        Self::UnmergedClocks,
        Self::ReadDoesNotWait,
        Self::CommitAtFirstAck,
        Self::ReadNotJoined,
        Self::StaleDropped,
        Self::LatePrepare,
        Self::AckBeforeDisk,
        Self::VectorBeforeDisk,
        Self::GroupsOfF,
        Self::SilentSkipped,
        Self::RemoteWhenStable,
        Self::NoForwarding,
        Self::ForwardLogDropped,
        Self::ClientVectorMerged,
        Self::AttachIgnoresEntry,
        Self::FoldAboveH,
        Self::TooOldFromBase,
        Self::TransferLoses,
        Self::TransferDoubles,
        Self::BaseReplaced,
        Self::FoldNotClosed,
        Self::OperationIdsIgnored,
        Self::CommitRepeated,
        Self::BarrierSkipped,
        Self::ReadSetDropped,
        Self::UndecidedIgnored,
        Self::StrongEntryOnly,
        Self::FloorIgnored,
        Self::StrongOnlyIgnored,
        Self::LabelsIgnored,
        Self::VoteFromMemory,
        Self::AbortWithoutRefuse,
        Self::RefusalOverruled,
        Self::CertifiedTwice,
        Self::OwnTimestamp,
        Self::ProposalBelowSnapshot,
        Self::DeliveryPastUndecided,
        Self::AdvanceForgotten,
        Self::UndecidedLeft,
        Self::DecisionBeforeDisk,
        Self::PersistsReordered,
        Self::DeltaMerged,
        Self::ChosenWithoutMajority,
        Self::FencedAccepted,
        Self::EmptyDiskVotes,
        Self::ServesUntransferred,
        Self::IncarnationsMixed,
        Self::SyncReleasesLater,
        Self::MiddleSkipped,
        Self::IdentityShared,
        Self::FrameReplayed,
        Self::ProcessFloorIgnored,
        Self::LifeByClock,
        Self::HorizonWithoutStrong,
        Self::HorizonOfOwnEntry,
        Self::SettledAboveHorizon,
        Self::RemovalUnmeasured,
        Self::PulledByValue,
        Self::UniformUntold,
        Self::SuccessorReports,
    ];

    /// Returns its name on a command line, for example `known-past-prepared`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "planted")]
    /// assert_eq!(mingle_geo::flaw::Flaw::GroupsOfF.name(), "groups-of-f");
    /// ```
    pub fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    /// Returns the mistake with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flaw| flaw.name() == name)
    }
}
