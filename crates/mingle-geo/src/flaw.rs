//! Faults that are planted on purpose, to see that the checkers of promises notice.
//!
//! Each is a mistake that such a protocol invites, or that another system has made. Without the
//! feature `planted` there is no way to plant one.

use serde::{Deserialize, Serialize};

/// A mistake that a replica or a session can be told to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Flaw {
    /// `known_vec[d]` goes past transactions that are prepared.
    KnownPastPrepared,
    /// Two transactions of a replica get one timestamp, and the second is taken for the first.
    EqualTimestamps,
    /// A preparation goes by the machine's clock, though a later timestamp was announced.
    PrepareBelowAnnounced,
    /// The clock's ceiling on disk is not read at a restart.
    ClockBack,
    /// A heartbeat is believed although transactions below it are missing.
    HeartbeatOverGap,
    /// A timestamp need not be above what its transaction saw of other data centers.
    UnmergedClocks,
    /// Reads do not wait for what is prepared below their snapshot.
    ReadDoesNotWait,
    /// The coordinator commits once the first participant is prepared.
    CommitAtFirstAck,
    /// What was read does not become part of the session's past.
    ReadNotJoined,
    /// What was prepared for long is dropped, whatever the other participants did.
    StaleDropped,
    /// A refusal is not remembered: a preparation that comes after it is accepted.
    LatePrepare,
    /// Preparations and commits are acknowledged before they are on disk.
    AckBeforeDisk,
    /// Vectors are announced before what they speak of is on disk.
    VectorBeforeDisk,
    /// What `f` data centers have is taken for uniform.
    GroupsOfF,
    /// `stable_vec` leaves out partitions that have fallen silent.
    SilentSkipped,
    /// Remote transactions are shown once they are stable here, uniform or not.
    RemoteWhenStable,
    /// Nothing of other data centers is forwarded.
    NoForwarding,
    /// Transactions are no longer kept for others once `f + 1` data centers have them.
    ForwardLogDropped,
    /// A client's vector is taken over unchecked.
    ClientVectorMerged,
    /// Attaching does not ask for what the session's past has of one of the data centers.
    AttachIgnoresEntry,
    /// What running transactions may still read is folded.
    FoldAboveH,
    /// A snapshot that is too old is answered from what was folded since.
    TooOldFromBase,
    /// A state transfer loses the receiver's own transactions.
    TransferLoses,
    /// A state transfer counts the receiver's own transactions twice.
    TransferDoubles,
    /// Whoever is brought what was folded elsewhere drops what was folded here.
    BaseReplaced,
    /// What is folded need not hold all that it reaches to.
    FoldNotClosed,
    /// Each operation of an operation id counts.
    OperationIdsIgnored,
    /// A commit that is sent again is done again.
    CommitRepeated,
    /// A strong transaction is certified though its snapshot is not uniform.
    BarrierSkipped,
    /// What a strong transaction has only read is not certified.
    ReadSetDropped,
    /// Transactions that are voted for and undecided are in nobody's way.
    UndecidedIgnored,
    /// Of what a transaction conflicts with only the strong entry is compared with its snapshot.
    StrongEntryOnly,
    /// What the index of conflicts has dropped is in nobody's way.
    FloorIgnored,
    /// Causal transactions write what only strong ones may.
    StrongOnlyIgnored,
    /// Labels never conflict with each other.
    LabelsIgnored,
    /// A leader votes by what it knows, before the log has the preparation.
    VoteFromMemory,
    /// Who is asked for a vote that it has not given says no, and does not refuse.
    AbortWithoutRefuse,
    /// A preparation counts though it comes after a refusal.
    RefusalOverruled,
    /// A preparation that is proposed again is certified again.
    CertifiedTwice,
    /// Each participant commits at the timestamp that it has proposed.
    OwnTimestamp,
    /// A strong timestamp need not be above what its transaction saw.
    ProposalBelowSnapshot,
    /// Transactions are delivered though lower ones are undecided.
    DeliveryPastUndecided,
    /// Partitions that hold others back are not moved on.
    AdvanceForgotten,
    /// Nobody finishes what a coordinator left.
    UndecidedLeft,
    /// What the consensus says and decides is told before it is on disk.
    DecisionBeforeDisk,
    /// What the consensus writes reaches the disk in another order.
    PersistsReordered,
    /// A delta of decided entries is merged as the consensus library does it.
    DeltaMerged,
    /// A follower takes for chosen what it has accepted itself, whoever else has.
    ChosenWithoutMajority,
    /// A batch that a fenced incarnation sends late is accepted.
    FencedAccepted,
    /// A replica with an empty disk goes on as its old self, where that may have voted.
    EmptyDiskVotes,
    /// A data center that comes up serves and announces before it has taken over anybody's state.
    ServesUntransferred,
    /// A session takes what another incarnation of its data center hands out for what it was attached to.
    IncarnationsMixed,
}

/// What is planted: nothing, unless made from a [`Flaw`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted(#[cfg(feature = "planted")] Option<Flaw>);

impl Planted {
    /// Whether this mistake is to be made.
    #[cfg(feature = "planted")]
    pub(crate) fn is(self, flaw: Flaw) -> bool {
        self.0 == Some(flaw)
    }

    /// No mistake is to be made.
    #[cfg(not(feature = "planted"))]
    #[expect(clippy::unused_self, reason = "there is something in it with the feature")]
    pub(crate) fn is(self, _: Flaw) -> bool {
        false
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
    /// All of them.
    pub const ALL: [Self; 52] = [
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
    ];

    /// Its name on a command line: `known-past-prepared`, say.
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

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flaw| flaw.name() == name)
    }
}
