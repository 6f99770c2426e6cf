//! Messages: one struct per kind.
//!
//! Links between replicas may lose, repeat and reorder messages; what a message says is true
//! whenever it comes.

mod members;
mod past;
mod transfer;

use std::sync::Arc;

use mingle_model::TransactionId;
use serde::{Deserialize, Serialize};

use crate::central::{Held, SERVICE, Serve};
use crate::certify::GroupMessage;
use crate::error::Refusal;
use crate::floors::Raised;
use crate::key::Key;
use crate::members::Members;
use crate::timestamp::{DcId, PartitionId, Timestamp};
use crate::tx::{Outcome, Transaction};
use crate::types::{State, Update};
use crate::vector::Vector;

pub use members::{Admit, Fence, MembersReply};
pub use past::{Attach, AttachReply, Attached, Barrier, BarrierReply, Missing};
pub use transfer::{Behind, TransferEnd, TransferPart, TransferPull};

/// A place that messages come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Address {
    /// A session, numbered by the shell.
    Client(u64),
    /// The replica of a partition in a data center.
    Replica(DcId, PartitionId),
}

/// A message with where it goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// Where it goes.
    pub to: Address,
    /// What it says.
    pub message: Message,
}

/// Any message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// GET_VERSION (1:11) for several keys.
    Read(Read),
    /// VERSION (1:25).
    ReadReply(ReadReply),
    /// A causal transaction of one partition.
    CommitOne(CommitOne),
    /// PREPARE (1:29).
    Prepare(Prepare),
    /// PREPARE_ACK (1:41).
    PrepareAck(PrepareAck),
    /// COMMIT (1:34).
    Commit(Commit),
    /// A participant has refused: the others may forget.
    Abort(Abort),
    /// What became of a transaction?
    OutcomeQuery(OutcomeQuery),
    /// That.
    OutcomeReply(OutcomeReply),
    /// UNIFORM_BARRIER (1:49).
    Barrier(Barrier),
    /// Its answer.
    BarrierReply(BarrierReply),
    /// ATTACH (1:51).
    Attach(Attach),
    /// Its answer.
    AttachReply(AttachReply),
    /// Operation ids of an origin come no more.
    RaiseFloor(RaiseFloor),
    /// The floor stands on disk.
    FloorRaised(FloorRaised),
    /// A participant asks another about a transaction whose coordinator is silent.
    StatusQuery(StatusQuery),
    /// Its answer.
    StatusReply(StatusReply),
    /// KNOWNVEC_LOCAL (2:24).
    KnownVecLocal(KnownVecLocal),
    /// STABLEVEC and KNOWNVEC_GLOBAL (2:25-26), together.
    SiblingVecs(SiblingVecs),
    /// REPLICATE (2:6, 2:21); without transactions, HEARTBEAT (2:8, 2:22).
    Replicate(Replicate),
    /// A receiver asks for what it lacks.
    Ask(Ask),
    /// What was asked for is no longer kept.
    Behind(Behind),
    /// A receiver asks for the next part of a state transfer.
    TransferPull(TransferPull),
    /// A part of a state transfer.
    TransferPart(TransferPart),
    /// Of the certification of strong transactions.
    Group(GroupMessage),
    /// What one service has certified for a partition.
    Serve(Serve),
    /// What a partition has of that.
    Held(Held),
    /// An incarnation of a data center is to be given up.
    Fence(Fence),
    /// How that stands.
    MembersReply(MembersReply),
    /// Replica to replica: who belongs to the system. To one that did not know.
    Members(Members),
    /// The next incarnation of a data center is to be admitted.
    Admit(Admit),
}

impl Message {
    /// Who it says it is from, where it says so: a replica of this data center and partition is
    /// spoken to.
    pub(crate) fn claimed_sender(&self, dc: DcId, partition: PartitionId) -> Option<Address> {
        match self {
            Self::StatusReply(reply) => Some(Address::Replica(dc, reply.partition)),
            Self::KnownVecLocal(known) => Some(Address::Replica(dc, known.partition)),
            Self::SiblingVecs(vecs) => Some(Address::Replica(vecs.dc, partition)),
            Self::Replicate(replicate) => Some(Address::Replica(replicate.sender, partition)),
            Self::Ask(ask) => Some(Address::Replica(ask.dc, partition)),
            Self::Behind(behind) => Some(Address::Replica(behind.dc, partition)),
            Self::TransferPull(pull) => Some(Address::Replica(pull.dc, partition)),
            Self::TransferPart(part) => Some(Address::Replica(part.dc, partition)),
            Self::Serve(_) => Some(Address::Replica(dc, SERVICE)),
            Self::Held(held) => Some(Address::Replica(dc, held.partition)),
            _ => None,
        }
    }

