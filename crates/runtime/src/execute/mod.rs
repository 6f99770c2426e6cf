//! Transactions, phases, attempts, commits, and helping other transactions.
//!
//! - `transaction` runs the phases of a call in order, `phase` repeats one phase until it has committed,
//!   `attempt` runs the phase once, and `commit` commits it; `execution` is the state that they share;
//! - `preflight` asks the store for the facts that must be known before the phase runs, `judge` reads its answers, `drive` feeds the machine with
//!   answers, and `turns` lets other tasks run while it computes;
//! - `bookkeeping` decides which records travel with the writes; `deferred_witness` leaves one of them out;
//! - `prefetch` and `early_prefetch` read for the next phase before the first commit; `pinned_reads` stores
//!   answers that every process must share;
//! - `single_engine` runs all phases in one transaction of an engine, `host` marks those that run in the
//!   application's own, and `send_phase` sends one to a worker;
//! - `hold` takes from bounded counters ahead of the first commit, and gives back what was not needed;
//! - `whole` has `isolated` transactions wait for the whole of those that they follow;
//! - `helper` finishes transactions that others have begun, and `parked` sets aside those that cannot be
//!   finished; `lost_answer` asks for the outcome of a commit;
//! - `idempotency` answers calls that are made again.

pub(crate) mod answer;
pub(crate) mod attempt;
pub(crate) mod bookkeeping;
pub(crate) mod commit;
pub(crate) mod control;
mod deferred_witness;
pub(crate) mod drive;
pub(crate) mod early_prefetch;
pub(crate) mod execution;
pub(crate) mod helper;
pub(crate) mod hold;
pub(crate) mod host;
pub(crate) mod idempotency;
mod judge;
pub(crate) mod lent;
mod lost_answer;
mod parked;
pub(crate) mod phase;
pub(crate) mod pinned_reads;
pub(crate) mod prefetch;
pub(crate) mod preflight;
pub(crate) mod send_phase;
pub(crate) mod single_engine;
pub(crate) mod transaction;
pub(crate) mod turns;
mod whole;

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};

use crate::in_flight::InFlight;
use crate::stores::Stores;

/// Runs transactions: those of callers, and those that other processes have left.
pub(crate) struct Executor {
    pub(crate) stores: Arc<Stores>,
    pub(crate) in_flight: Arc<InFlight>,
    /// The number of pending outcome queries for transactions of the application.
    pub(crate) asking: AtomicUsize,
    pub(crate) me: Weak<Self>,
}

impl Executor {
    /// Creates an executor that begins transactions as this origin.
    pub(crate) fn new(in_flight: Arc<InFlight>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            stores: in_flight.stores.clone(),
            in_flight,
            asking: AtomicUsize::new(0),
            me: me.clone(),
        })
    }
}
