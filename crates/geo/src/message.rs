//! Messages: one struct per kind.
//!
//! Links between replicas may lose, repeat and reorder messages. The content of a message is true
//! at any time of arrival.

pub(crate) mod form;
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

use form::{AddressForm, HandoutForm, KnownVecLocalForm, SiblingVecsForm, UniformVecLocalForm};
pub use members::{Admit, Fence, MembersReply};
pub use past::{Attach, AttachReply, Attached, Barrier, BarrierReply, Missing};
pub use transfer::{Behind, TransferEnd, TransferPart, TransferPull};

/// The source or destination of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "AddressForm", try_from = "AddressForm")]
pub enum Address {
    /// A session, numbered by the shell.
    Client(u64),
    /// The replica of a partition in a data center.
    Replica(DcId, PartitionId),
}

/// A message with its destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// The destination.
    pub to: Address,
    /// The content.
    pub message: Message,
}

/// Any message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// GET_VERSION (1:11) for several keys.
    Read(Read),
    /// VERSION (1:25).
    ReadReply(ReadReply),
    /// Commit a causal transaction that touches only one partition.
    CommitOne(CommitOne),
    /// PREPARE (1:29).
    Prepare(Prepare),
    /// PREPARE_ACK (1:41).
    PrepareAck(PrepareAck),
    /// COMMIT (1:34).
    Commit(Commit),
    /// A participant has refused: the other participants may forget the transaction.
    Abort(Abort),
    /// A question for the outcome of a transaction.
    OutcomeQuery(OutcomeQuery),
    /// The answer to it.
    OutcomeReply(OutcomeReply),
    /// UNIFORM_BARRIER (1:49).
    Barrier(Barrier),
    /// Its answer.
    BarrierReply(BarrierReply),
    /// ATTACH (1:51).
    Attach(Attach),
    /// Its answer.
    AttachReply(AttachReply),
    /// Raise the floor of an origin's operation ids.
    RaiseFloor(RaiseFloor),
    /// The raised floor is on disk.
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
    /// A receiver asks for missing transactions.
    Ask(Ask),
    /// The transactions that a receiver asked for are no longer kept.
    Behind(Behind),
    /// A receiver asks for the next part of a state transfer.
    TransferPull(TransferPull),
    /// A part of a state transfer.
    TransferPart(TransferPart),
    /// A message of the certification of strong transactions.
    Group(GroupMessage),
    /// The transactions that the central service certified for a partition.
    Serve(Serve),
    /// The certified transactions that a partition has.
    Held(Held),
    /// Give up an incarnation of a data center.
    Fence(Fence),
    /// The answer to `Fence` and `Admit`.
    MembersReply(MembersReply),
    /// Replica to replica: the current members, for a receiver that did not know them.
    Members(Members),
    /// Admit the next incarnation of a data center.
    Admit(Admit),
    /// What a partition knows to be uniform.
    UniformVecLocal(UniformVecLocal),
}

impl Message {
    /// Returns the sender that the message names, if it names one. The receiver is a replica of
    /// this data center and partition.
    pub(crate) fn claimed_sender(&self, dc: DcId, partition: PartitionId) -> Option<Address> {
        match self {
            Self::StatusReply(reply) => Some(Address::Replica(dc, reply.partition)),
            Self::KnownVecLocal(known) => Some(Address::Replica(dc, known.partition)),
            Self::SiblingVecs(vecs) => Some(Address::Replica(vecs.dc, partition)),
            Self::UniformVecLocal(told) => Some(Address::Replica(dc, told.partition)),
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

    /// Returns the epoch of its vectors, for messages between replicas.
    pub(crate) fn epoch(&self) -> Option<u32> {
        match self {
            Self::KnownVecLocal(known) => Some(known.epoch),
            Self::SiblingVecs(vecs) => Some(vecs.epoch),
            Self::UniformVecLocal(told) => Some(told.epoch),
            Self::Replicate(replicate) => Some(replicate.epoch),
            Self::Ask(ask) => Some(ask.epoch),
            Self::Behind(behind) => Some(behind.epoch),
            Self::TransferPull(pull) => Some(pull.epoch),
            Self::TransferPart(part) => Some(part.epoch),
            _ => None,
        }
    }
}

/// The snapshot that a read uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Snapshot {
    /// Exactly this snapshot.
    At(Vector),
    /// The newest snapshot that the replica hands out, joined with this vector: START_TX (1:1) in
    /// the same message. It is never refused as too old.
    AtLeast(Vector),
    /// The same for a strong transaction: the snapshot is uniform, except that it includes at least
    /// this vector.
    UniformAtLeast(Vector),
}

/// Session to replica: read these keys. The answer is a [`ReadReply`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Read {
    /// The expected incarnation of the data center.
    pub incarnation: u32,
    /// A number chosen by the session and returned in the answer.
    pub request: u64,
    /// The snapshot to read.
    pub snapshot: Snapshot,
    /// The keys, all of this partition.
    pub keys: Vec<Key>,
}