    /// The epoch of its vectors, of what replicas say to each other.
    pub(crate) fn epoch(&self) -> Option<u32> {
        match self {
            Self::KnownVecLocal(known) => Some(known.epoch),
            Self::SiblingVecs(vecs) => Some(vecs.epoch),
            Self::Replicate(replicate) => Some(replicate.epoch),
            Self::Ask(ask) => Some(ask.epoch),
            Self::Behind(behind) => Some(behind.epoch),
            Self::TransferPull(pull) => Some(pull.epoch),
            Self::TransferPart(part) => Some(part.epoch),
            _ => None,
        }
    }
}

/// The snapshot to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Snapshot {
    /// This one.
    At(Vector),
    /// The newest that the replica hands out, and at least this: START_TX (1:1) in the same message.
    /// Never too old.
    AtLeast(Vector),
    /// The same for a strong transaction, whose snapshot is uniform but for what it must at least
    /// hold.
    UniformAtLeast(Vector),
}

/// Session to replica: read these keys. Answered by [`ReadReply`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Read {
    /// The incarnation of the data center that is meant.
    pub incarnation: u32,
    /// Chosen by the session, given back in the answer.
    pub request: u64,
    /// At which snapshot.
    pub snapshot: Snapshot,
    /// Keys, all of this partition.
    pub keys: Vec<Key>,
}

/// What a replica hands out with each answer: new transactions may begin with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handout {
    /// What the data center has, all partitions.
    pub stable_vec: Vector,
    /// What is uniform.
    pub uniform_vec: Vector,
    /// The epoch of both.
    pub epoch: u32,
    /// Which incarnation of the data center this is from.
    pub incarnation: u32,
}

impl Handout {
    /// The snapshot of a causal transaction: the data center's own entry and that of strong
    /// transactions from `stable_vec`, the rest uniform.
    pub fn causal_snapshot(&self, own: DcId) -> Vector {
        let stable = &self.stable_vec;
        self.uniform_vec.with(own, stable[own]).with(DcId::STRONG, stable[DcId::STRONG])
    }

    /// The snapshot of a strong transaction: what is uniform, and all strong transactions that are
    /// here.
    pub fn strong_snapshot(&self) -> Vector {
        self.uniform_vec.with(DcId::STRONG, self.stable_vec[DcId::STRONG])
    }

    /// Both joined, of one incarnation.
    pub fn join(&mut self, other: &Self) {
        self.stable_vec.join(&other.stable_vec);
        self.uniform_vec.join(&other.uniform_vec);
        self.epoch = self.epoch.max(other.epoch);
        self.incarnation = self.incarnation.max(other.incarnation);
    }
}

/// Replica to session: the states of the keys, in the order asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadReply {
    /// The request's.
    pub request: u64,
    /// The snapshot that was read, with the states; or why not.
    pub result: Result<(Vector, Vec<Arc<State>>), Refusal>,
    /// For later transactions.
    pub handout: Handout,
}

/// Session to replica: commit this transaction, all of whose operations are here. One message, one
/// write, no prepare. Answered by [`OutcomeReply`]; sent again, by the same answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommitOne {
    /// The incarnation of the data center that is meant.
    pub incarnation: u32,
    /// Its id.
    pub id: TransactionId,
    /// When it began, in microseconds since 1970.
    pub begun_us: u64,
    /// The session has the answers to its transactions below this sequence.
    pub answered: u64,
    /// Its snapshot; of one that read nothing, at least the session's past.
    pub snapshot: Snapshot,
    /// What it does.
    pub updates: Vec<Update>,
}

/// Coordinator to participant: prepare this transaction. Answered by [`PrepareAck`] once on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prepare {
    /// The incarnation of the data center that is meant.
    pub incarnation: u32,
    /// Its id.
    pub id: TransactionId,
    /// When it began, in microseconds since 1970.
    pub begun_us: u64,
    /// The session has the answers to its transactions below this sequence.
    pub answered: u64,
    /// All partitions that take part, this one included.
    pub participants: Vec<PartitionId>,
    /// Its snapshot.
    pub snap_vec: Vector,
    /// What it does at this partition.
    pub updates: Vec<Update>,
}

