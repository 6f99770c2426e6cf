//! Linearizable stores over several data centers with declared conflicts between transactions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::members::{Alone, CITIES};
use crate::support::{at, usual};
use mingle_model::{Level, Name, Origin, RowKind, Stamp, TransactionId, WitnessRow};
use mingle_store::conformance::{self, Factory};
use mingle_store::test_world::join_all;
use mingle_store::wrap::distance::Distance;
use mingle_store::{
    BoxFuture, Capabilities, Commit, Committed, Data, DataStore, Guard, Outcome, Read, RecordKey,
    RecordKind, Session, StoreError, StoreSchema, TestWorld, Transaction, World, Write,
};
use mingle_store_embedded::{Embedded, EmbeddedConfig, GeoConfig, GeoStore};
use tempfile::TempDir;

/// The round-trip time between data centers, and its jitter.
const DISTANCE: Duration = Duration::from_millis(80);

fn geo() -> GeoConfig {
    GeoConfig::new(CITIES)
        .with_distance(Distance { mean: DISTANCE, jitter: DISTANCE })
        .with_partitions(2)
}

/// Declares that withdrawals conflict with withdrawals.
fn bank() -> GeoConfig {
    geo().with_conflicts([("withdraw", "withdraw")])
}

fn open(world: &Arc<TestWorld>, config: &EmbeddedConfig) -> Arc<GeoStore> {
    let schema = usual(Level::Linearizable);
    Embedded::open_geo(config, &schema, world.clone()).expect("the store opens")
}

fn pass(world: &TestWorld, millis: u64) {
    world.block_on(world.sleep(Duration::from_millis(millis)));
}

fn of(transaction: &str, city: &str) -> Session {
    Session { transaction: Some(transaction.into()), ..Session::at(city) }
}

/// A store all of whose transactions have one name, if there is one.
pub struct Named {
    pub inner: Arc<GeoStore>,
    pub name: Option<Name>,
}

impl DataStore for Named {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            let transaction = self.name.clone();
            self.inner.begin(&Session { transaction, ..session.clone() }).await
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        self.inner.outcome(id)
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        self.inner.everywhere()
    }
}

/// Makes stores all of whose transactions have one name, and conflict with each other.
struct NamedFactory(Arc<TestWorld>);

impl Factory for NamedFactory {
    fn keeps_indexes(&self) -> bool {
        true
    }

    fn draws_keys(&self) -> bool {
        false
    }

    fn level(&self) -> Level {
        Level::Linearizable
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        let config = EmbeddedConfig::in_memory().with_geo(geo().with_conflicts([("all", "all")]));
        let opened = Embedded::open_geo(&config, &schema, self.0.clone());
        let inner = opened.expect("the store opens");
        let named: Arc<dyn DataStore> = Arc::new(Named { inner, name: Some("all".into()) });
        Box::pin(std::future::ready(named))
    }

    fn deliver<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        self.0.sleep(DISTANCE * 10)
    }

    fn step<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        self.0.sleep(Duration::from_millis(self.0.random() % 20))
    }
}

/// If every pair is listed, the store behaves as without the list.
#[test]
fn a_store_of_which_all_transactions_conflict_conforms() {
    let world = TestWorld::new(3);
    let factory = NamedFactory(world.clone());
    world.block_on(conformance::run(&factory)).assert_passed();
}

async fn add(store: &GeoStore, city: &str, amount: i128) -> Result<Committed, StoreError> {
    let transaction = store.begin(&of("deposit", city)).await?;
    let writes = vec![Write::Add(at("a", 1), amount)];
    transaction.commit(Commit { writes, ..Commit::default() }).await
}

/// Withdraws `amount` if the balance covers it; true if it did.
async fn take(store: &GeoStore, name: &str, city: &str, amount: i128) -> Result<bool, StoreError> {
    for _ in 0..100 {
        let mut transaction = store.begin(&of(name, city)).await?;
        let answers = transaction.read(&[Read::Counter(at("a", 1))]).await?;
        if !matches!(answers[0].data, Data::Counter(balance) if balance >= amount) {
            return Ok(false);
        }
        let writes = vec![Write::Add(at("a", 1), -amount)];
        match transaction.commit(Commit { writes, ..Commit::default() }).await {
            Err(StoreError::Conflict) => {}
            result => return result.map(|_| true),
        }
    }
    panic!("others always get in between");
}

