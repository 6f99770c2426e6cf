//! A prepared transaction is never dropped for its age: if one partition committed while another
//! forgot it, half of the transaction would remain.

use mingle_geo::message::Prepare;
use mingle_geo::{Message, Op, PartitionId, Update};
use mingle_model::{Origin, TransactionId, Value};

use crate::support::{EPOCH_US, World, register_of};

#[test]
fn an_old_preparation_waits_for_the_others_and_then_commits_with_them() {
    let mut world = World::with(3, 2, 1, |config| config.outcome_ms_max = 11_000);
    let keys = [register_of(0, 2, "a"), register_of(1, 2, "b")];
    world.run_ms(100);
    let id = TransactionId { origin: Origin(900), sequence: 1 };
    for (partition, key) in keys.iter().enumerate() {
        let update = Update { key: key.clone(), op: Op::Write(Value::Int(1)), id: None };
        let prepare = Prepare {
            incarnation: 0,
            id,
            begun_us: EPOCH_US + world.now_us,
            answered: 1,
            participants: vec![PartitionId(0), PartitionId(1)],
            snap_vec: world.replica(0, 0).uniform_vec(),
            updates: vec![update],
        };
        world.inject(77, 0, partition as u16, Message::Prepare(prepare));
        world.run_ms(1);
    }
    // The coordinator never comes back, and one participant is down for a long time.
    world.crash(0, 1, true);
    world.run_ms(60_000);
    assert_eq!(world.replica(0, 0).prepared_count(), 1, "dropped for its age");
    world.restart(0, 1);
    world.open(1, 0);
    world.open(2, 2);
    for client in [1, 2] {
        world.run_until("it is decided", |world| {
            let seen = world.get(client, &[&keys[0], &keys[1]]);
            assert!(seen[0] == seen[1], "half a transaction: {seen:?}");
            seen == [Some(1), Some(1)]
        });
    }
    assert_eq!(world.replica(0, 0).prepared_count(), 0);
}
