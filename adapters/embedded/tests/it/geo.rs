//! Stores over several data centers: the suite, and the behavior specific to them.

use crate::support;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use mingle_model::{FieldType, Level, Origin, TransactionId, Type, Value};
use mingle_store::conformance::{self, Factory};
use mingle_store::wrap::distance::Distance;
use mingle_store::{
    BoxFuture, Commit, Data, DataStore, OperationId, Outcome, Read, RecordKey, RecordKind, Session,
    StoreError, StoreSchema, TestWorld, World, Write, record,
};

use mingle_store_embedded::{Embedded, EmbeddedConfig, GeoConfig, GeoStore};
use tempfile::TempDir;

const CITIES: [&str; 3] = ["oslo", "rome", "lima"];

/// The round-trip time between data centers, and its jitter.
const DISTANCE: Duration = Duration::from_millis(80);

struct GeoFactory {
    partitions: u16,
    is_kept: bool,
    world: Arc<TestWorld>,
    /// Folders of open stores, by the address of the store.
    folders: Mutex<BTreeMap<usize, TempDir>>,
}

fn address(store: &Arc<dyn DataStore>) -> usize {
    Arc::as_ptr(store).cast::<()>() as usize
}

fn geo(partitions: u16) -> GeoConfig {
    GeoConfig::new(["oslo", "rome", "lima"])
        .with_distance(Distance { mean: DISTANCE, jitter: DISTANCE })
        .with_attach_wait(Duration::ZERO)
        .with_partitions(partitions)
}

impl GeoFactory {
    fn open_in(&self, folder: Option<TempDir>, schema: StoreSchema) -> Arc<dyn DataStore> {
        let config = match &folder {
            Some(folder) => EmbeddedConfig::in_folder(folder.path()),
            None => EmbeddedConfig::in_memory(),
        };
        let config = config.with_geo(geo(self.partitions));
        let store = Embedded::open(config, schema, self.world.clone()).expect("the store opens");
        if let Some(folder) = folder {
            let mut folders = self.folders.lock().expect("no test panics with the lock");
            folders.insert(address(&store), folder);
        }
        store
    }
}

impl Factory for GeoFactory {
    fn keeps_indexes(&self) -> bool {
        true
    }

    fn draws_keys(&self) -> bool {
        false
    }

    fn lists_objects(&self) -> bool {
        true
    }

    fn level(&self) -> Level {
        Level::Causal
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        let folder = self.is_kept.then(|| TempDir::new().expect("a temporary folder"));
        Box::pin(std::future::ready(self.open_in(folder, schema)))
    }

    fn reopen(
        &self,
        store: Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Option<Arc<dyn DataStore>>> {
        let mut folders = self.folders.lock().expect("no test panics with the lock");
        let folder = folders.remove(&address(&store));
        drop(folders);
        drop(store);
        let reopened = folder.map(|folder| self.open_in(Some(folder), schema));
        Box::pin(std::future::ready(reopened))
    }

    fn deliver<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        self.world.sleep(DISTANCE * 10)
    }

    fn step<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        self.world.sleep(Duration::from_millis(self.world.random() % 20))
    }
}

fn check(partitions: u16, is_kept: bool) {
    let world = TestWorld::new(3);
    let folders = Mutex::default();
    let factory = GeoFactory { partitions, is_kept, world: world.clone(), folders };
    world.block_on(conformance::run(&factory)).assert_passed();
}

#[test]
fn one_partition_conforms() {
    check(1, false);
}

#[test]
fn several_partitions_conform() {
    check(4, false);
}

#[test]
fn one_partition_in_a_folder_conforms() {
    check(1, true);
}

#[test]
fn several_partitions_in_a_folder_conform() {
    check(2, true);
}

fn open_kept(world: &Arc<TestWorld>, folder: &TempDir) -> Arc<GeoStore> {
    let config = EmbeddedConfig::in_folder(folder.path()).with_geo(geo(1));
    let schema = support::usual(Level::Causal);
    Embedded::open_geo(&config, &schema, world.clone()).expect("the store opens")
}

fn number(world: &TestWorld, store: &Arc<dyn DataStore>, session: &Session, field: u16) -> Data {
    let address = support::at("x", field);
    let read = if field == 0 { Read::Register(address) } else { Read::Counter(address) };
    support::data(world, store, session, &[read]).remove(0)
}

