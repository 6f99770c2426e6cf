//! Timestamps are unique in their data center and above all that were seen or announced, even if
//! the machines' clocks misbehave. So the order of versions extends causality.

use mingle_geo::{Alarm, Event, Op, Refusal};
use mingle_model::Value;

use crate::support::{World, register, register_of};

/// Stops the clocks of a data center: simulated time goes on, theirs does not.
fn stop_clocks(world: &mut World, dc: u8) {
    let now_us = world.now_us as i64;
    for (at, node) in &mut world.nodes {
        if at.0 == dc {
            node.skew_us = -now_us;
        }
    }
}

#[test]
fn transactions_of_a_clock_that_stands_still_all_arrive() {
    let mut world = World::new(2, 2, 1);
    let keys: Vec<_> = (0..2).map(|partition| register_of(partition, 2, "k")).collect();
    world.run_ms(100);
    // Line 2:11 would drop the second of two transactions with one timestamp.
    for client in 1..=20 {
        stop_clocks(&mut world, 0);
        world.open(client, 0);
        for key in &keys {
            let line = mingle_geo::Key { kind: mingle_geo::Kind::Log, name: key.name.clone() };
            world.write(client, &line, Op::Append(Value::Int(client as i64)));
        }
        world.committed(client);
    }
    world.open(99, 1);
    for key in &keys {
        let line = mingle_geo::Key { kind: mingle_geo::Kind::Log, name: key.name.clone() };
        world.run_until("all lines arrive", |world| {
            let states = world.read(99, &[&line]).expect("a read");
            world.call(99, |session, _, _| session.rollback());
            states[0].as_log().expect("a log").count() == 20
        });
    }
}

#[test]
fn restarts_in_a_row_do_not_put_a_clock_ahead_each_by_as_much() {
    let mut world = World::new(2, 1, 1);
    let key = register("k");
    // Each restart continues above the ceiling on disk, which is 3 s ahead of the machine's clock.
    // The others refuse timestamps that are more than 5 s ahead.
    for _ in 0..10 {
        world.run_ms(50);
        world.crash(0, 0, false);
        world.restart(0, 0);
    }
    world.open(1, 0);
    world.put(1, &key, 1);
    world.run_ms(500);
    world.open(2, 1);
    assert_eq!(world.get(2, &[&key]), [Some(1)]);
    assert!(!world.alarms.iter().any(|(_, alarm)| matches!(alarm, Alarm::ClockAhead { .. })));
}

#[test]
fn local_timestamps_are_unique() {
    let mut world = World::new(1, 4, 1);
    let mut seen = std::collections::BTreeSet::new();
    for client in 0..40 {
        stop_clocks(&mut world, 0);
        world.open(client, 0);
        let key = register_of((client % 4) as u16, 4, "k");
        let commit_vec = world.put(client, &key, 1);
        assert!(seen.insert(commit_vec[mingle_geo::DcId(0)]), "given twice");
    }
}

#[test]
fn a_write_that_saw_another_wins_over_it_whatever_the_clocks_say() {
    let mut world = World::new(3, 1, 1);
    for (at, node) in &mut world.nodes {
        node.skew_us = [900_000, -900_000, 0][usize::from(at.0)];
    }
    let key = register("k");
    world.run_ms(100);
    world.open(1, 0);
    world.put(1, &key, 1);
    world.open(2, 1);
    world.run_until("it arrives", |world| world.get(2, &[&key]) == [Some(1)]);
    // d1's clock is 1.8 s behind d0's.
    world.put(2, &key, 2);
    assert_eq!(world.get(2, &[&key]), [Some(2)]);
    world.run_ms(1_000);
    for dc in 0..3 {
        world.open(10 + u64::from(dc), dc);
        assert_eq!(world.get(10 + u64::from(dc), &[&key]), [Some(2)], "at d{dc}");
    }
}

#[test]
fn concurrent_writes_end_the_same_in_whatever_order_they_come() {
    let mut world = World::new(3, 1, 1);
    let key = register("k");
    world.run_ms(100);
    for dc in 0..3 {
        world.open(u64::from(dc), dc);
        world.put(u64::from(dc), &key, i64::from(dc));
    }
    world.run_ms(1_000);
    let shown = world.get(0, &[&key]);
    for dc in 1..3 {
        assert_eq!(world.get(dc, &[&key]), shown, "at d{dc}");
    }
}

