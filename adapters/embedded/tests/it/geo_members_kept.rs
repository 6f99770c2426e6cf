//! Data centers that are given up where stores are kept: over restarts, and after their logs are lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::support::members::{Alone, BOTH, CITIES, Kept, config, found, pass, put, state, within};
use crate::support::{at, usual};
use mingle_model::{Level, Origin, TransactionId, Value};
use mingle_store::{Commit, DataStore, Outcome, Session, TestWorld, Write};
use mingle_store_embedded::{DatacenterState, Embedded};

#[test]
fn a_process_may_end_at_any_step() {
    let mut states = BTreeSet::new();
    for level in BOTH {
        for millis in [0, 5, 15, 25, 40, 60, 80, 100, 130, 170, 250, 600, 1_200] {
            let (world, disk) = (TestWorld::new(5), Kept::default());
            let store = disk.open(&world, level, &config());
            for (n, city) in CITIES.iter().enumerate() {
                put(&world, &store, &Session::at(*city), n as i64 + 1);
            }
            pass(&world, 2_000);
            // Stop in the middle of giving it up.
            store.kill("oslo").expect("it is there");
            within(&world, millis, store.give_up("oslo"));
            drop(store);
            let store = disk.open(&world, level, &config());
            let before = state(&store, "oslo");
            states.insert(format!("{level} {before:?}"));
            match before {
                // No data center had heard of the request.
                DatacenterState::Up => store.kill("oslo").expect("it is there"),
                DatacenterState::BeingGivenUp | DatacenterState::GivenUp => {
                    assert!(store.start("oslo").is_err(), "it is never taken back");
                }
                other => panic!("{other:?}"),
            }
            if before != DatacenterState::GivenUp {
                world.block_on(store.give_up("oslo")).expect("the others agree");
            }
            drop(store);
            let store = disk.open(&world, level, &config());
            assert_eq!(state(&store, "oslo"), DatacenterState::GivenUp);
            put(&world, &store, &Session::at("rome"), 4);
            // Stop in the middle of its return.
            within(&world, millis, store.admit("oslo"));
            drop(store);
            let store = disk.open(&world, level, &config());
            let before = state(&store, "oslo");
            states.insert(format!("{level} {before:?}, coming"));
            if before == DatacenterState::Up {
                // It had come up, and the commits of other data centers arrive.
                pass(&world, 3_000);
            } else {
                world.block_on(store.admit("oslo")).expect("it comes up");
            }
            let all = Ok(vec![1, 2, 3, 4]);
            assert_eq!(found(&world, &store, &Session::at("oslo")), all, "{level} {millis}");
            put(&world, &store, &Session::at("oslo"), 5);
            drop(store);
            let store = disk.open(&world, level, &config());
            assert_eq!(state(&store, "oslo"), DatacenterState::Up);
            pass(&world, 3_000);
            for city in CITIES {
                let all = Ok(vec![1, 2, 3, 4, 5]);
                assert_eq!(
                    found(&world, &store, &Session::at(city)),
                    all,
                    "{level} {millis} {city}"
                );
            }
        }
    }
    let seen = |what: &str| states.iter().any(|state| state.contains(what));
    for what in ["Up", "BeingGivenUp", "GivenUp", "GivenUp, coming", "ComingUp", "Up, coming"] {
        assert!(seen(what), "{what} was never met: {states:?}");
    }
}

#[test]
fn a_report_that_is_missing_is_waited_for_even_over_a_restart() {
    for level in BOTH {
        let (world, disk, links) = (TestWorld::new(6), Kept::default(), Arc::<Alone>::default());
        let config = || config().with_links(links.clone());
        let store = disk.open(&world, level, &config());
        put(&world, &store, &Session::at("lima"), 1);
        pass(&world, 2_000);
        store.kill("oslo").expect("it is there");
        let asked = within(&world, 3, store.give_up("oslo"));
        assert!(asked.is_none(), "{asked:?}");
        links.set(&["lima"]);
        let error = world.block_on(store.give_up("oslo")).expect_err("lima is away").to_string();
        assert!(error.contains("only rome do"), "{error}");
        drop(store);
        let store = disk.open(&world, level, &config());
        pass(&world, 5_000);
        assert_ne!(state(&store, "oslo"), DatacenterState::GivenUp, "{level}");
        links.set(&[]);
        if state(&store, "oslo") == DatacenterState::Up {
            store.kill("oslo").expect("it is there");
        }
        world.block_on(store.give_up("oslo")).expect("the others agree");
        world.block_on(store.admit("oslo")).expect("it comes up");
        for city in CITIES {
            assert_eq!(found(&world, &store, &Session::at(city)), Ok(vec![1]), "{level} {city}");
        }
    }
}

