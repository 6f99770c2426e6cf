//! Actors, lost messages and lost data centers (thesis §4.3, §4.4 and §6.2).

use mingle_cops::config::Protocol;
use mingle_cops::eiger::client::Call;
use mingle_cops::flaw::Flaw;
use mingle_cops::message::{Message, Packet, Point};

use super::{column, insert, is_commit, values};
use crate::stage::{EigerStage, RETRY_US, message, replicates};

/// Two actors of one process have contexts of their own, so a write of one does not wait for the
/// writes of the other.
#[test]
fn actors_of_one_process_do_not_wait_for_each_other() {
    let mut stage = EigerStage::new(Protocol::Eiger, 2, None);
    let [x, y] = stage.keys_apart(2)[..] else { panic!("two keys") };
    stage.mutate(0, 1, vec![insert(x, 1)]);
    let other = stage.atomic(0, 2, vec![insert(y, 2)]);
    stage.deliver(|packet| replicates(packet, other, 1));
    assert_eq!(values(&stage.columns(1, 1, [x, y])), [None, Some(2)]);
}

/// A dependency check whose message is lost is sent again after its deadline.
#[test]
fn a_lost_dependency_check_is_issued_again() {
    for flaw in [None, Some(Flaw::DepCheckWithoutDeadline)] {
        let mut stage = EigerStage::new(Protocol::Eiger, 2, flaw);
        let [x, y, z] = stage.keys_apart(3)[..] else { panic!("three keys") };
        stage.mutate(0, 1, vec![insert(x, 1)]);
        stage.atomic(0, 1, vec![insert(y, 2), insert(z, 3)]);
        let is_check = |packet: &Packet| matches!(message(packet), Some(Message::DepCheck { .. }));
        stage.deliver(|packet| !is_check(packet));
        assert_eq!(stage.lose(is_check), 1);
        assert_eq!(values(&stage.columns(1, 1, [y, z])), [None, None]);
        stage.wait(RETRY_US * 2);
        stage.all();
        let found = values(&stage.columns(1, 1, [y, z]));
        match flaw {
            None => assert_eq!(found, [Some(2), Some(3)]),
            Some(_) => assert_eq!(found, [None, None]),
        }
        assert_eq!(stage.count(Point::DepCheckAgain) > 0, flaw.is_none());
    }
}

/// A part of a replicated transaction that a broken connection lost is sent again.
#[test]
fn a_lost_part_of_a_transaction_is_sent_again() {
    for flaw in [None, Some(Flaw::TransactionNotRetried)] {
        let mut stage = EigerStage::new(Protocol::Eiger, 2, flaw);
        let [x, y] = stage.keys_apart(2)[..] else { panic!("two keys") };
        let both = stage.atomic(0, 1, vec![insert(x, 1), insert(y, 2)]);
        assert_eq!(stage.lose(|packet| replicates(packet, both, 1)), 2);
        stage.wait(RETRY_US * 2);
        stage.all();
        let found = values(&stage.columns(1, 1, [x, y]));
        match flaw {
            None => assert_eq!(found, [Some(1), Some(2)]),
            Some(_) => assert_eq!(found, [None, None]),
        }
    }
}

/// A commit check that is lost, with the commit itself, is sent again: the read is answered.
#[test]
fn a_lost_commit_check_is_sent_again() {
    let mut stage = EigerStage::new(Protocol::Eiger, 1, None);
    let [x, y] = stage.keys_apart(2)[..] else { panic!("two keys") };
    stage.begin(0, 1, Call::AtomicMutate(vec![insert(x, 1), insert(y, 2)]));
    stage.deliver(|packet| !is_commit(packet));
    assert_eq!(stage.lose(is_commit), 1);
    assert_eq!(stage.answer(0).unwrap().written.len(), 1);
    stage.begin(0, 9, Call::MultigetSlice([x, y].map(column).to_vec()));
    let is_check = |packet: &Packet| matches!(message(packet), Some(Message::CommitCheck { .. }));
    stage.deliver(|packet| !is_check(packet));
    assert_eq!(stage.lose(is_check), 1);
    stage.wait(RETRY_US);
    stage.deliver(|packet| !is_commit(packet));
    assert_eq!(values(&stage.answer(0).unwrap()), [Some(1), Some(2)]);
}

/// Thesis §6.2: a data center is lost while a transaction of two parts is on its way. Where one part has
/// arrived, the transaction never appears, reads do not wait for it, and only what depends on it
/// waits; where both have arrived, it appears whole.
#[test]
fn a_data_center_is_lost_in_the_middle_of_replication() {
    let mut stage = EigerStage::new(Protocol::Eiger, 3, None);
    let [x, y, z] = stage.keys_apart(3)[..] else { panic!("three keys") };
    let both = stage.atomic(0, 1, vec![insert(x, 1), insert(y, 2)]);
    stage.deliver(|packet| replicates(packet, both, 2));
    let is_part_of_x = |packet: &Packet| match message(packet) {
        Some(Message::ReplicatedTransaction { part, .. }) => {
            part.mutations.iter().any(|mutation| mutation.location.key == x)
        }
        _ => packet.from.dc() == 1,
    };
    stage.deliver(|packet| packet.to.dc() == 1 && is_part_of_x(packet));
    stage.lose_dc(0);
    assert_eq!(values(&stage.columns(2, 1, [x, y])), [Some(1), Some(2)]);
    let after = stage.mutate(2, 1, vec![insert(z, 3)]);
    let free = stage.mutate(2, 2, vec![insert(z + 1_000, 4)]);
    assert_ne!(after, free);
    stage.wait(RETRY_US * 10);
    stage.all();
    let answer = stage.columns(1, 2, [x, y, z, z + 1_000]);
    assert_eq!(values(&answer), [None, None, None, Some(4)]);
    assert_eq!(stage.count(Point::Indirection), 0);
    stage.mutate(1, 2, vec![insert(x, 7)]);
    stage.all();
    assert_eq!(values(&stage.columns(1, 3, [x, y])), [Some(7), None]);
    assert_eq!(values(&stage.columns(2, 3, [x, y])), [Some(7), Some(2)]);
}
