//! Causal stores over several data centers with declared conflicts: the transactions of a pair are
//! strong, all others are causal.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::geo_labels::Named;
use crate::support::members::{CITIES, pass};
use crate::support::{at, usual};
use mingle_model::{Level, Origin, TransactionId};
use mingle_store::conformance::{self, Factory, Report};
use mingle_store::test_world::join_all;
use mingle_store::wrap::distance::Distance;
use mingle_store::{
    BoxFuture, Commit, Committed, Data, DataStore, Guard, OperationId, Outcome, Read, RecordKey,
    RecordKind, Session, StoreError, StoreSchema, TestWorld, World, Write,
};
use mingle_store_embedded::{Embedded, EmbeddedConfig, GeoConfig, GeoStore};
use tempfile::TempDir;

/// The round-trip time between data centers, and its jitter.
const DISTANCE: Duration = Duration::from_millis(40);

fn geo() -> GeoConfig {
    GeoConfig::new(CITIES)
        .with_distance(Distance { mean: DISTANCE, jitter: DISTANCE / 2 })
        .with_partitions(2)
}

/// Declares that withdrawals conflict with withdrawals.
fn bank() -> GeoConfig {
    geo().with_conflicts([("withdraw", "withdraw")])
}

fn open(world: &Arc<TestWorld>, config: &EmbeddedConfig) -> Arc<GeoStore> {
    Embedded::open_geo(config, &usual(Level::Causal), world.clone()).expect("the store opens")
}

fn in_memory(world: &Arc<TestWorld>) -> Arc<GeoStore> {
    open(world, &EmbeddedConfig::in_memory().with_geo(bank()))
}

fn of(transaction: &str, city: &str) -> Session {
    Session { transaction: Some(transaction.into()), ..Session::at(city) }
}

/// Makes stores all of whose transactions have one name; those called `all` conflict.
struct NamedFactory(Arc<TestWorld>, Option<&'static str>);

impl Factory for NamedFactory {
    fn keeps_indexes(&self) -> bool {
        true
    }

    fn draws_keys(&self) -> bool {
        false
    }

    fn level(&self) -> Level {
        Level::Causal
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        let geo = geo().with_attach_wait(Duration::ZERO).with_conflicts([("all", "all")]);
        let config = EmbeddedConfig::in_memory().with_geo(geo);
        let opened = Embedded::open_geo(&config, &schema, self.0.clone());
        let inner = opened.expect("the store opens");
        let named: Arc<dyn DataStore> = Arc::new(Named { inner, name: self.1.map(Into::into) });
        Box::pin(std::future::ready(named))
    }

    fn deliver<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        self.0.sleep(DISTANCE * 20)
    }

    fn step<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        self.0.sleep(Duration::from_millis(self.0.random() % 20))
    }
}

fn report(name: Option<&'static str>) -> Report {
    let world = TestWorld::new(3);
    let factory = NamedFactory(world.clone(), name);
    world.block_on(conformance::run(&factory))
}

#[test]
fn causal_transactions_beside_strong_ones_conform() {
    report(Some("other")).assert_passed();
}

#[test]
fn transactions_without_a_name_conform() {
    report(None).assert_passed();
}

/// Tests of a causal store that strong transactions cannot pass: they ask for data centers that have not
/// heard of each other, or for commits that never conflict.
const ASK_FOR_WEAKER: [&str; 8] = [
    "random_transactions_do_what_the_model_does",
    "a_session_sees_what_it_wrote_and_others_once_it_is_delivered",
    "clearing_removes_only_what_was_there",
    "a_row_concerns_the_replicas_that_have_it",
    "a_session_that_moves_waits_for_what_it_has_seen",
    "a_weaker_answer_does_not_wait_for_what_its_session_has_seen",
    "a_stamp_is_that_of_the_snapshot_or_of_the_commit",
    "everywhere_is_what_every_replica_has_seen",
];

#[test]
fn strong_transactions_do_what_is_asked_of_all_stores() {
    let report = report(Some("all"));
    let wrong = report.failures.iter().filter(|failure| !ASK_FOR_WEAKER.contains(&failure.test));
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&conformance::Failure>::new());
    assert!(report.passed.len() > 30, "{} passed", report.passed.len());
}

async fn commit(
    store: &GeoStore,
    session: &Session,
    commit: Commit,
) -> Result<Committed, StoreError> {
    store.begin(session).await?.commit(commit).await
}