#[test]
fn one_that_has_lost_its_log_stays_down_and_does_not_vote() {
    for level in BOTH {
        for is_corrupt in [false, true] {
            let (world, disk) = (TestWorld::new(7), Kept::default());
            let store = disk.open(&world, level, &config());
            for (n, city) in CITIES.iter().enumerate() {
                put(&world, &store, &Session::at(*city), n as i64 + 1);
            }
            pass(&world, 2_000);
            drop(store);
            // The log of one partition only: a data center is either whole or lost.
            let rows = disk.log(0, 1);
            let why = if is_corrupt {
                disk.set([rows[rows.len() / 2].clone()], Some(b"\0garbage"));
                "since the log of its partition 1 is corrupt"
            } else {
                disk.set(rows, None);
                "since its partition 1 has no log"
            };
            let store = disk.open(&world, level, &config());
            let lost = state(&store, "oslo");
            assert!(
                matches!(&lost, DatacenterState::Lost(found) if found.starts_with(&why[6..])),
                "{lost:?}"
            );
            for result in
                [found(&world, &store, &Session::at("oslo")).map(drop), store.start("oslo")]
            {
                let error = result.expect_err("it is lost").to_string();
                assert!(error.contains("its data center oslo has lost its data"), "{error}");
                assert!(error.contains(why), "{error}");
                assert!(error.contains("`mingle datacenters PROGRAM give-up oslo`"), "{error}");
                assert!(error.contains("`mingle datacenters PROGRAM admit oslo`"), "{error}");
            }
            put(&world, &store, &Session::at("lima"), 4);
            pass(&world, 2_000);
            // If it voted, there would be a majority without Lima.
            store.kill("lima").expect("it is there");
            if level == Level::Linearizable {
                let alone = found(&world, &store, &Session::at("rome"));
                let error = alone.expect_err("there is no majority").to_string();
                assert!(error.contains("rome does not reach oslo, lima"), "{error}");
            }
            store.start("lima").expect("it is there");
            let given_up = world.block_on(store.give_up("oslo")).expect("the others agree");
            assert_eq!(given_up.lost, None, "nobody can tell");
            world.block_on(store.admit("oslo")).expect("it comes up");
            put(&world, &store, &Session::at("oslo"), 5);
            drop(store);
            let store = disk.open(&world, level, &config());
            pass(&world, 3_000);
            for city in CITIES {
                let all = Ok(vec![1, 2, 3, 4, 5]);
                assert_eq!(found(&world, &store, &Session::at(city)), all, "{level} {city}");
            }
        }
    }
}

#[test]
fn with_all_logs_gone_bad_the_store_does_not_open() {
    let (world, disk) = (TestWorld::new(8), Kept::default());
    let store = disk.open(&world, Level::Causal, &config());
    put(&world, &store, &Session::at("oslo"), 1);
    drop(store);
    for dc in 0..3 {
        disk.set([disk.log(dc, 0)[0].clone()], Some(b"\0garbage"));
    }
    let schema = usual(Level::Causal);
    let opened = Embedded::open_geo_over(Box::new(disk), &config(), &schema, world.clone());
    let error = opened.err().expect("nothing is left").to_string();
    assert!(error.contains("the log of its partition 0 is corrupt"), "{error}");
}

#[test]
fn what_became_of_a_commit_is_known_once_its_data_center_is_given_up() {
    let mut seen = BTreeSet::new();
    for level in BOTH {
        for millis in [0, 5, 15, 25, 40, 60] {
            let (world, disk) = (TestWorld::new(9), Kept::default());
            let store = disk.open(&world, level, &config());
            put(&world, &store, &Session::at("rome"), 1);
            pass(&world, 2_000);
            let id = TransactionId { origin: Origin(9), sequence: 1 };
            let commit = async {
                let writes =
                    vec![Write::Add(at("a", 1), 10), Write::Insert(at("b", 3), Value::Int(10))];
                let transaction = store.begin(&Session::at("oslo")).await?;
                let commit = Commit { id: Some(id), writes, ..Commit::default() };
                transaction.commit(commit).await
            };
            let mut commit = Box::pin(commit);
            let committed = within(&world, millis, commit.as_mut());
            store.kill("oslo").expect("it is there");
            let committed = committed.unwrap_or_else(|| world.block_on(commit));
            world.block_on(store.give_up("oslo")).expect("the others agree");
            if millis % 2 == 0 {
                world.block_on(store.admit("oslo")).expect("it comes up");
            }
            let survives = world.block_on(store.outcome(id)).expect("all can be asked");
            let found = found(&world, &store, &Session::at("lima")).expect("it serves");
            let says = match survives {
                Outcome::Committed => vec![1, 10],
                Outcome::NotCommitted => vec![1],
                // It was answered, and is lost: the client has been told that it was committed.
                Outcome::Unknown => panic!("{level} {millis}"),
            };
            if committed.is_err() {
                assert_eq!(found, says, "{level} {millis}: {committed:?}, {survives:?}");
                seen.insert((level, found.len()));
            }
            if level == Level::Linearizable && committed.is_ok() {
                assert_eq!(found, vec![1, 10], "{millis}: a strong one is never lost");
            }
        }
    }
    assert!(seen.len() > 2, "{seen:?}");
}