fn balance(world: &TestWorld, store: &GeoStore, session: &Session) -> i128 {
    let read = async {
        let mut transaction = store.begin(session).await?;
        let answers = transaction.read_last(&[Read::Counter(at("a", 1))]).await?;
        transaction.commit(Commit::default()).await?;
        Ok::<_, StoreError>(answers[0].data.clone())
    };
    match world.block_on(read) {
        Ok(Data::Counter(balance)) => balance,
        other => panic!("{other:?}"),
    }
}

/// The leader is cut off while clients deposit and withdraw everywhere, and comes back.
#[test]
fn nothing_is_overdrawn_while_a_data_center_is_cut_off() {
    let (world, links) = (TestWorld::new(4), Arc::<Alone>::default());
    let config = EmbeddedConfig::in_memory().with_geo(bank()).with_links(links.clone());
    let store = open(&world, &config);
    world.block_on(add(&store, "oslo", 100)).expect("all are there");
    let sums = Mutex::new((100, 0));
    let mut all: Vec<BoxFuture<'_, ()>> = Vec::new();
    for number in 0..9 {
        let (store, sums, world, city) = (&store, &sums, &world, CITIES[number % 3]);
        all.push(Box::pin(async move {
            for round in 0..20 {
                let amount = 1 + (number as i128 * 7 + round * 3) % 9;
                let result = if number < 3 {
                    let added = add(store, city, amount).await;
                    added.map(|_| sums.lock().expect("no panic").0 += amount)
                } else {
                    take(store, "withdraw", city, amount).await.map(|has_taken| {
                        sums.lock().expect("no panic").1 += if has_taken { amount } else { 0 };
                    })
                };
                match result {
                    Ok(()) => {}
                    Err(StoreError::Unavailable { .. } | StoreError::Conflict) => {
                        world.sleep(Duration::from_millis(200)).await;
                    }
                    Err(StoreError::Unknown { .. }) => {
                        let mut sums = sums.lock().expect("no panic");
                        // The outcome is unknown, so the test makes the sum invalid.
                        *sums = (i128::MIN, sums.1);
                    }
                    Err(error) => panic!("{city}: {error}"),
                }
                world.sleep(Duration::from_millis(world.random() % 50)).await;
            }
        }));
    }
    all.push(Box::pin(async {
        for alone in [&["oslo"][..], &[], &["rome"], &[]] {
            world.sleep(Duration::from_millis(700)).await;
            links.set(alone);
        }
    }));
    world.block_on(join_all(all));
    pass(&world, 10_000);
    let found = CITIES.map(|city| balance(&world, &store, &of("look", city)));
    assert!(found[0] >= 0 && found[1..] == [found[0]; 2], "{found:?}");
    let (added, taken) = *sums.lock().expect("no panic");
    if added >= 0 {
        assert_eq!(added - taken, found[0]);
    }
    let conflicts = store.conflicts_of("withdraw");
    assert!(taken > 0 && conflicts > 0, "{taken} were taken, {conflicts} conflicts");
    assert_eq!(store.conflicts_of("deposit"), 0);
    assert_eq!(store.alarms(), Vec::<String>::new());
}

/// Commits in all data centers at once, by transactions in no pair; returns how many take effect.
fn at_once(
    world: &Arc<TestWorld>,
    store: &Arc<GeoStore>,
    commit: impl Fn(&str) -> Commit,
) -> usize {
    let calls = CITIES.map(|city| {
        let (store, commit) = (Arc::clone(store), commit(city));
        let call: BoxFuture<'_, bool> = Box::pin(async move {
            let transaction = store.begin(&of("deposit", city)).await.expect("it begins");
            match transaction.commit(commit).await {
                Ok(_) => true,
                Err(StoreError::Conflict | StoreError::Witnessed { .. }) => false,
                Err(error) => panic!("{city}: {error}"),
            }
        });
        call
    });
    let done = world.block_on(join_all(calls.into())).into_iter().filter(|done| *done).count();
    pass(world, 2_000);
    done
}

