//! Delivered strong transactions are exposed in the order of strong timestamps, and a session's
//! first transactions after its own strong one wait until it is here.

use std::sync::Arc;

use mingle_geo::message::{Read, Snapshot};
use mingle_geo::{
    DcId, Delivery, Input, Key, Kind, Message, Op, Timestamp, Transaction, Update, Vector,
};
use mingle_model::{Origin, TransactionId, Value};

use crate::support::{World, key_of, number, register};

fn transaction(at: u64, key: &Key, op: Op) -> Arc<Transaction> {
    Arc::new(Transaction {
        id: TransactionId { origin: Origin(900), sequence: at },
        begun_us: 0,
        origin: DcId::STRONG,
        commit_vec: Vector::ZERO.with(DcId::STRONG, Timestamp(at)),
        snapshot_own: Timestamp(at - 1),
        updates: vec![Update { key: key.clone(), op, id: None }],
    })
}

fn delivery(at: u64, value: i64) -> Delivery {
    let op = Op::Write(Value::Int(value));
    Delivery { to: Timestamp(at), transactions: vec![transaction(at, &register("k"), op)] }
}

#[test]
fn a_read_waits_for_the_strong_transactions_of_its_past() {
    let mut world = World::new(1, 1, 1);
    world.run_ms(100);
    let snapshot = Snapshot::AtLeast(Vector::ZERO.with(DcId::STRONG, Timestamp(2)));
    let read = Read { incarnation: 0, request: 1, snapshot, keys: vec![register("k")] };
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
    // A causal write that saw it is ordered after it.
    world.put(1, &register("k"), 5);
    assert_eq!(world.get(1, &[&register("k")]), [Some(5)]);
}

/// Two partitions receive strong transactions at their own pace: a replica stores every transaction
/// that it knows (Property 6), and all partitions know every stable transaction (Property 7).
#[test]
fn properties_6_and_7_hold_while_partitions_deliver_at_their_own_pace() {
    let strong = DcId::STRONG;
    let mut world = World::new(1, 2, 4);
    world.run_ms(100);
    let logs: [Key; 2] = [0, 1].map(|partition| key_of(Kind::Log, partition, 2, "log"));
    let (mut given, mut ahead) = ([0, 0], 0);
    for to in 1..60_u64 {
        let partition = u16::from(to / 7 % 3 == 0);
        let (at, log) = (usize::from(partition), &logs[usize::from(partition)]);
        let new = (given[at] + 1..=to).filter(|line| line % 2 == u64::from(partition));
        let line = |line: u64| transaction(line, log, Op::Append(Value::Int(line as i64)));
        let transactions = new.map(line).collect();
        world.input((0, partition), Input::Deliver(Delivery { to: Timestamp(to), transactions }));
        given[at] = to;
        world.run_ms(5);
        for partition in 0..2 {
            let replica = world.replica(0, partition);
            let known = replica.known_vec()[strong];
            assert_eq!(known, Timestamp(given[usize::from(partition)]));
            let all = Vector::ZERO.with(strong, known);
            let state = replica.inspect(&logs[usize::from(partition)], &all).expect("not folded");
            let lines = state.as_log().map_or(0, |log| log.iter().count() as u64);
            let count = (1..=known.0).filter(|line| line % 2 == u64::from(partition)).count();
            assert_eq!(lines, count as u64, "partition {partition} up to {known:?}");
            let stable = replica.stable_vec()[strong];
            assert!(stable.0 <= given[0].min(given[1]), "{stable:?}, and {given:?} are known");
            ahead += u64::from(stable < known);
        }
    }
    assert!(ahead > 0, "no partition ever was ahead");
    world.run_ms(200);
    assert_eq!(world.replica(0, 0).stable_vec()[strong].0, given[0].min(given[1]));
}
