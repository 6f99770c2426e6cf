//! Figures that are read from the database on request: the state of its stores, and the clean-up
//! work that is left.

use std::sync::atomic::{AtomicU64, Ordering};

use mingle::Database;
use mingle_lang::hir::StoreId;
use mingle_runtime::stats::Counted;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

type One = [(&'static str, String); 1];
type Two = [(&'static str, String); 2];
type Three = [(&'static str, String); 3];
type Seconds = Gauge<f64, AtomicU64>;

/// The figures that are read from the database.
#[derive(Default)]
pub(crate) struct Observed {
    open: Gauge,
    parked: Gauge,
    oldest: Seconds,
    to_clean: Family<One, Gauge>,
    lag: Family<One, Seconds>,
    rows: Family<One, Gauge>,
    passed_on: Counter,
    away: Family<Two, Gauge>,
    answers: Family<Two, Counter>,
    answer_seconds: Family<Two, Counter<f64, AtomicU64>>,
    errors: Family<Three, Counter>,
    background: Family<One, Counter>,
    refused: Family<One, Counter>,
}

impl Observed {
    /// Registers the figures.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let all = Self::default();
        let open = "Transactions of this process that are not finished and cleaned up";
        registry.register("open_transactions", open, all.open.clone());
        let parked = "Transactions of this process that a store has refused to finish";
        registry.register("parked_transactions", parked, all.parked.clone());
        let oldest = "How long ago the oldest open transaction began";
        registry.register_with_unit("oldest_open", oldest, Unit::Seconds, all.oldest.clone());
        let to_clean = "Transactions that are over and have something to be removed, by store";
        registry.register("cleanup_backlog", to_clean, all.to_clean.clone());
        let lag = "How long ago the oldest of the clean-up backlog began, by store";
        registry.register_with_unit("cleanup_lag", lag, Unit::Seconds, all.lag.clone());
        let rows = "Witness rows of this process's transactions that are not removed, by store";
        registry.register("witness_rows", rows, all.rows.clone());
        let passed = "Transactions that others passed on with their rows, since they did not wait";
        registry.register("witness_rows_passed_on", passed, all.passed_on.clone());
        let away = "1 while calls that visit the store or replica are refused, else 0";
        registry.register("store_away", away, all.away.clone());
        let answers = "Reads of the runtime's own records that were answered, one round trip each";
        registry.register("store_answers", answers, all.answers.clone());
        let took = "How long these reads took together";
        registry.register_with_unit(
            "store_answer",
            took,
            Unit::Seconds,
            all.answer_seconds.clone(),
        );
        let errors = "Requests to stores that failed, by store, replica and reason";
        registry.register("store_errors", errors, all.errors.clone());
        let background = "Failures of tasks in the background, which are tried again";
        registry.register("background_failures", background, all.background.clone());
        let refused = "Calls that were refused since a store is away, by store";
        registry.register("calls_refused_away", refused, all.refused.clone());
        all
    }

    /// Reads all figures from the database.
    pub(crate) fn look_at(&self, database: &Database) {
        let backlog = database.backlog();
        self.open.set(backlog.open as i64);
        self.parked.set(backlog.parked as i64);
        self.oldest.set(backlog.oldest.as_secs_f64());
        for (index, store) in database.program().checked.stores.iter().enumerate() {
            let (name, label) = (&store.name, [("store", store.name.to_string())]);
            let count = backlog.to_clean.get(name).copied().unwrap_or(0);
            self.to_clean.get_or_create_owned(&label).set(count as i64);
            let lag = backlog.lag.get(name).copied().unwrap_or_default();
            self.lag.get_or_create_owned(&label).set(lag.as_secs_f64());
            let rows = backlog.rows.get(name).copied().unwrap_or(0);
            self.rows.get_or_create_owned(&label).set(rows as i64);
            let store = database.runtime().store(StoreId(index as u32));
            let replicas = &store.capabilities().replicas;
            for replica in
                replicas.iter().map(|name| &**name).chain(replicas.is_empty().then_some(""))
            {
                self.away.get_or_create_owned(&of(name, replica)).set(0);
            }
        }
        for away in database.away() {
            let replica = away.replica.as_deref().unwrap_or_default();
            self.away.get_or_create_owned(&of(&away.store, replica)).set(1);
        }
        let runtime = database.runtime();
        set(&self.passed_on, runtime.stats().get(Counted::PassedOn));
        for answered in runtime.answered() {
            let replica = answered.replica.as_deref().unwrap_or_default();
            let place = of(&answered.store, replica);
            set(&self.answers.get_or_create_owned(&place), answered.answers);
            let seconds = self.answer_seconds.get_or_create_owned(&place);
            seconds.inner().store(answered.took.as_secs_f64().to_bits(), Ordering::Relaxed);
            for (reason, count) in answered.errors {
                let [store, replica] = place.clone();
                let labels = [store, replica, ("reason", reason.to_owned())];
                set(&self.errors.get_or_create_owned(&labels), count);
            }
        }
        for (task, count) in runtime.background_failures() {
            set(&self.background.get_or_create_owned(&[("task", task.to_owned())]), count);
        }
        for (store, count) in runtime.refused_away() {
            set(&self.refused.get_or_create_owned(&[("store", store.to_string())]), count);
        }
    }
}

fn of(store: &str, replica: &str) -> Two {
    [("store", store.to_owned()), ("replica", replica.to_owned())]
}

fn set(counter: &Counter, count: u64) {
    counter.inner().store(count, Ordering::Relaxed);
}