/// The vectors that a replica attaches to each answer; new transactions may begin with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "HandoutForm", try_from = "HandoutForm")]
pub struct Handout {
    /// The transactions that all partitions of the data center have.
    pub stable_vec: Vector,
    /// The transactions that are uniform.
    pub uniform_vec: Vector,
    /// The epoch of both vectors.
    pub epoch: u32,
    /// The incarnation of the data center that sent them.
    pub incarnation: u32,
}

impl Handout {
    /// Returns the snapshot of a causal transaction: the data center's own entry and the entry of
    /// strong transactions come from `stable_vec`, the others from `uniform_vec`.
    pub fn causal_snapshot(&self, own: DcId) -> Vector {
        let stable = &self.stable_vec;
        self.uniform_vec.with(own, stable[own]).with(DcId::STRONG, stable[DcId::STRONG])
    }

    /// Returns the snapshot of a strong transaction: `uniform_vec`, with all strong transactions
    /// that are stable here.
    pub fn strong_snapshot(&self) -> Vector {
        self.uniform_vec.with(DcId::STRONG, self.stable_vec[DcId::STRONG])
    }

    /// Joins two handouts of one incarnation.
    pub fn join(&mut self, other: &Self) {
        self.stable_vec.join(&other.stable_vec);
        self.uniform_vec.join(&other.uniform_vec);
        self.epoch = self.epoch.max(other.epoch);
        self.incarnation = self.incarnation.max(other.incarnation);
    }
}

/// Replica to session: the states of the keys, in the requested order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadReply {
    /// The number of the request.
    pub request: u64,
    /// The snapshot that was read and the states, or the reason of a refusal.
    pub result: Result<(Vector, Vec<Arc<State>>), Refusal>,
    /// Vectors for later transactions.
    pub handout: Handout,
}

/// Session to replica: commit this transaction, whose operations are all at this partition. It
/// takes one message, one write and no prepare. The answer is an [`OutcomeReply`]; a repeated
/// request gets the same answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommitOne {
    /// The expected incarnation of the data center.
    pub incarnation: u32,
    /// The transaction's id.
    pub id: TransactionId,
    /// The time when it began, in microseconds since 1970.
    pub begun_us: u64,
    /// The session has the answers to its transactions below this sequence.
    pub answered: u64,
    /// Its snapshot. For a transaction that read nothing: at least the session's past.
    pub snapshot: Snapshot,
    /// Its operations.
    pub updates: Vec<Update>,
}

/// Coordinator to participant: prepare this transaction. The participant answers with
/// [`PrepareAck`] once the prepare record is on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prepare {
    /// The expected incarnation of the data center.
    pub incarnation: u32,
    /// The transaction's id.
    pub id: TransactionId,
    /// The time when it began, in microseconds since 1970.
    pub begun_us: u64,
    /// The session has the answers to its transactions below this sequence.
    pub answered: u64,
    /// All participating partitions, including this one.
    pub participants: Vec<PartitionId>,
    /// Its snapshot.
    pub snap_vec: Vector,
    /// Its operations at this partition.
    pub updates: Vec<Update>,
}

/// Participant to coordinator: the result of a PREPARE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrepareAck {
    /// The transaction.
    pub id: TransactionId,
    /// The answering partition.
    pub partition: PartitionId,
    /// The participant's vote.
    pub vote: Vote,
    /// Vectors for later transactions.
    pub handout: Handout,
}

/// A participant's answer to a PREPARE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Vote {
    /// The transaction is prepared at this timestamp, and this is on disk.
    Prepared(Timestamp),
    /// The transaction is already decided.
    Decided(Outcome),
    /// The transaction is refused, and this is on disk: it will never commit.
    Refused(Refusal),
    /// The participant cannot tell: the transaction is too old, or its outcome is forgotten.
    Unknown(Refusal),
}

