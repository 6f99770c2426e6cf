//! The wrappers of `mingle-store`, around a store of this engine.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{at, data, read, usual, write};
use mingle_model::{Level, Origin, TransactionId, Value};
use mingle_store::wrap::count::CountingStore;
use mingle_store::wrap::distance::{Distance, DistantStore};
use mingle_store::wrap::fault::{Call, Fault, FaultPlan, FaultyStore, Rates};
use mingle_store::wrap::history::{EventCall, RecordedStore, Recording};
use mingle_store::{
    Commit, Data, DataStore, Outcome, Read, Session, StoreError, TestWorld, World, Write,
};
use mingle_store_embedded::{Embedded, EmbeddedConfig};

fn store(world: &Arc<TestWorld>) -> Arc<dyn DataStore> {
    let config = EmbeddedConfig::in_memory();
    let world: Arc<dyn World> = world.clone();
    Embedded::open(config, usual(Level::Linearizable), world).expect("the store opens")
}

fn add() -> Vec<Write> {
    vec![Write::Add(at("a", 1), 1)]
}

fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(1), sequence }
}

#[test]
fn round_trips_are_counted() {
    let world = TestWorld::new(1);
    let (store, counters) = CountingStore::new(store(&world));
    let store: Arc<dyn DataStore> = store;
    let reads = [Read::Counter(at("a", 1)), Read::Register(at("a", 0))];
    world.block_on(async {
        let mut transaction = store.begin(&Session::default()).await.expect("begins");
        transaction.read(&reads).await.expect("reads");
        transaction.flush(add()).await.expect("flushes");
        let commit = Commit::default();
        transaction.commit(commit).await.expect("commits");
        read(&store, &Session::default(), &reads).await.expect("reads");
        store.outcome(id(1)).await.expect("answers");
        // A transaction that conflicts.
        let mut late = store.begin(&Session::default()).await.expect("begins");
        late.read(&reads).await.expect("reads");
        write(&store, &Session::default(), add()).await.expect("commits");
        let writes = add();
        let result = late.commit(Commit { writes, ..Commit::default() }).await;
        assert_eq!(result, Err(StoreError::Conflict));
    });
    let counts = counters.now();
    assert_eq!(counts.transactions, 4);
    assert_eq!((counts.reads, counts.units_read), (3, 6));
    assert_eq!((counts.flushes, counts.commits, counts.writes), (1, 3, 3));
    assert_eq!((counts.outcomes, counts.conflicts, counts.errors), (1, 1, 0));
    assert_eq!(counts.round_trips(), 8);
}

#[test]
fn each_round_trip_takes_its_time() {
    let world = TestWorld::new(1);
    let distance: Distance = "80ms".parse().expect("a distance");
    let store: Arc<dyn DataStore> = DistantStore::new(store(&world), distance, world.clone());
    assert_eq!(store.capabilities().round_trip, Duration::from_millis(80));
    let took = |act: &dyn Fn()| {
        let start = world.elapsed();
        act();
        world.elapsed().as_millis() - start.as_millis()
    };
    let here = Session::default();
    let blind = took(&|| {
        world.block_on(write(&store, &here, add())).expect("commits");
    });
    assert_eq!(blind, 80, "a commit");
    let reads = [Read::Counter(at("a", 1)), Read::Register(at("a", 0))];
    let reading = took(&|| {
        world.block_on(read(&store, &here, &reads)).expect("reads");
    });
    assert_eq!(reading, 80, "a batch of reads, and a commit of nothing");
}

#[test]
fn jitter_is_within_its_bounds_and_of_both_signs() {
    let world = TestWorld::new(1);
    let distance: Distance = "80ms±30ms".parse().expect("a distance");
    let drawn: Vec<Duration> = (0..1000).map(|_| distance.draw(&*world)).collect();
    let (low, high) = (Duration::from_millis(50), Duration::from_millis(110));
    assert!(drawn.iter().all(|d| (low..=high).contains(d)));
    let below = drawn.iter().filter(|d| **d < distance.mean).count();
    assert!((400..600).contains(&below), "{below} of 1000 are below the mean");
}

#[test]
fn a_lost_answer_is_unknown_whether_or_not_the_commit_took_effect() {
    for (fault, outcome, sum) in
        [(Fault::LostBefore, Outcome::NotCommitted, 0), (Fault::LostAfter, Outcome::Committed, 1)]
    {
        let world = TestWorld::new(1);
        let plan = FaultPlan::scripted([(Call::Commit, 0, fault)]);
        let store: Arc<dyn DataStore> = FaultyStore::new(store(&world), plan.clone());
        assert!(store.capabilities().may_lose_answers);
        world.block_on(async {
            let transaction = store.begin(&Session::default()).await.expect("begins");
            let commit = Commit { id: Some(id(1)), writes: add(), ..Commit::default() };
            let lost = transaction.commit(commit).await.unwrap_err();
            let unknown = StoreError::Unknown { store: "notes".into(), id: Some(id(1)) };
            assert_eq!(lost, unknown);
            assert_eq!(store.outcome(id(1)).await, Ok(outcome), "{fault:?}");
        });
        let found = data(&world, &store, &Session::default(), &[Read::Counter(at("a", 1))]);
        assert_eq!(found, [Data::Counter(sum)], "{fault:?}");
        assert_eq!(plan.injected()[&(Call::Commit, fault)], 1);
    }
}