fn adds(amount: i128) -> Commit {
    Commit { writes: vec![Write::Add(at("a", 1), amount)], ..Commit::default() }
}

fn balance(world: &TestWorld, store: &GeoStore, session: &Session) -> i128 {
    let read = async {
        let mut transaction = store.begin(session).await?;
        let answers = transaction.read(&[Read::Counter(at("a", 1))]).await?;
        transaction.commit(Commit::default()).await?;
        Ok::<_, StoreError>(answers[0].data.clone())
    };
    match world.block_on(read) {
        Ok(Data::Counter(balance)) => balance,
        other => panic!("{other:?}"),
    }
}

/// A strong transaction that was answered is seen at once by all sessions of its data center.
#[test]
fn an_answered_strong_transaction_is_seen_by_all_sessions_there() {
    let world = TestWorld::new(1);
    let store = in_memory(&world);
    for round in 1..=20 {
        let city = CITIES[round % 3];
        let done = world.block_on(commit(&store, &of("withdraw", city), adds(1)));
        done.expect("all are there");
        assert_eq!(balance(&world, &store, &of("look", city)), round as i128, "{city}");
    }
}

/// Commits in all data centers at once; returns how many take effect.
fn at_once(
    world: &Arc<TestWorld>,
    store: &Arc<GeoStore>,
    name: &str,
    one: impl Fn(&str) -> Commit,
) -> usize {
    let calls = CITIES.map(|city| {
        let (store, one, session) = (Arc::clone(store), one(city), of(name, city));
        let call: BoxFuture<'_, bool> = Box::pin(async move {
            match commit(&store, &session, one).await {
                Ok(_) => true,
                Err(StoreError::Conflict) => false,
                Err(error) => panic!("{session:?}: {error}"),
            }
        });
        call
    });
    let done = world.block_on(join_all(calls.into())).into_iter().filter(|done| *done).count();
    pass(world, 2_000);
    done
}

/// What guards say holds in all data centers where the transaction is strong.
#[test]
fn guards_of_strong_transactions_hold_everywhere() {
    let world = TestWorld::new(5);
    let store = in_memory(&world);
    let id = |sequence| TransactionId { origin: Origin(9), sequence };
    let record = RecordKey::of(RecordKind::Called, id(1), 0);
    let once = |_: &str| {
        let noted = Write::Record(record.clone(), [1].as_slice().into());
        let guards = vec![Guard::Absent(record.clone())];
        Commit { writes: [adds(1).writes, vec![noted]].concat(), guards, ..Commit::default() }
    };
    assert_eq!(at_once(&world, &store, "withdraw", once), 1);
    assert_eq!(CITIES.map(|city| balance(&world, &store, &of("look", city))), [1; 3]);
    // At least as much as two data centers that have not heard of each other.
    assert_eq!(at_once(&world, &store, "deposit", |_| adds(1)), 3);
}

/// An operation with an id counts once, if several transactions run it: strong transactions that do not conflict with
/// each other, or a strong and a causal one.
#[test]
fn an_operation_that_several_run_counts_once() {
    let names = ["one", "other", "deposit"];
    for round in 0..12 {
        let world = TestWorld::new(round);
        let geo = geo().with_conflicts([("one", "none"), ("other", "none")]);
        let store = open(&world, &EmbeddedConfig::in_memory().with_geo(geo));
        let id = TransactionId { origin: Origin(3), sequence: 1 };
        let calls = (0..3).map(|number| {
            let (store, world) = (&store, &world);
            let session = of(names[(number + round as usize) % 3], CITIES[number]);
            let operation = Some(OperationId { id, phase: 1 });
            let call: BoxFuture<'_, ()> = Box::pin(async move {
                world.sleep(Duration::from_millis(world.random() % 60)).await;
                let done = commit(store, &session, Commit { operation, ..adds(5) }).await;
                done.unwrap_or_else(|error| panic!("{session:?}: {error}"));
            });
            call
        });
        world.block_on(join_all(calls.collect()));
        pass(&world, 2_000);
        let found = CITIES.map(|city| balance(&world, &store, &of("look", city)));
        assert_eq!(found, [5; 3], "round {round}");
    }
}

