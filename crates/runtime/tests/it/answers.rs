//! Reads with a policy: the race of a store's own level with a weaker one, in virtual time.
//!
//! The store answers at its own level from one state and at the weaker level from another, each after a
//! delay of its own. So an answer shows where it comes from, and two checkers that know nothing of the
//! race judge every answer: its level is honest, and it comes within the bound.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mingle_lang::plain::State;
use mingle_lang::{Program, check};
use mingle_model::{Level, Ref, TransactionId, Value};
use mingle_runtime::{Call, Runtime, Settings};
use mingle_store::{
    Answer, BoxFuture, Capabilities, Commit, Committed, DataStore, Outcome, Read, Session,
    StoreError, TestWorld, Transaction, World, Write,
};

use crate::model_store::ModelStore;

const PROGRAM: &str = "store shop: linearizable;
    object Event in shop { key id: string; left: counter by 20ms; note: string; }
    transaction view(e: ref Event) -> rushed<int> { return e.left.value(); }
    transaction must(e: ref Event) -> string {
        match e.left.value() {
            linearizable(n) => { return \"exact \" + string(n); }
            eventual(n) => { return \"about \" + string(n); }
        }
    }
    transaction weak(e: ref Event) -> int { return e.left.value() at eventual; }
    transaction sell(e: ref Event) -> string {
        let before = e.note;
        var shown = \"\";
        e.left.add(-1);
        match e.left.value() {
            linearizable(n) => { shown = \"exact \" + string(n); }
            eventual(n) => { shown = \"about \" + string(n); }
            late => { shown = \"late\"; }
        }
        e.note = \"sold\";
        return before + shown;
    }";

/// What the store's own level holds, and what the weaker one does.
const OWN: i64 = 7;
const WEAKER: i64 = 9;

/// A store with two levels.
struct TwoLevels {
    own: Arc<dyn DataStore>,
    weaker: Arc<dyn DataStore>,
    capabilities: Capabilities,
    world: Arc<TestWorld>,
    /// True if its own level lags: it has not seen what the session has.
    is_behind: Arc<AtomicBool>,
    /// The delays of reads, in milliseconds: at its own level, and at the weaker one.
    delays: Arc<[AtomicU64; 2]>,
    /// The numbers of reads at each.
    reads: Arc<[AtomicU64; 2]>,
}

struct Delayed {
    inner: Box<dyn Transaction>,
    world: Arc<TestWorld>,
    delay: Duration,
    is_behind: bool,
}

fn behind() -> StoreError {
    StoreError::Behind { store: "shop".into(), replica: "r1".into() }
}

impl DataStore for TwoLevels {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async {
            let at = usize::from(session.level.is_some());
            let inner = if at == 0 { &self.own } else { &self.weaker };
            let inner = inner.begin(session).await?;
            self.reads[at].fetch_add(1, Ordering::Relaxed);
            let delay = Duration::from_millis(self.delays[at].load(Ordering::Relaxed));
            let is_behind = at == 0 && self.is_behind.load(Ordering::Relaxed);
            let delayed = Delayed { inner, world: self.world.clone(), delay, is_behind };
            Ok(Box::new(delayed) as Box<dyn Transaction>)
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        self.own.outcome(id)
    }
}

impl Transaction for Delayed {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(async {
            self.world.sleep(self.delay).await;
            if self.is_behind { Err(behind()) } else { self.inner.read(reads).await }
        })
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.flush(writes)
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        if self.is_behind { Box::pin(async { Err(behind()) }) } else { self.inner.commit(commit) }
    }
}

struct Shop {
    world: Arc<TestWorld>,
    runtime: Arc<Runtime>,
    is_behind: Arc<AtomicBool>,
    delays: Arc<[AtomicU64; 2]>,
    reads: Arc<[AtomicU64; 2]>,
}

fn event() -> Ref {
    Ref::new("Event", Value::from("e"))
}

fn program() -> Arc<Program> {
    let checked = check(PROGRAM);
    Arc::new(checked.program.unwrap_or_else(|| panic!("{:?}", checked.diagnostics)))
}

impl Shop {
    fn new(delays: (u64, u64)) -> Self {
        let program = program();
        let world = TestWorld::new(5);
        let state = |left: i64| {
            let mut state = State::default();
            state.create(&event());
            state.add(&event(), 0, left.into());
            ModelStore::new(program.checked.clone(), 0, Arc::new(Mutex::new(state)))
        };
        let (own, weaker) = (state(OWN), state(WEAKER));
        let capabilities =
            Capabilities { weaker_answers: vec![Level::Eventual], ..own.capabilities().clone() };
        let delays: Arc<[AtomicU64; 2]> = Arc::new([delays.0.into(), delays.1.into()]);
        let reads: Arc<[AtomicU64; 2]> = Arc::default();
        let is_behind: Arc<AtomicBool> = Arc::default();
        let store = TwoLevels {
            own,
            weaker,
            capabilities,
            world: world.clone(),
            is_behind: is_behind.clone(),
            delays: delays.clone(),
            reads: reads.clone(),
        };
        let runtime =
            Runtime::new(program, vec![Arc::new(store)], world.clone(), Settings::default());
        Self { world, runtime, is_behind, delays, reads }
    }

    /// Returns the result of a call, and how long it took.
    fn call(&self, name: &str) -> (Value, Duration) {
        let since = self.world.elapsed();
        let call = Call::new(name, vec![Value::Ref(event())]);
        let report = self.world.block_on(self.runtime.call(call)).expect("it runs");
        (report.result.expect("it has a result"), self.world.elapsed().saturating_sub(since))
    }

    /// Views the event, and judges the answer: returns its level.
    fn view(&self) -> (String, Duration) {
        let (answer, took) = self.call("view");
        let (level, value) = answer.as_answer().expect("it is an answer");
        let honest = match level {
            "linearizable" => value == Some(&Value::Int(OWN)),
            "eventual" => value == Some(&Value::Int(WEAKER)),
            "late" => value.is_none(),
            _ => false,
        };
        assert!(honest, "{answer} is not what its level says");
        assert!(took <= Duration::from_millis(20), "{answer} after {took:?}");
        (level.to_owned(), took)
    }

    fn set_delays(&self, own: u64, weaker: u64) {
        self.delays[0].store(own, Ordering::Relaxed);
        self.delays[1].store(weaker, Ordering::Relaxed);
    }

    fn reads(&self) -> (u64, u64) {
        (self.reads[0].load(Ordering::Relaxed), self.reads[1].load(Ordering::Relaxed))
    }
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn the_own_level_answers_if_it_is_in_time() {
    let shop = Shop::new((5, 1));
    for _ in 0..50 {
        assert_eq!(shop.view(), ("linearizable".to_owned(), 5 * MS));
    }
    assert_eq!(shop.reads().1, 0, "no weaker answer was needed");
}

#[test]
fn the_weaker_answer_comes_at_the_bound_at_first_and_at_once_later() {
    let shop = Shop::new((80, 2));
    assert_eq!(shop.view(), ("eventual".to_owned(), 20 * MS));
    let took: Vec<Duration> = (0..20).map(|_| shop.view().1).collect();
    assert!(took[10..].iter().all(|took| *took == 2 * MS), "{took:?}");
}

/// A session whose replica lags is the first that needs a weaker answer.
#[test]
fn a_weaker_answer_does_not_wait_for_an_own_level_that_lags() {
    let shop = Shop::new((1, 2));
    shop.is_behind.store(true, Ordering::Relaxed);
    assert_eq!(shop.view(), ("eventual".to_owned(), 20 * MS));
    let took: Vec<Duration> = (0..20).map(|_| shop.view().1).collect();
    assert!(took[10..].iter().all(|took| *took == 2 * MS), "{took:?}");
    let (answer, took) = shop.call("weak");
    assert_eq!((answer, took), (Value::Int(WEAKER), 2 * MS));
    shop.is_behind.store(false, Ordering::Relaxed);
    let levels: Vec<String> = (0..60)
        .map(|_| {
            shop.world.block_on(shop.world.sleep(500 * MS));
            shop.view().0
        })
        .collect();
    assert!(levels[50..].iter().all(|level| level == "linearizable"), "{levels:?}");
}

#[test]
fn an_answer_that_no_level_gives_in_time_is_late() {
    let shop = Shop::new((80, 90));
    for _ in 0..30 {
        assert_eq!(shop.view(), ("late".to_owned(), 20 * MS));
    }
}

#[test]
fn a_read_without_late_takes_the_first_answer_after_its_bound() {
    let shop = Shop::new((80, 90));
    assert_eq!(shop.call("must"), (Value::from("exact 7"), 80 * MS));
    shop.set_delays(90, 60);
    let (answer, took) = shop.call("must");
    assert_eq!(answer, Value::from("about 9"));
    assert!(took >= 60 * MS && took < 90 * MS, "{took:?}");
}

#[test]
fn a_store_that_is_fast_again_is_noticed() {
    let shop = Shop::new((80, 2));
    for _ in 0..50 {
        shop.view();
    }
    shop.set_delays(5, 2);
    let mut levels = Vec::new();
    for _ in 0..60 {
        levels.push(shop.view().0);
        shop.world.block_on(shop.world.sleep(500 * MS));
    }
    assert_eq!(levels[0], "eventual");
    assert!(levels[50..].iter().all(|level| level == "linearizable"), "{levels:?}");
}

#[test]
fn a_slow_level_is_asked_once_a_second_alone() {
    let shop = Shop::new((80, 2));
    for _ in 0..20 {
        shop.view();
    }
    let (since, before) = (shop.world.elapsed(), shop.reads().0);
    while shop.world.elapsed() < since + Duration::from_secs(4) {
        shop.view();
    }
    let asked = shop.reads().0 - before;
    // Each call also begins a transaction at the own level, which asks nothing.
    assert!(asked > 0);
    assert!(shop.reads().1 > 1_000, "{:?}", shop.reads());
}

#[test]
fn a_read_at_a_weaker_level_asks_for_that_alone() {
    let shop = Shop::new((80, 2));
    assert_eq!(shop.call("weak"), (Value::Int(WEAKER), 2 * MS));
}

#[test]
fn own_writes_are_seen_in_every_answer() {
    let shop = Shop::new((5, 2));
    assert_eq!(shop.call("sell").0, Value::from("exact 6"));
    let shop = Shop::new((30, 2));
    let (answer, took) = shop.call("sell");
    assert_eq!(answer, Value::from("about 8"));
    // The note is read before, and the request at the own level holds the transaction that commits.
    assert!(took >= 60 * MS, "{took:?}");
    let shop = Shop::new((30, 70));
    assert_eq!(shop.call("sell").0, Value::from("late"));
}