#[test]
fn what_is_on_its_way_arrives_after_a_restart_and_sessions_go_on() {
    let world = TestWorld::new(5);
    let folder = TempDir::new().expect("a temporary folder");
    let store: Arc<dyn DataStore> = open_kept(&world, &folder);
    let mut stamps = Vec::new();
    for (n, city) in CITIES.into_iter().enumerate() {
        let add = vec![Write::Add(support::at("x", 1), 1 << n)];
        let written = world.block_on(support::write(&store, &Session::at(city), add));
        stamps.push(written.expect("it commits").stamp);
    }
    drop(store);
    let kept = open_kept(&world, &folder);
    let store: Arc<dyn DataStore> = kept.clone();
    // An acknowledged write is visible at once in its data center; sessions elsewhere wait for it.
    for (n, city) in CITIES.into_iter().enumerate() {
        let own = Session { after: stamps[n].clone(), ..Session::at(city) };
        assert_eq!(number(&world, &store, &own, 1), Data::Counter(1 << n), "{city}");
    }
    world.block_on(world.sleep(DISTANCE * 10));
    for city in CITIES {
        for after in &stamps {
            let moved = Session { after: after.clone(), ..Session::at(city) };
            assert_eq!(number(&world, &store, &moved, 1), Data::Counter(7), "{city}");
        }
    }
    assert_eq!(kept.alarms(), Vec::<String>::new());
}

#[test]
fn a_log_is_written_anew_before_it_grows_for_ever() {
    let world = TestWorld::new(6);
    let folder = TempDir::new().expect("a temporary folder");
    let kept = open_text(&world, &folder);
    let store: Arc<dyn DataStore> = kept.clone();
    let mut written = 0;
    let text = |n: usize| Value::from(format!("{n} {}", "x".repeat(1 << 16)));
    for n in 0..240 {
        let city = CITIES[n % 3];
        let write = vec![Write::Assign(support::at("x", 0), text(n))];
        let committed = world.block_on(support::write(&store, &Session::at(city), write));
        committed.expect("it commits");
        written += 3 << 16;
        // Long enough that versions are folded occasionally.
        world.block_on(world.sleep(Duration::from_millis(300)));
    }
    let bytes = kept.log_bytes();
    assert!(written > 40 << 20 && bytes > 0, "{written} bytes were written");
    assert!(bytes < 30 << 20, "{bytes} bytes are left of {written}");
    drop((store, kept));
    let store: Arc<dyn DataStore> = open_text(&world, &folder);
    world.block_on(world.sleep(DISTANCE * 10));
    for city in CITIES {
        let found = number(&world, &store, &Session::at(city), 0);
        assert_eq!(found, Data::Register(Some(text(239))), "{city}");
    }
}

fn open_text(world: &Arc<TestWorld>, folder: &TempDir) -> Arc<GeoStore> {
    let config = EmbeddedConfig::in_folder(folder.path()).with_geo(geo(1));
    let fields = [("text", FieldType::Register(Type::String))];
    let schema = support::schema(Level::Causal, &fields);
    Embedded::open_geo(&config, &schema, world.clone()).expect("the store opens")
}

fn by_id(sequence: u64, phase: u32) -> Commit {
    let id = TransactionId { origin: Origin(9), sequence };
    let writes = vec![
        Write::Add(support::at("x", 1), 5),
        Write::Append(support::at("x", 2), Value::Int(7)),
        Write::Insert(support::at("x", 3), Value::Int(7)),
    ];
    Commit { writes, operation: Some(OperationId { id, phase }), ..Commit::default() }
}

#[test]
fn of_copies_of_a_phase_that_data_centers_run_at_once_one_counts() {
    let world = TestWorld::new(9);
    let config = EmbeddedConfig::in_memory().with_geo(geo(2));
    let store = Embedded::open(config, support::usual(Level::Causal), world.clone());
    let store = store.expect("the store opens");
    let run = |city: &str, commit: Commit| {
        world.block_on(async {
            let transaction = store.begin(&Session::at(city)).await?;
            transaction.commit(commit).await
        })
    };
    let all = [
        Read::Counter(support::at("x", 1)),
        Read::LogLast(support::at("x", 2), 9),
        Read::SetSize(support::at("x", 3)),
    ];
    for city in CITIES {
        run(city, by_id(1, 1)).expect("it commits");
    }
    // Another phase is another operation.
    run("rome", by_id(1, 2)).expect("it commits");
    world.block_on(world.sleep(DISTANCE * 10));
    let line = Value::Int(7);
    let expected = vec![Data::Counter(10), Data::Values(vec![line.clone(), line]), Data::Count(1)];
    for city in CITIES {
        assert_eq!(support::data(&world, &store, &Session::at(city), &all), expected, "{city}");
    }
    // A client that sees that it ran, and runs it again, adds nothing either.
    run("lima", by_id(1, 1)).expect("it commits");
    world.block_on(world.sleep(DISTANCE * 10));
    for city in CITIES {
        assert_eq!(support::data(&world, &store, &Session::at(city), &all), expected, "{city}");
    }
    // Below its origin's floor it is refused, wherever the floor was raised.
    let floor = RecordKey::of_origin(RecordKind::Floor, Origin(9));
    let raise = vec![Write::Record(floor, record::floor(1))];
    run("oslo", Commit { writes: raise, ..Commit::default() }).expect("it commits");
    assert_eq!(run("lima", by_id(1, 1)), Err(StoreError::Conflict));
    run("lima", by_id(2, 1)).expect("the next one is above the floor");
}

