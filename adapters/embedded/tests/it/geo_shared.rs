//! Stores in one engine: each conforms by itself, and a transaction over both is a single one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{at, usual};
use mingle_model::{Level, Name, Value};
use mingle_store::conformance::{self, Factory};
use mingle_store::test_world::join_all;
use mingle_store::wrap::distance::Distance;
use mingle_store::{
    BoxFuture, Commit, Committed, Data, DataStore, Read, Session, StoreError, StoreSchema,
    TestWorld, UnitedCommit, World, Write,
};
use mingle_store_embedded::{Embedded, EmbeddedConfig, GeoConfig, GeoStore};
use tempfile::TempDir;

const CITIES: [&str; 3] = ["oslo", "rome", "lima"];

/// The round-trip time between data centers, and its jitter.
const DISTANCE: Duration = Duration::from_millis(80);

fn geo(partitions: u16) -> GeoConfig {
    GeoConfig::new(CITIES)
        .with_distance(Distance { mean: DISTANCE, jitter: DISTANCE })
        .with_attach_wait(Duration::ZERO)
        .with_partitions(partitions)
}

/// Opens the store whose engine other stores share.
fn host(world: &Arc<TestWorld>, config: &EmbeddedConfig) -> Arc<GeoStore> {
    let schema = of("host", Level::Linearizable);
    Embedded::open_geo(config, &schema, world.clone()).expect("the host opens")
}

/// Returns the usual schema, in a store of this name.
fn of(store: &str, level: Level) -> StoreSchema {
    let schema = StoreSchema { store: store.into(), ..usual(level) };
    let mut types = (*schema.schema).clone();
    for object in types.objects.values_mut() {
        Arc::make_mut(object).store = store.into();
    }
    StoreSchema { schema: Arc::new(types), ..schema }
}

/// A store whose engine another store shares, and the folder of both.
type Host = (Arc<GeoStore>, Option<TempDir>);

/// Makes stores in engines that they share with a linearizable one.
struct GuestFactory {
    level: Level,
    is_kept: bool,
    world: Arc<TestWorld>,
    /// Hosts and folders of open stores, by the address of the store.
    hosts: Mutex<BTreeMap<usize, Host>>,
}

fn address(store: &Arc<dyn DataStore>) -> usize {
    Arc::as_ptr(store).cast::<()>() as usize
}

impl GuestFactory {
    fn open_in(&self, folder: Option<TempDir>, schema: &StoreSchema) -> Arc<dyn DataStore> {
        let config = match &folder {
            Some(folder) => EmbeddedConfig::in_folder(folder.path()),
            None => EmbeddedConfig::in_memory(),
        };
        let host = host(&self.world, &config.clone().with_geo(geo(2)));
        let opened = Embedded::open_beside(&host, &config, schema, self.world.clone());
        let store: Arc<dyn DataStore> = opened.expect("the store opens");
        let mut hosts = self.hosts.lock().expect("no test panics with the lock");
        hosts.insert(address(&store), (host, folder));
        store
    }
}

impl Factory for GuestFactory {
    fn keeps_indexes(&self) -> bool {
        true
    }

    fn draws_keys(&self) -> bool {
        false
    }

    fn level(&self) -> Level {
        self.level
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        let folder = self.is_kept.then(|| TempDir::new().expect("a temporary folder"));
        Box::pin(std::future::ready(self.open_in(folder, &schema)))
    }

    fn reopen(
        &self,
        store: Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Option<Arc<dyn DataStore>>> {
        let mut hosts = self.hosts.lock().expect("no test panics with the lock");
        let folder = hosts.remove(&address(&store)).and_then(|(_, folder)| folder);
        drop((store, hosts));
        let reopened = folder.map(|folder| self.open_in(Some(folder), &schema));
        Box::pin(std::future::ready(reopened))
    }

    fn deliver<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        self.world.sleep(DISTANCE * 10)
    }

    fn step<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        self.world.sleep(Duration::from_millis(self.world.random() % 20))
    }
}

fn check(level: Level, is_kept: bool) {
    let world = TestWorld::new(3);
    let factory = GuestFactory { level, is_kept, world: world.clone(), hosts: Mutex::default() };
    world.block_on(conformance::run(&factory)).assert_passed();
}

#[test]
fn a_causal_store_in_anothers_engine_that_is_kept_conforms() {
    check(Level::Causal, true);
}

#[test]
fn a_linearizable_store_in_anothers_engine_conforms() {
    check(Level::Linearizable, false);
}

/// A linearizable store and a causal one.
struct Pair {
    world: Arc<TestWorld>,
    strong: Arc<GeoStore>,
    weak: Arc<GeoStore>,
}

