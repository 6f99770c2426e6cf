//! Versions are folded up to the uniform snapshot that no transaction still reads. A snapshot from
//! before is refused, and never answered from the base.

use mingle_geo::{DcId, Event, Op, Refusal};
use mingle_model::Value;

use crate::support::{World, register, register_of};

#[test]
fn a_running_transaction_reads_its_snapshot_and_a_longer_one_is_refused() {
    let mut world = World::with(1, 1, 1, |config| config.transaction_ms_max = 1_000);
    let (a, b) = (register("a"), register("b"));
    world.open(1, 0);
    world.open(2, 0);
    world.put(2, &a, 1);
    world.put(2, &b, 1);
    world.read(1, &[&a]).expect("its snapshot");
    world.put(2, &b, 2);
    world.run_ms(900);
    // It is written after the snapshot, so that the folded state is the one the snapshot needs.
    let states = world.read(1, &[&b]).expect("within its time");
    assert_eq!(crate::support::number(&states[0]), Some(1));
    world.put(2, &b, 3);
    world.run_ms(2_500);
    let refused = world.read(1, &[&b]);
    assert!(matches!(refused, Err(Refusal::SnapshotTooOld { .. })), "{refused:?}");
    assert_eq!(world.replica(0, 0).log_size(), (0, 0));
    // It begins again; a one-shot read is never too old.
    assert_eq!(world.get(1, &[&b]), [Some(3)]);
    world.run_ms(10_000);
    assert_eq!(world.get(1, &[&a, &b]), [Some(1), Some(3)]);
}

#[test]
fn a_read_of_several_partitions_with_old_handouts_begins_again() {
    let mut world = World::with(1, 2, 1, |config| config.transaction_ms_max = 500);
    let (a, b) = (register_of(0, 2, "a"), register_of(1, 2, "b"));
    world.open_with(1, 0, |config| config.handout_ms_max = 3_600_000);
    world.open(2, 0);
    world.put(2, &a, 1);
    world.run_ms(50);
    world.get(1, &[&a]);
    world.put(2, &a, 2);
    world.put(2, &b, 2);
    world.run_ms(5_000);
    assert_eq!(world.get(1, &[&a, &b]), [Some(2), Some(2)]);
}

#[test]
fn nothing_is_folded_that_is_not_uniform() {
    let mut world = World::with(3, 1, 1, |config| config.transaction_ms_max = 100);
    let key = register("k");
    world.run_ms(300);
    world.isolate(0);
    world.open(1, 0);
    for value in 0..5 {
        world.put(1, &key, value);
    }
    world.run_ms(3_000);
    let replica = world.replica(0, 0);
    assert!(replica.uniform_vec().covers(&replica.folded_vec()));
    assert_eq!(replica.log_size().0, 5);
    world.heal();
    world.run_ms(3_000);
    assert_eq!(world.replica(0, 0).log_size().0, 0);
    assert_eq!(world.get(1, &[&key]), [Some(4)]);
}

#[test]
fn one_partitions_snapshots_hold_folding_at_the_others() {
    let mut world = World::with(1, 2, 1, |config| config.transaction_ms_max = 1_000);
    let (a, b) = (register_of(0, 2, "a"), register_of(1, 2, "b"));
    world.open(2, 0);
    world.put(2, &a, 1);
    world.put(2, &b, 1);
    world.run_ms(5_000);
    world.open(1, 0);
    // Partition 0 hands out the snapshot; it is read at partition 1.
    world.read(1, &[&a]).expect("its snapshot");
    for value in 2..100 {
        world.put(2, &b, value);
    }
    world.run_ms(800);
    let states = world.read(1, &[&b]).expect("within its time");
    assert_eq!(crate::support::number(&states[0]), Some(1));
}