#[test]
fn a_commit_that_was_held_up_arrives_when_the_test_says_so() {
    for is_asked_before in [false, true] {
        let world = TestWorld::new(1);
        let plan = FaultPlan::scripted([(Call::Commit, 0, Fault::HeldUp)]);
        let store: Arc<dyn DataStore> = FaultyStore::new(store(&world), plan.clone());
        world.block_on(async {
            let transaction = store.begin(&Session::default()).await.expect("begins");
            let commit = Commit { id: Some(id(1)), writes: add(), ..Commit::default() };
            let lost = transaction.commit(commit).await;
            assert!(matches!(lost, Err(StoreError::Unknown { .. })), "{lost:?}");
            if is_asked_before {
                assert_eq!(store.outcome(id(1)).await, Ok(Outcome::NotCommitted));
            }
            let arrived = plan.release().await;
            assert_eq!(arrived.len(), 1);
            assert_eq!(arrived[0].is_err(), is_asked_before, "{arrived:?}");
            assert!(plan.release().await.is_empty(), "it arrives once");
        });
        let reads = [Read::Counter(at("a", 1))];
        let found = data(&world, &store, &Session::default(), &reads);
        assert_eq!(found, [Data::Counter(i128::from(!is_asked_before))]);
    }
}

#[test]
fn every_call_can_fail_as_scripted() {
    let world = TestWorld::new(1);
    let script = [
        (Call::Begin, 0, Fault::Unavailable),
        (Call::Read, 0, Fault::Conflict),
        (Call::Flush, 0, Fault::LostAfter),
        (Call::Commit, 0, Fault::Conflict),
        (Call::Outcome, 0, Fault::Unavailable),
    ];
    let plan = FaultPlan::scripted(script);
    let store: Arc<dyn DataStore> = FaultyStore::new(store(&world), plan.clone());
    let here = Session::default();
    let reads = [Read::Counter(at("a", 1))];
    world.block_on(async {
        let unavailable = |error: StoreError| matches!(error, StoreError::Unavailable { .. });
        assert!(store.begin(&here).await.is_err_and(unavailable));
        let mut transaction = store.begin(&here).await.expect("begins");
        assert_eq!(transaction.read(&reads).await, Err(StoreError::Conflict));
        assert!(transaction.flush(add()).await.is_err_and(unavailable));
        assert_eq!(write(&store, &here, add()).await, Err(StoreError::Conflict));
        assert!(store.outcome(id(1)).await.is_err_and(unavailable));
        write(&store, &here, add()).await.expect("the script is over");
    });
    assert_eq!(plan.calls(Call::Commit), 2);
    assert_eq!(data(&world, &store, &here, &reads), [Data::Counter(1)]);
}

#[test]
fn the_same_seed_injects_the_same_faults() {
    let run = |seed| {
        let world = TestWorld::new(1);
        let rates = Rates { conflict: 100, unavailable: 100, lost_before: 100, lost_after: 100 };
        let plan = FaultPlan::seeded(seed, rates);
        let store: Arc<dyn DataStore> = FaultyStore::new(store(&world), plan.clone());
        let commit = || world.block_on(write(&store, &Session::default(), add()));
        let results: Vec<_> = (0..300).map(|_| commit()).collect();
        plan.set_on(false);
        assert!((0..50).all(|_| commit().is_ok()), "faults are off");
        (results, plan.injected())
    };
    let (results, injected) = run(1);
    assert_eq!(run(1), (results.clone(), injected.clone()));
    assert_ne!(run(2).0, results);
    for fault in [Fault::Conflict, Fault::Unavailable, Fault::LostBefore, Fault::LostAfter] {
        let count = injected[&(Call::Commit, fault)];
        assert!((10..60).contains(&count), "{fault:?} {count} times of 300");
    }
}

#[test]
fn a_history_has_every_call_in_order() {
    let world = TestWorld::new(1);
    let recording = Arc::new(Recording::default());
    let distance: Distance = "10ms".parse().expect("a distance");
    let inner = DistantStore::new(store(&world), distance, world.clone());
    let store: Arc<dyn DataStore> = RecordedStore::new(inner, recording.clone(), world.clone());
    let reads = [Read::Register(at("a", 0))];
    world.block_on(async {
        let mut transaction = store.begin(&Session::default()).await.expect("begins");
        transaction.read(&reads).await.expect("reads");
        transaction.flush(add()).await.expect("flushes");
        let writes = vec![Write::Assign(at("a", 0), Value::Int(1))];
        let commit = Commit { id: Some(id(7)), writes, ..Commit::default() };
        transaction.commit(commit).await.expect("commits");
        drop(store.begin(&Session::default()).await.expect("begins"));
        store.outcome(id(7)).await.expect("answers");
    });
    let events = recording.events();
    let shown: Vec<(u64, u128, u128, &str)> = events
        .iter()
        .map(|event| {
            let call = match &event.call {
                EventCall::Begin(Ok(())) => "begin",
                EventCall::Read(asked, Ok(answers)) if *asked == reads && answers.len() == 1 => {
                    "read"
                }
                EventCall::Flush(writes, Ok(())) if writes.len() == 1 => "flush",
                EventCall::Commit { id: Some(_), writes, result: Ok(_) } if writes.len() == 1 => {
                    "commit"
                }
                EventCall::Dropped => "dropped",
                EventCall::Outcome(_, Ok(Outcome::Committed)) => "outcome",
                other => panic!("not expected: {other:?}"),
            };
            let (start, end) = (event.start.as_millis(), event.end.as_millis());
            (event.transaction, start, end, call)
        })
        .collect();
    let expected = [
        (1, 0, 0, "begin"),
        (1, 0, 10, "read"),
        (1, 10, 20, "flush"),
        (1, 20, 30, "commit"),
        (2, 30, 30, "begin"),
        (2, 30, 30, "dropped"),
        (0, 30, 40, "outcome"),
    ];
    assert_eq!(shown, expected);
}
