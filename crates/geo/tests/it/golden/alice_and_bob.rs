//! The causality violation of UniStore §1: a reader that sees Alice's message about her deposit
//! also sees the deposit.

use mingle_geo::{Address, Key, Kind, Message, Op, PartitionId};
use mingle_model::Value;

use crate::support::{Verdict, World, key_of, register_of};

#[test]
fn who_sees_the_message_sees_the_deposit() {
    for slow in 0..2 {
        let mut world = World::new(3, 2, 1);
        let account: Key = key_of(Kind::Counter, 0, 2, "account");
        let inbox = register_of(1, 2, "inbox");
        world.run_ms(200);
        // One of the two partitions replicates slowly.
        world.filter(move |from, envelope| match (&envelope.message, from) {
            (Message::Replicate(replicate), Address::Replica(_, partition))
                if partition == PartitionId(slow) && !replicate.transactions.is_empty() =>
            {
                Verdict::Hold
            }
            _ => Verdict::Pass,
        });
        world.open(1, 0);
        world.write(1, &account, Op::Add(100));
        world.committed(1);
        world.write(1, &inbox, Op::Write(Value::from("I have paid in")));
        world.committed(1);
        world.open(2, 1);
        let mut has_message = false;
        let mut look = |world: &mut World| {
            let message = world.read(2, &[&inbox]).expect("a read");
            world.call(2, |session, _, _| session.rollback());
            let balance = world.read(2, &[&account]).expect("a read");
            world.call(2, |session, _, _| session.rollback());
            let balance = balance[0].as_counter().expect("a counter").value();
            has_message |= message[0].as_register().expect("a register").value().is_some();
            assert!(!has_message || balance == 100, "the message without the deposit");
            has_message
        };
        for _ in 0..20 {
            assert!(!look(&mut world) || slow == 1, "it is held");
            world.run_ms(20);
        }
        world.no_filter();
        world.release();
        world.run_until("Bob sees the message", look);
    }
}
