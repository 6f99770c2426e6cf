//! Figure 1: a transaction that reached one data center before its origin was lost, or cut off from
//! the others, reaches all of them, and so do the transactions that depend on it.

use crate::support::{World, register};

#[test]
fn a_dependency_of_a_lost_data_center_is_forwarded() {
    let mut world = World::new(3, 1, 1);
    let (k1, k2) = (register("k1"), register("k2"));
    world.run_ms(200);
    // t1 reaches d1 alone: the link from d0 to d2 is down, and then d0 is lost.
    world.down.insert((0, 2));
    world.open(1, 0);
    world.put(1, &k1, 1);
    world.open(2, 1);
    world.run_until("t1 becomes visible at d1", |world| world.get(2, &[&k1]) == [Some(1)]);
    world.lose(0);
    world.put(2, &k2, 2);
    world.open(3, 2);
    world.run_until("t2 becomes visible at d2", |world| {
        let seen = world.get(3, &[&k1, &k2]);
        assert_ne!(seen, [None, Some(2)], "t2 without its dependency");
        seen == [Some(1), Some(2)]
    });
}

#[test]
fn a_lost_link_alone_is_enough() {
    let mut world = World::new(3, 1, 1);
    let key = register("k");
    world.run_ms(200);
    // All data centers run; only the link between d0 and d2 is down.
    world.down.extend([(0, 2), (2, 0)]);
    world.open(1, 0);
    world.open(3, 2);
    for value in 1..=3 {
        world.put(1, &key, value);
        world.run_until("it is forwarded", |world| world.get(3, &[&key]) == [Some(value)]);
    }
}

#[test]
fn what_everybody_has_is_not_kept() {
    let mut world = World::new(3, 1, 1);
    world.open(1, 0);
    world.put(1, &register("k"), 1);
    world.run_ms(300);
    for dc in 0..3 {
        assert_eq!(world.replica(dc, 0).kept_bytes(mingle_geo::DcId(0)), 0, "at d{dc}");
    }
    world.isolate(2);
    world.put(1, &register("k"), 2);
    world.run_ms(300);
    assert!(world.replica(0, 0).kept_bytes(mingle_geo::DcId(0)) > 0);
    assert!(world.replica(1, 0).kept_bytes(mingle_geo::DcId(0)) > 0);
}
