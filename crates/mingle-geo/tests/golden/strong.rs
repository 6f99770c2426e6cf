//! What certification would deliver is exposed in the order of strong timestamps, and a session's
//! first transactions after its own strong one wait until it is here.

use std::sync::Arc;

use mingle_geo::message::{Read, Snapshot};
use mingle_geo::{DcId, Delivery, Input, Message, Op, Timestamp, Transaction, Update, Vector};
use mingle_model::{Origin, TransactionId, Value};

use crate::support::{World, number, register};

fn delivery(at: u64, value: i64) -> Delivery {
    let to = Timestamp(at);
    let update = Update { key: register("k"), op: Op::Write(Value::Int(value)), id: None };
    let transaction = Transaction {
        id: TransactionId { origin: Origin(900), sequence: at },
        begun_us: 0,
        origin: DcId::STRONG,
        commit_vec: Vector::ZERO.with(DcId::STRONG, to),
        snapshot_own: Timestamp(at - 1),
        updates: vec![update],
    };
    Delivery { to, transactions: vec![Arc::new(transaction)] }
}

#[test]
fn a_read_waits_for_the_strong_transactions_of_its_past() {
    let mut world = World::new(1, 1, 1);
    world.run_ms(100);
    let snapshot = Snapshot::AtLeast(Vector::ZERO.with(DcId::STRONG, Timestamp(2)));
    let read = Read { request: 1, snapshot, keys: vec![register("k")] };
    world.inject(7, 0, 0, Message::Read(read));
    world.input((0, 0), Input::Deliver(delivery(1, 1)));
    world.run_ms(50);
    assert!(world.answers(7).is_empty(), "answered before it was here");
    world.input((0, 0), Input::Deliver(delivery(2, 2)));
    // Delivered again, as after a restart of the service.
    world.input((0, 0), Input::Deliver(delivery(1, 1)));
    world.run_ms(50);
    let answers = world.answers(7);
    let [Message::ReadReply(reply)] = &answers[..] else { panic!("{answers:?}") };
    let (_, states) = reply.result.as_ref().expect("states");
    assert_eq!(number(&states[0]), Some(2));
}

#[test]
fn delivered_transactions_show_in_snapshots_and_survive_restarts() {
    let mut world = World::with(1, 1, 1, |config| config.transaction_ms_max = 100);
    world.run_ms(100);
    world.input((0, 0), Input::Deliver(delivery(1, 1)));
    world.run_ms(50);
    world.open(1, 0);
    assert_eq!(world.get(1, &[&register("k")]), [Some(1)]);
    world.crash(0, 0, false);
    world.restart(0, 0);
    world.run_ms(2_000);
    assert_eq!(world.replica(0, 0).log_size().0, 0, "folded");
    assert_eq!(world.get(1, &[&register("k")]), [Some(1)]);
    // A causal write that saw it comes after it.
    world.put(1, &register("k"), 5);
    assert_eq!(world.get(1, &[&register("k")]), [Some(5)]);
}
