//! Counter columns (thesis §5.2).

use mingle_cops::config::Protocol;
use mingle_cops::eiger::client::Call;
use mingle_cops::flaw::Flaw;
use mingle_cops::message::{Message, Packet};

use super::{add, insert};
use crate::stage::{EigerStage, message, replicates};

/// Thesis §5.2: a counter has the value 7 from +1, +2 and +4, so a read depends on all three; Alice
/// reads it and adds 1, and a read of 8 depends on her addition only.
#[test]
fn seven_depends_on_three_additions_and_eight_on_one() {
    let mut stage = EigerStage::new(Protocol::Eiger, 3, None);
    let likes = 4;
    let parts =
        [(0, 1), (1, 2), (2, 4)].map(|(dc, delta)| stage.mutate(dc, 1, vec![add(likes, delta)]));
    stage.all();
    let (sum, mut deps) = stage.sum(0, 2, likes);
    deps.sort_unstable();
    let mut expected = parts.to_vec();
    expected.sort_unstable();
    assert_eq!((sum, deps), (7, expected));
    let alice = stage.mutate(0, 2, vec![add(likes, 1)]);
    stage.all();
    for dc in 0..3 {
        assert_eq!(stage.sum(dc, 3, likes), (8, vec![alice]));
    }
}

/// Additions of one data center are a chain: a read depends on the last one only, whose actor knows
/// nothing of the others, and another data center applies them in order.
#[test]
fn additions_of_one_data_center_are_a_chain() {
    let mut stage = EigerStage::new(Protocol::Eiger, 2, None);
    let first = stage.mutate(0, 1, vec![add(4, 1)]);
    let second = stage.mutate(0, 2, vec![add(4, 2)]);
    assert_eq!(stage.sum(0, 3, 4), (3, vec![second]));
    assert_ne!(first, second);
    stage.all();
    assert_eq!(stage.sum(1, 3, 4), (3, vec![second]));
}

/// An addition in a transaction counts below a newer addition too: additions commute.
#[test]
fn an_addition_in_a_transaction_is_not_dropped_below_a_newer_one() {
    for flaw in [None, Some(Flaw::CounterInTransaction)] {
        let mut stage = EigerStage::new(Protocol::Eiger, 2, flaw);
        let [likes, other] = stage.keys_apart(2)[..] else { panic!("two keys") };
        let both = stage.atomic(0, 1, vec![add(likes, 1), insert(other, 1)]);
        for _ in 0..20 {
            stage.mutate(1, 1, vec![add(likes, 2)]);
        }
        stage.deliver(|packet| replicates(packet, both, 1));
        let (sum, _) = stage.sum(1, 2, likes);
        assert_eq!(sum, if flaw.is_none() { 41 } else { 40 });
        assert_eq!(stage.value(1, 2, other), Some(1));
    }
}

/// An addition in a transaction depends on the additions before it at each participant, of which the
/// coordinator learns with the votes, also if they come before its own part.
#[test]
fn a_transaction_depends_on_earlier_additions_of_all_its_counters() {
    for is_first in [true, false] {
        let mut stage = EigerStage::new(Protocol::Eiger, 2, None);
        let [one, two, far] = stage.keys_apart(3)[..] else { panic!("three keys") };
        let (free, late) = if is_first { (one, two) } else { (two, one) };
        let missing = stage.mutate(0, 1, vec![insert(far, 1)]);
        let waits = stage.mutate(0, 1, vec![add(late, 1)]);
        let applied = stage.mutate(0, 3, vec![add(free, 1)]);
        stage.begin(0, 2, Call::AtomicMutate(vec![add(one, 2), add(two, 2)]));
        // The coordinator's own part comes last.
        let is_of_cohort = |packet: &Packet| match message(packet) {
            Some(Message::AtomicMutate(part)) => {
                part.mutations.iter().all(|one| one.location.key != part.coordinator_key)
            }
            _ => true,
        };
        stage.deliver(|packet| packet.to.dc() == 0 && is_of_cohort(packet));
        stage.within(0);
        let both = stage.answer(0).unwrap().written[0];
        for dep in [waits, applied, both] {
            stage.deliver(|packet| replicates(packet, dep, 1));
        }
        assert_eq!([stage.sum(1, 1, free).0, stage.sum(1, 1, late).0], [1, 0]);
        stage.deliver(|packet| replicates(packet, missing, 1));
        assert_eq!(stage.sum(1, 1, one), (3, vec![both]));
        assert_eq!(stage.sum(1, 1, two), (3, vec![both]));
    }
}
