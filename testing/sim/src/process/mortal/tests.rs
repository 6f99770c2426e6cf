use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use mingle_model::{Level, Origin, TransactionId};
use mingle_store::conformance::schema::{COUNT, at, store_schema};
use mingle_store::wrap::count::{Counters, CountingStore};
use mingle_store::wrap::distance::{Distance, DistantStore};
use mingle_store::wrap::fault::Call;
use mingle_store::{Data, Once, Read, Session, World, Write};
use mingle_store_replay::{ReplayConfig, ReplayStore};

use super::*;
use crate::SimulatedWorld;
use crate::process::{ClockRates, DeathRates};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn open(world: &Arc<SimulatedWorld>) -> Arc<dyn DataStore> {
    let config = ReplayConfig::new(1, Once::ById);
    ReplayStore::open(config, store_schema(Level::Causal), world.clone()).expect("it opens")
}

fn start(world: &Arc<SimulatedWorld>) -> Process {
    Process::start(world.clone(), "p", 5, ClockRates::default())
}

fn counter(world: &SimulatedWorld, store: &Arc<dyn DataStore>) -> i128 {
    world.run(async {
        let mut reader = store.begin(&Session::default()).await.expect("it begins");
        let answers = reader.read(&[Read::Counter(at("x", COUNT))]).await.expect("it reads");
        match answers[0].data {
            Data::Counter(sum) => sum,
            ref other => panic!("a counter is {other:?}"),
        }
    })
}

fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(1), sequence }
}

fn add(amount: i128) -> Commit {
    Commit { writes: vec![Write::Add(at("x", COUNT), amount)], ..Commit::default() }
}

/// Makes seven calls; the fifth adds 3, flushed and added by the fourth and by itself.
async fn all_calls(store: Arc<dyn DataStore>) {
    store.begin(&Session::default()).await.map(drop).expect("it begins");
    let mut transaction = store.begin(&Session::default()).await.expect("it begins");
    transaction.read(&[Read::Counter(at("x", COUNT))]).await.expect("it reads");
    transaction.flush(add(1).writes).await.expect("it flushes");
    transaction.commit(add(2)).await.expect("it commits");
    store.outcome(id(1)).await.expect("it tells");
    store.everywhere().await.expect("it tells");
}

const CALLS: [Call; 7] = [
    Call::Begin,
    Call::Begin,
    Call::Read,
    Call::Flush,
    Call::Commit,
    Call::Outcome,
    Call::Everywhere,
];

#[test]
fn a_process_dies_before_or_after_any_call() {
    for (index, call) in CALLS.into_iter().enumerate() {
        for moment in [Moment::Before, Moment::After] {
            let world = SimulatedWorld::new(1);
            let store = open(&world);
            let (counted, counters) = CountingStore::new(store.clone());
            let plan = DeathPlan::scripted([(index as u64, moment)]);
            let process = start(&world);
            let mortal = MortalStore::new(counted, process.clone(), plan.clone());
            let answer = world.run(process.run(all_calls(mortal)));
            let what = format!("{moment:?} call {index}, {call:?}");
            assert_eq!(answer, None, "{what}");
            assert_eq!(plan.calls(), index as u64 + 1, "{what}");
            assert_eq!(plan.kills(), BTreeMap::from([((call, moment), 1)]), "{what}");
            let made = index + usize::from(moment == Moment::After);
            let expected = if made > 4 { 3 } else { 0 };
            assert_eq!(counter(&world, &store), expected, "{what}");
            let now = counters.now();
            let reached = now.transactions + now.round_trips();
            assert_eq!(reached, made as u64, "{what}: calls that reached the store");
        }
    }
}

#[test]
fn who_does_not_die_notices_nothing() {
    let world = SimulatedWorld::new(1);
    let store = open(&world);
    let plan = DeathPlan::scripted([(7, Moment::Before)]);
    let process = start(&world);
    let mortal = MortalStore::new(store.clone(), process.clone(), plan.clone());
    assert_eq!(world.run(process.run(all_calls(mortal))), Some(()));
    assert_eq!((plan.calls(), plan.kills()), (7, BTreeMap::new()));
    assert!(process.is_alive());
}

/// Makes a commit that takes 10 ms each way, in a process that is killed after `after`; returns the
/// final counter and the number of late commits.
fn commit_and_kill(after: u64, rates: DeathRates) -> (i128, u64) {
    let world = SimulatedWorld::new(1);
    let store = open(&world);
    let distance = Distance { mean: ms(20), jitter: Duration::ZERO };
    let distant = DistantStore::new(store.clone(), distance, world.clone());
    let plan = DeathPlan::seeded(1, rates);
    let process = start(&world);
    let mortal = MortalStore::new(distant, process.clone(), plan.clone());
    let answer = process.run(async move {
        let transaction = mortal.begin(&Session::default()).await.expect("it begins");
        transaction.commit(add(1)).await.expect("it commits");
    });
    world.run(world.sleep(ms(after)));
    process.kill();
    let early = counter(&world, &store);
    assert_eq!(early, i128::from(after > 10), "killed after {after}ms");
    assert_eq!(world.run(answer), (after >= 20).then_some(()), "killed after {after}ms");
    world.run(world.sleep(ms(3_000)));
    (counter(&world, &store), plan.late())
}

