//! Replication covers intervals: no replica advances past missing transactions, even if links lose,
//! repeat or reorder messages.

use mingle_geo::{DcId, Message};

use crate::support::{Verdict, World, register, register_of};

#[test]
fn a_heartbeat_does_not_advance_over_transactions_that_were_lost() {
    let mut world = World::new(2, 1, 1);
    let key = register("k");
    world.run_ms(100);
    world.open(1, 0);
    // Transactions are lost; heartbeats, which cover later intervals, arrive.
    world.filter(|_, envelope| match &envelope.message {
        Message::Replicate(replicate) if !replicate.transactions.is_empty() => Verdict::Drop,
        _ => Verdict::Pass,
    });
    let commit_vec = world.put(1, &key, 1);
    world.run_ms(300);
    let known = world.replica(1, 0).known_vec();
    assert!(known[DcId(0)] < commit_vec[DcId(0)], "advanced past what is missing");
    world.no_filter();
    world.open(2, 1);
    world.run_until("it is asked for", |world| world.get(2, &[&key]) == [Some(1)]);
}

#[test]
fn intervals_that_overtake_each_other_are_put_in_order() {
    let mut world = World::new(2, 1, 1);
    let keys = ["a", "b", "c"].map(register);
    world.run_ms(100);
    world.open(1, 0);
    let mut count = 0;
    // The first interval with transactions is held back; later ones pass.
    world.filter(move |_, envelope| match &envelope.message {
        Message::Replicate(replicate) if !replicate.transactions.is_empty() && count < 1 => {
            count += 1;
            Verdict::Hold
        }
        Message::Ask(_) => Verdict::Drop,
        _ => Verdict::Pass,
    });
    world.put(1, &keys[0], 1);
    world.run_ms(20);
    world.put(1, &keys[1], 2);
    world.put(1, &keys[2], 3);
    world.run_ms(100);
    world.open(2, 1);
    assert_eq!(world.get(2, &[&keys[0], &keys[1], &keys[2]]), [None, None, None]);
    world.no_filter();
    world.release();
    world.run_until("all arrive", |world| {
        world.get(2, &[&keys[0], &keys[1], &keys[2]]) == [Some(1), Some(2), Some(3)]
    });
}

#[test]
fn a_partition_that_was_never_heard_from_holds_stable_at_nothing() {
    let mut world = World::new(2, 2, 1);
    // Partition 1 of d1 sends nothing to partition 0.
    world.filter(|_, envelope| match &envelope.message {
        Message::KnownVecLocal(known) if known.partition.0 == 1 => Verdict::Drop,
        _ => Verdict::Pass,
    });
    let key = register_of(0, 2, "k");
    world.open(1, 0);
    world.put(1, &key, 1);
    world.run_ms(500);
    assert_eq!(world.replica(1, 0).stable_vec(), mingle_geo::Vector::ZERO);
    world.no_filter();
    world.run_ms(500);
    assert!(world.replica(1, 0).stable_vec()[DcId(0)] > mingle_geo::Timestamp::ZERO);
}

#[test]
fn a_transaction_of_two_partitions_shows_in_both_or_in_none() {
    let mut world = World::new(2, 2, 1);
    let (a, b) = (register_of(0, 2, "a"), register_of(1, 2, "b"));
    world.run_ms(100);
    world.open(1, 0);
    // Messages of partition 1 are late.
    world.filter(|from, envelope| match &envelope.message {
        Message::Replicate(_)
            if from == mingle_geo::Address::Replica(DcId(0), mingle_geo::PartitionId(1)) =>
        {
            Verdict::Hold
        }
        _ => Verdict::Pass,
    });
    world.write(1, &a, mingle_geo::Op::Write(mingle_model::Value::Int(1)));
    world.write(1, &b, mingle_geo::Op::Write(mingle_model::Value::Int(1)));
    world.committed(1);
    world.run_ms(300);
    world.open(2, 1);
    assert_eq!(world.get(2, &[&a, &b]), [None, None]);
    world.no_filter();
    world.release();
    world.run_until("both show", |world| {
        let seen = world.get(2, &[&a, &b]);
        assert!(seen == [None, None] || seen == [Some(1), Some(1)], "{seen:?}");
        seen == [Some(1), Some(1)]
    });
}
