//! A linearizable store over several data centers, some of which stop: the observations of its clients
//! are checked, and errors name the data center that is away.

use std::time::Duration;

use crate::support::geo::{CITIES, Cities, Seen};
use mingle::{Error, Session};
use mingle_checker::history::{Kind, Operation};
use mingle_checker::{Model, Outcome, check};
use mingle_lang::generate::Random;
use mingle_model::Level;
use mingle_store::test_world::join_all;
use mingle_store::{BoxFuture, StoreError, World};

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

const CELLS: usize = 5;

fn setup(deadline: &str) -> Cities {
    let binding = format!(
        "[runtime]\ndeadline = \"{deadline}\"\n[stores.cells]\npartitions = 2\n\
         datacenters = [\"oslo\", \"rome\", \"lima\"]\nbetween = \"40ms±10ms\"\n"
    );
    Cities::new(TEXT, &binding)
}

fn cell(index: usize) -> String {
    format!("c{index}")
}

/// One client: reads two cells, or changes them to numbers that no other client writes.
async fn client(setup: &Cities, seen: &Seen, number: usize, seed: u64) {
    let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
    let session = || Session::at(CITIES[number % 3]);
    for round in 0..25 {
        let one = random.below(CELLS);
        let other = (one + 1 + random.below(CELLS - 1)) % CELLS;
        let value = (number * 1_000 + round * 2 + 1) as i64;
        let cells = [("one", cell(one)), ("other", cell(other))];
        let changes = random.below(3) > 0;
        let begin = setup.world.elapsed();
        let result = if changes {
            let arguments = [&cells[..], &[("value", value.to_string())]].concat();
            setup.call(&session(), "change", &arguments).await
        } else {
            setup.call(&session(), "look", &cells).await
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
        seen.add(number, (begin, end), outcome, operations);
    }
}

/// Stops these data centers, group after group, gives them up and admits them again.
async fn give_up(setup: &Cities, stops: &[&[&str]]) {
    let cells = setup.geo("cells");
    for cities in stops {
        setup.world.sleep(Duration::from_millis(1_500)).await;
        cities.iter().for_each(|city| cells.kill(city).expect("it is there"));
        setup.world.sleep(Duration::from_millis(1_500)).await;
        for city in *cities {
            cells.give_up(city).await.expect("the others agree");
            setup.world.sleep(Duration::from_millis(500)).await;
            cells.admit(city).await.expect("it comes up");
        }
    }
}

fn run(seed: u64, stops: &[&[&str]], gives_up: bool) {
    println!("seed {seed}");
    let setup = setup("5s");
    let seen = Seen::default();
    let mut all: Vec<BoxFuture<'_, ()>> = Vec::new();
    for number in 0..6 {
        all.push(Box::pin(client(&setup, &seen, number, seed)));
    }
    if gives_up {
        all.push(Box::pin(give_up(&setup, stops)));
    } else {
        all.push(Box::pin(setup.stop("cells", stops)));
    }
    setup.world.block_on(join_all(all));
    let verdict = check(&seen.into_history(60), Model::StrictSerializability);
    assert!(verdict.is_satisfied(), "seed {seed}: {verdict}");
    let mut alarms = setup.geo("cells").alarms();
    if gives_up {
        alarms.retain(|alarm| !alarm.contains("Transfer") && !alarm.contains("Lagging"));
    }
    assert_eq!(alarms, Vec::<String>::new(), "seed {seed}");
}

#[test]
fn what_clients_of_three_data_centers_see_is_one_order() {
    for seed in 1..=2 {
        run(seed, &[], false);
    }
}

#[test]
fn what_clients_see_is_one_order_while_data_centers_stop() {
    for seed in 3..=6 {
        run(seed, &[&["oslo"], &["lima"], &["oslo", "rome"], &["rome"]], false);
    }
}

#[test]
fn what_clients_see_is_one_order_while_data_centers_are_given_up_and_come_back() {
    for seed in 7..=9 {
        run(seed, &[&["oslo"], &["lima"], &["rome"], &["oslo"]], true);
    }
}

#[test]
fn errors_name_who_is_away_and_come_before_the_deadline() {
    let setup = setup("2s");
    let cells_of = [("one", cell(0)), ("other", cell(1))];
    let look = |city: &str| setup.world.block_on(setup.call(&Session::at(city), "look", &cells_of));
    assert_eq!(look("lima").expect("all are there"), [0, 0]);
    setup.geo("cells").kill("oslo").expect("it is there");
    assert_eq!(look("lima").expect("two of three are there"), [0, 0]);
    let begin = setup.world.elapsed();
    let error = look("oslo").expect_err("it is down").to_string();
    assert!(error.contains("its data center oslo is down"), "{error}");
    setup.geo("cells").kill("rome").expect("it is there");
    let error = look("lima").expect_err("it is alone");
    assert!(matches!(&error, Error::Store(StoreError::Unavailable { .. })), "{error}");
    let expected = "its data center lima does not reach oslo, rome, and to commit it needs 2";
    assert!(error.to_string().contains(expected), "{error}");
    assert!(setup.world.elapsed().saturating_sub(begin) < Duration::from_secs(2));
}