/// Participant to coordinator: how a preparation went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrepareAck {
    /// The transaction.
    pub id: TransactionId,
    /// Who answers.
    pub partition: PartitionId,
    /// How it went.
    pub vote: Vote,
    /// For later transactions.
    pub handout: Handout,
}

/// What a participant says to a preparation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Vote {
    /// It is prepared, at this timestamp, on disk.
    Prepared(Timestamp),
    /// It is decided already.
    Decided(Outcome),
    /// Refused, which stands on disk: the transaction will never commit.
    Refused(Refusal),
    /// Nothing can be said of it: it is too old, or its outcome is forgotten.
    Unknown(Refusal),
}

/// Coordinator to participant: commit. The participants could find it out by themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    /// The transaction.
    pub id: TransactionId,
    /// Its commit vector.
    pub commit_vec: Vector,
}

/// Coordinator to participant: another participant has refused the transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Abort {
    /// The transaction.
    pub id: TransactionId,
}

/// Session to replica: what became of this transaction? Answered by [`OutcomeReply`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeQuery {
    /// The transaction.
    pub id: TransactionId,
    /// When it began, in microseconds since 1970.
    pub begun_us: u64,
    /// The data center that it was to be committed at.
    pub dc: DcId,
    /// Which incarnation of it: if that is fenced and the transaction is not here, it never will be.
    pub incarnation: u32,
}

/// Replica to session: how a transaction ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeReply {
    /// The transaction.
    pub id: TransactionId,
    /// How it ended, as far as this replica knows; or why it was not accepted.
    pub result: Result<Option<Outcome>, Refusal>,
    /// For later transactions.
    pub handout: Handout,
}

/// The origin of Mingle transactions raises its floor (`runtime.md`, "End").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RaiseFloor {
    /// Whose.
    pub origin: mingle_model::Origin,
    /// Operation ids of its transactions up to this sequence come no more.
    pub sequence: u64,
}

/// Answers [`RaiseFloor`]. If the floor stands lower, something below it is prepared: ask again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloorRaised {
    /// Whose.
    pub origin: mingle_model::Origin,
    /// Where it stands.
    pub sequence: u64,
}

/// Participant to participant: where is this transaction? Who never saw it refuses it, for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusQuery {
    /// The transaction.
    pub id: TransactionId,
    /// When it began: below the floor it need not be remembered as refused.
    pub begun_us: u64,
}

/// Answers [`StatusQuery`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReply {
    /// The transaction.
    pub id: TransactionId,
    /// Who answers.
    pub partition: PartitionId,
    /// Where it stands, on disk.
    pub status: Status,
}

/// Where a transaction stands at a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Prepared, at this timestamp.
    Prepared(Timestamp),
    /// Decided.
    Decided(Outcome),
}

/// Replica to the replicas of other partitions in its data center.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownVecLocal {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// Who says so.
    pub partition: PartitionId,
    /// What it has, on disk.
    pub known_vec: Vector,
    /// Snapshots below this are read by nobody to whom it handed one out.
    pub snapshot_floor: Vector,
    /// Its clock, so that idle partitions follow.
    pub clock: Timestamp,
}

/// Replica to its siblings: what it has, and what its data center has, on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiblingVecs {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// Who says so.
    pub dc: DcId,
    /// What it has.
    pub known_vec: Vector,
    /// What all partitions of its data center have.
    pub stable_vec: Vector,
}

/// Replica to sibling: all transactions of an origin with timestamps in `(from, to]`. A receiver
/// that lacks something up to `from` cannot use it, and asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replicate {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// Who sends it: the origin, or who forwards.
    pub sender: DcId,
    /// Whose transactions.
    pub origin: DcId,
    /// From here, exclusive.
    pub from: Timestamp,
    /// To here, inclusive.
    pub to: Timestamp,
    /// In the order of their timestamps.
    pub transactions: Vec<Arc<Transaction>>,
    /// Floors of operation ids that the origin raised at timestamps of the interval.
    pub floors: Vec<Raised>,
}

/// Replica to sibling: send this origin's transactions from here on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// Who asks.
    pub dc: DcId,
    /// Whose transactions.
    pub origin: DcId,
    /// It has all up to here.
    pub known: Timestamp,
}
