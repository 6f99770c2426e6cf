//! An older snapshot reads its version, never the initial value, for any number of later versions.

use crate::support::{World, number, register, register_of};

#[test]
fn a_thousand_versions_later_a_snapshot_still_reads_its_own() {
    let mut world = World::with(1, 2, 1, |config| {
        config.transaction_ms_max = 600_000;
        config.outcome_ms_max = 600_000;
    });
    let (first, key) = (register_of(0, 2, "first"), register_of(1, 2, "k"));
    world.open(1, 0);
    world.open(2, 0);
    world.put(2, &first, 1);
    world.put(2, &key, 1);
    world.run_ms(50);
    let states = world.read(1, &[&first]).expect("its snapshot");
    assert_eq!(number(&states[0]), Some(1));
    for value in 2..=1_000 {
        world.put(2, &key, value);
    }
    let states = world.read(1, &[&key]).expect("within its time");
    assert_eq!(number(&states[0]), Some(1));
    world.call(1, |session, _, _| session.rollback());
    world.run_ms(50);
    assert_eq!(world.get(1, &[&key]), [Some(1_000)]);
    assert_eq!(world.get(1, &[&register("never written")]), [None]);
}