impl Pair {
    fn new(seed: u64) -> Self {
        Self::open(&TestWorld::new(seed), &EmbeddedConfig::in_memory())
    }

    fn open(world: &Arc<TestWorld>, config: &EmbeddedConfig) -> Self {
        let fixed = geo(2).with_distance(Distance { mean: DISTANCE, jitter: Duration::ZERO });
        let strong = host(world, &config.clone().with_geo(fixed));
        let weak =
            Embedded::open_beside(&strong, config, &of("weak", Level::Causal), world.clone());
        Self { world: world.clone(), strong, weak: weak.expect("the store opens") }
    }

    /// Counts, and retries while other clients get in between.
    async fn counted(&self, session: &Session) -> ([i64; 2], Committed) {
        for _ in 0..100 {
            match self.count(session).await {
                Err(StoreError::Conflict | StoreError::Behind { .. }) => {
                    self.world.sleep(Duration::from_millis(5)).await;
                }
                found => return found.unwrap_or_else(|error| panic!("{error}")),
            }
        }
        panic!("others always get in between");
    }

    /// Looks, once the writes that the session has seen are here.
    async fn seen(&self, session: &Session) -> i64 {
        loop {
            match self.look(session).await {
                Err(StoreError::Behind { .. }) => {
                    self.world.sleep(Duration::from_millis(5)).await;
                }
                found => return found.unwrap_or_else(|error| panic!("{error}")),
            }
        }
    }

    /// Adds one to the numbers in both stores, and returns the numbers before.
    async fn count(&self, session: &Session) -> Result<([i64; 2], Committed), StoreError> {
        let mut united = self.strong.begin_united(session).await?;
        let mut commit = UnitedCommit::default();
        let mut found = [0; 2];
        for (place, store) in [&self.strong, &self.weak].into_iter().enumerate() {
            let name: Name = store.capabilities().store.clone();
            let part = united.part(&name).await?;
            let answers = part.read(&[Read::Register(at("a", 0))]).await?;
            found[place] = number(&answers[0].data);
            let next = Value::Int(found[place] + 1);
            let writes = vec![Write::Assign(at("a", 0), next)];
            commit.parts.push((name, Commit { writes, ..Commit::default() }));
        }
        Ok((found, united.commit(commit).await?))
    }

    /// Returns the number in the causal store.
    async fn look(&self, session: &Session) -> Result<i64, StoreError> {
        let mut transaction = self.weak.begin(session).await?;
        let answers = transaction.read(&[Read::Register(at("a", 0))]).await?;
        Ok(number(&answers[0].data))
    }
}

fn number(data: &Data) -> i64 {
    match data {
        Data::Register(Some(Value::Int(number))) => *number,
        _ => 0,
    }
}

fn session(city: &str, after: &Committed) -> Session {
    Session { after: after.stamp.clone(), ..Session::at(city) }
}

#[test]
fn what_is_committed_together_is_seen_together_everywhere() {
    let pair = Pair::new(1);
    pair.world.block_on(async {
        let mut last = Committed::default();
        for n in 0..9 {
            let city = CITIES[n % 3];
            let (found, committed) = pair.counted(&session(city, &last)).await;
            assert_eq!(found, [n as i64; 2], "{city}");
            last = committed;
            for city in CITIES {
                assert_eq!(pair.seen(&session(city, &last)).await, n as i64 + 1, "{city}");
            }
        }
    });
    assert_eq!(pair.strong.alarms(), Vec::<String>::new());
}

#[test]
fn of_those_who_count_at_once_none_is_lost() {
    let pair = Pair::new(2);
    let clients = (0..6).map(|n| {
        let pair = &pair;
        let client: BoxFuture<'_, Vec<i64>> = Box::pin(async move {
            let mut numbers = Vec::new();
            for _ in 0..4 {
                let (found, _) = pair.counted(&Session::at(CITIES[n % 3])).await;
                // A client writes the numbers it read in both, so a missed count would show.
                assert_eq!(found[0], found[1]);
                numbers.push(found[0]);
            }
            numbers
        });
        client
    });
    let mut numbers =
        pair.world.block_on(mingle_store::test_world::join_all(clients.collect())).concat();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..24).collect::<Vec<i64>>());
}

#[test]
fn those_who_write_causally_wait_for_nobody() {
    let pair = Pair::new(3);
    pair.world.block_on(async {
        pair.counted(&Session::at("oslo")).await;
        let begin = pair.world.elapsed();
        let transaction = pair.weak.begin(&Session::at("lima")).await.expect("it is up");
        let writes = vec![Write::Assign(at("b", 0), Value::Int(1))];
        let commit = Commit { writes, ..Commit::default() };
        transaction.commit(commit).await.expect("nobody is in its way");
        assert_eq!(pair.world.elapsed(), begin);
    });
}

