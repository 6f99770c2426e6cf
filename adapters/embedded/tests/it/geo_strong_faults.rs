//! Linearizable stores over several data centers that stop, that are cut off, and that come back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::support::members::{Alone, CITIES};
use crate::support::{at, usual};
use mingle_model::{Level, Origin, TransactionId, Value};
use mingle_store::test_world::join_all;
use mingle_store::{
    BoxFuture, Commit, Committed, Data, DataStore, Outcome, Read, Session, StoreError, TestWorld,
    World, Write,
};
use mingle_store_embedded::{Embedded, EmbeddedConfig, GeoConfig, GeoStore};
use tempfile::TempDir;

fn geo() -> GeoConfig {
    GeoConfig::new(CITIES).with_distance("40ms±10ms".parse().expect("a distance"))
}

fn open(world: &Arc<TestWorld>, config: EmbeddedConfig) -> Arc<GeoStore> {
    let schema = usual(Level::Linearizable);
    Embedded::open_geo(&config, &schema, world.clone()).expect("the store opens")
}

fn pass(world: &TestWorld, millis: u64) {
    world.block_on(world.sleep(Duration::from_millis(millis)));
}

/// Reads a number and writes the next one; retries while other clients get in between.
async fn count(
    store: &dyn DataStore,
    city: &str,
    id: Option<TransactionId>,
) -> Result<i64, StoreError> {
    for _ in 0..100 {
        let mut transaction = store.begin(&Session::at(city)).await?;
        let answers = match transaction.read(&[Read::Register(at("a", 0))]).await {
            Err(StoreError::Conflict) => continue,
            answers => answers?,
        };
        let next = 1 + match &answers[0].data {
            Data::Register(Some(Value::Int(number))) => *number,
            _ => 0,
        };
        let writes = vec![Write::Assign(at("a", 0), Value::Int(next))];
        match transaction.commit(Commit { id, writes, ..Commit::default() }).await {
            Err(StoreError::Conflict) => {}
            result => return result.map(|_: Committed| next),
        }
    }
    panic!("others always get in between");
}

fn counted(world: &TestWorld, store: &Arc<GeoStore>, city: &str) -> i64 {
    let counted = world.block_on(count(&**store, city, None));
    counted.unwrap_or_else(|error| panic!("{city}: {error}"))
}

#[test]
fn whoever_counts_anywhere_counts_on() {
    let world = TestWorld::new(1);
    let store = open(&world, EmbeddedConfig::in_memory().with_geo(geo().with_partitions(2)));
    for n in 0..9 {
        assert_eq!(counted(&world, &store, CITIES[n % 3]), n as i64 + 1);
    }
    // Also with concurrent clients, no number is given out twice.
    let clients = (0..6).map(|n| {
        let store = Arc::clone(&store);
        let client: BoxFuture<'_, Vec<i64>> = Box::pin(async move {
            let mut numbers = Vec::new();
            for _ in 0..4 {
                numbers.push(count(&*store, CITIES[n % 3], None).await.expect("it commits"));
            }
            numbers
        });
        client
    });
    let mut numbers = world.block_on(join_all(clients.collect())).concat();
    numbers.sort_unstable();
    assert_eq!(numbers, (10..34).collect::<Vec<i64>>());
    assert_eq!(store.alarms(), Vec::<String>::new());
}

#[test]
fn whichever_data_center_stops_the_others_go_on() {
    let world = TestWorld::new(2);
    let store = open(&world, EmbeddedConfig::in_memory().with_geo(geo()));
    let mut expected = 0;
    for away in CITIES {
        store.kill(away).expect("it is there");
        for city in CITIES {
            if city == away {
                let error = world.block_on(count(&*store, city, None)).expect_err("it is down");
                let error = error.to_string();
                assert!(error.contains(&format!("its data center {away} is down")), "{error}");
                continue;
            }
            expected += 1;
            assert_eq!(counted(&world, &store, city), expected, "{city} without {away}");
        }
        store.start(away).expect("it is there");
        expected += 1;
        assert_eq!(counted(&world, &store, away), expected, "{away} is back");
    }
}

