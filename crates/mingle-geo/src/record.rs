//! What a replica keeps on disk: a log of typed records that a restart replays.

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
    /// The clock never gave, announced or met anything above this.
    ClockCeiling(Timestamp),
    /// Transactions that began up to then, in microseconds since 1970, are no longer accepted.
    AgeFloor(u64),
    /// What was announced.
    Vectors(Vectors),
    /// A transaction is prepared.
    Prepare(PreparedRecord),
    /// A prepared transaction is decided; or one that was never seen is refused.
    Decide(Decided),
    /// A transaction of one partition is committed.
    Commit(Arc<Transaction>),
    /// Transactions of another data center have come.
    Replicated(Interval),
    /// Strong transactions were delivered (3:4-8).
    Delivered(Interval),
    /// Floors of operation ids were raised, by these data centers.
    OpFloors(Vec<(DcId, Raised)>),
    /// A state transfer is complete; or the first of a log that was written anew.
    Install(Install),
    /// In a log that was written anew: how transactions ended.
    Remembered(Remembered),
    /// Of the log of strong transactions.
    Group(GroupRecord),
    /// An epoch begins.
    Members(Members),
    /// In a log that was written anew: of each data center, transactions up to here may have come
    /// without their outcomes. Without it none have.
    Blind(Vector),
}

/// See [`Record::Vectors`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vectors {
    /// What this replica has.
    pub known_vec: Vector,
    /// What its data center has.
    pub stable_vec: Vector,
    /// What is uniform.
    pub uniform_vec: Vector,
}

/// See [`Record::Prepare`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreparedRecord {
    /// Its id.
    pub id: TransactionId,
    /// When it began.
    pub begun_us: u64,
    /// All partitions that take part.
    pub participants: Vec<PartitionId>,
    /// Its snapshot.
    pub snap_vec: Vector,
    /// What it does here.
    pub updates: Vec<Update>,
    /// The timestamp that this partition proposed.
    pub timestamp: Timestamp,
}

/// See [`Record::Decide`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The transaction.
    pub id: TransactionId,
    /// When it began.
    pub begun_us: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// All transactions of an origin up to a timestamp that were not there before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Whose.
    pub origin: DcId,
    /// Up to here, inclusive.
    pub to: Timestamp,
    /// In the order of their timestamps.
    pub transactions: Vec<Arc<Transaction>>,
    /// Floors that the origin raised up to there.
    pub floors: Vec<Raised>,
}

/// A snapshot of everything, with what stands above it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Install {
    /// The snapshot.
    pub at: Vector,
    /// The states of all items at the snapshot.
    pub states: Vec<(Key, Arc<State>)>,
    /// Transactions that are not in the snapshot, of every origin.
    pub suffix: Vec<Arc<Transaction>>,
    /// What is known with them.
    pub known_vec: Vector,
    /// Of each origin, transactions up to here can no longer be sent one by one.
    pub cut: Vector,
    /// Transactions to be kept for other data centers, of every origin, although in the snapshot.
    pub forward: Vec<Arc<Transaction>>,
}

/// How transactions ended, as far as it is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// Those whose outcomes may be asked for.
    pub ended: Vec<Decided>,
    /// Sessions that know how their transactions below a sequence ended, and when the last that was
    /// met began.
    pub answered: Vec<(mingle_model::Origin, u64, u64)>,
}

/// What a replica wants done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send this now.
    Send(Envelope),
    /// Append `records` to the log; once they, and all of earlier ones, are on disk, send `then`
    /// and say [`Input::Persisted`](crate::replica::Input::Persisted) with this index.
    Persist(Persist),
    /// Tell whoever runs the system.
    Alarm(Alarm),
}

/// See [`Output::Persist`].
#[derive(Clone, Debug, PartialEq)]
pub struct Persist {
    /// Counts these, from 1, since the start.
    pub index: u64,
    /// What to write; may be empty, to send something after all that was written before.
    pub records: Vec<Record>,
    /// What to send then.
    pub then: Vec<Envelope>,
}

/// What whoever runs the system should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// A timestamp too far in the future was refused: somebody's clock is wrong.
    ClockAhead {
        /// Where it came from.
        dc: DcId,
        /// The timestamp.
        timestamp: Timestamp,
    },
    /// A message that cannot be: from a replica of other settings, or corrupt.
    Malformed(&'static str),
    /// A data center lags so far that it needs a state transfer.
    Lagging(DcId),
    /// Something of a fenced data center was taken for uniform that lies above its cut: more of them
    /// were lost than may be.
    AboveCut {
        /// The data center.
        dc: DcId,
        /// How far it was taken to be uniform.
        found: Timestamp,
        /// The cut.
        cut: Timestamp,
    },
    /// This data center lags so far, and a state transfer of its partition begins or is complete.
    Transfer {
        /// From there.
        dc: DcId,
        /// Whether it is complete.
        is_complete: bool,
    },
}