/// The runtime's requirements hold for transactions in no pair, too.
#[test]
fn guards_ids_and_witness_rows_hold_for_everybody() {
    let world = TestWorld::new(5);
    let store = open(&world, &EmbeddedConfig::in_memory().with_geo(bank()));
    let writes = || vec![Write::Add(at("a", 1), 1)];
    let id = |sequence| TransactionId { origin: Origin(9), sequence };
    assert_eq!(at_once(&world, &store, |_| Commit { writes: writes(), ..Commit::default() }), 3);

    let record = RecordKey::of(RecordKind::Witness, id(1), 0);
    let once = |_: &str| {
        let noted = Write::Record(record.clone(), [1].as_slice().into());
        let (writes, guards) =
            ([writes(), vec![noted]].concat(), vec![Guard::Absent(record.clone())]);
        Commit { writes, guards, ..Commit::default() }
    };
    assert_eq!(at_once(&world, &store, once), 1, "a record is made once");
    let same = |_: &str| Commit { id: Some(id(2)), writes: writes(), ..Commit::default() };
    assert_eq!(at_once(&world, &store, same), 1, "an id takes effect once");

    // Each leaves a row on the object that all write: a later one has not known the earlier rows.
    let rows = |city: &str| {
        let own = id(3 + CITIES.iter().position(|known| *known == city).expect("it is one") as u64);
        let row = WitnessRow {
            object: Some(at("a", 1).object),
            id: own,
            kind: RowKind::Write,
            intent: "notes".into(),
            stores: Vec::new(),
            seen: Vec::new(),
        };
        let writes = [writes(), vec![Write::Witness(row)]].concat();
        Commit { id: Some(own), writes, ..Commit::default() }
    };
    assert_eq!(at_once(&world, &store, rows), 1, "who writes knows all rows");
    let found = CITIES.map(|city| balance(&world, &store, &of("look", city)));
    assert_eq!(found, [6; 3]);
}

/// A transaction that the program does not name conflicts with all, as without a declaration.
#[test]
fn who_has_no_name_conflicts_with_everybody() {
    let world = TestWorld::new(6);
    let store = open(&world, &EmbeddedConfig::in_memory().with_geo(bank()));
    world.block_on(add(&store, "oslo", 5)).expect("all are there");
    pass(&world, 2_000);
    let result = world.block_on(async {
        let mut nobody = store.begin(&Session::at("rome")).await?;
        nobody.read(&[Read::Counter(at("a", 1))]).await?;
        add(&store, "oslo", 1).await?;
        let writes = vec![Write::Add(at("a", 1), -5)];
        nobody.commit(Commit { writes, ..Commit::default() }).await
    });
    assert_eq!(result, Err(StoreError::Conflict));
}

/// A read-only transaction in no pair asks no other data center.
#[test]
fn who_only_reads_and_is_in_no_pair_is_answered_here() {
    let world = TestWorld::new(7);
    let store = open(&world, &EmbeddedConfig::in_memory().with_geo(bank()));
    world.block_on(add(&store, "oslo", 5)).expect("all are there");
    pass(&world, 2_000);
    for (name, is_here) in [("look", true), ("withdraw", false)] {
        let begin = world.elapsed();
        assert_eq!(balance(&world, &store, &of(name, "lima")), 5);
        assert_eq!(world.elapsed() == begin, is_here, "{name}");
    }
}

/// The declaration may change from one start to the next: the logs stay the same.
#[test]
fn a_store_that_is_kept_goes_on_with_another_declaration() {
    let folder = TempDir::new().expect("a folder");
    let world = TestWorld::new(9);
    let mut expected = 0;
    for (round, pairs) in [
        vec![("withdraw", "withdraw")],
        vec![],
        vec![("withdraw", "withdraw"), ("audit", "withdraw")],
        vec![("audit", "audit")],
        vec![("withdraw", "withdraw")],
    ]
    .into_iter()
    .enumerate()
    {
        let config = EmbeddedConfig::in_folder(folder.path());
        let store = open(&world, &config.with_geo(geo().with_conflicts(pairs)));
        for city in CITIES {
            world.block_on(add(&store, city, 10)).expect("all are there");
            let taken = world.block_on(take(&store, "withdraw", city, 4)).expect("all are there");
            assert!(taken, "{city} in round {round}");
            expected += 6;
        }
        pass(&world, 2_000);
        for city in CITIES {
            assert_eq!(balance(&world, &store, &of("look", city)), expected, "{city}");
        }
        assert_eq!(store.alarms(), Vec::<String>::new());
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let world = TestWorld::new(8);
    let many = geo().with_conflicts((0..257).map(|n| (format!("a{n}"), "b".into())));
    let one = GeoConfig::new(["oslo"]).with_conflicts([("a", "a")]);
    for (geo, level, expected) in [
        (bank(), Level::Snapshot, "of a linearizable or a causal store, and it is snapshot"),
        (many, Level::Linearizable, "in at most 256 pairs, not 257"),
        (one, Level::Linearizable, "is said of several data centers, and it has one"),
    ] {
        let config = EmbeddedConfig::in_memory().with_geo(geo);
        let opened = Embedded::open_geo(&config, &usual(level), world.clone());
        let error = opened.err().expect(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
