//! Differing clocks lose no update (Antidote, issue 129).

use mingle_geo::{Key, Kind, Op};

use crate::support::World;

#[test]
fn every_addition_counts_however_far_the_clocks_are_apart() {
    let mut world = World::new(3, 2, 1);
    let skews = [-1_500_000, 0, 1_500_000, -700_000, 900_000, 10];
    for (node, skew_us) in world.nodes.values_mut().zip(skews) {
        node.skew_us = skew_us;
    }
    let sum = Key::new(Kind::Counter, "sum");
    world.run_ms(200);
    for dc in 0..3 {
        world.open(dc, dc as u8);
    }
    let mut expected = 0;
    for round in 0..10 {
        for dc in 0..3 {
            let amount = round * 3 + dc as i64 + 1;
            expected += i128::from(amount);
            world.write(dc, &sum, Op::Add(amount));
            world.committed(dc);
            // Sometimes it writes before it has received the others' writes, sometimes after.
            world.run_ms(u64::from(round % 3 == 0) * 60);
        }
    }
    world.run_ms(3_000);
    for dc in 0..3 {
        let states = world.read(dc, &[&sum]).expect("a read");
        assert_eq!(states[0].as_counter().expect("a counter").value(), expected, "at d{dc}");
    }
}