#[test]
fn with_too_few_errors_name_those_that_are_away_at_once() {
    let world = TestWorld::new(3);
    let store = open(&world, EmbeddedConfig::in_memory().with_geo(geo()));
    assert_eq!(counted(&world, &store, "lima"), 1);
    store.kill("oslo").expect("it is there");
    store.kill("rome").expect("it is there");
    let begin = world.elapsed();
    let error = world.block_on(count(&*store, "lima", None)).expect_err("there is no majority");
    let expected =
        "its data center lima does not reach oslo, rome, and to commit it needs 2 of all 3";
    assert!(error.to_string().contains(expected), "{error}");
    assert!(world.elapsed().saturating_sub(begin) < Duration::from_secs(1));
    store.start("rome").expect("it is there");
    assert_eq!(counted(&world, &store, "lima"), 2);
}

/// Reads the number at a weaker level, and ends the transaction with these writes.
async fn weaker(store: &dyn DataStore, city: &str, writes: Vec<Write>) -> Result<Data, StoreError> {
    let session = Session { level: Some(Level::Eventual), ..Session::at(city) };
    let mut transaction = store.begin(&session).await?;
    let mut answers = transaction.read(&[Read::Register(at("a", 0))]).await?;
    transaction.commit(Commit { writes, ..Commit::default() }).await?;
    Ok(answers.remove(0).data)
}

#[test]
fn a_weaker_answer_needs_neither_a_majority_nor_a_round_trip() {
    let world = TestWorld::new(3);
    let store = open(&world, EmbeddedConfig::in_memory().with_geo(geo()));
    assert_eq!(store.capabilities().weaker_answers, [Level::Eventual]);
    assert_eq!(counted(&world, &store, "lima"), 1);
    pass(&world, 2_000);
    let one = Data::Register(Some(Value::Int(1)));
    let begin = world.elapsed();
    for city in CITIES {
        assert_eq!(world.block_on(weaker(&*store, city, Vec::new())), Ok(one.clone()), "{city}");
    }
    let took = world.elapsed().saturating_sub(begin);
    assert!(took < Duration::from_millis(20), "a round trip takes longer than {took:?}");
    store.kill("oslo").expect("it is there");
    store.kill("rome").expect("it is there");
    world.block_on(count(&*store, "lima", None)).expect_err("there is no majority");
    assert_eq!(world.block_on(weaker(&*store, "lima", Vec::new())), Ok(one));
    let writes = vec![Write::Assign(at("a", 0), Value::Int(9))];
    let error = world.block_on(weaker(&*store, "lima", writes)).expect_err("it writes");
    assert!(error.to_string().contains("only reads"), "{error}");
}

#[test]
fn who_is_cut_off_does_not_decide_and_learns_what_was_decided() {
    let (world, links) = (TestWorld::new(4), Arc::<Alone>::default());
    let config = EmbeddedConfig::in_memory().with_geo(geo()).with_links(links.clone());
    let store = open(&world, config);
    assert_eq!(counted(&world, &store, "oslo"), 1);
    links.set(&["oslo"]);
    let error = world.block_on(count(&*store, "oslo", None)).expect_err("it is cut off");
    assert!(error.to_string().contains("oslo does not reach rome, lima"), "{error}");
    assert_eq!(counted(&world, &store, "rome"), 2);
    assert_eq!(counted(&world, &store, "lima"), 3);
    links.set(&[]);
    assert_eq!(counted(&world, &store, "oslo"), 4);
}

/// Sends a commit, and then stops its data center, or all other ones.
fn lost(world: &TestWorld, store: &Arc<GeoStore>, after: u64, stop: &[&str]) -> TransactionId {
    let id = TransactionId { origin: Origin(9), sequence: after + 1 };
    let result = world.block_on(async {
        let writes = vec![Write::Assign(at("a", 0), Value::Int(1_000))];
        let transaction = store.begin(&Session::at("rome")).await?;
        let commit = transaction.commit(Commit { id: Some(id), writes, ..Commit::default() });
        let mut commit = std::pin::pin!(commit);
        let mut sleep = world.sleep(Duration::from_millis(after));
        let is_over = std::future::poll_fn(|context| match commit.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => sleep.as_mut().poll(context).map(|()| None),
        });
        if let Some(result) = is_over.await {
            return result;
        }
        for city in stop {
            store.kill(city)?;
        }
        commit.await
    });
    match result {
        Ok(_) => {}
        Err(StoreError::Unknown { id: of, .. }) => assert_eq!(of, Some(id)),
        Err(StoreError::Unavailable { .. } | StoreError::Conflict) => {}
        Err(other) => panic!("{other}"),
    }
    id
}

