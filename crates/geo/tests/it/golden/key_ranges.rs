//! Data centers that partition the keys differently report it, and no item is stored at a partition
//! where reads would miss it (Eiger assumes equal ranges).

use mingle_geo::{Address, Alarm, DcId, PartitionId};

use crate::support::{Verdict, World, key_of, register};

#[test]
fn what_belongs_to_another_partition_here_is_refused_and_alarmed() {
    let mut world = World::with(2, 2, 1, |config| {
        if config.dc == DcId(1) {
            config.partition_count = 3;
        }
    });
    // The third partition was not started yet.
    world.filter(|_, envelope| match envelope.to {
        Address::Replica(_, PartitionId(2)) => Verdict::Drop,
        _ => Verdict::Pass,
    });
    // A key of the first partition with two partitions, and of another one with three.
    let names = (0..1_000).map(|number| register(&format!("k{number}")));
    let mut moved = names
        .filter(|key| key.partition(2) == PartitionId(0) && key.partition(3) != PartitionId(0));
    let key = moved.next().expect("some key is cut differently");
    world.run_ms(100);
    world.open(1, 0);
    let commit_vec = world.put(1, &key, 1);
    world.run_ms(500);
    let there = world.replica(1, 0);
    assert!(there.known_vec()[DcId(0)] < commit_vec[DcId(0)], "it says that it has it");
    assert!(there.keys().all(|found| *found != key), "it is where nobody looks for it");
    let is_alarmed =
        |(at, alarm): &((u8, u16), Alarm)| *at == (1, 0) && matches!(alarm, Alarm::Malformed(_));
    assert!(world.alarms.iter().any(is_alarmed), "{:?}", world.alarms);
}

/// A tag keeps keys together for any number of partitions.
#[test]
fn keys_with_one_tag_stay_together() {
    let (kind, one) = (mingle_geo::Kind::Register, register("cart:{ana}"));
    for count in [1, 2, 3, 64] {
        assert_eq!(one.partition(count), register("name:{ana}").partition(count));
        let other = key_of(kind, count - 1, count, "k");
        assert_eq!(other.partition(count), PartitionId(count - 1));
    }
}