/// The fence of a process that is taken for dead, and its strong transactions: one whose effects are
/// not visible where the fence is does not take effect later.
#[test]
fn behind_a_fence_no_strong_transaction_arrives() {
    let (mut first, mut last) = (0, 0);
    for seed in 0..60 {
        println!("seed {seed}");
        let world = TestWorld::new(seed);
        let store = in_memory(&world);
        let id = TransactionId { origin: Origin(4), sequence: 1 };
        let (intent, fence) = (
            RecordKey::of(RecordKind::Intent, id, 0),
            RecordKey::of_origin(RecordKind::Fence, id.origin),
        );
        let begins = Commit {
            id: Some(id),
            writes: vec![
                Write::Add(at("a", 1), 1),
                Write::Record(intent.clone(), [1].as_slice().into()),
            ],
            guards: vec![Guard::Absent(fence.clone())],
            ..Commit::default()
        };
        let fences = Commit {
            writes: vec![Write::Record(fence.clone(), [1].as_slice().into())],
            ..Commit::default()
        };
        let (strong, nameless) = (of("withdraw", "rome"), Session::at("lima"));
        let mut calls: Vec<BoxFuture<'_, bool>> = Vec::new();
        calls.push(Box::pin(async {
            match commit(&store, &strong, begins).await {
                Ok(_) => true,
                Err(StoreError::Conflict) => false,
                Err(error) => panic!("{error}"),
            }
        }));
        calls.push(Box::pin(async {
            world.sleep(Duration::from_millis(seed % 15)).await;
            commit(&store, &nameless, fences).await.expect("all are there");
            // As the sweep does: once the fence is visible, the intent is, or never will be.
            let reads = [Read::Record(fence.clone()), Read::Record(intent.clone())];
            let mut found = Vec::new();
            for city in CITIES {
                loop {
                    let mut reader = store.begin(&Session::at(city)).await.expect("it begins");
                    let answers = reader.read(&reads).await.expect("it reads");
                    let is_there = |at: usize| matches!(&answers[at].data, Data::Record(Some(_)));
                    if is_there(0) {
                        found.push(is_there(1));
                        break;
                    }
                    world.sleep(Duration::from_millis(1)).await;
                }
            }
            assert_eq!(found[1..], [found[0]; 2], "all say the same");
            found[0]
        }));
        let done = world.block_on(join_all(calls));
        assert_eq!(done[0], done[1], "begun: {}, seen behind the fence: {}", done[0], done[1]);
        pass(&world, 2_000);
        assert_eq!(balance(&world, &store, &of("look", "oslo")), i128::from(done[0]));
        if done[0] { first += 1 } else { last += 1 }
    }
    assert!(first > 5 && last > 5, "{first} before the fence, {last} after it");
}

/// Sends a strong commit, and then stops its data center, or all other ones.
fn lost(world: &TestWorld, store: &Arc<GeoStore>, after: u64, stop: &[&str]) -> TransactionId {
    let id = TransactionId { origin: Origin(9), sequence: after + 1 };
    let result = world.block_on(async {
        let transaction = store.begin(&of("withdraw", "rome")).await?;
        let commit = transaction.commit(Commit { id: Some(id), ..adds(1) });
        let mut commit = std::pin::pin!(commit);
        let mut sleep = world.sleep(Duration::from_millis(after));
        let is_over = std::future::poll_fn(|context| match commit.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => sleep.as_mut().poll(context).map(|()| None),
        });
        if let Some(result) = is_over.await {
            return result.map(|_| ());
        }
        for city in stop {
            store.kill(city)?;
        }
        if stop.is_empty() {
            // Its caller goes away.
            return Err(StoreError::Conflict);
        }
        commit.await.map(|_| ())
    });
    match result {
        Ok(()) => {}
        Err(StoreError::Unknown { id: of, .. }) => assert_eq!(of, Some(id)),
        Err(StoreError::Unavailable { .. } | StoreError::Conflict) => {}
        Err(other) => panic!("{other}"),
    }
    id
}

#[test]
fn the_outcome_of_a_lost_strong_commit_is_told_truly() {
    let mut seen = BTreeSet::new();
    for after in [0, 5, 15, 25, 40, 60] {
        for stop in [&["rome"][..], &["oslo", "lima"], &[]] {
            let world = TestWorld::new(5);
            let store = in_memory(&world);
            let id = lost(&world, &store, after, stop);
            // An answer may be missing while data centers are away, and is never wrong.
            let early = world.block_on(store.outcome(id)).ok();
            for city in stop {
                store.start(city).expect("it is there");
            }
            let told = world.block_on(store.outcome(id)).expect("all are there");
            assert_ne!(told, Outcome::Unknown, "after {after} ms, without {stop:?}");
            let early = early.filter(|early| *early != Outcome::Unknown);
            assert_eq!(early.unwrap_or(told), told, "after {after} ms, without {stop:?}");
            pass(&world, 5_000);
            let found = balance(&world, &store, &of("look", "lima"));
            let expected = i128::from(told == Outcome::Committed);
            assert_eq!(found, expected, "after {after} ms, without {stop:?}: {told:?}");
            assert_eq!(world.block_on(store.outcome(id)), Ok(told));
            seen.insert(told == Outcome::Committed);
        }
    }
    assert_eq!(seen.len(), 2, "some take effect and some do not");
}