#[test]
fn a_folder_keeps_both() {
    let folder = TempDir::new().expect("a temporary folder");
    let config = EmbeddedConfig::in_folder(folder.path());
    for n in 0..3 {
        let pair = Pair::open(&TestWorld::new(4 + n), &config);
        let (found, _) = pair.world.block_on(pair.counted(&Session::at("rome")));
        assert_eq!(found, [n as i64; 2]);
    }
    let world = TestWorld::new(9);
    let alone = Embedded::open_geo(
        &config.clone().with_geo(geo(2)),
        &of("weak", Level::Causal),
        world.clone(),
    );
    let error = alone.err().expect("its items are with the host's").to_string();
    assert!(error.contains("with host, data centers of 2 partitions"), "{error}");
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    let pair = Pair::new(5);
    let refused = |error: StoreError, expected: &str| {
        assert!(error.to_string().contains(expected), "{error}");
    };
    pair.world.block_on(async {
        let session = Session::at("oslo");
        let mut united = pair.strong.begin_united(&session).await.expect("it is shared");
        let other = united.part(&"other".into()).await.err().expect("there is none");
        refused(other, "its engine has no store other");
        let weak = pair.weak.begin_united(&session).await.err().expect("it is causal");
        refused(weak, "begins at a linearizable one");
        let alone = host(&pair.world, &EmbeddedConfig::in_memory().with_geo(geo(1)));
        assert_eq!(alone.engine(), None);
        let alone = alone.begin_united(&session).await.err().expect("it is alone");
        refused(alone, "that shares its engine");
    });
    let config = EmbeddedConfig::in_memory();
    let third = |host: &Arc<GeoStore>, config: &EmbeddedConfig| {
        let opened =
            Embedded::open_beside(host, config, &of("c", Level::Causal), pair.world.clone());
        opened.err().expect("it does not fit").to_string()
    };
    let error = third(&pair.weak, &config);
    assert!(error.contains("it cannot live with weak"), "{error}");
    let folder = TempDir::new().expect("a temporary folder");
    let error = third(&pair.strong, &EmbeddedConfig::in_folder(folder.path()));
    assert!(error.contains("either both it and host are kept in a folder"), "{error}");
}

/// A causal store that shares an engine certifies the transactions of its own list, also those that visit
/// the other store.
#[test]
fn a_transaction_over_both_that_the_causal_store_lists_is_certified() {
    for (pairs, expected) in [(&[("take", "take")][..], 1), (&[], 3)] {
        let world = TestWorld::new(12);
        let config = EmbeddedConfig::in_memory().with_geo(geo(2));
        let strong = host(&world, &config);
        let listed = GeoConfig::new(CITIES).with_conflicts(pairs.iter().copied());
        let config = EmbeddedConfig::in_memory().with_geo(listed);
        let schema = of("weak", Level::Causal);
        let weak = Embedded::open_beside(&strong, &config, &schema, world.clone());
        let weak = weak.expect("it opens");
        world.block_on(async {
            let first = weak.begin(&Session::at("oslo")).await.expect("it begins");
            let writes = vec![Write::Add(at("a", 1), 1)];
            first.commit(Commit { writes, ..Commit::default() }).await.expect("all are there");
            world.sleep(DISTANCE * 10).await;
        });
        let calls = CITIES.map(|city| {
            let strong = &strong;
            let call: BoxFuture<'_, bool> = Box::pin(async move {
                let session = Session { transaction: Some("take".into()), ..Session::at(city) };
                let mut united = strong.begin_united(&session).await.expect("it begins");
                let weak: Name = "weak".into();
                let part = united.part(&weak).await.expect("it is in the engine");
                let answers = part.read(&[Read::Counter(at("a", 1))]).await.expect("it reads");
                assert_eq!(answers[0].data, Data::Counter(1));
                let writes = vec![Write::Add(at("a", 1), -1)];
                let taken = Commit { writes, ..Commit::default() };
                let writes = vec![Write::Assign(at(city, 0), Value::Int(1))];
                let noted = Commit { writes, ..Commit::default() };
                let parts = vec![("host".into(), noted), (weak, taken)];
                let commit = UnitedCommit { parts, ..UnitedCommit::default() };
                match united.commit(commit).await {
                    Ok(_) => true,
                    Err(StoreError::Conflict) => false,
                    Err(error) => panic!("{city}: {error}"),
                }
            });
            call
        });
        let done = world.block_on(join_all(calls.into()));
        assert_eq!(done.into_iter().filter(|done| *done).count(), expected, "{pairs:?}");
    }
}
