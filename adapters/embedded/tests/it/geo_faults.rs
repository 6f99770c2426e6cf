//! Stores over several data centers whose links are cut, whose disk fails, and whose callers go away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use crate::support::members::{Alone, CITIES};
use crate::support::{self, at, data, usual, write};
use mingle_model::{Level, Stamp};
use mingle_store::{Commit, Data, DataStore, Read, Session, StoreError, TestWorld, World, Write};
use mingle_store_embedded::limits::REOPEN_EVERY;
use mingle_store_embedded::storage::memory::MemoryStorage;
use mingle_store_embedded::storage::{Changes, Snapshot, Storage, StorageError};
use mingle_store_embedded::{Embedded, EmbeddedConfig, GeoConfig};

fn geo() -> GeoConfig {
    GeoConfig::new(CITIES).with_distance("40ms±10ms".parse().expect("a distance"))
}

fn open(world: &Arc<TestWorld>, config: EmbeddedConfig) -> Arc<dyn DataStore> {
    support::open(world, config, usual(Level::Causal))
}

fn count(world: &TestWorld, store: &Arc<dyn DataStore>, city: &str) -> i128 {
    match data(world, store, &Session::at(city), &[Read::Counter(at("a", 1))]).remove(0) {
        Data::Counter(count) => count,
        other => panic!("a counter reads as {other:?}"),
    }
}

fn add(world: &TestWorld, store: &Arc<dyn DataStore>, city: &str, amount: i128) -> Stamp {
    let add = vec![Write::Add(at("a", 1), amount)];
    let committed = world.block_on(write(store, &Session::at(city), add));
    committed.unwrap_or_else(|error| panic!("{city}: {error}")).stamp
}

fn pass(world: &TestWorld, millis: u64) {
    world.block_on(world.sleep(Duration::from_millis(millis)));
}

#[test]
fn a_data_center_that_is_cut_off_goes_on_and_so_do_the_others() {
    let (world, links) = (TestWorld::new(1), Arc::<Alone>::default());
    let config = EmbeddedConfig::in_memory().with_geo(geo()).with_links(links.clone());
    let store = open(&world, config);
    links.set(&["oslo"]);
    let seen = add(&world, &store, "oslo", 1);
    add(&world, &store, "rome", 10);
    pass(&world, 2_000);
    let found = CITIES.map(|city| count(&world, &store, city));
    assert_eq!(found, [1, 10, 10]);
    // A session that comes from there waits, and then gets an error.
    let moved = Session { after: seen, ..Session::at("lima") };
    let begin = world.elapsed();
    let behind = world.block_on(write(&store, &moved, vec![Write::Add(at("a", 1), 100)]));
    let expected = StoreError::Behind { store: "notes".into(), replica: "lima".into() };
    assert_eq!(behind, Err(expected));
    assert!(world.elapsed().saturating_sub(begin) >= Duration::from_millis(500));
    links.set(&[]);
    pass(&world, 2_000);
    let committed = world.block_on(write(&store, &moved, vec![Write::Add(at("a", 1), 100)]));
    committed.expect("all is there");
    pass(&world, 2_000);
    assert_eq!(CITIES.map(|city| count(&world, &store, city)), [111; 3]);
}

#[test]
fn what_fewer_than_f_and_one_have_is_not_shown_elsewhere() {
    for (f, expected) in [(0, 1), (1, 1), (2, 0)] {
        let (world, links) = (TestWorld::new(2), Arc::<Alone>::default());
        let geo = GeoConfig { f: Some(f), ..geo() };
        let config = EmbeddedConfig::in_memory().with_geo(geo).with_links(links.clone());
        let store = open(&world, config);
        links.set(&["lima"]);
        add(&world, &store, "oslo", 1);
        pass(&world, 2_000);
        assert_eq!(count(&world, &store, "oslo"), 1, "its own data center, f = {f}");
        assert_eq!(count(&world, &store, "rome"), expected, "f = {f}");
        links.set(&[]);
        pass(&world, 2_000);
        assert_eq!(count(&world, &store, "rome"), 1, "f = {f}");
    }
}

#[test]
fn one_seed_always_runs_the_same() {
    let run = |seed| {
        let world = TestWorld::new(seed);
        let store = open(&world, EmbeddedConfig::in_memory().with_geo(geo().with_partitions(2)));
        let mut seen = Vec::new();
        for n in 0..60 {
            seen.push(add(&world, &store, CITIES[n % 3], 1));
            pass(&world, world.random() % 40);
            seen.push(world.block_on(store.everywhere()).expect("it answers"));
        }
        seen
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn a_caller_who_goes_away_leaves_nothing_behind() {
    let world = TestWorld::new(5);
    let store = open(&world, EmbeddedConfig::in_memory().with_geo(geo()));
    add(&world, &store, "oslo", 1);
    let seen = add(&world, &store, "rome", 1);
    world.block_on(async {
        // It waits for the writes that its session has seen in Rome.
        let session = Session { after: seen.clone(), ..Session::at("oslo") };
        let mut open = store.begin(&session).await.expect("it begins");
        let reads = [Read::Counter(at("a", 1))];
        {
            let mut read = open.read(&reads);
            let once = std::future::poll_fn(|context| Poll::Ready(read.as_mut().poll(context)));
            assert!(once.await.is_pending());
        }
        let answers = open.read(&reads).await.expect("the same again waits, and then answers");
        assert_eq!(answers[0].data, Data::Counter(2));
        let writes = vec![Write::Add(at("a", 1), 5)];
        drop(open.commit(Commit { writes, ..Commit::default() }));
    });
    assert_eq!(count(&world, &store, "oslo"), 2);
    add(&world, &store, "oslo", 1);
    assert_eq!(count(&world, &store, "oslo"), 3);
}

/// Rows in memory that claim to be on a disk; the disk fails when the test says so.
#[derive(Default)]
struct Failing {
    rows: MemoryStorage,
    fails: Arc<AtomicBool>,
}

impl Storage for Failing {
    fn snapshot(&self) -> Result<Snapshot, StorageError> {
        self.rows.snapshot()
    }

    fn commit(&self, changes: Changes) -> Result<(), StorageError> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(StorageError::new("no space is left"));
        }
        self.rows.commit(changes)
    }

    fn is_durable(&self) -> bool {
        true
    }
}

#[test]
fn nothing_goes_on_once_the_disk_has_failed() {
    let world = TestWorld::new(6);
    let storage = Failing::default();
    let fails = Arc::clone(&storage.fails);
    let config = EmbeddedConfig::in_memory().with_geo(geo());
    let opened =
        Embedded::open_geo_over(Box::new(storage), &config, &usual(Level::Causal), world.clone());
    let store: Arc<dyn DataStore> = opened.expect("the store opens");
    add(&world, &store, "oslo", 1);
    fails.store(true, Ordering::Relaxed);
    let lost = world.block_on(write(&store, &Session::at("oslo"), vec![Write::Add(at("a", 1), 1)]));
    assert_eq!(lost, Err(StoreError::Unknown { store: "notes".into(), id: None }));
    for expected in ["its disk failed: no space is left", "and it does not open again"] {
        for city in CITIES {
            let error = world.block_on(write(&store, &Session::at(city), Vec::new()));
            let error = error.expect_err("the disk has failed").to_string();
            assert!(error.contains(expected), "{error}");
        }
        // This disk cannot be reopened.
        world.block_on(world.sleep(REOPEN_EVERY));
    }
}
