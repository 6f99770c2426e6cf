//! The runtime's figures for the facade `metrics`: the recorder that the application installs
//! (Prometheus, StatsD, ...) gets them; without a recorder nothing is kept.
//!
//! Labels are bounded: transactions and stores are those of the program, outcomes and events are
//! listed here. Times are in seconds.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, Level, Metadata, SharedString, with_recorder};
use metrics::{Label, histogram};
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge};
use mingle_lang::Program;
use mingle_model::Name;
use mingle_store::StoreError;
use rustc_hash::FxHashMap as HashMap;

use crate::api::call::{CallReport, PhaseReport};
use crate::api::error::Error;
use crate::observe::stats::Counted;
use crate::protocol::role::Role;

/// Calls that have ended, by `transaction` and `outcome`: `ok`, or an [`outcome`].
pub const CALLS: &str = "mingle_calls_total";
/// The duration of calls, by `transaction`: all stores, retries and waits included.
pub const CALL_SECONDS: &str = "mingle_call_seconds";
/// Calls that run, by `transaction`.
pub const CALLS_RUNNING: &str = "mingle_calls_running";
/// Phases that have ended well, by `store`.
pub const PHASES: &str = "mingle_phases_total";
/// The duration of phases, by `store`: all attempts together.
pub const PHASE_SECONDS: &str = "mingle_phase_seconds";
/// Round trips of the attempt that ended well, by `store`.
pub const PHASE_ROUND_TRIPS: &str = "mingle_phase_round_trips";
/// Attempts that were in vain, by `store` and `reason`: a [`reason`].
pub const PHASE_RETRIES: &str = "mingle_phase_retries_total";
/// Attempts that had to wait for another transaction, by `store`.
pub const PHASE_WAITS: &str = "mingle_phase_waits_total";
/// The time for which phases that had to wait for others did so, by `store`.
pub const PHASE_WAITED_SECONDS: &str = "mingle_phase_waited_seconds";
/// Commits that wrote, by `store` and `role`: `alone`, `first`, `later`, `reader`.
pub const COMMITS: &str = "mingle_commits_total";
/// The events counted in [`crate::observe::stats`], by `event`: help and clean-up among them.
pub const EVENTS: &str = "mingle_runtime_events_total";
/// Transactions of this process that others could have to finish, or wait for, until they are
/// cleaned up.
pub const OPEN: &str = "mingle_open_transactions";
/// Failures of background tasks, which are tried again, by `task`.
pub const BEHIND_FAILED: &str = "mingle_background_failures_total";
/// 1 while calls that visit a store or replica are refused because it is away, else 0, by `store` and `replica`.
pub const AWAY: &str = "mingle_store_away";
/// Calls that were refused since a store that they visit is away, by `store`.
pub const REFUSED_AWAY: &str = "mingle_calls_refused_away_total";
/// Requests to stores that failed, by `store`, `replica` and `reason`: a [`reason`].
pub const STORE_ERRORS: &str = "mingle_store_errors_total";
/// Answers to reads with a policy, by `store` and `level`: the level of the answer, or `late`.
pub const ANSWERS: &str = "mingle_answers_total";
/// The number of transactions for which a session waits after a call.
pub const SESSION_WAITS: &str = "mingle_session_waits";

/// Describes the figures and their units to the recorder. Each runtime does so when it is made; an
/// application that installs its recorder later calls this function afterwards.
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
    let behind = "Clean-up, sweeps and signs of life that failed, and are tried again";
    describe_counter!(BEHIND_FAILED, Unit::Count, behind);
    describe_gauge!(AWAY, Unit::Count, "1 while a store or replica does not answer, else 0");
    describe_counter!(REFUSED_AWAY, Unit::Count, "Calls refused since a store is away");
    describe_counter!(STORE_ERRORS, Unit::Count, "Requests to stores that failed, by reason");
    let answers = "Answers to reads with a policy, by store and level; `late` if none came in time";
    describe_counter!(ANSWERS, Unit::Count, answers);
    let session = "For how many transactions a session waits after a call";
    describe_histogram!(SESSION_WAITS, Unit::Count, session);
}

/// Counts the answer to a read with a policy.
pub(crate) fn answered(store: &Name, level: &Name) {
    counter!(ANSWERS, "store" => store.to_string(), "level" => level.to_string()).increment(1);
}

