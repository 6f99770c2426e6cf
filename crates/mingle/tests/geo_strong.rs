//! A linearizable store over several data centers, some of which stop: what its clients saw is
//! checked, and errors say who is away.

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mingle::{Error, GeoStore, Session};
use mingle_checker::history::{Interval, Kind, Operation, Transaction};
use mingle_checker::{History, Model, Outcome, check};
use mingle_lang::generate::Random;
use mingle_model::Level;
use mingle_store::test_world::join_all;
use mingle_store::{BoxFuture, StoreError, World};
use support::Setup;

const TEXT: &str = "store cells: linearizable;
    object Cell in cells { key name: string; value: int; }
    transaction look(one: ref Cell, other: ref Cell) -> list<int> {
        return [one.value, other.value];
    }
    transaction change(one: ref Cell, other: ref Cell, value: int) -> list<int> {
        let found = [one.value, other.value];
        one.value = value;
        other.value = value + 1;
        return found;
    }";

const CITIES: [&str; 3] = ["oslo", "rome", "lima"];

const CELLS: usize = 5;

fn setup(deadline: &str) -> Setup {
    let binding = format!(
        "[runtime]\ndeadline = \"{deadline}\"\n[stores.cells]\npartitions = 2\n\
         datacenters = [\"oslo\", \"rome\", \"lima\"]\nbetween = \"40ms±10ms\"\n"
    );
    Setup::with(TEXT, &binding, &BTreeMap::new())
}

fn cells(setup: &Setup) -> &Arc<GeoStore> {
    setup.database.geo("cells").expect("the binding gives it data centers")
}

async fn call(
    setup: &Setup,
    city: &str,
    transaction: &str,
    arguments: &[(&str, String)],
) -> Result<Vec<i64>, Error> {
    let database = &setup.database;
    let arguments = arguments.iter().map(|(name, value)| (*name, value.as_str()));
    let arguments = database.arguments(transaction, arguments)?;
    let report = database.call(transaction, arguments, Session::at(city)).await?;
    let found = database.result_json(transaction, &report);
    let numbers = found.as_array().into_iter().flatten();
    Ok(numbers.map(|number| number.as_i64().expect("a number")).collect())
}

fn cell(index: usize) -> String {
    format!("c{index}")
}

/// One client: looks at two cells, or changes them to numbers that nobody else writes.
async fn client(setup: &Setup, seen: &Mutex<Vec<Transaction>>, number: usize, seed: u64) {
    let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
    let city = CITIES[number % 3];
    for round in 0..25 {
        let one = random.below(CELLS);
        let other = (one + 1 + random.below(CELLS - 1)) % CELLS;
        let value = (number * 1_000 + round * 2 + 1) as i64;
        let cells = [("one", cell(one)), ("other", cell(other))];
        let changes = random.below(3) > 0;
        let begin = setup.world.elapsed();
        let result = if changes {
            let arguments = [&cells[..], &[("value", value.to_string())]].concat();
            call(setup, city, "change", &arguments).await
        } else {
            call(setup, city, "look", &cells).await
        };
        let end = setup.world.elapsed();
        setup.world.sleep(Duration::from_millis(random.below(60) as u64)).await;
        let outcome = match &result {
            Ok(_) => Outcome::Committed,
            Err(Error::Unknown { .. }) if changes => Outcome::Unknown,
            Err(_) => {
                // Its data center is away for a while.
                setup.world.sleep(Duration::from_millis(300)).await;
                continue;
            }
        };
        let operation = |kind, key: usize, value| Operation {
            kind,
            key: key as i64,
            value,
            store: "cells".into(),
            level: Level::Linearizable,
            version: None,
        };
        let mut operations: Vec<Operation> = Vec::new();
        for (key, found) in [one, other].into_iter().zip(result.unwrap_or_default()) {
            operations.push(operation(Kind::Read, key, found));
        }
        if changes {
            operations.push(operation(Kind::Write, one, value));
            operations.push(operation(Kind::Write, other, value + 1));
        }
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).expect("a short run");
        let mut seen = seen.lock().expect("no panic");
        let id = seen.len() as i64;
        seen.push(Transaction {
            id,
            session: number as i64,
            outcome,
            interval: Some(Interval { begin: nanos(begin), end: nanos(end) }),
            commit: None,
            is_final: false,
            operations,
        });
    }
}

fn run(seed: u64, stops: &[&[&str]]) {
    println!("seed {seed}");
    let setup = setup("5s");
    let seen = Mutex::default();
    let mut all: Vec<BoxFuture<'_, ()>> = Vec::new();
    for number in 0..6 {
        all.push(Box::pin(client(&setup, &seen, number, seed)));
    }
    all.push(Box::pin(async {
        for cities in stops {
            setup.world.sleep(Duration::from_millis(1_500)).await;
            for city in *cities {
                cells(&setup).kill(city).expect("it is there");
            }
            setup.world.sleep(Duration::from_millis(1_500)).await;
            for city in *cities {
                cells(&setup).start(city).expect("it is there");
            }
        }
    }));
    setup.world.block_on(join_all(all));
    let seen = seen.into_inner().expect("no panic");
    let committed = seen.iter().filter(|one| one.outcome == Outcome::Committed).count();
    assert!(committed > 60, "seed {seed}: only {committed} committed");
    let history = History::new(seen).expect("each number is written once");
    let verdict = check(&history, Model::StrictSerializability);
    assert!(verdict.is_satisfied(), "seed {seed}: {verdict}");
    assert_eq!(cells(&setup).alarms(), Vec::<String>::new(), "seed {seed}");
}

#[test]
fn what_clients_of_three_data_centers_see_is_one_order() {
    for seed in 1..=2 {
        run(seed, &[]);
    }
}

#[test]
fn what_clients_see_is_one_order_while_data_centers_stop() {
    for seed in 3..=6 {
        run(seed, &[&["oslo"], &["lima"], &["oslo", "rome"], &["rome"]]);
    }
}

#[test]
fn errors_name_who_is_away_and_come_before_the_deadline() {
    let setup = setup("2s");
    let cells_of = [("one", cell(0)), ("other", cell(1))];
    let look = |city: &str| setup.world.block_on(call(&setup, city, "look", &cells_of));
    assert_eq!(look("lima").expect("all are there"), [0, 0]);
    cells(&setup).kill("oslo").expect("it is there");
    assert_eq!(look("lima").expect("two of three are there"), [0, 0]);
    let begin = setup.world.elapsed();
    let error = look("oslo").expect_err("it is down").to_string();
    assert!(error.contains("its data center oslo is down"), "{error}");
    cells(&setup).kill("rome").expect("it is there");
    let error = look("lima").expect_err("it is alone");
    assert!(matches!(&error, Error::Store(StoreError::Unavailable { .. })), "{error}");
    let expected = "its data center lima does not reach oslo, rome, and to commit it needs 2";
    assert!(error.to_string().contains(expected), "{error}");
    assert!(setup.world.elapsed().saturating_sub(begin) < Duration::from_secs(2));
}