/// Coordinator to participant: commit. Without this message the participants find the outcome
/// themselves.
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

/// Session to replica: a question for the outcome of this transaction. The answer is an
/// [`OutcomeReply`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeQuery {
    /// The transaction.
    pub id: TransactionId,
    /// The time when it began, in microseconds since 1970.
    pub begun_us: u64,
    /// The data center that was asked to commit it.
    pub dc: DcId,
    /// The incarnation that was asked. If it is fenced and the transaction is not here, it never
    /// will be.
    pub incarnation: u32,
}

/// Replica to session: the outcome of a transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeReply {
    /// The transaction.
    pub id: TransactionId,
    /// The outcome, as far as this replica knows it, or the reason of a refusal.
    pub result: Result<Option<Outcome>, Refusal>,
    /// Vectors for later transactions.
    pub handout: Handout,
}

/// The origin of Mingle transactions raises its floor (`runtime.md`, "End").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RaiseFloor {
    /// The origin of the operation ids.
    pub origin: mingle_model::Origin,
    /// No operation ids of the origin's transactions up to this sequence will come any more.
    pub sequence: u64,
}

/// The answer to [`RaiseFloor`]. If the floor is lower than requested, a transaction below it is
/// still prepared: ask again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloorRaised {
    /// The origin of the operation ids.
    pub origin: mingle_model::Origin,
    /// The current floor.
    pub sequence: u64,
}

/// Participant to participant: a question for the status of this transaction. A participant that
/// never saw it refuses it for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusQuery {
    /// The transaction.
    pub id: TransactionId,
    /// The time when it began, in microseconds since 1970. Below the age floor a refusal need not
    /// be remembered.
    pub begun_us: u64,
}

/// The answer to [`StatusQuery`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReply {
    /// The transaction.
    pub id: TransactionId,
    /// The answering partition.
    pub partition: PartitionId,
    /// The status, as it is on disk.
    pub status: Status,
}

/// The status of a transaction at a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Prepared, at this timestamp.
    Prepared(Timestamp),
    /// Decided.
    Decided(Outcome),
}

/// Replica to the replicas of the other partitions in its data center: its vectors and clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "KnownVecLocalForm", try_from = "KnownVecLocalForm")]
pub struct KnownVecLocal {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// The sending partition.
    pub partition: PartitionId,
    /// The transactions that it has on disk.
    pub known_vec: Vector,
    /// A lower bound on the running snapshots that this replica handed out.
    pub snapshot_floor: Vector,
    /// Its clock. Idle partitions follow it.
    pub clock: Timestamp,
}

/// Replica to the replicas of the other partitions in its data center: what it knows to be uniform.
/// That holds for the whole data center, and each partition learns it from its own siblings: one that
/// hears less of them would let sessions wait for what another partition has shown them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "UniformVecLocalForm", try_from = "UniformVecLocalForm")]
pub struct UniformVecLocal {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// The sending partition.
    pub partition: PartitionId,
    /// The transactions that at least `f + 1` data centers have, this one among them.
    pub uniform_vec: Vector,
}

/// Replica to its siblings: the transactions that it has and that its data center has, on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "SiblingVecsForm", try_from = "SiblingVecsForm")]
pub struct SiblingVecs {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// The sending data center.
    pub dc: DcId,
    /// The transactions that the sender has.
    pub known_vec: Vector,
    /// The transactions that all partitions of its data center have.
    pub stable_vec: Vector,
}

/// Replica to sibling: all transactions of an origin with timestamps in `(from, to]`. A receiver
/// that lacks a transaction up to `from` cannot use the message and asks for the missing ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replicate {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// The sender: the origin, or a data center that forwards.
    pub sender: DcId,
    /// The origin of the transactions.
    pub origin: DcId,
    /// The lower end, exclusive.
    pub from: Timestamp,
    /// The upper end, inclusive.
    pub to: Timestamp,
    /// The transactions, in the order of their timestamps.
    pub transactions: Vec<Arc<Transaction>>,
    /// Floors of operation ids that the origin raised at timestamps of the interval.
    pub floors: Vec<Raised>,
}

/// Replica to sibling: send this origin's transactions above `known`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// The asking data center.
    pub dc: DcId,
    /// The origin of the transactions.
    pub origin: DcId,
    /// The asking replica has all up to here.
    pub known: Timestamp,
}
