//! A slow partition delays the stable vector of its own data center. It does not delay messages
//! between the others, or the clients of its neighbours.

use crate::support::{World, register_of};

#[test]
fn a_stuck_disk_delays_nothing_between_the_others() {
    let mut world = World::new(3, 2, 1);
    let keys: Vec<_> = (0..2).map(|partition| register_of(partition, 2, "k")).collect();
    world.run_ms(300);
    world.stick_disk(0, 1);
    for client in 0..3 {
        world.open(client, client as u8);
    }
    for round in 1..=5 {
        let began_us = world.now_us;
        // Messages between the others are not delayed, in both partitions.
        for key in &keys {
            world.put(1, key, round);
        }
        world.run_until("it arrives", |world| {
            world.get(2, &[&keys[0], &keys[1]]) == [Some(round), Some(round)]
        });
        assert!(world.now_us - began_us < 200_000, "round {round}: delayed");
        // Nor are the clients of the stuck partition's neighbour.
        let began_us = world.now_us;
        let own = register_of(0, 2, "own");
        world.put(0, &own, round);
        assert_eq!(world.get(0, &[&own]), [Some(round)]);
        assert!(world.now_us - began_us < 10_000, "round {round}: its neighbour waited");
    }
    world.free_disk(0, 1);
    world.run_until("it catches up", |world| {
        world.get(0, &[&keys[0], &keys[1]]) == [Some(5), Some(5)]
    });
}