/// The kind of an error, as a label: unlike [`Error::code`] it is never a code of the program.
pub fn outcome(error: &Error) -> &'static str {
    match error {
        Error::Require { .. } => "require",
        Error::Exists(_) => "exists",
        Error::Taken(_) => "taken",
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
        Error::Forbidden { .. } => "forbidden",
        Error::Incomplete { .. } => "incomplete",
        Error::Cancelled => "cancelled",
        Error::Deadline { .. } => "deadline",
    }
}

/// The reason why an attempt was in vain, as a label.
pub fn reason(error: &StoreError) -> &'static str {
    match error {
        StoreError::Conflict => "conflict",
        StoreError::Unavailable { .. } => "unavailable",
        StoreError::Unknown { .. } => "unknown",
        StoreError::Behind { .. } => "behind",
        StoreError::Witnessed { .. } => "witnessed",
        StoreError::Refused { .. } => "refused",
        StoreError::Violated { .. } => "violated",
    }
}

/// The source location that recorders get with the figures.
static METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

fn counted_by(key: &Key) -> Counter {
    with_recorder(|recorder| recorder.register_counter(key, &METADATA))
}

fn gauged_by(key: &Key) -> Gauge {
    with_recorder(|recorder| recorder.register_gauge(key, &METADATA))
}

fn recorded_by(key: &Key) -> Histogram {
    with_recorder(|recorder| recorder.register_histogram(key, &METADATA))
}

fn key(figure: &'static str, labels: &[(&'static str, SharedString)]) -> Key {
    let labels = labels.iter().map(|(name, value)| Label::new(*name, value.clone()));
    Key::from_parts(figure, labels.collect::<Vec<_>>())
}

/// Prepared keys of the figures, with their labels: making a key takes longer than counting.
pub(crate) struct Figures {
    transactions: HashMap<Name, Arc<OfTransaction>>,
    stores: HashMap<Name, Arc<OfStore>>,
}

/// The keys of one transaction.
pub(crate) struct OfTransaction {
    name: SharedString,
    ok: Key,
    seconds: Key,
    running: Key,
}

/// The keys of one store.
pub(crate) struct OfStore {
    phases: Key,
    seconds: Key,
    round_trips: Key,
    waited: Key,
    /// By role.
    commits: [Key; Role::ALL.len()],
}

impl Figures {
    /// Prepares the keys for all transactions and stores of a program.
    pub(crate) fn of(program: &Program) -> Self {
        let transactions = program.plans.iter().map(|plan| &plan.name);
        let stores = program.checked.stores.iter().map(|store| &store.name);
        Self {
            transactions: transactions
                .map(|name| (name.clone(), Arc::new(OfTransaction::called(name))))
                .collect(),
            stores: stores
                .map(|name| (name.clone(), Arc::new(OfStore::called(Some(name)))))
                .collect(),
        }
    }

    /// The keys of a transaction, which may belong to an earlier program.
    pub(crate) fn transaction(&self, name: &Name) -> Arc<OfTransaction> {
        let known = self.transactions.get(name).cloned();
        known.unwrap_or_else(|| Arc::new(OfTransaction::called(name)))
    }

    fn store(&self, name: Option<&Name>) -> Arc<OfStore> {
        let known = name.and_then(|name| self.stores.get(name)).cloned();
        known.unwrap_or_else(|| Arc::new(OfStore::called(name)))
    }

    /// Counts a phase that has ended well.
    pub(crate) fn ran(&self, report: &PhaseReport) {
        let keys = self.store(report.store.as_ref());
        counted_by(&keys.phases).increment(1);
        recorded_by(&keys.seconds).record(report.time);
        recorded_by(&keys.round_trips).record(report.round_trips);
        if !report.waited.is_zero() {
            recorded_by(&keys.waited).record(report.waited);
        }
    }

    /// Counts a commit that writes and has taken effect.
    pub(crate) fn committed(&self, store: &Name, role: Role) {
        counted_by(&self.store(Some(store)).commits[role as usize]).increment(1);
    }
}

