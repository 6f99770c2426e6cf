//! Figures for Prometheus, in the OpenMetrics text format.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use mingle::{Database, DatacenterState, Event, Watcher};
use mingle_model::Name;
use mingle_runtime::stats::Counted;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::observed::Observed;
use crate::overload::Admission;

type One = [(&'static str, String); 1];
type Two = [(&'static str, String); 2];
type Three = [(&'static str, String); 3];
type Seconds = Counter<f64, AtomicU64>;

/// The first bound of the histograms, in seconds; each further bound is twice the one before.
const FIRST_BUCKET: f64 = 0.000_1;
const BUCKETS: u16 = 18;

fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(FIRST_BUCKET, 2.0, BUCKETS))
}

/// The counters of one store.
#[derive(Clone)]
struct OfStore {
    phases: Counter,
    seconds: Histogram,
    retries: Counter,
    round_trips: Counter,
    waits: Counter,
    waited: Seconds,
}

/// The figures of a server.
pub struct Metrics {
    registry: Registry,
    calls: Family<Two, Counter>,
    /// The histograms by transaction; each exists before the transaction is first called.
    seconds: HashMap<Name, Histogram>,
    stores: Arc<HashMap<Name, OfStore>>,
    runtime: Family<One, Counter>,
    datacenters: Family<Three, Gauge>,
    admission: OfAdmission,
    answers: Family<One, Counter>,
    /// The counters by status, so that counting an answer does not allocate a label.
    by_status: RwLock<HashMap<u16, Counter>>,
    observed: Observed,
    /// The number of open connections.
    pub(crate) connections: Gauge,
}

impl Metrics {
    /// Creates the figures for these stores and transactions, all zero.
    pub fn new<'a>(
        stores: impl Iterator<Item = &'a Name>,
        transactions: impl Iterator<Item = &'a Name>,
    ) -> Self {
        let mut registry = Registry::with_prefix("mingle");
        let seconds = Family::<One, Histogram>::new_with_constructor(histogram);
        let of = |name: &Name| [("transaction", name.to_string())];
        let by_name =
            transactions.map(|name| (name.clone(), seconds.get_or_create_owned(&of(name))));
        let by_name = by_name.collect();
        let metrics = Self {
            calls: Family::default(),
            seconds: by_name,
            stores: Arc::new(register_stores(&mut registry, stores)),
            runtime: Family::default(),
            datacenters: Family::default(),
            admission: OfAdmission::register(&mut registry),
            answers: Family::default(),
            by_status: RwLock::default(),
            observed: Observed::register(&mut registry),
            connections: Gauge::default(),
            registry: Registry::default(),
        };
        let calls = "Calls by transaction and outcome: ok, or the code of the problem";
        registry.register("calls", calls, metrics.calls.clone());
        let latency = "How long calls took, all stores and retries included";
        registry.register_with_unit("call", latency, Unit::Seconds, seconds);
        let events = "What happened in the runtime";
        registry.register("runtime_events", events, metrics.runtime.clone());
        let states = "How data centers stand: 1 for what each of them is";
        registry.register("datacenter_state", states, metrics.datacenters.clone());
        registry.register("http_answers", "Answers by status", metrics.answers.clone());
        let open = "Connections that are open";
        registry.register("http_connections", open, metrics.connections.clone());
        Self { registry, ..metrics }
    }

    /// Counts a call that has ended.
    pub(crate) fn called(&self, transaction: &str, outcome: &str, took: Duration) {
        let labels = [("transaction", transaction.to_owned()), ("outcome", outcome.to_owned())];
        self.calls.get_or_create(&labels).inc();
        if let Some(seconds) = self.seconds.get(transaction) {
            seconds.observe(took.as_secs_f64());
        }
    }

    /// Counts an answered request.
    pub(crate) fn answered(&self, status: u16) {
        let known = self.by_status.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = known.get(&status) {
            counter.inc();
            return;
        }
        drop(known);
        let counter = self.answers.get_or_create_owned(&[("status", status.to_string())]);
        counter.inc();
        let mut known = self.by_status.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(status, counter);
    }

    /// Returns a watcher that counts the events of a call and passes them on to `next`.
    pub(crate) fn watcher(&self, next: Option<Watcher>) -> Watcher {
        let stores = self.stores.clone();
        // Only the first event of a phase names the store; later ones name the phase by its index.
        let current: RwLock<Option<OfStore>> = RwLock::new(None);
        Watcher::new(move |event| {
            if let Event::Began { store, .. } = &event {
                let found = store.as_ref().and_then(|store| stores.get(store)).cloned();
                *current.write().unwrap_or_else(PoisonError::into_inner) = found;
            } else if let Some(store) = &*current.read().unwrap_or_else(PoisonError::into_inner) {
                store.count(&event);
            }
            if let Some(next) = &next {
                next.tell(event);
            }
        })
    }

    /// Returns all figures as text.
    pub(crate) fn text(&self, database: &Database, admission: Option<&Admission>) -> String {
        self.look_at_datacenters(database);
        self.observed.look_at(database);
        if let Some(admission) = admission {
            self.admission.look_at(admission);
        }
        let stats = database.runtime().stats();
        for counted in Counted::ALL {
            let name = snake_case(&format!("{counted:?}"));
            let counter = self.runtime.get_or_create_owned(&[("event", name)]);
            counter.inner().store(stats.get(counted), Ordering::Relaxed);
        }
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }
}

impl Metrics {
    fn look_at_datacenters(&self, database: &Database) {
        for (store, geo) in database.geo_stores() {
            for status in geo.status() {
                for word in DatacenterState::WORDS {
                    let labels = [
                        ("store", store.to_string()),
                        ("datacenter", status.name.to_string()),
                        ("state", word.to_owned()),
                    ];
                    let is_so = i64::from(word == status.state.word());
                    self.datacenters.get_or_create_owned(&labels).set(is_so);
                }
            }
        }
    }
}

/// The figures on the admission of calls.
struct OfAdmission {
    limit: Family<One, Gauge>,
    running: Family<One, Gauge>,
    waiting: Family<One, Gauge>,
    refused: Family<One, Counter>,
}

impl OfAdmission {
    fn register(registry: &mut Registry) -> Self {
        let of = Self {
            limit: Family::default(),
            running: Family::default(),
            waiting: Family::default(),
            refused: Family::default(),
        };
        let limit = "Calls that may run at a time, by how long they take";
        registry.register("admission_limit", limit, of.limit.clone());
        registry.register("admission_running", "Calls that run", of.running.clone());
        registry.register("admission_waiting", "Calls that wait to run", of.waiting.clone());
        let refused = "Calls that were refused since others of their sort take too long";
        registry.register("admission_refused", refused, of.refused.clone());
        of
    }

    fn look_at(&self, admission: &Admission) {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        for (name, state) in admission.states() {
            let labels = [("call", name.to_owned())];
            self.limit.get_or_create_owned(&labels).set(gauge(state.limit));
            self.running.get_or_create_owned(&labels).set(gauge(state.running));
            self.waiting.get_or_create_owned(&labels).set(gauge(state.waiting));
            let refused = self.refused.get_or_create_owned(&labels);
            refused.inner().store(state.refused, Ordering::Relaxed);
        }
    }
}

impl OfStore {
    fn count(&self, event: &Event) {
        match event {
            Event::Waits { .. } => drop(self.waits.inc()),
            Event::Retries { .. } => drop(self.retries.inc()),
            Event::Committed { report, .. } => {
                self.phases.inc();
                self.seconds.observe(report.time.as_secs_f64());
                self.round_trips.inc_by(report.round_trips.into());
                self.waited.inc_by(report.waited.as_secs_f64());
            }
            Event::Began { .. } | Event::StartsOver => {}
        }
    }
}

fn register_stores<'a>(
    registry: &mut Registry,
    stores: impl Iterator<Item = &'a Name>,
) -> HashMap<Name, OfStore> {
    let phases = Family::<One, Counter>::default();
    let seconds = Family::<One, Histogram>::new_with_constructor(histogram);
    let retries = Family::<One, Counter>::default();
    let round_trips = Family::<One, Counter>::default();
    let waits = Family::<One, Counter>::default();
    let waited = Family::<One, Seconds>::default();
    let of_store = stores.map(|name| {
        let labels = [("store", name.to_string())];
        let of = OfStore {
            phases: phases.get_or_create_owned(&labels),
            seconds: seconds.get_or_create_owned(&labels),
            retries: retries.get_or_create_owned(&labels),
            round_trips: round_trips.get_or_create_owned(&labels),
            waits: waits.get_or_create_owned(&labels),
            waited: waited.get_or_create_owned(&labels),
        };
        (name.clone(), of)
    });
    let of_store = of_store.collect();
    registry.register("phases", "Phases that have committed", phases);
    let took = "How long phases took, all attempts together";
    registry.register_with_unit("phase", took, Unit::Seconds, seconds);
    registry.register("phase_retries", "Phases that were tried again", retries);
    let trips = "Round trips of attempts that have committed";
    registry.register("phase_round_trips", trips, round_trips);
    let others = "Attempts that had to wait for other transactions";
    registry.register("phase_waits", others, waits);
    let time = "How long phases have waited for other transactions";
    registry.register_with_unit("phase_waited", time, Unit::Seconds, waited);
    of_store
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}
