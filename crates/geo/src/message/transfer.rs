//! Messages of state transfer, to a replica that lags further behind than the kept transactions
//! reach.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::floors::Raised;
use crate::key::Key;
use crate::timestamp::{DcId, Timestamp};
use crate::tx::Transaction;
use crate::types::State;
use crate::vector::Vector;

/// Replica to sibling: the missing transactions of this origin are no longer kept one by one; pull
/// the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Behind {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// The sending data center, which offers its state.
    pub dc: DcId,
    /// The origin of the transactions.
    pub origin: DcId,
    /// The sender keeps only transactions above this.
    pub cut: Timestamp,
}

/// Replica to sibling: a request for the next part of a state transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferPull {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// The asking data center.
    pub dc: DcId,
    /// The snapshot of the running transfer and the last received key; none to begin a transfer.
    pub under_way: Option<(Vector, Key)>,
    /// The asking replica's folded snapshot; the transfer's snapshot must cover it.
    pub folded: Vector,
}

/// Sibling to replica: part of a state transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferPart {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// The sending data center.
    pub dc: DcId,
    /// The snapshot of the states.
    pub at: Vector,
    /// The last key of the previous part; none for the first part.
    pub after: Option<Key>,
    /// States, in the order of their keys.
    pub states: Vec<(Key, Arc<State>)>,
    /// The remaining data, with the last part.
    pub end: Option<TransferEnd>,
}

/// The last data of a state transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferEnd {
    /// All transactions that the sender knows and that are not in the snapshot.
    pub suffix: Vec<Arc<Transaction>>,
    /// The vector of transactions that the sender knows.
    pub known_vec: Vector,
    /// The sender's floors of operation ids.
    pub op_floors: Vec<(DcId, Raised)>,
}
