//! Data centers that are given up for good, and come back with empty disks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::at;
use crate::support::members::{
    Alone, BOTH, CITIES, config, found, geo, open, pass, put, state, write,
};
use mingle_model::{Level, Stamp};
use mingle_store::test_world::join_all;
use mingle_store::{
    BoxFuture, Commit, DataStore, Read, Session, StoreError, TestWorld, World, Write,
};
use mingle_store_embedded::{DatacenterState, EmbeddedConfig, GeoConfig, GeoStore};

#[test]
fn what_is_given_up_comes_back_with_what_the_others_have() {
    for level in BOTH {
        let world = TestWorld::new(1);
        let store = open(&world, level, EmbeddedConfig::in_memory().with_geo(geo()));
        for (n, city) in CITIES.iter().enumerate() {
            put(&world, &store, &Session::at(*city), n as i64 + 1);
        }
        pass(&world, 2_000);
        store.kill("oslo").expect("it is there");
        put(&world, &store, &Session::at("rome"), 4);
        let given_up = world.block_on(store.give_up("oslo")).expect("the others agree");
        assert_eq!((given_up.incarnation, given_up.lost), (0, Some(0)));
        assert_eq!(state(&store, "oslo"), DatacenterState::GivenUp);
        put(&world, &store, &Session::at("lima"), 5);
        pass(&world, 2_000);
        for city in ["rome", "lima"] {
            assert_eq!(
                found(&world, &store, &Session::at(city)),
                Ok(vec![1, 2, 3, 4, 5]),
                "{city}"
            );
        }
        let error = found(&world, &store, &Session::at("oslo")).expect_err("it is gone");
        assert!(error.to_string().contains("its data center oslo was given up"), "{error}");
        let error = store.start("oslo").expect_err("it is gone").to_string();
        assert!(error.contains("`mingle datacenters PROGRAM admit oslo`"), "{error}");

        let admitted = world.block_on(store.admit("oslo")).expect("it comes up");
        assert_eq!(admitted.incarnation, 1);
        assert_eq!(found(&world, &store, &Session::at("oslo")), Ok(vec![1, 2, 3, 4, 5]), "{level}");
        put(&world, &store, &Session::at("oslo"), 6);
        pass(&world, 2_000);
        // It counts again: with it, the store can do without another data center.
        store.kill("rome").expect("it is there");
        pass(&world, 3_000);
        put(&world, &store, &Session::at("lima"), 7);
        pass(&world, 2_000);
        for city in ["oslo", "lima"] {
            let all = vec![1, 2, 3, 4, 5, 6, 7];
            assert_eq!(found(&world, &store, &Session::at(city)), Ok(all), "{level} {city}");
        }
    }
}

