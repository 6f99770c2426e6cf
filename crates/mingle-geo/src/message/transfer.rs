//! State transfer, to a replica that lags by more than is kept.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::floors::Raised;
use crate::key::Key;
use crate::timestamp::{DcId, Timestamp};
use crate::tx::Transaction;
use crate::types::State;
use crate::vector::Vector;

/// Replica to sibling: what you lack of this origin is no longer kept one by one; pull the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Behind {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// Who says so, and offers its state.
    pub dc: DcId,
    /// Whose transactions.
    pub origin: DcId,
    /// It keeps only those above.
    pub cut: Timestamp,
}

/// Replica to sibling: the next part of a state transfer, please.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferPull {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// Who asks.
    pub dc: DcId,
    /// The snapshot of the transfer under way, with the last key that came; none to begin one.
    pub under_way: Option<(Vector, Key)>,
    /// Its own folded snapshot, which that of the transfer must cover.
    pub folded: Vector,
}

/// Sibling to replica: part of a state transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferPart {
    /// The epoch of its vectors, see [`members`](crate::members).
    pub epoch: u32,
    /// Who sends it.
    pub dc: DcId,
    /// The snapshot at which the states are.
    pub at: Vector,
    /// The last key of the part before, none for the first.
    pub after: Option<Key>,
    /// States in the order of keys.
    pub states: Vec<(Key, Arc<State>)>,
    /// With the last part: the rest.
    pub end: Option<TransferEnd>,
}

/// The rest of a state transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferEnd {
    /// All transactions that the sender knows and that are not in the snapshot.
    pub suffix: Vec<Arc<Transaction>>,
    /// What the sender knows.
    pub known_vec: Vector,
    /// Its floors of operation ids.
    pub op_floors: Vec<(DcId, Raised)>,
}
