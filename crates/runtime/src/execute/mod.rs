//! Transactions, phases, attempts, commits, and helping other transactions.

pub(crate) mod attempt;
pub(crate) mod bookkeeping;
pub(crate) mod commit;
mod deferred_witness;
pub(crate) mod drive;
pub(crate) mod early_prefetch;
pub(crate) mod helper;
pub(crate) mod host;
pub(crate) mod idempotency;
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