impl OfTransaction {
    fn called(name: &Name) -> Self {
        let (name, transaction) = (label(name), "transaction");
        Self {
            ok: key(CALLS, &[(transaction, name.clone()), ("outcome", "ok".into())]),
            seconds: key(CALL_SECONDS, &[(transaction, name.clone())]),
            running: key(CALLS_RUNNING, &[(transaction, name.clone())]),
            name,
        }
    }

    /// Counts a call as running until the returned guard is dropped.
    pub(crate) fn run(self: Arc<Self>) -> Running {
        gauged_by(&self.running).increment(1);
        Running(self)
    }

    /// Counts a call that has ended.
    fn called_with(&self, result: &Result<CallReport, Error>, took: Duration) {
        match result {
            Ok(_) => counted_by(&self.ok).increment(1),
            Err(error) => {
                let (name, outcome) = (self.name.clone(), outcome(error));
                counter!(CALLS, "transaction" => name, "outcome" => outcome).increment(1);
            }
        }
        recorded_by(&self.seconds).record(took);
    }
}

impl OfStore {
    /// The keys of a store; without a store, those of phases that visit none.
    fn called(store: Option<&Name>) -> Self {
        let store = store_label(store);
        let of_store = |figure| key(figure, &[("store", store.clone())]);
        Self {
            phases: of_store(PHASES),
            seconds: of_store(PHASE_SECONDS),
            round_trips: of_store(PHASE_ROUND_TRIPS),
            waited: of_store(PHASE_WAITED_SECONDS),
            commits: Role::ALL.map(|role| {
                key(COMMITS, &[("store", store.clone()), ("role", role.name().into())])
            }),
        }
    }
}

/// A guard for a running call.
pub(crate) struct Running(Arc<OfTransaction>);

impl Running {
    /// Ends the call.
    pub(crate) fn end(self, result: &Result<CallReport, Error>, took: Duration) {
        let transaction = self.0.clone();
        drop(self);
        transaction.called_with(result, took);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        gauged_by(&self.0.running).decrement(1);
    }
}

fn label(name: &Name) -> SharedString {
    SharedString::from_shared(name.clone())
}

/// The store of a phase; `none` for one that visits no store.
fn store_label(store: Option<&Name>) -> SharedString {
    store.map_or(SharedString::const_str("none"), label)
}

/// Counts an attempt that was in vain.
pub(crate) fn in_vain(store: Option<&Name>, error: StoreError) -> StoreError {
    let store = store_label(store);
    counter!(PHASE_RETRIES, "store" => store, "reason" => reason(&error)).increment(1);
    error
}

/// Notes that a store or a replica is away, or has returned.
pub(crate) fn is_away(store: &Name, replica: &str, is_away: bool) {
    let labels = [("store", label(store)), ("replica", SharedString::from(replica.to_owned()))];
    gauge!(AWAY, &labels).set(f64::from(u8::from(is_away)));
}

/// Counts a failed request to a store.
pub(crate) fn store_failed(store: &Name, replica: &str, reason: &'static str) {
    let replica = SharedString::from(replica.to_owned());
    counter!(STORE_ERRORS, "store" => label(store), "replica" => replica, "reason" => reason)
        .increment(1);
}

/// Counts a failure of a background task.
pub(crate) fn behind_failed(what: &'static str) {
    counter!(BEHIND_FAILED, "task" => what).increment(1);
}

/// Counts a call that was refused because a store is away.
pub(crate) fn refused_away(store: &Name) {
    counter!(REFUSED_AWAY, "store" => label(store)).increment(1);
}

/// Counts an attempt that has to wait for other transactions.
pub(crate) fn waits(store: Option<&Name>) {
    counter!(PHASE_WAITS, "store" => store_label(store)).increment(1);
}

/// Counts an event of [`crate::observe::stats`].
pub(crate) fn counted(counted: Counted, times: u64) {
    static KEYS: LazyLock<[Key; Counted::ALL.len()]> = LazyLock::new(|| {
        Counted::ALL.map(|counted| key(EVENTS, &[("event", counted.name().into())]))
    });
    counted_by(&KEYS[counted as usize]).increment(times);
}

/// Records how many transactions of this process are not cleaned up.
pub(crate) fn open(count: usize) {
    gauge!(OPEN).set(count as f64);
}

/// Records for how many transactions a session waits.
pub(crate) fn session_waits(count: usize) {
    histogram!(SESSION_WAITS).record(count as f64);
}