#[test]
fn what_only_it_had_is_gone_and_who_has_seen_that_is_told() {
    let (world, links) = (TestWorld::new(2), Arc::<Alone>::default());
    let store = open(&world, Level::Causal, config().with_links(links.clone()));
    let early = put(&world, &store, &Session::at("oslo"), 1);
    pass(&world, 2_000);
    links.set(&["oslo"]);
    let late = put(&world, &store, &Session::at("oslo"), 10);
    put(&world, &store, &Session::at("rome"), 2);
    pass(&world, 1_000);
    store.kill("oslo").expect("it is there");
    let seen_at = |city: &str, seen: &Stamp| Session { after: seen.clone(), ..Session::at(city) };
    // Until it is given up, its writes may still arrive.
    let behind = StoreError::Behind { store: "notes".into(), replica: "rome".into() };
    assert_eq!(found(&world, &store, &seen_at("rome", &late)), Err(behind));
    let given_up = world.block_on(store.give_up("oslo")).expect("the others agree");
    assert_eq!(given_up.lost, Some(1), "that of 10");
    assert_eq!(store.departed(), ["oslo".into()]);
    assert_eq!(found(&world, &store, &seen_at("rome", &early)), Ok(vec![1, 2]));
    let told = |session: &Session| {
        let error = found(&world, &store, session).expect_err("it is lost");
        assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
        assert!(error.to_string().contains("its data center oslo was given up"), "{error}");
        assert!(error.to_string().contains("is lost: accept the loss"), "{error}");
    };
    told(&seen_at("rome", &late));
    let kept = store.kept(&late);
    assert_ne!(kept, late);
    assert_eq!(store.kept(&early), early);
    assert_eq!(found(&world, &store, &seen_at("lima", &kept)), Ok(vec![1, 2]));
    // Its remains can be cleaned up, and no session forgets for that reason any write that it has seen.
    pass(&world, 2_000);
    let everywhere = world.block_on(store.everywhere()).expect("it answers");
    assert_eq!(everywhere.of("oslo"), Stamp::ENDED);
    assert!(everywhere.covers(&late));

    links.set(&[]);
    world.block_on(store.admit("oslo")).expect("it comes up");
    assert_eq!(store.departed(), [""; 0].map(Into::into));
    // However far the next incarnation gets, lost writes are not mistaken for its own.
    for n in 0..20 {
        put(&world, &store, &Session::at("oslo"), 100 + n);
        pass(&world, 100);
    }
    for city in CITIES {
        told(&seen_at(city, &late));
    }
    let seen = put(&world, &store, &seen_at("oslo", &kept), 3);
    pass(&world, 2_000);
    let all: Vec<i64> = [1, 2, 3].into_iter().chain(100..120).collect();
    for city in CITIES {
        assert_eq!(found(&world, &store, &seen_at(city, &seen)), Ok(all.clone()), "{city}");
    }
    // Again, and again.
    for (incarnation, city) in [(2, "oslo"), (1, "lima")] {
        store.kill(city).expect("it is there");
        let given_up = world.block_on(store.give_up(city)).expect("the others agree");
        assert_eq!(given_up.lost, Some(0));
        let admitted = world.block_on(store.admit(city)).expect("it comes up");
        assert_eq!(admitted.incarnation, incarnation);
        for city in CITIES {
            assert_eq!(found(&world, &store, &seen_at(city, &seen)), Ok(all.clone()), "{city}");
            told(&seen_at(city, &late));
        }
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let refused = |result: Result<(), StoreError>, expected: &str| {
        let error = result.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    };
    for level in BOTH {
        let world = TestWorld::new(3);
        let store = open(&world, level, config());
        let give_up = |city: &str| world.block_on(store.give_up(city)).map(drop);
        let admit = |city: &str| world.block_on(store.admit(city)).map(drop);
        refused(give_up("bonn"), "it has no data center bonn; it has oslo, rome, lima");
        refused(admit("bonn"), "it has no data center bonn");
        refused(give_up("oslo"), "its data center oslo runs, and is not given up");
        refused(admit("oslo"), "its data center oslo was not given up");
        store.kill("oslo").expect("it is there");
        refused(admit("oslo"), "its data center oslo was not given up");
        store.kill("rome").expect("it is there");
        refused(
            give_up("oslo"),
            "to give up oslo or bring it back, 2 other data centers have to run and reach each other, and only lima do",
        );
        assert_eq!(state(&store, "oslo"), DatacenterState::Down, "nothing was begun");
        store.start("rome").expect("it is there");
        give_up("oslo").expect("the others agree");
        refused(give_up("oslo"), "its data center oslo was given up already");
        refused(store.start("oslo"), "its data center oslo was given up");
        store.kill("lima").expect("it is there");
        refused(admit("oslo"), "only rome do");
        let single = GeoConfig::new(["oslo"]);
        let store = open(&world, level, EmbeddedConfig::in_memory().with_geo(single));
        store.kill("oslo").expect("it is there");
        let error = world.block_on(store.give_up("oslo")).map(drop);
        refused(error, "oslo is its only data center");
    }
}

#[test]
fn of_two_data_centers_one_is_enough_where_nothing_is_certified() {
    for level in BOTH {
        let world = TestWorld::new(4);
        let geo = GeoConfig::new(["oslo", "rome"]);
        let store = open(&world, level, EmbeddedConfig::in_memory().with_geo(geo));
        put(&world, &store, &Session::at("oslo"), 1);
        pass(&world, 1_000);
        store.kill("oslo").expect("it is there");
        let given_up = world.block_on(store.give_up("oslo"));
        if level == Level::Linearizable {
            let error = given_up.expect_err("there is no majority").to_string();
            assert!(error.contains("2 other data centers have to run"), "{error}");
            continue;
        }
        given_up.expect("rome has said what it has");
        put(&world, &store, &Session::at("rome"), 2);
        world.block_on(store.admit("oslo")).expect("it comes up");
        assert_eq!(found(&world, &store, &Session::at("oslo")), Ok(vec![1, 2]));
    }
}

/// One client of a data center: reads and writes until `is_over`. Returns the longest duration of a
/// transaction.
async fn keeps_on(
    world: &TestWorld,
    store: &GeoStore,
    city: &str,
    is_over: &AtomicBool,
) -> Duration {
    let (mut longest, mut session) = (Duration::ZERO, Session::at(city));
    while !is_over.load(Ordering::Relaxed) {
        let begin = world.elapsed();
        let mut transaction = store.begin(&session).await.expect("it runs");
        transaction.read(&[Read::Counter(at("a", 1))]).await.expect("it is near");
        let writes = vec![Write::Add(at("a", 1), 1), Write::Add(at(city, 1), 1)];
        let commit = Commit { writes, ..Commit::default() };
        let committed = transaction.commit(commit).await.expect("it is near");
        session.after.join(&committed.stamp);
        longest = longest.max(world.elapsed().saturating_sub(begin));
        world.sleep(Duration::from_millis(3)).await;
    }
    longest
}

#[test]
fn nobody_waits_for_who_comes_up() {
    let world = TestWorld::new(10);
    let store = open(&world, Level::Causal, EmbeddedConfig::in_memory().with_geo(geo()));
    store.kill("oslo").expect("it is there");
    // Its state is sent in several parts.
    for part in 0..12 {
        let writes =
            (0..500).map(|n| Write::Add(at(&format!("{part} {n}"), 1), 1)).collect::<Vec<_>>();
        let written = world.block_on(write(&store, &Session::at("rome"), writes));
        written.expect("it runs");
    }
    pass(&world, 20_000);
    world.block_on(store.give_up("oslo")).expect("the others agree");
    let is_over = AtomicBool::new(false);
    let took = Mutex::new(Duration::ZERO);
    let admit = async {
        let begin = world.elapsed();
        store.admit("oslo").await.expect("it comes up");
        *took.lock().expect("no panic") = world.elapsed().saturating_sub(begin);
        is_over.store(true, Ordering::Relaxed);
    };
    let longest = Mutex::new(Vec::new());
    let client = async |city: &str| {
        let most = keeps_on(&world, &store, city, &is_over).await;
        longest.lock().expect("no panic").push(most);
    };
    world.block_on(join_all(vec![
        Box::pin(admit) as BoxFuture<'_, ()>,
        Box::pin(client("rome")),
        Box::pin(client("lima")),
    ]));
    let took = took.into_inner().expect("no panic");
    let longest = longest.into_inner().expect("no panic");
    println!("{took:?} {longest:?}");
    assert!(
        longest.iter().all(|most| *most < Duration::from_millis(40)),
        "{longest:?} of {took:?}"
    );
}

#[test]
fn whoever_came_back_does_not_report_for_its_predecessor() {
    let five = ["oslo", "rome", "lima", "bonn", "kiev"];
    for (level, is_lima_back) in BOTH.into_iter().flat_map(|level| [(level, true), (level, false)])
    {
        let world = TestWorld::new(7);
        let geo = GeoConfig { datacenters: five.map(Into::into).to_vec(), ..geo() };
        let store = open(&world, level, EmbeddedConfig::in_memory().with_geo(geo));
        put(&world, &store, &Session::at("rome"), 1);
        pass(&world, 2_000);
        store.kill("kiev").expect("it is there");
        world.block_on(store.give_up("kiev")).expect("the others agree");
        world.block_on(store.admit("kiev")).expect("it comes up");
        pass(&world, 2_000);
        // Two that were never lost have still to report, and kiev. Lima may have what kiev had.
        for city in ["rome", "lima"] {
            store.kill(city).expect("it is there");
        }
        let error = world.block_on(store.give_up("rome")).expect_err("lima is down").to_string();
        assert!(error.contains("no report has come of what lima had of it"), "{error}");
        assert_eq!(state(&store, "rome"), DatacenterState::BeingGivenUp);
        if is_lima_back {
            store.start("lima").expect("it has its data");
            world.block_on(store.give_up("rome")).expect("all have reported");
        } else {
            world.block_on(store.give_up("lima")).expect("the others agree");
            pass(&world, 2_000);
            world.block_on(store.admit("lima")).expect("it comes up");
        }
        assert_eq!(state(&store, "rome"), DatacenterState::GivenUp, "{level}");
        world.block_on(store.admit("rome")).expect("it comes up");
        pass(&world, 2_000);
        for city in five {
            assert_eq!(found(&world, &store, &Session::at(city)), Ok(vec![1]), "{level} {city}");
        }
    }
}
