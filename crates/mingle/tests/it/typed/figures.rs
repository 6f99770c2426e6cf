//! The figures of calls that a recorder of the facade `metrics` receives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use mingle::typed::Program as _;

use super::groups::{Database, Group, User};
use crate::support::Setup;

/// The values of each figure with its labels, in the order of their arrival; for a counter or a gauge,
/// the value after each change.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    values: BTreeMap<String, Vec<f64>>,
    described: BTreeMap<String, Option<Unit>>,
}

/// One figure.
struct Figure(Told, String);

impl Figure {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut state = self.0.0.lock().expect("nobody panics with this lock");
        let values = state.values.entry(self.1.clone()).or_default();
        let last = values.last().copied().unwrap_or_default();
        values.push(change(last));
    }
}

impl CounterFn for Figure {
    fn increment(&self, value: u64) {
        self.change(|last| last + value as f64);
    }

    fn absolute(&self, value: u64) {
        self.change(|_| value as f64);
    }
}

impl GaugeFn for Figure {
    fn increment(&self, value: f64) {
        self.change(|last| last + value);
    }

    fn decrement(&self, value: f64) {
        self.change(|last| last - value);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl HistogramFn for Figure {
    fn record(&self, value: f64) {
        self.change(|_| value);
    }
}

impl Told {
    fn figure(&self, key: &Key) -> Arc<Figure> {
        let labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(Figure(self.clone(), format!("{}{{{}}}", key.name(), labels.join(","))))
    }

    fn describe(&self, name: KeyName, unit: Option<Unit>) {
        let mut state = self.0.lock().expect("nobody panics with this lock");
        state.described.insert(name.as_str().to_owned(), unit);
    }

    fn values(&self, figure: &str) -> Vec<f64> {
        let state = self.0.lock().expect("nobody panics with this lock");
        state.values.get(figure).cloned().unwrap_or_default()
    }

    /// The last value of a figure; 0 if there is none.
    fn last(&self, figure: &str) -> f64 {
        self.values(figure).last().copied().unwrap_or_default()
    }
}

impl Recorder for Told {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(key, unit);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(key, unit);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(key, unit);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.figure(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.figure(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.figure(key))
    }
}

/// Calls in a world whose stores are 10 ms and 3 ms away.
fn told() -> Told {
    let told = Told::default();
    metrics::with_local_recorder(&told, || {
        let binding = "[stores.groups]\ndistance = \"10ms\"\n[stores.inboxes]\ndistance = \"3ms\"";
        let setup = Setup::with(Database::TEXT, binding, &BTreeMap::new());
        let db = Database::over(setup.database.clone()).expect("it is the same program");
        let (ana, rust) = (User::new("ana"), Group::new("rust"));
        setup.world.block_on(async {
            db.join_group(&ana, &rust).await.expect("it always succeeds");
            db.set_closed(&rust, true).await.expect("it always succeeds");
            db.add_post(&rust, "too late").await.expect_err("it is closed");
        });
        assert!(setup.world.block_on(setup.database.settle(Duration::from_mins(1))));
    });
    told
}

#[test]
fn calls_phases_and_commits_are_counted() {
    let told = told();
    for (figure, expected) in [
        ("mingle_calls_total{transaction=join_group,outcome=ok}", 1.0),
        ("mingle_calls_total{transaction=set_closed,outcome=ok}", 1.0),
        // The program calls the error `closed`; labels are of a kind that it does not make up.
        ("mingle_calls_total{transaction=add_post,outcome=require}", 1.0),
        ("mingle_phases_total{store=groups}", 2.0),
        ("mingle_phases_total{store=inboxes}", 1.0),
        ("mingle_commits_total{store=groups,role=first}", 1.0),
        ("mingle_commits_total{store=groups,role=alone}", 1.0),
        ("mingle_commits_total{store=inboxes,role=later}", 1.0),
        ("mingle_runtime_events_total{event=begun}", 1.0),
        ("mingle_runtime_events_total{event=cleaned}", 1.0),
        ("mingle_open_transactions{}", 0.0),
    ] {
        let last = told.last(figure);
        assert!((last - expected).abs() < 1e-9, "{figure} is {last}, not {expected}");
    }
    let running = told.values("mingle_calls_running{transaction=join_group}");
    assert_eq!(running, [1.0, 0.0]);
    assert_eq!(told.values("mingle_session_waits{}").len(), 3, "one for each call");
}

#[test]
fn times_are_in_seconds_and_round_trips_are_those_of_the_stores() {
    let told = told();
    let seconds = told.values("mingle_phase_seconds{store=groups}");
    let trips = told.values("mingle_phase_round_trips{store=groups}");
    assert_eq!((seconds.len(), trips.len()), (2, 2));
    for (seconds, trips) in seconds.iter().zip(trips) {
        let expected = 0.01 * trips;
        assert!((seconds - expected).abs() < 1e-9, "{seconds} for {trips} round trips");
    }
    let call = told.last("mingle_call_seconds{transaction=join_group}");
    assert!((0.013..0.1).contains(&call), "{call}");
}

#[test]
fn every_figure_is_described_with_its_unit_and_stands_in_the_book() {
    let told = told();
    let book = include_str!("../../../../../docs/rust.md");
    let state = told.0.lock().expect("nobody panics with this lock");
    let names: BTreeSet<&str> =
        state.values.keys().filter_map(|figure| figure.split('{').next()).collect();
    for name in names {
        assert!(state.described.contains_key(name), "{name} is not described");
    }
    for (name, unit) in &state.described {
        let expected = if name.ends_with("_seconds") { Unit::Seconds } else { Unit::Count };
        assert_eq!(*unit, Some(expected), "{name}");
        assert!(book.contains(&format!("| `{name}` |")), "{name} is not in the book");
    }
    assert_eq!(state.described.len(), 18);
}