#[test]
fn what_became_of_a_commit_is_told_truly() {
    let mut seen = BTreeSet::new();
    for after in [0, 5, 15, 25, 40, 60] {
        for stop in [&["rome"][..], &["oslo", "lima"]] {
            let world = TestWorld::new(5);
            let store = open(&world, EmbeddedConfig::in_memory().with_geo(geo()));
            assert_eq!(counted(&world, &store, "rome"), 1);
            let id = lost(&world, &store, after, stop);
            let told = world.block_on(store.outcome(id));
            if stop.len() > 1 && store.is_up("oslo") == Ok(false) {
                assert!(matches!(told, Err(StoreError::Unavailable { .. })), "{told:?}");
            }
            for city in stop {
                store.start(city).expect("it is there");
            }
            let told = world.block_on(store.outcome(id)).expect("all are there");
            let found = counted(&world, &store, "lima");
            let expected = if told == Outcome::Committed { 1_001 } else { 2 };
            assert_ne!(told, Outcome::Unknown, "after {after} ms, without {stop:?}");
            assert_eq!(found, expected, "after {after} ms, without {stop:?}: {told:?}");
            // The outcome, once told, stays the same.
            pass(&world, 5_000);
            assert_eq!(world.block_on(store.outcome(id)), Ok(told));
            assert_eq!(counted(&world, &store, "oslo"), expected + 1);
            seen.insert(told == Outcome::Committed);
        }
    }
    assert_eq!(seen.len(), 2, "some take effect and some do not");
}

#[test]
fn a_folder_keeps_what_was_committed_and_what_became_of_it() {
    let folder = TempDir::new().expect("a temporary folder");
    let world = TestWorld::new(6);
    let config = || EmbeddedConfig::in_folder(folder.path()).with_geo(geo());
    let id = |sequence| TransactionId { origin: Origin(9), sequence };
    let store = open(&world, config());
    let counted_as = world.block_on(count(&*store, "oslo", Some(id(1))));
    assert_eq!(counted_as, Ok(1));
    assert_eq!(world.block_on(store.outcome(id(2))), Ok(Outcome::NotCommitted));
    assert_eq!(counted(&world, &store, "rome"), 2);
    drop(store);
    let store = open(&world, config());
    for (n, city) in CITIES.into_iter().enumerate() {
        assert_eq!(counted(&world, &store, city), 3 + n as i64);
    }
    assert_eq!(world.block_on(store.outcome(id(1))), Ok(Outcome::Committed));
    let late = world.block_on(count(&*store, "lima", Some(id(2))));
    assert!(matches!(late, Err(StoreError::Refused { .. })), "{late:?}");
    drop(store);
    let schema = usual(Level::Causal);
    let error = Embedded::open(config(), schema, world.clone()).err().expect("another store");
    assert!(error.to_string().contains("data centers of 1 partition, certified"), "{error}");
}

/// The cost of certification, from the leader's data center and from another: the requesting data center has
/// accepted the leader's proposal, and these two are a majority.
#[test]
fn a_commit_takes_one_round_trip_wherever_it_is_asked_for() {
    for partitions in [1, 2] {
        let world = TestWorld::new(7);
        let geo = GeoConfig::new(CITIES).with_partitions(partitions);
        let geo = geo.with_distance("100ms".parse().expect("a distance"));
        let store = open(&world, EmbeddedConfig::in_memory().with_geo(geo));
        counted(&world, &store, "oslo");
        for (city, most) in [("oslo", 120), ("rome", 120), ("lima", 120)] {
            for _ in 0..5 {
                // The commits of other data centers have arrived.
                pass(&world, 1_000);
                let begin = world.elapsed();
                counted(&world, &store, city);
                let took = world.elapsed().saturating_sub(begin);
                assert!(took <= Duration::from_millis(most), "{city}, {partitions}: {took:?}");
            }
        }
    }
}
