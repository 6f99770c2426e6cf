//! The messages that carry an attempt to a worker, and its outcome back.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_model::{Name, Principal, Stamp, Time, TransactionId, Value, WitnessRow};
use mingle_store::{Capabilities, Data, Read};
use serde::{Deserialize, Serialize};

use crate::api::error::Error;
use crate::protocol::call_key::CallKey;
use crate::protocol::intent::PinnedAnswers;
use crate::protocol::wait_set::{Awaited, WaitSet};

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
    pub(crate) wait_set: WaitSet,
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
    /// The id that the transaction has or, if it turns out to need one, gets.
    pub(crate) lent: TransactionId,
    /// The reads of this store before an endorsement, with their answers.
    pub(crate) endorsed: Vec<(Read, Data)>,
    pub(crate) is_helper: bool,
    pub(crate) chain: Vec<TransactionId>,
    /// The facts that earlier attempts have learned, up to `pinned` (see `Tries`).
    pub(crate) look: bool,
    pub(crate) rows: Vec<WitnessRow>,
    pub(crate) elsewhere: Option<Name>,
    pub(crate) pinned: Option<PinnedAnswers>,
    /// The program's stores, in its order; `None` where the sender has no such store.
    pub(crate) stores: Vec<Option<Known>>,
    /// A time that the sender knows to be later than all that it has seen, for stores whose writes bear timestamps.
    pub(crate) latest: u64,
    pub(crate) bounds: Bounds,
}

/// The sender's knowledge of a store.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) capabilities: Capabilities,
    /// The stamp that all its replicas have seen.
    pub(crate) everywhere: Option<Stamp>,
}

/// The sender's bounds of an attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bounds {
    pub(crate) within: Duration,
    pub(crate) steps: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) wait_set: u64,
    pub(crate) tracking: bool,
}

/// The outcome of an attempt.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Attempted {
    pub(crate) end: End,
    pub(crate) after: After,
    /// The counts by event, in the order of [`crate::observe::stats::Counted`].
    pub(crate) stats: Vec<u64>,
}

/// The ways in which an attempt can end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum End {
    Done,
    Over,
    StartOver,
    Again,
    Wait(Vec<(TransactionId, Awaited)>),
    /// The answers must first be pinned in the transaction's intent.
    Pin(PinnedAnswers),
    Failed(Error),
}

/// The changes of an attempt to its transaction.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct After {
    pub(crate) id: Option<TransactionId>,
    /// The origin has met its fence.
    pub(crate) is_fenced: bool,
    /// The lent id never commits.
    pub(crate) is_spent: bool,
    /// The number of tries.
    pub(crate) tried: u32,
    pub(crate) time: u64,
    pub(crate) has_written: bool,
    pub(crate) has_begun: bool,
    pub(crate) wait_set: WaitSet,
    /// The values that the phase has recorded, by queue.
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

/// The traces that a transaction leaves at its stores, by the stores' names.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Left {
    pub(crate) intent: Option<Name>,
    pub(crate) witnesses: Vec<Name>,
    pub(crate) maybe: Vec<Name>,
    pub(crate) rows: Vec<Name>,
    pub(crate) seen: BTreeMap<Name, Stamp>,
}