#[test]
fn siblings_are_kept_through_folding() {
    let mut world = World::with(3, 1, 1, |config| config.transaction_ms_max = 100);
    let key = register("k");
    world.run_ms(200);
    for dc in 0..2 {
        world.open(dc, dc as u8);
        world.write(dc, &key, Op::Write(Value::Int(dc as i64 + 1)));
        world.call(dc, |session, now, out| session.commit(now, out).expect("idle"));
    }
    for dc in 0..2 {
        assert!(matches!(world.event(dc), Event::Committed { .. }));
    }
    world.run_ms(3_000);
    assert_eq!(world.replica(2, 0).log_size().0, 0, "folded");
    world.open(5, 2);
    let states = world.read(5, &[&key]).expect("a read");
    let register = states[0].as_register().expect("a register");
    let both = register.merged(|values| Value::list(values.iter().copied().cloned()));
    let offered = both.expect("a value");
    let mut values = offered.as_list().expect("two conflict").to_vec();
    values.sort();
    assert_eq!(values, [Value::Int(1), Value::Int(2)]);
    // A write that has seen both settles the conflict.
    world.write(5, &key, Op::Write(Value::Int(3)));
    world.committed(5);
    world.run_ms(1_000);
    let states = world.read(0, &[&key]).expect("a read");
    assert_eq!(states[0].as_register().expect("a register").siblings().len(), 1);
}

#[test]
fn writes_are_refused_when_too_much_cannot_be_folded_and_reads_go_on() {
    let mut world = World::with(3, 1, 1, |config| {
        config.log_bytes_max = 2_000;
        config.transaction_ms_max = 100;
    });
    let key = register("k");
    world.run_ms(200);
    world.isolate(0);
    world.open(1, 0);
    let mut value = 0;
    let refusal = loop {
        value += 1;
        assert!(value < 1_000, "never refused");
        world.write(1, &key, Op::Write(Value::Int(value)));
        match world.commit(1) {
            Event::Committed { .. } => {}
            Event::Aborted { refusal, .. } => break refusal,
            event => panic!("{event:?}"),
        }
    };
    assert!(matches!(refusal, Refusal::Full { most: 2_000, .. }), "{refusal:?}");
    assert_eq!(world.get(1, &[&key]), [Some(value - 1)]);
    world.heal();
    world.run_ms(2_000);
    world.put(1, &key, 7);
    assert!(world.replica(1, 0).known_vec()[DcId(0)] > mingle_geo::Timestamp::ZERO);
}

#[test]
fn writes_that_read_nothing_do_not_pile_up_as_conflicts() {
    let mut world = World::new(1, 1, 1);
    let key = register("k");
    for client in 0..50 {
        world.open(client, 0);
        world.put(client, &key, client as i64);
    }
    world.open(99, 0);
    let states = world.read(99, &[&key]).expect("a read");
    assert_eq!(states[0].as_register().expect("a register").siblings().len(), 1);
}

#[test]
fn a_held_snapshot_is_read_part_by_part_until_its_time_is_over() {
    let mut world = World::with(1, 1, 1, |config| config.transaction_ms_max = 100);
    world.open(1, 0);
    let keys: Vec<_> = (0..5).map(|number| register(&format!("k{number}"))).collect();
    for key in &keys {
        world.put(1, key, 1);
    }
    world.run_ms(1_000);
    let at = world.replica(0, 0).known_vec();
    let until_us = world.now().mono_us + 3_000_000;
    world.replica_mut(0, 0).hold(at, until_us).expect("it is not older than the folded one");
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        for key in &keys {
            world.put(1, key, 2);
        }
        world.run_ms(500);
        let replica = world.replica(0, 0);
        assert!(at.covers(&replica.folded_vec()));
        let part = replica.held_part(after.as_ref(), &at, 2, 1 << 20).expect("it is held");
        assert!(part.states.len() <= 2);
        found.extend(part.states.iter().map(|(_, state)| crate::support::number(state)));
        after = part.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, [Some(1); 5]);
    // One item at a time, however small the parts are.
    let replica = world.replica(0, 0);
    assert_eq!(replica.held_part(None, &at, 0, 0).expect("it is held").states.len(), 1);
    world.run_ms(4_000);
    let replica = world.replica(0, 0);
    assert!(!at.covers(&replica.folded_vec()), "the time is over");
    assert_eq!(replica.held_part(None, &at, 2, 1), Err(replica.folded_vec()));
    assert!(world.replica_mut(0, 0).hold(at, u64::MAX).is_err());
}
