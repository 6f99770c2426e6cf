//! A client that waits for another data center's transaction is told when the wait is in vain, and
//! does not delay other clients (Eiger's dependency checks have no deadline).

use mingle_geo::{DcId, Event, Refusal};

use crate::support::{World, register};

#[test]
fn waits_for_what_does_not_come_end() {
    let mut world = World::with(3, 1, 1, |config| config.wait_ms_max = 1_000);
    let key = register("k");
    world.run_ms(200);
    world.isolate(0);
    for (client, dc) in [(1, 0), (2, 0), (3, 1)] {
        world.open_with(client, dc, |config| config.deadline_ms = 3_000);
    }
    let began_us = world.now_us;
    for client in [1, 2] {
        world.put(client, &key, client as i64);
    }
    world.call(1, |session, now, out| session.barrier(now, out).expect("idle"));
    world.call(2, |session, now, out| session.attach(now, DcId(1), out).expect("idle"));
    assert!(matches!(world.event(2), Event::Waiting(_)));
    // Neither data center is delayed.
    world.open(4, 0);
    for (client, value) in [(3, 30), (4, 40)] {
        world.put(client, &register("other"), value);
        assert_eq!(world.get(client, &[&register("other")]), [Some(value)]);
    }
    assert!(world.now_us - began_us < 100_000, "they waited too");
    for client in [1, 2] {
        let event = world.event(client);
        let is_told = matches!(event, Event::Failed(Refusal::TimedOut { .. }));
        assert!(is_told, "session {client}: {event:?}");
    }
    assert!(world.now_us - began_us < 4_000_000, "told too late");
    world.run_ms(1_000);
    for dc in 0..2 {
        assert_eq!(world.replica(dc, 0).waiting_count(), 0, "d{dc} still has somebody waiting");
    }
    // The session stays at its data center and continues.
    assert_eq!(world.get(1, &[&key]).len(), 1);
}
