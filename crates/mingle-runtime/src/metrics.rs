//! What a runtime tells of itself through the facade `metrics`: whichever recorder the application
//! installs (Prometheus, StatsD, ...) has it, and without one nothing is kept.
//!
//! Labels are bounded: transactions and stores are those of the program, outcomes and events are
//! listed here. Times are in seconds.

use std::time::Duration;

use metrics::{SharedString, histogram};
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge};
use mingle_model::Name;
use mingle_store::StoreError;

use crate::call::{CallReport, PhaseReport};
use crate::error::Error;
use crate::leave::Role;
use crate::stats::Counted;

/// Calls that have ended, by `transaction` and `outcome`: `ok`, or an [`outcome`].
pub const CALLS: &str = "mingle_calls_total";
/// How long calls took, by `transaction`: all stores, retries and waits included.
pub const CALL_SECONDS: &str = "mingle_call_seconds";
/// Calls that run, by `transaction`.
pub const CALLS_RUNNING: &str = "mingle_calls_running";
/// Phases that have ended well, by `store`.
pub const PHASES: &str = "mingle_phases_total";
/// How long phases took, by `store`: all attempts together.
pub const PHASE_SECONDS: &str = "mingle_phase_seconds";
/// Round trips of the attempt that ended well, by `store`.
pub const PHASE_ROUND_TRIPS: &str = "mingle_phase_round_trips";
/// Attempts that were in vain, by `store` and `reason`: a [`reason`].
pub const PHASE_RETRIES: &str = "mingle_phase_retries_total";
/// Attempts that had to wait for another transaction, by `store`.
pub const PHASE_WAITS: &str = "mingle_phase_waits_total";
/// How long phases that had to wait for others did so, by `store`.
pub const PHASE_WAITED_SECONDS: &str = "mingle_phase_waited_seconds";
/// Commits that wrote, by `store` and `role`: `alone`, `first`, `later`, `reader`.
pub const COMMITS: &str = "mingle_commits_total";
/// What is counted in [`crate::stats`], by `event`: help and clean-up among it.
pub const EVENTS: &str = "mingle_runtime_events_total";
/// Transactions of this process that others could have to finish, or wait for, until they are
/// cleaned up.
pub const OPEN: &str = "mingle_open_transactions";
/// For how many transactions a session waits after a call.
pub const SESSION_WAITS: &str = "mingle_session_waits";

/// Tells the recorder what the figures are, and in which units. Each runtime does so when it is
/// made; whoever installs a recorder later does it then.
///
/// # Examples
///
/// ```
/// // After the recorder is installed.
/// mingle_runtime::metrics::describe();
/// ```
pub fn describe() {
    describe_counter!(CALLS, Unit::Count, "Calls that have ended, by transaction and outcome");
    describe_histogram!(CALL_SECONDS, Unit::Seconds, "How long calls took, retries included");
    describe_gauge!(CALLS_RUNNING, Unit::Count, "Calls that run");
    describe_counter!(PHASES, Unit::Count, "Phases that have ended well");
    describe_histogram!(PHASE_SECONDS, Unit::Seconds, "How long phases took, all attempts");
    let trips = "Round trips of the attempts that ended well";
    describe_histogram!(PHASE_ROUND_TRIPS, Unit::Count, trips);
    describe_counter!(PHASE_RETRIES, Unit::Count, "Attempts in vain, by store and reason");
    let waits = "Attempts that had to wait for another transaction";
    describe_counter!(PHASE_WAITS, Unit::Count, waits);
    let waited = "How long phases that had to wait for other transactions did so";
    describe_histogram!(PHASE_WAITED_SECONDS, Unit::Seconds, waited);
    describe_counter!(COMMITS, Unit::Count, "Commits that wrote, by store and role");
    describe_counter!(EVENTS, Unit::Count, "What happened in the runtime, by event");
    describe_gauge!(OPEN, Unit::Count, "Transactions that are not finished and cleaned up");
    let session = "For how many transactions a session waits after a call";
    describe_histogram!(SESSION_WAITS, Unit::Count, session);
}

