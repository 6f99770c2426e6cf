//! A prepared transaction whose coordinator is gone is decided by its participants: committed at the
//! highest proposal if all are prepared, aborted if one refused or never saw it; it is never dropped.

use mingle_geo::message::{Commit, Prepare, PrepareAck, Read, Snapshot, Vote};
use mingle_geo::{
    DcId, Key, Message, Op, Outcome, PartitionId, Refusal, Timestamp, Update, Vector,
};
use mingle_model::{Origin, TransactionId, Value};

use crate::support::{EPOCH_US, Verdict, World, register_of};

const CLIENT: u64 = 77;
const ID: TransactionId = TransactionId { origin: Origin(77), sequence: 1 };

fn prepare(world: &World, key: &Key, value: i64) -> Message {
    Message::Prepare(Prepare {
        incarnation: 0,
        id: ID,
        begun_us: EPOCH_US + world.now_us,
        answered: 0,
        participants: vec![PartitionId(0), PartitionId(1)],
        snap_vec: Vector::ZERO,
        updates: vec![Update { key: key.clone(), op: Op::Write(Value::Int(value)), id: None }],
    })
}

fn votes(world: &mut World) -> Vec<Vote> {
    world.run_ms(10);
    let acks = world.answers(CLIENT).into_iter().filter_map(|message| match message {
        Message::PrepareAck(PrepareAck { vote, .. }) => Some(vote),
        _ => None,
    });
    acks.collect()
}

fn proposal(world: &mut World) -> Timestamp {
    match votes(world)[..] {
        [Vote::Prepared(timestamp)] => timestamp,
        ref votes => panic!("{votes:?}"),
    }
}

fn world() -> (World, Key, Key) {
    let mut world = World::new(1, 2, 1);
    world.run_ms(100);
    (world, register_of(0, 2, "a"), register_of(1, 2, "b"))
}

#[test]
fn all_prepared_commit_at_the_highest_proposal() {
    let (mut world, a, b) = world();
    world.nodes.get_mut(&(0, 1)).expect("a node").skew_us = 300_000;
    world.inject(CLIENT, 0, 0, prepare(&world, &a, 1));
    let first = proposal(&mut world);
    world.inject(CLIENT, 0, 1, prepare(&world, &b, 2));
    let second = proposal(&mut world);
    assert!(second > first);
    world.run_ms(2_000);
    for partition in 0..2 {
        let commit_vec = Vector::ZERO.with(DcId(0), second);
        let outcome = world.replica(0, partition).outcome(&ID);
        assert_eq!(outcome, Some(Outcome::Committed(commit_vec)), "p{partition}");
    }
    world.open(1, 0);
    assert_eq!(world.get(1, &[&a, &b]), [Some(1), Some(2)]);
}

#[test]
fn the_participants_do_not_wait_for_the_clients_of_others() {
    let (mut world, a, b) = world();
    world.inject(CLIENT, 0, 0, prepare(&world, &a, 1));
    world.inject(CLIENT, 0, 1, prepare(&world, &b, 2));
    world.run_ms(100);
    // The transaction holds its partitions back; a read of them is answered after the decision.
    world.open(1, 0);
    assert_eq!(world.get(1, &[&a, &b]), [None, None]);
    world.run_ms(1_000);
    assert_eq!(world.replica(0, 0).prepared_count(), 0);
    assert_eq!(world.get(1, &[&a, &b]), [Some(1), Some(2)]);
}

#[test]
fn one_that_never_saw_it_refuses_and_then_refuses_the_late_preparation() {
    let (mut world, a, b) = world();
    world.inject(CLIENT, 0, 0, prepare(&world, &a, 1));
    proposal(&mut world);
    let late = prepare(&world, &b, 2);
    world.run_ms(2_000);
    for partition in 0..2 {
        let outcome = world.replica(0, partition).outcome(&ID);
        assert_eq!(outcome, Some(Outcome::Aborted), "p{partition}");
    }
    world.inject(CLIENT, 0, 1, late.clone());
    assert_eq!(votes(&mut world), [Vote::Decided(Outcome::Aborted)]);
    // The refusal is on disk.
    world.crash(0, 1, false);
    world.restart(0, 1);
    world.inject(CLIENT, 0, 1, late);
    assert_eq!(votes(&mut world), [Vote::Decided(Outcome::Aborted)]);
    world.open(1, 0);
    assert_eq!(world.get(1, &[&a, &b]), [None, None]);
}

