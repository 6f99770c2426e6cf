//! No message reports a state that a crash could lose.

use mingle_geo::message::{CommitOne, Prepare, Read, Snapshot};
use mingle_geo::{
    Address, Config, DcId, Input, Message, Now, Op, Outcome, Output, PartitionId, Record, Replica,
    Timestamp, Update, Vector,
};
use mingle_model::{Origin, TransactionId, Value};

use crate::support::{EPOCH_US, World, register, register_of};

fn commit(world: &World, value: i64) -> Message {
    let update = Update { key: register("k"), op: Op::Write(Value::Int(value)), id: None };
    Message::CommitOne(CommitOne {
        incarnation: 0,
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

/// A crash during a write may leave only its beginning: a commit without the ceiling above it, so
/// that a restart would give the same timestamp again.
#[test]
fn a_ceiling_is_written_before_what_rests_on_it() {
    let world = World::new(1, 1, 1);
    let mut replica = Replica::new(Config::new(DcId(0), 1, PartitionId(0), 1)).expect("settings");
    let now = Now { wall_us: EPOCH_US, mono_us: 0 };
    let input = Input::Message { from: Address::Client(7), message: commit(&world, 1) };
    let mut out = Vec::new();
    replica.handle(now, input, &mut out);
    let Some(Output::Persist(persist)) = out.first() else { panic!("{out:?}") };
    let [Record::ClockCeiling(ceiling), Record::Commit(transaction)] = &persist.records[..] else {
        panic!("{:?}", persist.records)
    };
    assert!(transaction.timestamp() < *ceiling);
}

/// A read moves the clock to its snapshot, and no later transaction may commit below it. This holds
/// after a restart too, since the clock continues from the ceiling on disk.
#[test]
fn a_read_waits_while_a_ceiling_of_the_clock_is_on_its_way() {
    let mut world = World::with(1, 1, 1, |config| config.clock_ceiling_ms = 50);
    world.run_ms(100);
    world.stick_disk(0, 0);
    // Ticks raise the ceiling, which does not reach the disk yet.
    world.run_ms(200);
    let at = Timestamp::new(EPOCH_US + world.now_us + 1_000, PartitionId(0));
    let snapshot = Snapshot::At(Vector::ZERO.with(DcId(0), at));
    let read = Read { incarnation: 0, request: 1, snapshot, keys: vec![register("k")] };
    world.inject(7, 0, 0, Message::Read(read));
    world.run_ms(200);
    assert!(world.answers(7).is_empty(), "read above the ceiling that a restart would find");
    world.free_disk(0, 0);
    world.run_ms(10);
    assert_eq!(world.answers(7).len(), 1);
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
    // The crash loses the unwritten records: a replica that had heard of them would miss them
    // forever.
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
fn what_participants_decide_is_not_read_before_the_preparation_is_on_disk() {
    let mut world = World::new(1, 2, 1);
    world.run_ms(100);
    let keys = [register_of(0, 2, "k"), register_of(1, 2, "k")];
    let id = TransactionId { origin: Origin(7), sequence: 1 };
    let begun_us = EPOCH_US + world.now_us;
    world.stick_disk(0, 1);
    // The coordinator is gone. Partition 1 asks partition 0, whose preparation is on disk.
    for (partition, key) in keys.iter().enumerate() {
        let update = Update { key: key.clone(), op: Op::Write(Value::Int(1)), id: None };
        let prepare = Prepare {
            incarnation: 0,
            id,
            begun_us,
            answered: 0,
            participants: vec![PartitionId(0), PartitionId(1)],
            snap_vec: Vector::ZERO,
            updates: vec![update],
        };
        world.inject(7, 0, partition as u16, Message::Prepare(prepare));
    }
    world.run_ms(1_000);
    let Some(Outcome::Committed(commit_vec)) = world.replica(0, 1).outcome(&id) else {
        panic!("it was not decided")
    };
    let read = Read {
        incarnation: 0,
        request: 1,
        snapshot: Snapshot::At(commit_vec),
        keys: vec![keys[1].clone()],
    };
    world.inject(8, 0, 1, Message::Read(read));
    world.run_ms(300);
    assert_eq!(world.answers(8), [], "it was read");
    world.crash(0, 1, false);
    world.restart(0, 1);
    // Its prepare record is lost, so the partition now refuses the transaction.
    world.run_until("it is aborted", |world| world.replica(0, 0).prepared_count() == 0);
    assert_eq!(world.replica(0, 0).outcome(&id), Some(Outcome::Aborted));
}

#[test]
fn a_vector_is_announced_only_for_what_is_on_disk() {
    let mut world = World::new(3, 1, 1);
    world.run_ms(200);
    // d1 receives the transaction, but its disk writes nothing.
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
        // This includes heartbeats: their origin may be lost, and then they would not be repeated.
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
