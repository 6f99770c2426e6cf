//! Computation runs in slices: other tasks have turns in between, and deadlines and callers end it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mingle_lang::check;
use mingle_model::{Level, Time, Value};
use mingle_runtime::limits::SLICE_STEPS;
use mingle_runtime::{Call, CallReport, Error, Runtime, Settings, TokioWorld, Watcher};
use mingle_store::{BoxFuture, Turn, World};

use crate::embedded::open_with;

const TEXT: &str = "store s: linearizable; store later: causal;
    object A in s { key k: string; n: int; }
    object B in later { key k: string; n: int; lines: log<int>; }
    transaction spin(n: int) -> int { var i = 0; while i < n { i += 1; } return i; }
    transaction write(n: int) { A[\"x\"].n = 1; var i = 0; while i < n { i += 1; } A[\"x\"].n = i; }
    transaction items(all: list<int>) -> int {
        var sum = 0;
        for one in all { for other in all { sum += one; } }
        return sum;
    }
    transaction text(n: int) -> int {
        var all = \"\";
        var i = 0;
        while i < n { all = all + \"0123456789abcdef\"; i += 1; }
        return all.size();
    }
    transaction own(n: int) -> int {
        var i = 0;
        var sizes = 0;
        while i < n { B[\"x\"].lines.append(i); sizes += B[\"x\"].lines.to_list().size(); i += 1; }
        return sizes;
    }
    transaction late(all: list<int>) {
        A[\"x\"].n = 1;
        for one in all { for other in all { B[\"x\"].n = one; } }
    }
    transaction get() -> int { return A[\"x\"].n; }
    transaction get_late() -> int { return B[\"x\"].n; }";

/// A world in which each turn takes a millisecond, and nothing else takes time.
#[derive(Default)]
struct Counted {
    turns: AtomicU64,
    tasks: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl World for Counted {
    fn now(&self) -> Time {
        Time::from_millis(1_000)
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.turns.load(Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn random(&self) -> u64 {
        7
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.tasks.lock().expect("no test panics with this lock").push(task);
    }

    fn turn(&self) -> BoxFuture<'static, Turn> {
        self.turns.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Turn::default()))
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        work();
        Box::pin(std::future::ready(()))
    }
}

fn runtime(world: Arc<dyn World>) -> Arc<Runtime> {
    let program = Arc::new(check(TEXT).program.expect("the program is right"));
    let stores = open_with(&program, world.clone(), |store| match &*store.name {
        "s" => Level::Linearizable,
        _ => Level::Causal,
    });
    let settings = Settings { steps_max: u64::MAX, ..Settings::default() };
    Runtime::new(program, stores, world, settings)
}

/// Runs a call in a counted world; returns its result and the number of turns that it took.
fn counted(name: &str, argument: Value, deadline: Duration) -> (Result<CallReport, Error>, u64) {
    let world = Arc::new(Counted::default());
    let runtime = runtime(world.clone());
    let call = Call { deadline: Some(deadline), ..Call::new(name, vec![argument]) };
    let ended = crate::harness::ready(runtime.call_in_place(&call));
    (ended, world.turns.load(Ordering::Relaxed))
}

#[test]
fn what_computes_for_long_gives_others_their_turn() {
    let long = Duration::from_hours(1);
    let steps = |turns: u64| turns * SLICE_STEPS;
    let (ended, turns) = counted("spin", Value::Int(1_000_000), long);
    assert_eq!(ended.map(|report| report.result), Ok(Some(Value::Int(1_000_000))));
    assert!(steps(turns) >= 1_000_000, "{turns}");
    assert_eq!(counted("spin", Value::Int(100), long).1, 0, "a short one has it at once");
    // Loops over lists, growing texts, and a transaction's own collections count at their size.
    let list = Value::list((0..1_000).map(Value::Int));
    for (name, argument, at_least) in [
        ("items", list, 1_000_000),
        ("text", Value::Int(10_000), 10_000 * 10_000 * 16 / 2 / 256),
        ("own", Value::Int(4_000), 4_000 * 4_000 / 2 / 8),
    ] {
        let (ended, turns) = counted(name, argument, long);
        assert!(ended.is_ok(), "{name}: {ended:?}");
        assert!(steps(turns) * 10 >= at_least * 9, "{name}: {turns}");
    }
}

#[test]
fn a_deadline_ends_computation_and_nothing_is_written() {
    let deadline = Duration::from_millis(20);
    for name in ["spin", "write"] {
        let (ended, turns) = counted(name, Value::Int(i64::MAX), deadline);
        assert_eq!(ended, Err(Error::Deadline { deadline }), "{name}");
        assert_eq!(turns, 21, "{name}: the first turn beyond the deadline is the last one");
    }
}

#[test]
fn what_is_committed_is_computed_to_its_end_without_its_caller() {
    let world = Arc::new(Counted::default());
    let runtime = runtime(world.clone());
    let deadline = Duration::from_millis(20);
    let list = Value::list((0..1_000).map(Value::Int));
    let call = Call { deadline: Some(deadline), ..Call::new("late", vec![list]) };
    let ended = crate::harness::ready(runtime.call_in_place(&call));
    let Err(Error::Incomplete { committed, missing, cause, .. }) = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(
        (&*committed[0], &*missing[0], *cause),
        ("s", "later", Error::Deadline { deadline })
    );
    let turns = world.turns.load(Ordering::Relaxed);
    assert!(turns <= 22, "{turns}");
    // The task that finishes the transaction computes for longer than any deadline.
    let tasks = std::mem::take(&mut *world.tasks.lock().expect("no test panics with this lock"));
    for task in tasks {
        crate::harness::ready(task);
    }
    let get = |name: &str| {
        let report = crate::harness::ready(runtime.call_in_place(&Call::new(name, Vec::new())));
        report.expect("nothing is in its way").result
    };
    assert_eq!((get("get"), get("get_late")), (Some(Value::Int(1)), Some(Value::Int(999))));
    assert!(world.turns.load(Ordering::Relaxed) > turns + 50, "it was computed");
}

#[test]
fn whoever_asks_beside_a_computing_call_is_answered_and_a_caller_that_leaves_ends_it() {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
    tokio.expect("a runtime starts").block_on(async {
        let runtime = runtime(Arc::new(TokioWorld::new()));
        let alive = Arc::new(());
        let spin = |name: &str| {
            let alive = alive.clone();
            Call {
                deadline: Some(Duration::from_hours(1)),
                watcher: Some(Watcher::new(move |_| drop(alive.clone()))),
                ..Call::new(name, vec![Value::Int(i64::MAX)])
            }
        };
        let (one, other) = (runtime.call(spin("spin")), runtime.call(spin("write")));
        let (mut one, mut other) = (Box::pin(one), Box::pin(other));
        let asked = async {
            for _ in 0..10 {
                let found = runtime.call(Call::new("get", Vec::new())).await;
                assert_eq!(found.map(|report| report.result), Ok(Some(Value::Int(0))));
            }
        };
        tokio::select! {
            biased;
            ended = &mut one => panic!("it counts for years: {ended:?}"),
            ended = &mut other => panic!("it counts for years: {ended:?}"),
            () = asked => {}
        }
        assert!(Arc::strong_count(&alive) > 1, "they run");
        drop((one, other));
        while Arc::strong_count(&alive) > 1 {
            tokio::task::yield_now().await;
        }
        let found = runtime.call(Call::new("get", Vec::new())).await;
        assert_eq!(found.map(|report| report.result), Ok(Some(Value::Int(0))), "it wrote nothing");
    });
}
