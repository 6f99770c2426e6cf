//! When one partition has shown a transaction as uniform, every partition of its data center comes to serve it, even if
//! the other data centers are cut off meanwhile.

use mingle_geo::{Address, DcId, Event, Message, PartitionId};

use crate::support::{Verdict, World, register_of};

/// Sessions 2 and 4 ask partition 0 first, and session 3 asks partition 1.
const READER: u64 = 2;
const OTHER: u64 = 3;

#[test]
fn a_partition_that_hears_less_of_the_others_serves_what_another_has_shown() {
    let mut world = World::new(3, 2, 1);
    let key = register_of(0, 2, "k");
    world.run_ms(300);
    // Partition 1 of d0 still gets transactions, but does not hear any more how far the others are.
    let deaf = Address::Replica(DcId(0), PartitionId(1));
    world.filter(move |_, envelope| match &envelope.message {
        Message::SiblingVecs(_) if envelope.to == deaf => Verdict::Drop,
        _ => Verdict::Pass,
    });
    world.open(1, 1);
    let written = world.put(1, &key, 1);
    world.open(READER, 0);
    world.run_until("it shows at partition 0", |world| world.get(READER, &[&key]) == [Some(1)]);
    let token = world.sessions[&READER].token();
    world.isolate(0);
    world.resume(OTHER, 0, &token);
    world.call(OTHER, |session, now, out| session.attach(now, DcId(0), out).expect("idle"));
    loop {
        match world.event(OTHER) {
            Event::Waiting(_) => {}
            event => break assert_eq!(event, Event::Resumed(DcId(0))),
        }
    }
    assert_eq!(world.get(OTHER, &[&key]), [Some(1)]);
    let (uniform, stable) = (world.replica(0, 1).uniform_vec(), world.replica(0, 1).stable_vec());
    assert!(uniform[DcId(1)] >= written[DcId(1)] && stable.covers(&uniform));
}
