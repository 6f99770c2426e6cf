//! An epoch is on disk before a replica acts in it, and messages of another epoch are ignored.

use mingle_geo::certify::Entry;
use mingle_geo::members::{Membership, Quorum, Standing};
use mingle_geo::{Address, DcId, Input, Members, Message, Timestamp};

use crate::support::{Verdict, World, register};

const D0: DcId = DcId(0);

/// A quorum in which one report is sufficient.
const ALONE: Quorum = Quorum { reports: 1, holders: 1 };

/// The members after the first data center is given up, and after it is cut off at `cut`.
fn epochs(cut: Timestamp) -> [Members; 2] {
    let (dc, incarnation) = (D0, 0);
    let mut log = Membership::default();
    log.apply(&Entry::Fence { dc, incarnation, quorum: ALONE });
    let fencing = log.members().clone();
    log.apply(&Entry::Frozen { dc, incarnation, by: DcId(1), known: cut, epoch: 1 });
    [fencing, log.members().clone()]
}

/// Creates two transactions of the first data center that are at all others but are not uniform
/// there, because no data center has heard from the others. Returns their timestamps.
fn unshown(world: &mut World) -> [Timestamp; 2] {
    world.run_ms(200);
    world.filter(|_, envelope| match envelope.message {
        Message::SiblingVecs(_) => Verdict::Drop,
        _ => Verdict::Pass,
    });
    world.open(1, 0);
    let written = [1, 2].map(|value| world.put(1, &register("k"), value)[D0]);
    world.run_ms(100);
    assert!(world.replica(1, 0).known_vec()[D0] > written[1]);
    world.lose(0);
    written
}

#[test]
fn a_restart_goes_on_in_the_same_epoch_with_what_was_cut_off_gone() {
    for is_compacted in [false, true] {
        let mut world = World::new(3, 1, 1);
        let written = unshown(&mut world);
        let [fencing, fenced] = epochs(written[0]);
        world.input((1, 0), Input::Members(fencing));
        world.run_ms(200);
        assert_eq!(world.replica(2, 0).members().of(D0).standing, Standing::Fencing, "it was told");
        world.input((1, 0), Input::Members(fenced.clone()));
        world.run_ms(200);
        world.no_filter();
        for dc in [1, 2] {
            if is_compacted {
                world.compact(dc, 0);
            }
            world.crash(dc, 0, false);
            world.restart(dc, 0);
            assert_eq!(world.replica(dc, 0).members(), &fenced);
            assert_eq!(world.replica(dc, 0).known_vec()[D0], written[0]);
        }
        world.run_ms(1_000);
        for (client, dc) in [(2, 1), (3, 2)] {
            world.open(client, dc);
            assert_eq!(world.get(client, &[&register("k")]), [Some(1)]);
        }
        assert!(world.alarms.is_empty(), "{:?}", world.alarms);
    }
}

#[test]
fn an_epoch_that_is_not_on_disk_is_not_spoken_of() {
    let mut world = World::new(3, 1, 1);
    let written = unshown(&mut world);
    world.run_ms(10);
    world.stick_disk(1, 0);
    world.input((1, 0), Input::Members(epochs(written[0])[0].clone()));
    world.run_ms(200);
    assert_eq!(world.replica(2, 0).members().epoch(), 0);
    world.crash(1, 0, false);
    world.restart(1, 0);
    assert_eq!(world.replica(1, 0).members().epoch(), 0);
}

#[test]
fn while_one_is_given_up_nothing_new_is_taken_of_it() {
    let mut world = World::new(3, 1, 1);
    world.run_ms(200);
    let known = world.replica(1, 0).known_vec()[D0];
    world.input((1, 0), Input::Members(epochs(known)[0].clone()));
    let frozen = world.replica(1, 0).known_vec()[D0];
    world.open(1, 0);
    world.put(1, &register("k"), 1);
    // The data center itself does not hear of it.
    world.down.extend([(1, 0), (2, 0)]);
    world.run_ms(500);
    assert!(world.replica(0, 0).known_vec()[D0] > frozen);
    for dc in [1, 2] {
        assert_eq!(world.replica(dc, 0).members().epoch(), 1);
    }
    assert_eq!(world.replica(1, 0).known_vec()[D0], frozen);
}

#[test]
fn members_come_from_replicas_and_are_what_there_can_be() {
    let mut world = World::new(3, 1, 1);
    let [fencing, fenced] = epochs(Timestamp(1));
    world.inject(9, 1, 0, Message::Members(fenced.clone()));
    assert_eq!(world.replica(1, 0).members().epoch(), 0, "from a client");
    let mut log = Membership::default();
    log.apply(&Entry::Fence { dc: DcId(6), incarnation: 0, quorum: ALONE });
    let from = Address::Replica(DcId(2), mingle_geo::PartitionId(0));
    let strange = Message::Members(log.members().clone());
    world.input((1, 0), Input::Message { from, message: strange });
    assert_eq!(world.replica(1, 0).members().epoch(), 0, "of a data center that there is not");
    world.input((1, 0), Input::Message { from, message: Message::Members(fenced.clone()) });
    world.input((1, 0), Input::Message { from, message: Message::Members(fencing) });
    assert_eq!(world.replica(1, 0).members(), &fenced, "an older one changes nothing");
}