#[test]
fn a_clock_that_went_back_at_a_restart_gives_no_timestamp_twice() {
    let mut world = World::new(2, 1, 1);
    let key = register("k");
    world.run_ms(100);
    world.open(1, 0);
    let before = world.put(1, &key, 1);
    let known = world.replica(0, 0).known_vec();
    world.crash(0, 0, false);
    world.nodes.get_mut(&(0, 0)).expect("a node").skew_us = -3_600_000_000;
    world.restart(0, 0);
    let own = mingle_geo::DcId(0);
    assert!(world.replica(0, 0).known_vec()[own] >= before[own]);
    // The session has no past, so only the replica can know the earlier timestamps.
    world.open(2, 0);
    world.write(2, &key, Op::Write(Value::Int(2)));
    let after = world.committed(2);
    assert!(after[own] > before[own] && after[own] > known[own], "{before} {after}");
    world.open(3, 1);
    world.run_until("both arrive, in order", |world| world.get(3, &[&key]) == [Some(2)]);
}

#[test]
fn an_idle_partition_does_not_hold_its_data_center_back() {
    let mut world = World::new(1, 3, 1);
    world.nodes.get_mut(&(0, 2)).expect("a node").skew_us = -2_000_000;
    let key = register_of(0, 3, "k");
    world.open(1, 0);
    world.put(1, &key, 1);
    // Another session without the first's past: partition 2 must follow the clock.
    world.run_ms(50);
    world.open(2, 0);
    assert_eq!(world.get(2, &[&key]), [Some(1)]);
}

#[test]
fn a_data_center_far_in_the_future_is_refused_and_alarmed() {
    let mut world = World::with(2, 1, 1, |config| {
        config.clock_ahead_ms_max = 1_000;
        config.f = 0;
    });
    let key = register("k");
    world.run_ms(100);
    for (at, node) in &mut world.nodes {
        node.skew_us = if at.0 == 0 { 3_000_000 } else { 0 };
    }
    world.open_with(1, 0, |config| config.deadline_ms = 200);
    world.put(1, &key, 1);
    world.run_ms(500);
    world.open(2, 1);
    assert_eq!(world.get(2, &[&key]), [None]);
    let is_alarm = |alarm: &Alarm| matches!(alarm, Alarm::ClockAhead { .. });
    assert!(world.alarms.iter().any(|(at, alarm)| *at == (1, 0) && is_alarm(alarm)));
    // Its own clock was not moved forward.
    let ahead = world.put(2, &register("other"), 1)[mingle_geo::DcId(1)].micros();
    assert!(ahead < crate::support::EPOCH_US + world.now_us + 100_000);
    // Once the machine's clock is correct, it is accepted.
    world.nodes.get_mut(&(0, 0)).expect("a node").skew_us = 0;
    world.run_until("it arrives", |world| world.get(2, &[&key]) == [Some(1)]);
}

#[test]
fn a_session_from_the_future_is_refused() {
    let mut world = World::with(1, 1, 1, |config| config.clock_ahead_ms_max = 1_000);
    world.run_ms(100);
    world.open_with(1, 0, |config| config.deadline_ms = 300);
    let future = world.replica(0, 0).known_vec()[mingle_geo::DcId(0)].0 + (3_000_000 << 12);
    let past_vec =
        mingle_geo::Vector::ZERO.with(mingle_geo::DcId(0), mingle_geo::Timestamp(future));
    let dc = mingle_geo::DcId(0);
    let token = mingle_geo::session::Token { dc, incarnation: 0, past_vec, epoch: 0, newest: 0 };
    world.call(1, |session, now, out| {
        session.join(&token);
        session.attach(now, mingle_geo::DcId(0), out).expect("idle");
    });
    let event = world.event(1);
    assert!(matches!(event, Event::Failed(Refusal::ClockAhead { .. })), "{event:?}");
    let known = world.replica(0, 0).known_vec()[mingle_geo::DcId(0)];
    assert!(known.0 < future, "the clock was dragged along");
}