#[test]
fn a_commit_on_its_way_has_been_heard_or_not() {
    let never = DeathRates::default();
    for (after, expected) in [(5, 0), (15, 1), (25, 1)] {
        assert_eq!(commit_and_kill(after, never), (expected, 0), "killed after {after}ms");
    }
}

#[test]
fn a_commit_on_its_way_may_arrive_later() {
    let always = DeathRates { late: 1000, late_most: ms(2_000), ..DeathRates::default() };
    for (after, late) in [(5, 1), (15, 1), (25, 0)] {
        assert_eq!(commit_and_kill(after, always), (1, late), "killed after {after}ms");
    }
    let sometimes = DeathRates { late: 500, ..always };
    let arrived = (0..40).filter(|seed| {
        let plan = DeathPlan::seeded(*seed, sometimes);
        plan.arrival().is_some_and(|later| later <= ms(2_000))
    });
    assert!((10..30).contains(&arrived.count()));
}

#[test]
fn a_commit_that_is_given_up_by_a_living_process_is_not_late() {
    let world = SimulatedWorld::new(1);
    let store = open(&world);
    let distance = Distance { mean: ms(20), jitter: Duration::ZERO };
    let distant = DistantStore::new(store.clone(), distance, world.clone());
    let plan = DeathPlan::seeded(1, DeathRates { late: 1000, ..DeathRates::default() });
    let process = start(&world);
    let mortal = MortalStore::new(distant, process.clone(), plan.clone());
    world.run(process.run(async move {
        let transaction = mortal.begin(&Session::default()).await.expect("it begins");
        let mut commit = transaction.commit(add(1));
        std::future::poll_fn(|context| {
            assert!(commit.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
    }));
    world.run(world.sleep(ms(100)));
    assert_eq!((counter(&world, &store), plan.late()), (0, 0));
}

#[test]
fn a_commit_that_is_scripted_to_die_may_arrive_later() {
    let world = SimulatedWorld::new(1);
    let store = open(&world);
    let rates = DeathRates { late: 1000, late_most: ms(500), ..DeathRates::default() };
    let plan = DeathPlan::new(1, [(1, Moment::Before)], rates);
    let process = start(&world);
    let mortal = MortalStore::new(store.clone(), process.clone(), plan.clone());
    world.run(process.run(async move {
        let transaction = mortal.begin(&Session::default()).await.expect("it begins");
        transaction.commit(add(1)).await.expect("it commits");
    }));
    assert_eq!(counter(&world, &store), 0, "not yet");
    world.run(world.sleep(ms(500)));
    assert_eq!((counter(&world, &store), plan.late()), (1, 1));
}

/// The result of a run.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    log: Vec<String>,
    kills: BTreeMap<(Call, Moment), u64>,
    late: u64,
    counter: i128,
    digest: u64,
}

/// Runs six tasks that add for two seconds, in a process that dies at random and restarts.
fn many_lives(seed: u64, rates: DeathRates) -> Run {
    let world = SimulatedWorld::new(seed);
    let store = open(&world);
    let (counted, counters): (_, Arc<Counters>) = CountingStore::new(store.clone());
    let distance = Distance { mean: ms(10), jitter: ms(8) };
    let distant = DistantStore::new(counted, distance, world.clone());
    let plan = DeathPlan::seeded(seed, rates);
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut process = start(&world);
    while world.elapsed() < ms(2_000) {
        let store: Arc<dyn DataStore> =
            MortalStore::new(distant.clone(), process.clone(), plan.clone());
        for task in 0..6 {
            let (store, log, life) = (store.clone(), Arc::clone(&log), process.clone());
            process.spawn(Box::pin(async move {
                loop {
                    life.sleep(ms(life.random() % 20)).await;
                    let transaction = store.begin(&Session::default()).await.expect("it begins");
                    transaction.commit(add(1)).await.expect("it commits");
                    let line = format!("{task} in life {}", life.incarnation());
                    log.lock().expect("no task panics with the lock").push(line);
                }
            }));
        }
        world.run(process.died());
        let calls = counters.now().commits;
        let late = plan.late();
        world.run(world.sleep(ms(50)));
        let reached = counters.now().commits - calls;
        assert!(reached <= late, "seed {seed}: {reached} calls after death, {late} of them late");
        process = process.restart();
    }
    world.run(world.sleep(ms(5_000)));
    let counter = counter(&world, &store);
    let log = log.lock().expect("no task panics with the lock").clone();
    assert!(counter >= log.len() as i128, "seed {seed}: what was answered has happened");
    Run { counter, log, kills: plan.kills(), late: plan.late(), digest: world.digest() }
}

#[test]
fn one_seed_lives_and_dies_the_same_each_time() {
    let rates = DeathRates { before: 10, after: 10, late: 300, late_most: ms(1_000) };
    let mut all: BTreeMap<(Call, Moment), u64> = BTreeMap::new();
    let mut late = 0;
    for seed in 0..10 {
        let run = many_lives(seed, rates);
        assert_eq!(run, many_lives(seed, rates), "seed {seed}");
        for (key, count) in run.kills {
            *all.entry(key).or_default() += count;
        }
        late += run.late;
    }
    assert_eq!(all.len(), 4, "kinds of deaths: {all:?}");
    assert!(late > 5, "{late} late commits");
    let none = many_lives(1, DeathRates { late: 0, ..rates });
    assert_eq!(none.late, 0);
}
