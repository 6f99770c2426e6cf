//! An attempt on its way to a worker, and what came of it on its way back.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_model::{Name, Principal, Stamp, Time, TransactionId, Value, WitnessRow};
use mingle_store::{Capabilities, Data, Read};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::intent::Fixed;
use crate::keyed::CallKey;
use crate::worklist::{Awaited, Worklist};

/// All that an attempt at a phase needs to run somewhere else.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) store: Name,
    pub(crate) transaction: Name,
    /// The index of the phase.
    pub(crate) phase: u32,
    pub(crate) arguments: Vec<Value>,
    pub(crate) now: Time,
    pub(crate) seed: u128,
    pub(crate) time: u64,
    /// By queue.
    pub(crate) recorded: Vec<Vec<Value>>,
    pub(crate) result: Option<Value>,
    pub(crate) worklist: Worklist,
    pub(crate) replica: Option<Name>,
    pub(crate) home: Option<Name>,
    /// The transaction's id, the phase that wrote first, and the store of its intent.
    pub(crate) begun: Option<(TransactionId, u32, Name)>,
    pub(crate) has_written: bool,
    pub(crate) key: Option<CallKey>,
    pub(crate) principal: Option<Principal>,
    pub(crate) digest: [u8; 32],
    /// The transaction's id, if it has one.
    pub(crate) id: Option<TransactionId>,
    /// That id, or the one that it has if it turns out to need one.
    pub(crate) lent: TransactionId,
    /// What was read of this store before an endorsement.
    pub(crate) endorsed: Vec<(Read, Data)>,
    pub(crate) is_helper: bool,
    pub(crate) chain: Vec<TransactionId>,
    /// What earlier attempts have learned.
    pub(crate) look: bool,
    pub(crate) rows: Vec<WitnessRow>,
    pub(crate) elsewhere: Option<Name>,
    pub(crate) fixed: Option<Fixed>,
    /// The program's stores, in its order; none where the sender has no such store.
    pub(crate) stores: Vec<Option<Known>>,
    /// What the sender knows to be later than all that it has seen, where writes bear timestamps.
    pub(crate) latest: u64,
    pub(crate) bounds: Bounds,
}

/// What the sender knows of a store.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) capabilities: Capabilities,
    /// What all its replicas have seen.
    pub(crate) everywhere: Option<Stamp>,
}

/// What the sender bounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bounds {
    pub(crate) within: Duration,
    pub(crate) steps: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) worklist: u64,
    pub(crate) tracking: bool,
}

/// What came of an attempt.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Attempted {
    pub(crate) end: End,
    pub(crate) after: After,
    /// By [`crate::stats::Counted`].
    pub(crate) stats: Vec<u64>,
}

/// How an attempt ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum End {
    Done,
    Over,
    StartOver,
    Again,
    Wait(Vec<(TransactionId, Awaited)>),
    /// The answers are to be fixed first, in the transaction's intent.
    Fix(Fixed),
    Failed(Error),
}

/// What an attempt has changed of its transaction.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct After {
    pub(crate) id: Option<TransactionId>,
    /// The origin met its fence.
    pub(crate) is_fenced: bool,
    /// The id that was lent never commits.
    pub(crate) is_spent: bool,
    /// How often it was tried.
    pub(crate) tried: u32,
    pub(crate) time: u64,
    pub(crate) has_written: bool,
    pub(crate) has_begun: bool,
    pub(crate) worklist: Worklist,
    /// What the phase has recorded, by queue.
    pub(crate) recorded: Vec<Vec<Value>>,
    pub(crate) result: Option<Value>,
    pub(crate) endorsed: Option<Vec<(Read, Data)>>,
    pub(crate) satisfied: Vec<(Name, TransactionId, Awaited)>,
    pub(crate) left: Left,
    pub(crate) look: bool,
    pub(crate) rows: Vec<WitnessRow>,
    pub(crate) recorded_count: u64,
    pub(crate) was_done: bool,
}

/// What a transaction leaves at its stores, by their names.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Left {
    pub(crate) intent: Option<Name>,
    pub(crate) witnesses: Vec<Name>,
    pub(crate) maybe: Vec<Name>,
    pub(crate) rows: Vec<Name>,
    pub(crate) seen: BTreeMap<Name, Stamp>,
}
