//! Nothing is said that a crash could take back.

use mingle_geo::message::{CommitOne, Snapshot};
use mingle_geo::{DcId, Message, Op, Update, Vector};
use mingle_model::{Origin, TransactionId, Value};

use crate::support::{EPOCH_US, World, register, register_of};

fn commit(world: &World, value: i64) -> Message {
    let update = Update { key: register("k"), op: Op::Write(Value::Int(value)), id: None };
    Message::CommitOne(CommitOne {
        id: TransactionId { origin: Origin(7), sequence: value as u64 },
        begun_us: EPOCH_US + world.now_us,
        answered: 0,
        snapshot: Snapshot::At(Vector::ZERO),
        updates: vec![update],
    })
}

#[test]
fn a_commit_is_acknowledged_only_once_it_is_on_disk() {
    let mut world = World::new(1, 1, 1);
    world.run_ms(100);
    world.stick_disk(0, 0);
    world.inject(7, 0, 0, commit(&world, 1));
    world.run_ms(200);
    assert!(world.answers(7).is_empty(), "acknowledged before the disk");
    world.free_disk(0, 0);
    world.run_ms(10);
    assert_eq!(world.answers(7).len(), 1);
    world.crash(0, 0, false);
    world.restart(0, 0);
    world.open(1, 0);
    world.run_ms(50);
    assert_eq!(world.get(1, &[&register("k")]), [Some(1)]);
}

#[test]
fn what_is_not_on_disk_is_neither_announced_nor_replicated_nor_read() {
    let mut world = World::with(2, 1, 1, |config| config.f = 0);
    world.run_ms(100);
    world.stick_disk(0, 0);
    world.inject(7, 0, 0, commit(&world, 1));
    world.open(1, 0);
    world.call(1, |session, now, out| {
        session.read(now, vec![register("k")], out).expect("idle");
    });
    world.run_ms(300);
    assert!(world.events.is_empty(), "it was read");
    let announced = world.replica(1, 0).known_vec();
    // The disk's content is lost with the crash: whoever had heard of it would miss it for ever.
    world.crash(0, 0, false);
    world.restart(0, 0);
    assert!(world.replica(0, 0).known_vec()[DcId(0)] >= announced[DcId(0)]);
    world.open(2, 0);
    world.open(3, 1);
    world.put(2, &register("other"), 5);
    world.run_until("what came later arrives", |world| {
        let seen = world.get(3, &[&register("k"), &register("other")]);
        assert_eq!(seen[0], None);
        seen[1] == Some(5)
    });
}

#[test]
fn a_vector_is_announced_only_for_what_is_on_disk() {
    let mut world = World::new(3, 1, 1);
    world.run_ms(200);
    // d1 receives, and its disk writes nothing.
    world.isolate(2);
    world.stick_disk(1, 0);
    world.open(1, 0);
    let commit_vec = world.put(1, &register("k"), 1);
    world.run_ms(500);
    assert!(world.replica(1, 0).known_vec()[DcId(0)] >= commit_vec[DcId(0)], "it has come");
    let uniform = world.replica(0, 0).uniform_vec();
    assert!(uniform[DcId(0)] < commit_vec[DcId(0)], "counted before it was on disk");
    world.free_disk(1, 0);
    world.run_ms(500);
    assert!(world.replica(0, 0).uniform_vec()[DcId(0)] >= commit_vec[DcId(0)]);
}

#[test]
fn a_restart_says_at_least_what_was_announced() {
    let mut world = World::new(3, 2, 1);
    world.open(1, 0);
    world.put(1, &register_of(0, 2, "k"), 1);
    world.run_ms(500);
    for partition in 0..2 {
        let before = world.replica(1, partition).known_vec();
        let announced = world.replica(0, partition).uniform_vec();
        world.crash(1, partition, false);
        world.restart(1, partition);
        let after = world.replica(1, partition).known_vec();
        // Heartbeats too: their origin may be lost, and nobody would say it again.
        assert!(after.covers(&announced), "{before} {announced} {after}");
    }
}

#[test]
fn a_log_that_was_written_anew_makes_the_same_replica() {
    let mut world = World::new(2, 1, 1);
    let keys = ["a", "b", "c"].map(register);
    world.open(1, 0);
    for (value, key) in keys.iter().enumerate() {
        world.put(1, key, value as i64);
        world.run_ms(400);
    }
    let (long, outcomes) = (world.nodes[&(0, 0)].disk.len(), world.replica(0, 0).outcome_count());
    world.compact(0, 0);
    assert!(world.nodes[&(0, 0)].disk.len() < long);
    world.crash(0, 0, false);
    world.restart(0, 0);
    assert_eq!(world.replica(0, 0).outcome_count(), outcomes);
    world.run_ms(50);
    assert_eq!(world.get(1, &[&keys[0], &keys[1], &keys[2]]), [Some(0), Some(1), Some(2)]);
}

#[test]
fn what_others_have_only_in_memory_is_kept_for_them() {
    let mut world = World::new(2, 1, 1);
    world.run_ms(200);
    world.stick_disk(1, 0);
    world.open(1, 0);
    world.put(1, &register("k"), 1);
    world.run_ms(500);
    assert!(world.replica(0, 0).kept_bytes(DcId(0)) > 0, "dropped, and may be lost there");
    world.crash(1, 0, false);
    world.restart(1, 0);
    world.open(2, 1);
    world.run_until("it is sent again", |world| world.get(2, &[&register("k")]) == [Some(1)]);
    let is_transfer =
        |alarm: &mingle_geo::Alarm| matches!(alarm, mingle_geo::Alarm::Transfer { .. });
    assert!(!world.alarms.iter().any(|(_, alarm)| is_transfer(alarm)));
}