fn kept(world: &Arc<TestWorld>, folder: &TempDir, geo: GeoConfig) -> Result<Arc<GeoStore>, String> {
    let config = EmbeddedConfig::in_folder(folder.path()).with_geo(geo);
    let opened = Embedded::open_geo(&config, &usual(Level::Causal), world.clone());
    opened.map_err(|error| error.to_string())
}

/// A list can be added to a store that is there, and changed, but not removed.
#[test]
fn a_store_in_a_folder_gets_a_list() {
    let folder = TempDir::new().expect("a folder");
    let world = TestWorld::new(9);
    let mut expected = 0;
    for (round, geo) in [
        geo(),
        geo(),
        bank(),
        bank().with_conflicts([("audit", "withdraw")]),
        geo().with_conflicts([("", ""); 0]),
        bank(),
    ]
    .into_iter()
    .enumerate()
    {
        let store = kept(&world, &folder, geo).expect("it opens");
        for city in CITIES {
            for name in ["deposit", "withdraw"] {
                let done = world.block_on(commit(&store, &of(name, city), adds(1)));
                done.unwrap_or_else(|error| panic!("round {round}, {name} in {city}: {error}"));
                expected += 1;
            }
        }
        pass(&world, 2_000);
        for city in CITIES {
            let found = balance(&world, &store, &of("look", city));
            assert_eq!(found, expected, "round {round}, {city}");
        }
        assert_eq!(store.alarms(), Vec::<String>::new());
    }
    let error = kept(&world, &folder, geo()).err().expect("the list is missing");
    assert!(error.contains("to have no pairs, write `conflicts = []`"), "{error}");
}

/// The outcomes of an earlier process are told truly, and stay as they were told.
#[test]
fn a_folder_keeps_the_outcomes() {
    let folder = TempDir::new().expect("a folder");
    let world = TestWorld::new(10);
    let id = |sequence| TransactionId { origin: Origin(9), sequence };
    let store = kept(&world, &folder, bank()).expect("it opens");
    let names = ["deposit", "withdraw"];
    for (sequence, name) in (1..).zip(names) {
        let one = Commit { id: Some(id(sequence)), ..adds(1) };
        world.block_on(commit(&store, &of(name, "rome"), one)).expect("all are there");
    }
    drop(store);
    let store = kept(&world, &folder, bank()).expect("it opens");
    for (sequence, name) in (1..).zip(names) {
        let told = world.block_on(store.outcome(id(sequence)));
        assert_eq!(told, Ok(Outcome::Committed), "{name}");
        assert_eq!(world.block_on(store.outcome(id(10 + sequence))), Ok(Outcome::NotCommitted));
        let late = Commit { id: Some(id(10 + sequence)), ..adds(1) };
        let late = world.block_on(commit(&store, &of(name, "lima"), late));
        assert!(matches!(late, Err(StoreError::Refused { .. })), "{name}: {late:?}");
    }
    assert_eq!(balance(&world, &store, &of("look", "oslo")), 2);
}

/// A data center that is given up comes back; strong transactions go on meanwhile.
#[test]
fn a_data_center_is_given_up_and_admitted() {
    let world = TestWorld::new(11);
    let store = in_memory(&world);
    let withdraw = |city: &str| world.block_on(commit(&store, &of("withdraw", city), adds(1)));
    withdraw("oslo").expect("all are there");
    pass(&world, 2_000);
    store.kill("oslo").expect("it is there");
    world.block_on(store.give_up("oslo")).expect("the others agree");
    withdraw("rome").expect("two of three are enough");
    world.block_on(store.admit("oslo")).expect("the others agree");
    pass(&world, 5_000);
    withdraw("oslo").expect("it is back");
    pass(&world, 2_000);
    assert_eq!(CITIES.map(|city| balance(&world, &store, &of("look", city))), [3; 3]);
}
