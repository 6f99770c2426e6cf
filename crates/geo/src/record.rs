//! The log records that a replica keeps on disk and replays after a restart.

use std::sync::Arc;

use mingle_model::TransactionId;
use serde::{Deserialize, Serialize};

use crate::certify::GroupRecord;
use crate::floors::Raised;
use crate::key::Key;
use crate::members::Members;
use crate::message::Envelope;
use crate::timestamp::{DcId, PartitionId, Timestamp};
use crate::tx::{Outcome, Transaction};
use crate::types::{State, Update};
use crate::vector::Vector;

/// One record of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// A bound on the clock: it never gave, announced or met a timestamp above this.
    ClockCeiling(Timestamp),
    /// Transactions that began at or before this time, in microseconds since 1970, are no longer
    /// accepted.
    AgeFloor(u64),
    /// The announced vectors.
    Vectors(Vectors),
    /// A transaction is prepared.
    Prepare(PreparedRecord),
    /// A prepared transaction was decided, or an unknown one was refused.
    Decide(Decided),
    /// A transaction that touches only one partition was committed.
    Commit(Arc<Transaction>),
    /// Transactions of another data center have arrived.
    Replicated(Interval),
    /// Strong transactions were delivered (3:4-8).
    Delivered(Interval),
    /// These data centers raised floors of operation ids.
    OpFloors(Vec<(DcId, Raised)>),
    /// A state transfer is complete, or a rewritten log begins with this.
    Install(Install),
    /// The outcomes of transactions, in a rewritten log.
    Remembered(Remembered),
    /// A record of the log of strong transactions.
    Group(GroupRecord),
    /// An epoch begins.
    Members(Members),
    /// In a rewritten log, for each data center: up to this timestamp, transactions may have come
    /// without their outcomes. Without this record there are none.
    Blind(Vector),
}

/// See [`Record::Vectors`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vectors {
    /// The transactions that this replica has.
    pub known_vec: Vector,
    /// The transactions that all partitions of its data center have.
    pub stable_vec: Vector,
    /// The transactions that are uniform.
    pub uniform_vec: Vector,
}

/// See [`Record::Prepare`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreparedRecord {
    /// The transaction's id.
    pub id: TransactionId,
    /// The time when it began, in microseconds since 1970.
    pub begun_us: u64,
    /// All participating partitions.
    pub participants: Vec<PartitionId>,
    /// Its snapshot.
    pub snap_vec: Vector,
    /// Its operations at this partition.
    pub updates: Vec<Update>,
    /// The timestamp that this partition proposed.
    pub timestamp: Timestamp,
}

/// See [`Record::Decide`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The transaction's id.
    pub id: TransactionId,
    /// The time when it began, in microseconds since 1970.
    pub begun_us: u64,
    /// The outcome.
    pub outcome: Outcome,
}

/// All transactions of one origin up to a timestamp that were not yet here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The data center that committed them.
    pub origin: DcId,
    /// Up to here, inclusive.
    pub to: Timestamp,
    /// In the order of their timestamps.
    pub transactions: Vec<Arc<Transaction>>,
    /// Floors that the origin raised up to `to`.
    pub floors: Vec<Raised>,
}

/// A snapshot of the whole state, with the transactions above it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Install {
    /// The snapshot.
    pub at: Vector,
    /// The states of all items at the snapshot.
    pub states: Vec<(Key, Arc<State>)>,
    /// Transactions that are not in the snapshot, of every origin.
    pub suffix: Vec<Arc<Transaction>>,
    /// The vector of known transactions, with `suffix` included.
    pub known_vec: Vector,
    /// For each origin: transactions up to here can no longer be sent one by one.
    pub cut: Vector,
    /// Transactions of every origin that are in the snapshot but are kept for other data centers.
    pub forward: Vec<Arc<Transaction>>,
}

/// The remembered outcomes of transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// The outcomes that may still be asked for.
    pub ended: Vec<Decided>,
    /// For each session: it knows the outcomes of its transactions below this sequence, and the
    /// latest begin time of its transactions seen here, in microseconds since 1970.
    pub answered: Vec<(mingle_model::Origin, u64, u64)>,
}

/// An action that a replica requests from the shell; the shell performs them in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send this now.
    Send(Envelope),
    /// Append `records` to the log. Once these and all earlier records are on disk, send `then` and
    /// report [`Input::Persisted`](crate::replica::Input::Persisted) with this index.
    Persist(Persist),
    /// Notify the operator.
    Alarm(Alarm),
}

/// See [`Output::Persist`].
#[derive(Clone, Debug, PartialEq)]
pub struct Persist {
    /// The number of this request, counted from 1 since the start.
    pub index: u64,
    /// The records to write. The list may be empty, to send messages after all earlier writes are
    /// on disk.
    pub records: Vec<Record>,
    /// The messages to send after the write.
    pub then: Vec<Envelope>,
}

/// A condition that the operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// A timestamp too far in the future was refused: the clock of some machine is wrong.
    ClockAhead {
        /// The data center that sent it.
        dc: DcId,
        /// The timestamp.
        timestamp: Timestamp,
    },
    /// An impossible message: it comes from a replica with other settings, or it is corrupt.
    Malformed(&'static str),
    /// A data center lags so far behind that it needs a state transfer.
    Lagging(DcId),
    /// A transaction of a fenced data center was considered uniform but is above its cut: more data
    /// centers were lost than `f` allows.
    AboveCut {
        /// The data center.
        dc: DcId,
        /// The timestamp up to which it was considered uniform.
        found: Timestamp,
        /// The cut.
        cut: Timestamp,
    },
    /// This data center lags too far behind, and a state transfer of its partition begins or is
    /// complete.
    Transfer {
        /// The data center that sends the state.
        dc: DcId,
        /// True if it is complete.
        is_complete: bool,
    },
}
