//! Stores of two levels in one engine over several data centers: a transaction over both is one strong
//! transaction, which leaves nothing to be finished; the observations of its clients are checked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::support::geo::{CITIES, Cities, Seen};
use crate::support::{Setup, scenarios};
use mingle::{Call, CallKey, CallReport, Error, Session};
use mingle_checker::history::{Kind, Operation};
use mingle_checker::{Model, Outcome, check};
use mingle_lang::generate::Random;
use mingle_model::{Level, Origin, TransactionId};
use mingle_runtime::stats::Counted;
use mingle_store::test_world::join_all;
use mingle_store::{BoxFuture, Data, Read, RecordKind, World};

const TEXT: &str = "store vault: linearizable; store wall: causal;
    object Box in vault { key name: string; value: int; }
    object Note in wall { key name: string; value: int; }
    transaction look(one: ref Note, other: ref Note) -> list<int> {
        return [one.value, other.value];
    }
    transaction audit(one: ref Box, other: ref Note) -> list<int> {
        return [one.value, other.value];
    }
    transaction change(one: ref Box, other: ref Note, value: int) -> list<int> {
        let found = [one.value, other.value];
        one.value = value;
        other.value = value + 1;
        return found;
    }
    transaction note(one: ref Note, other: ref Note, value: int) -> list<int> {
        let found = [one.value, other.value];
        one.value = value;
        other.value = value + 1;
        return found;
    }";

const THINGS: usize = 4;

const BINDING: &str = "[runtime]\ndeadline = \"5s\"\n[stores.vault]\npartitions = 2\n\
    datacenters = [\"oslo\", \"rome\", \"lima\"]\nbetween = \"40ms±10ms\"\n\
    [stores.wall]\nwith = \"vault\"\n";

/// Both stores are causal and in engines of their own; changes conflict with changes at the vault.
const MIXED: &str = "[runtime]\ndeadline = \"5s\"\n[stores.vault]\npartitions = 2\n\
    datacenters = [\"oslo\", \"rome\", \"lima\"]\nbetween = \"40ms±10ms\"\n\
    conflicts = [[\"change\", \"change\"]]\n\
    [stores.wall]\ndatacenters = [\"oslo\", \"rome\", \"lima\"]\nbetween = \"40ms±10ms\"\n";

fn cities() -> Cities {
    Cities::new(TEXT, BINDING)
}

fn mixed() -> Cities {
    Cities::new(&TEXT.replace("vault: linearizable", "vault: causal"), MIXED)
}

fn united(cities: &Cities) -> u64 {
    cities.database.runtime().stats().get(Counted::United)
}

/// Checks that no store has records or witness rows of the runtime.
fn assert_nothing_left(cities: &Cities) {
    let runtime = cities.database.runtime();
    let first = TransactionId { origin: Origin(0), sequence: 0 };
    let mut reads = vec![Read::Witnesses { from: first, limit: 10 }];
    for kind in [RecordKind::Intent, RecordKind::Witness] {
        reads.push(Read::Records { kind, from: Arc::default(), limit: 10 });
    }
    for index in 0..2 {
        let store = mingle_lang::hir::StoreId(index);
        for city in CITIES {
            let session = Session::at(city);
            let left = cities.world.block_on(runtime.read(store, &session, &reads));
            for data in left.expect("it answers") {
                let is_empty = match &data {
                    Data::Witnesses(rows) => rows.is_empty(),
                    Data::Records(records) => records.is_empty(),
                    other => panic!("{other:?}"),
                };
                assert!(is_empty, "{city}: {data:?}");
            }
        }
    }
    assert_eq!(runtime.stats().get(Counted::Begun), 0);
}

/// One call of a client: its name, and the keys of the history that it reads and writes.
struct Called {
    name: &'static str,
    keys: [usize; 2],
    /// For each of the two keys: true if it is in the vault.
    strong: [bool; 2],
    value: Option<i64>,
}

impl Called {
    fn draw(random: &mut Random, value: i64) -> Self {
        let (name, strong, writes) = match random.below(10) {
            0..4 => ("change", [true, false], true),
            4..6 => ("note", [false, false], true),
            6..8 => ("audit", [true, false], false),
            _ => ("look", [false, false], false),
        };
        let one = random.below(THINGS);
        let other = (one + 1 + random.below(THINGS - 1)) % THINGS;
        Self { name, keys: [one, other], strong, value: writes.then_some(value) }
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let [one, other] = self.keys.map(|key| format!("k{key}"));
        let mut arguments = vec![("one", one), ("other", other)];
        arguments.extend(self.value.map(|value| ("value", value.to_string())));
        arguments
    }