#[test]
fn what_became_of_a_commit_is_known_once_its_data_center_is_back() {
    let world = TestWorld::new(10);
    let folder = TempDir::new().expect("a temporary folder");
    let kept = open_kept(&world, &folder);
    let store: Arc<dyn DataStore> = kept.clone();
    // The first message waits for the disk; so do the requests of a commit before it is sent.
    assert_eq!(number(&world, &store, &Session::at("oslo"), 1), Data::Counter(0));
    let id = TransactionId { origin: Origin(9), sequence: 1 };
    let writes = vec![Write::Add(support::at("x", 1), 5)];
    let result = world.block_on(async {
        let transaction = store.begin(&Session::at("oslo")).await?;
        let commit = transaction.commit(Commit { id: Some(id), writes, ..Commit::default() });
        let mut commit = std::pin::pin!(commit);
        // The commit has been sent, and is on its way to the disk.
        let once = std::future::poll_fn(|context| Poll::Ready(commit.as_mut().poll(context)));
        assert!(once.await.is_pending());
        kept.kill("oslo")?;
        commit.await
    });
    let store_name = "notes".into();
    assert_eq!(result, Err(StoreError::Unknown { store: store_name, id: Some(id) }));
    assert_eq!(world.block_on(store.outcome(id)), Ok(Outcome::Unknown));
    kept.start("oslo").expect("it is there");
    world.block_on(world.sleep(DISTANCE * 10));
    assert_eq!(world.block_on(store.outcome(id)), Ok(Outcome::Committed));
    for city in CITIES {
        assert_eq!(number(&world, &store, &Session::at(city), 1), Data::Counter(5), "{city}");
    }
    // A commit that never was stays uncommitted for ever, at every data center.
    let other = TransactionId { origin: Origin(9), sequence: 2 };
    assert_eq!(world.block_on(store.outcome(other)), Ok(Outcome::NotCommitted));
    drop((store, kept));
    let store: Arc<dyn DataStore> = open_kept(&world, &folder);
    for city in CITIES {
        let late = world.block_on(async {
            let transaction = store.begin(&Session::at(city)).await?;
            let writes = vec![Write::Add(support::at("x", 1), 1)];
            transaction.commit(Commit { id: Some(other), writes, ..Commit::default() }).await
        });
        assert!(matches!(late, Err(StoreError::Refused { .. })), "{late:?}");
    }
    assert_eq!(world.block_on(store.outcome(id)), Ok(Outcome::Committed));
}

#[test]
fn an_eventual_store_is_a_causal_one() {
    let world = TestWorld::new(8);
    let config = EmbeddedConfig::in_memory().with_geo(geo(1));
    let store = Embedded::open(config, support::usual(Level::Eventual), world.clone());
    let store = store.expect("the store opens");
    assert_eq!(store.capabilities().level, Level::Causal);
}

#[test]
fn what_a_folder_holds_is_not_taken_for_something_else() {
    let world = TestWorld::new(7);
    let folder = TempDir::new().expect("a temporary folder");
    drop(open_kept(&world, &folder));
    let open = |config: EmbeddedConfig| {
        let opened = Embedded::open(config, support::usual(Level::Causal), world.clone());
        opened.err().map_or_else(String::new, |error| error.to_string())
    };
    let config = || EmbeddedConfig::in_folder(folder.path());
    let error = open(config().with_geo(geo(4)));
    let expected = "keeps its copies as `data centers of 1 partition`, but the program says `data centers of 4 partitions`";
    assert!(error.contains(expected), "{error}");
    let error = open(config().with_replicas(3));
    assert!(error.contains("but the program says `replicas`"), "{error}");
    let error = open(config().with_geo(GeoConfig::new(["oslo", "rome", "bonn"])));
    assert!(error.contains("oslo, rome, lima") && error.contains("oslo, rome, bonn"), "{error}");
    assert_eq!(open(config().with_geo(geo(1))), "");
    let other = TempDir::new().expect("a temporary folder");
    let config = || EmbeddedConfig::in_folder(other.path());
    assert_eq!(open(config().with_replicas(3)), "");
    let error = open(config().with_geo(geo(1)));
    assert!(error.contains("keeps its copies as `replicas`"), "{error}");
}
