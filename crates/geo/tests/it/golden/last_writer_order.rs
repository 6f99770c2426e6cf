//! A read never returns a value that its own causal past has overwritten, for any order of arrival
//! and any clock values.

use mingle_geo::Message;

use crate::support::{Verdict, World, register};

#[test]
fn what_was_overwritten_does_not_come_back() {
    let mut world = World::new(3, 1, 1);
    let key = register("k");
    for (at, node) in &mut world.nodes {
        node.skew_us = [0, 800_000, 0][usize::from(at.0)];
    }
    world.run_ms(200);
    // d1, whose clock is far ahead, writes; d0 reads it and overwrites it.
    world.open(1, 1);
    world.put(1, &key, 1);
    world.open(2, 0);
    world.run_until("it arrives", |world| world.get(2, &[&key]) == [Some(1)]);
    // d2 gets the second version first; the first arrives late.
    world.open(3, 2);
    let from_d1 = mingle_geo::DcId(1);
    world.filter(move |_, envelope| match &envelope.message {
        Message::Replicate(replicate) if replicate.origin == from_d1 => Verdict::Hold,
        _ => Verdict::Pass,
    });
    world.put(2, &key, 2);
    assert_eq!(world.get(2, &[&key]), [Some(2)]);
    world.put(1, &register("other"), 7);
    world.run_ms(300);
    world.no_filter();
    world.release();
    let mut shown = vec![world.get(3, &[&key])[0]];
    world.run_until("both are there", |world| {
        shown.push(world.get(3, &[&key])[0]);
        shown.last() == Some(&Some(2))
    });
    // Reads return no value, possibly 1, then only 2.
    assert!(shown.is_sorted(), "{shown:?}");
    world.run_ms(1_000);
    for client in [1, 2, 3] {
        assert_eq!(world.get(client, &[&key]), [Some(2)], "session {client}");
    }
}
