//! Causal order between data centers.

use mingle_cops::config::Protocol;
use mingle_cops::flaw::Flaw;
use mingle_cops::message::{Message, Point};

use crate::stage::{RETRY_US, Stage, message, replicates};

/// Thesis §3.1: a reader that sees the album sees the photo in it.
#[test]
fn an_album_is_not_there_before_its_photo() {
    let mut stage = Stage::new(Protocol::Cops, 2, None);
    let [photo, album] = stage.keys_apart(2)[..] else { panic!("two keys") };
    let first = stage.write(0, 1, photo, 11);
    let second = stage.write(0, 1, album, 12);
    stage.deliver(|packet| replicates(packet, second, 1));
    assert!(stage.read(1, 1, album).is_empty(), "its dependency has not arrived");
    assert_eq!(stage.count(Point::DepCheckWaited), 1);
    stage.deliver(|packet| replicates(packet, first, 1));
    assert_eq!(stage.read(1, 1, photo), [11]);
    assert_eq!(stage.read(1, 1, album), [12]);
}

/// Without the check, the album comes first: the script above depends on the check.
#[test]
fn without_checks_the_album_comes_first() {
    let mut stage = Stage::new(Protocol::Cops, 2, Some(Flaw::DepsUnchecked));
    let [photo, album] = stage.keys_apart(2)[..] else { panic!("two keys") };
    stage.write(0, 1, photo, 11);
    let second = stage.write(0, 1, album, 12);
    stage.deliver(|packet| replicates(packet, second, 1));
    assert_eq!(stage.read(1, 1, album), [12]);
    assert!(stage.read(1, 1, photo).is_empty());
}

/// Thesis §3.3: two guests change the time of a party, to 8 pm and to 10 pm. All data centers end
/// with the same time.
#[test]
fn eight_and_ten_become_one_time_everywhere() {
    let mut stage = Stage::new(Protocol::Cops, 2, None);
    let eight = stage.write(0, 1, 5, 8);
    let ten = stage.write(1, 1, 5, 10);
    stage.all();
    let last = if eight.ts < ten.ts { 10 } else { 8 };
    assert_eq!([stage.read(0, 2, 5), stage.read(1, 2, 5)], [[last], [last]]);
}

/// Thesis §6.3: with conflict detection, the handler gets both times, in the order of versions, and a
/// write that replaces both is no conflict.
#[test]
fn eight_and_ten_are_a_conflict_for_the_handler() {
    let mut stage = Stage::new(Protocol::CopsCd, 2, None);
    let eight = stage.write(0, 1, 5, 8);
    let ten = stage.write(1, 1, 5, 10);
    stage.all();
    let both = if eight.ts < ten.ts { [8, 10] } else { [10, 8] };
    assert_eq!([stage.read(0, 2, 5), stage.read(1, 2, 5)], [both, both]);
    stage.write(0, 2, 5, 9);
    stage.all();
    assert_eq!([stage.read(0, 3, 5), stage.read(1, 3, 5)], [[9], [9]]);
}

/// The application's handler decides, here for the earlier hour, alike in all data centers.
#[test]
fn the_handler_of_the_application_decides() {
    let earliest = |hours: &[u64]| hours.iter().min().copied().into_iter().collect();
    let mut stage = Stage::with_handler(Protocol::CopsCd, 2, None, earliest);
    stage.write(1, 1, 5, 10);
    stage.write(0, 1, 5, 8);
    stage.all();
    assert_eq!([stage.read(0, 2, 5), stage.read(1, 2, 5)], [[8], [8]]);
}

/// A check of x5 is not answered by a concurrent newer x9, whose dependencies are not those of x5.
#[test]
fn a_newer_version_does_not_satisfy_a_check() {
    for flaw in [None, Some(Flaw::DepCheckByNewer)] {
        let mut stage = Stage::new(Protocol::Cops, 3, flaw);
        let [w, x, y] = stage.keys_apart(3)[..] else { panic!("three keys") };
        stage.write(0, 1, w, 1);
        let x5 = stage.write(0, 1, x, 5);
        let y6 = stage.write(0, 1, y, 6);
        // The server of x in data center 1 is ahead in logical time.
        for value in 91..99 {
            stage.write(1, 1, x, value);
        }
        let x9 = stage.write(1, 1, x, 99);
        assert!(x9.ts > x5.ts);
        stage.deliver(|packet| {
            packet.from.dc() == 1 || packet.to.dc() == 1 && packet.from.dc() == 2
        });
        stage.within(2);
        stage.deliver(|packet| replicates(packet, y6, 2));
        let seen = (stage.read(2, 1, y), stage.read(2, 1, w));
        match flaw {
            None => assert!(seen.0.is_empty(), "x5 is not there yet: {seen:?}"),
            Some(_) => assert_eq!(seen, (vec![6], vec![]), "the flaw shows y6 without w1"),
        }
        stage.all();
        assert_eq!((stage.read(2, 2, y), stage.read(2, 2, w)), (vec![6], vec![1]));
    }
}

/// Thesis §4.3: two actors of one process have contexts of their own, so a write of one does not wait
/// for the writes of the other.
#[test]
fn actors_of_one_process_do_not_wait_for_each_other() {
    let mut stage = Stage::new(Protocol::Cops, 2, None);
    let [x, y] = stage.keys_apart(2)[..] else { panic!("two keys") };
    stage.write(0, 1, x, 1);
    let other = stage.write(0, 2, y, 2);
    stage.deliver(|packet| replicates(packet, other, 1));
    assert_eq!(stage.read(1, 1, y), [2]);
    assert!(stage.read(1, 1, x).is_empty());
}

/// The baseline has no dependencies: a write is applied as it arrives.
#[test]
fn the_baseline_applies_writes_as_they_arrive() {
    let mut stage = Stage::new(Protocol::Eventual, 2, None);
    let [x, y] = stage.keys_apart(2)[..] else { panic!("two keys") };
    stage.write(0, 1, x, 1);
    let second = stage.write(0, 1, y, 2);
    stage.deliver(|packet| replicates(packet, second, 1));
    assert_eq!(stage.read(1, 1, y), [2]);
    let carries_deps = |packet: &_| matches!(message(packet), Some(Message::ReplicatedWrite { nearest, .. }) if !nearest.is_empty());
    assert_eq!(stage.lose(carries_deps), 0);
    stage.wait(RETRY_US * 2);
    stage.all();
    assert_eq!(stage.read(1, 1, x), [1]);
}