#[test]
fn after_the_floor_has_passed_a_refusal_the_floor_refuses() {
    let (mut world, a, b) = world();
    for config in world.configs.values_mut() {
        config.outcome_ms_max = 11_000;
    }
    for partition in 0..2 {
        world.crash(0, partition, true);
        world.restart(0, partition);
    }
    world.inject(CLIENT, 0, 0, prepare(&world, &a, 1));
    proposal(&mut world);
    let late = prepare(&world, &b, 2);
    world.run_ms(30_000);
    assert_eq!(world.replica(0, 1).outcome(&ID), None, "it is forgotten");
    world.inject(CLIENT, 0, 1, late);
    let votes = votes(&mut world);
    let is_refused = matches!(votes[..], [Vote::Unknown(Refusal::TransactionTooOld { .. })]);
    assert!(is_refused, "{votes:?}");
    assert_eq!(world.replica(0, 1).prepared_count(), 0);
}

#[test]
fn what_is_prepared_survives_a_restart_and_is_never_dropped() {
    let (mut world, a, b) = world();
    world.inject(CLIENT, 0, 0, prepare(&world, &a, 1));
    proposal(&mut world);
    world.inject(CLIENT, 0, 1, prepare(&world, &b, 2));
    proposal(&mut world);
    // Partition 1 decides while partition 0 is down, for longer than outcomes are remembered.
    world.filter(|_, envelope| match &envelope.message {
        Message::StatusReply(_) => Verdict::Drop,
        _ => Verdict::Pass,
    });
    world.crash(0, 0, false);
    world.restart(0, 0);
    world.run_ms(90_000);
    assert_eq!(world.replica(0, 0).prepared_count(), 1);
    world.no_filter();
    world.run_ms(2_000);
    world.open(1, 0);
    assert_eq!(world.get(1, &[&a, &b]), [Some(1), Some(2)]);
}

#[test]
fn a_commit_is_remembered_while_a_participant_is_still_prepared() {
    let (mut world, a, b) = world();
    world.inject(CLIENT, 0, 0, prepare(&world, &a, 1));
    let first = proposal(&mut world);
    world.inject(CLIENT, 0, 1, prepare(&world, &b, 2));
    let second = proposal(&mut world);
    // Partition 0 receives nothing, and is then down for longer than outcomes are remembered.
    world.crash(0, 0, true);
    let commit_vec = Vector::ZERO.with(DcId(0), first.max(second));
    world.inject(CLIENT, 0, 1, Message::Commit(Commit { id: ID, commit_vec }));
    world.run_ms(150_000);
    world.restart(0, 0);
    world.run_ms(2_000);
    world.open(1, 0);
    assert_eq!(world.get(1, &[&a, &b]), [Some(1), Some(2)], "fractured");
}

#[test]
fn a_reader_waits_for_what_is_prepared_below_its_snapshot() {
    let (mut world, a, b) = world();
    world.inject(CLIENT, 0, 0, prepare(&world, &a, 1));
    let first = proposal(&mut world);
    world.inject(CLIENT, 0, 1, prepare(&world, &b, 2));
    let second = proposal(&mut world);
    let commit_vec = Vector::ZERO.with(DcId(0), first.max(second));
    // Partition 1 knows of the commit, but partition 0 does not yet; a snapshot contains the
    // transaction.
    world.inject(CLIENT, 0, 1, Message::Commit(Commit { id: ID, commit_vec }));
    let read = Read {
        incarnation: 0,
        request: 5,
        snapshot: Snapshot::At(commit_vec),
        keys: vec![a.clone()],
    };
    world.inject(CLIENT, 0, 0, Message::Read(read));
    world.run_ms(50);
    assert!(world.answers(CLIENT).is_empty(), "it read around a prepared transaction");
    assert_eq!(world.replica(0, 0).waiting_count(), 1);
    world.inject(CLIENT, 0, 0, Message::Commit(Commit { id: ID, commit_vec }));
    world.run_ms(10);
    let answers = world.answers(CLIENT);
    let [Message::ReadReply(reply)] = &answers[..] else { panic!("{answers:?}") };
    let (_, states) = reply.result.as_ref().expect("states");
    assert_eq!(crate::support::number(&states[0]), Some(1));
}

#[test]
fn a_reader_that_waits_too_long_is_told_for_what() {
    let (mut world, a, _) = world();
    world.inject(CLIENT, 0, 0, prepare(&world, &a, 1));
    let first = proposal(&mut world);
    world.crash(0, 1, false);
    let snapshot = Snapshot::At(Vector::ZERO.with(DcId(0), first));
    world.inject(
        CLIENT,
        0,
        0,
        Message::Read(Read { incarnation: 0, request: 5, snapshot, keys: vec![a] }),
    );
    world.run_ms(6_000);
    let answers = world.answers(CLIENT);
    let [Message::ReadReply(reply)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(reply.result, Err(Refusal::TimedOut { on: Some(ID) }));
}