/// The kind of an error, as a label: unlike [`Error::code`] it is none of the program's own.
pub fn outcome(error: &Error) -> &'static str {
    match error {
        Error::Require { .. } => "require",
        Error::Exists(_) => "exists",
        Error::Misuse(_) => "misuse",
        Error::Unsupported(_) => "unsupported",
        Error::Limit(_) => "limit",
        Error::Conflict { .. } => "conflict",
        Error::Store(_) => "store",
        Error::Unknown { .. } => "unknown",
        Error::Waiting { .. } => "waiting",
        Error::Parked { .. } => "parked",
        Error::ResultGone { .. } => "result_gone",
        Error::KeyReused => "key_reused",
        Error::Incomplete { .. } => "incomplete",
        Error::Cancelled => "cancelled",
    }
}

/// Why an attempt was in vain, as a label.
pub fn reason(error: &StoreError) -> &'static str {
    match error {
        StoreError::Conflict => "conflict",
        StoreError::Unavailable { .. } => "unavailable",
        StoreError::Unknown { .. } => "unknown",
        StoreError::Behind { .. } => "behind",
        StoreError::Witnessed { .. } => "witnessed",
        StoreError::Refused { .. } => "refused",
    }
}

/// A call that runs, until it is dropped.
pub(crate) struct Running(SharedString);

impl Running {
    pub(crate) fn of(transaction: &Name) -> Self {
        let label = label(transaction);
        gauge!(CALLS_RUNNING, "transaction" => label.clone()).increment(1);
        Self(label)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        gauge!(CALLS_RUNNING, "transaction" => self.0.clone()).decrement(1);
    }
}

fn label(name: &Name) -> SharedString {
    SharedString::from_shared(name.clone())
}

/// The store of a phase; `none` for one that visits no store.
fn store_label(store: Option<&Name>) -> SharedString {
    store.map_or(SharedString::const_str("none"), label)
}

/// A call has ended.
pub(crate) fn called(transaction: &Name, result: &Result<CallReport, Error>, took: Duration) {
    let transaction = label(transaction);
    let outcome = result.as_ref().err().map_or("ok", outcome);
    counter!(CALLS, "transaction" => transaction.clone(), "outcome" => outcome).increment(1);
    histogram!(CALL_SECONDS, "transaction" => transaction).record(took);
}

/// A phase has ended well.
pub(crate) fn ran(report: &PhaseReport) {
    let store = store_label(report.store.as_ref());
    counter!(PHASES, "store" => store.clone()).increment(1);
    histogram!(PHASE_SECONDS, "store" => store.clone()).record(report.time);
    histogram!(PHASE_ROUND_TRIPS, "store" => store.clone()).record(report.round_trips);
    if !report.waited.is_zero() {
        histogram!(PHASE_WAITED_SECONDS, "store" => store).record(report.waited);
    }
}

/// An attempt was in vain.
pub(crate) fn in_vain(store: Option<&Name>, error: StoreError) -> StoreError {
    let store = store_label(store);
    counter!(PHASE_RETRIES, "store" => store, "reason" => reason(&error)).increment(1);
    error
}

/// An attempt has to wait for others.
pub(crate) fn waits(store: Option<&Name>) {
    counter!(PHASE_WAITS, "store" => store_label(store)).increment(1);
}

/// A commit that writes has taken effect.
pub(crate) fn committed(store: &Name, role: Role) {
    let role = match role {
        Role::Plain => "alone",
        Role::Reader => "reader",
        Role::First => "first",
        Role::Later => "later",
    };
    counter!(COMMITS, "store" => label(store), "role" => role).increment(1);
}

/// Something that is counted has happened.
pub(crate) fn counted(counted: Counted, times: u64) {
    counter!(EVENTS, "event" => counted.name()).increment(times);
}

/// So many transactions of this process are not cleaned up.
pub(crate) fn open(count: usize) {
    gauge!(OPEN).set(count as f64);
}

/// A session waits for so many transactions.
pub(crate) fn session_waits(count: usize) {
    histogram!(SESSION_WAITS).record(count as f64);
}