    fn operations(&self, found: &[i64], vault: Level) -> Vec<Operation> {
        let operation = |kind, place: usize, value| {
            let is_strong = self.strong[place];
            Operation {
                kind,
                // Boxes and notes are different keys.
                key: (self.keys[place] + if is_strong { 100 } else { 0 }) as i64,
                value,
                store: if is_strong { "vault".into() } else { "wall".into() },
                level: if is_strong { vault } else { Level::Causal },
                version: None,
            }
        };
        let reads = found.iter().enumerate().map(|(place, value)| (Kind::Read, place, *value));
        let written =
            self.value.map(|value| [(Kind::Write, 0, value), (Kind::Write, 1, value + 1)]);
        reads
            .chain(written.into_iter().flatten())
            .map(|(kind, place, value)| operation(kind, place, value))
            .collect()
    }
}

/// One client, which moves from city to city with its session.
async fn client(shared: &Cities, (seen, vault): (&Seen, Level), number: usize, seed: u64) {
    let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
    let session = Session::at(CITIES[number % 3]);
    for round in 0..25 {
        let call = Called::draw(&mut random, (number * 1_000 + round * 2 + 1) as i64);
        let begin = shared.world.elapsed();
        let result = shared.call(&session, call.name, &call.arguments()).await;
        let end = shared.world.elapsed();
        let outcome = match &result {
            Ok(_) => Outcome::Committed,
            Err(Error::Unknown { .. }) if call.value.is_some() => Outcome::Unknown,
            Err(_) => {
                // Its data center is away for a while.
                session.move_to(CITIES[random.below(3)]);
                shared.world.sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        seen.add(
            number,
            (begin, end),
            outcome,
            call.operations(&result.unwrap_or_default(), vault),
        );
        if random.below(4) == 0 {
            session.move_to(CITIES[random.below(3)]);
        }
        shared.world.sleep(Duration::from_millis(random.below(60) as u64)).await;
    }
}

fn run(seed: u64, stops: &[&[&str]]) {
    run_with(seed, stops, (BINDING, Level::Linearizable));
}

/// Runs the clients with this binding, which puts the vault at this level.
fn run_with(seed: u64, stops: &[&[&str]], (binding, vault): (&str, Level)) {
    println!("seed {seed}");
    let shared = Cities::new(TEXT, binding);
    let seen = Seen::default();
    let mut all: Vec<BoxFuture<'_, ()>> = Vec::new();
    for number in 0..6 {
        all.push(Box::pin(client(&shared, (&seen, vault), number, seed)));
    }
    all.push(Box::pin(shared.stop("vault", stops)));
    shared.world.block_on(join_all(all));
    let changed = seen.count(|operation| operation.key >= 100);
    assert!(united(&shared) as usize >= changed / 2, "seed {seed}: {}", united(&shared));
    let history = seen.into_history(60);
    for model in [Model::Mixed, Model::Causal] {
        let verdict = check(&history, model);
        assert!(verdict.is_satisfied(), "seed {seed}: {verdict}");
    }
    assert_eq!(shared.geo("vault").alarms(), Vec::<String>::new(), "seed {seed}");
    assert_nothing_left(&shared);
}

#[test]
fn what_clients_of_both_levels_see_holds() {
    for seed in 1..=3 {
        run(seed, &[]);
    }
}

#[test]
fn what_clients_of_both_levels_see_holds_while_data_centers_stop() {
    for seed in 4..=7 {
        run(seed, &[&["oslo"], &["lima"], &["oslo", "rome"], &["rome"]]);
    }
}

/// Changes conflict with changes, and audits with no other transaction: audits see causal states, and
/// never a part of a change.
#[test]
fn what_clients_see_is_causal_where_some_are_in_no_pair() {
    let wall = "[stores.wall]";
    let binding = BINDING.replace(wall, &format!("conflicts = [[\"change\", \"change\"]]\n{wall}"));
    for seed in 8..=10 {
        run_with(seed, &[], (&binding, Level::Causal));
    }
    for seed in 11..=13 {
        let stops: [&[&str]; 4] = [&["oslo"], &["lima"], &["oslo", "rome"], &["rome"]];
        run_with(seed, &stops, (&binding, Level::Causal));
    }
}

/// At a causal store strong changes are made beside causal reads, and go on at another store: clients
/// see causal states, and of two changes of a box one has seen the other.
fn run_mixed(seed: u64, stops: &[&[&str]]) {
    println!("seed {seed}");
    let shared = mixed();
    let seen = Seen::default();
    let mut all: Vec<BoxFuture<'_, ()>> = Vec::new();
    for number in 0..6 {
        all.push(Box::pin(client(&shared, (&seen, Level::Causal), number, seed)));
    }
    all.push(Box::pin(shared.stop("vault", stops)));
    all.push(Box::pin(shared.stop("wall", stops)));
    shared.world.block_on(join_all(all));
    assert_eq!(united(&shared), 0);
    let history = seen.into_history(60);
    let verdict = check(&history, Model::Causal);
    assert!(verdict.is_satisfied(), "seed {seed}: {verdict}");
    let mut overwritten = BTreeSet::new();
    for transaction in history.transactions() {
        let is_sure = transaction.outcome == Outcome::Committed;
        let boxes = || transaction.operations.iter().filter(|operation| operation.key >= 100);
        let changes = boxes().any(|operation| operation.kind == Kind::Write) && is_sure;
        for read in boxes().filter(|operation| changes && operation.kind == Kind::Read) {
            let is_first = overwritten.insert((read.key, read.value));
            assert!(is_first, "seed {seed}: two changes overwrote {} of {}", read.value, read.key);
        }
    }
    assert!(overwritten.len() > 10, "seed {seed}: {} changes", overwritten.len());
    assert_eq!(shared.geo("vault").alarms(), Vec::<String>::new(), "seed {seed}");
}

#[test]
fn what_clients_see_is_causal_where_changes_at_a_causal_store_are_strong() {
    for seed in 20..=22 {
        run_mixed(seed, &[]);
    }
    for seed in 23..=26 {
        run_mixed(seed, &[&["oslo"], &["lima"], &["oslo", "rome"], &["rome"]]);
    }
}

#[test]
fn one_trip_to_the_leader_and_no_other() {
    let shared = cities();
    let call = |city: &str, name: &str| {
        let mut arguments = vec![("one", "k0".to_owned()), ("other", "k1".to_owned())];
        arguments.extend((name == "change").then(|| ("value", "5".to_owned())));
        let begin = shared.world.elapsed();
        let session = Session::at(city);
        let found = shared.world.block_on(shared.call(&session, name, &arguments));
        (found.expect("all are there"), shared.world.elapsed().saturating_sub(begin))
    };
    call("oslo", "change");
    // The leader and its followers are settled, and all writes are everywhere.
    shared.world.block_on(shared.world.sleep(Duration::from_secs(3)));
    for city in CITIES {
        let (found, took) = call(city, "change");
        assert_eq!(found, [5, 6]);
        assert!(took < Duration::from_millis(80), "{city}: {took:?}");
        shared.world.block_on(shared.world.sleep(Duration::from_secs(1)));
    }
    let (found, took) = call("lima", "look");
    assert_eq!((found, took), (vec![0, 6], Duration::ZERO), "causal reads wait for nobody");
    assert_eq!(united(&shared), 4);
    assert_nothing_left(&shared);
}

#[test]
fn the_examples_run_with_all_their_stores_in_one_engine() {
    let mut united = 0;
    for scenario in scenarios::all::<Setup>() {
        let program = mingle::compile(scenario.text).expect("the example is right");
        let levels = &program.checked.levels;
        let stores = &program.checked.stores;
        let is_strong = |level| matches!(levels.carrier(level), Level::Linearizable);
        let Some(host) = stores.iter().find(|store| is_strong(store.level)) else { continue };
        let bind = |store: &mingle_lang::hir::Store| {
            let said = if store.name == host.name {
                "datacenters = 3\nbetween = \"40ms\"\npartitions = 2".to_owned()
            } else {
                format!("with = \"{}\"", host.name)
            };
            format!("[stores.{}]\n{said}\n", store.name)
        };
        let binding: String = stores.iter().map(bind).collect();
        println!("{}", scenario.name);
        let setup = Setup::plain(scenario.text, &binding);
        (scenario.run)(&setup);
        united += setup.database.runtime().stats().get(Counted::United);
    }
    assert!(united > 0, "no example has a transaction over stores of two levels");
}

#[test]
fn a_key_that_is_used_again_runs_once() {
    keys_run_once(&cities());
}

#[test]
fn a_key_of_a_strong_transaction_at_a_causal_store_runs_once() {
    keys_run_once(&mixed());
}

fn keys_run_once(shared: &Cities) {
    let arguments = || {
        let given = [("one", "k0"), ("other", "k1"), ("value", "7")];
        shared.database.arguments("change", given).expect("they fit")
    };
    let keyed = |key: &'static str, city: &'static str| {
        let key = Some(CallKey::new("somebody", key));
        let call = Call { session: Session::at(city), key, ..Call::new("change", arguments()) };
        let call: BoxFuture<'_, CallReport> = Box::pin(async move {
            let report = shared.database.runtime().call(call).await;
            report.unwrap_or_else(|error| panic!("{city}: {error}"))
        });
        call
    };
    let first = shared.world.block_on(keyed("again", "oslo"));
    let second = shared.world.block_on(keyed("again", "lima"));
    assert!(!first.is_repeated && second.is_repeated);
    assert_eq!(first.result, second.result);
    // Also all at once.
    let calls = CITIES.into_iter().cycle().take(6).map(|city| keyed("at once", city)).collect();
    let reports = shared.world.block_on(join_all(calls));
    assert_eq!(reports.iter().filter(|report| !report.is_repeated).count(), 1);
    assert!(reports.iter().all(|report| report.result == reports[0].result));
}
