//! Read-only transactions of COPS-RT, and the collection of dependencies.

use mingle_cops::config::Protocol;
use mingle_cops::cops::client::Call;
use mingle_cops::flaw::Flaw;
use mingle_cops::message::{Address, Message, Packet};

use crate::stage::{RETRY_US, Stage, TRANS_TIME_US, message, replicates};

/// True if the packet is a request to read this key, or its result.
fn reads(packet: &Packet, wanted: u32) -> bool {
    match message(packet) {
        Some(Message::ReadByTime { key, .. } | Message::ReadResult { key, .. }) => *key == wanted,
        _ => false,
    }
}

/// Runs a transaction of both keys whose first round reads `early` before, and the other key after
/// two writes: to the list of rights (value 2), then to the album (value 20).
fn read_amid_writes(stage: &mut Stage, acl: u32, album: u32, early: u32) -> (Vec<u64>, u32) {
    stage.write(0, 1, acl, 1);
    stage.write(0, 1, album, 10);
    let request = stage.begin(0, 9, Call::ReadTrans(vec![acl, album]));
    stage.deliver(|packet| reads(packet, early));
    for (key, value) in [(acl, 2), (album, 20)] {
        stage.begin(0, 1, Call::Write(key, value));
        stage.deliver(|packet| packet.to.dc() == 0 && !reads(packet, acl) && !reads(packet, album));
        assert!(stage.answer(0).unwrap().written.is_some());
    }
    stage.within(0);
    let answer = stage.answer(0).unwrap();
    assert_eq!(answer.request, request);
    (answer.found.iter().flat_map(|found| found.value.clone()).collect(), answer.rounds)
}

/// Thesis §4.6: the rights are read before a change, the album after it. The second round reads the
/// rights that the album depends on.
#[test]
fn rights_read_too_early_are_read_again() {
    let mut stage = Stage::new(Protocol::CopsRt, 1, None);
    let [acl, album] = stage.keys_apart(2)[..] else { panic!("two keys") };
    assert_eq!(read_amid_writes(&mut stage, acl, album, acl), (vec![2, 20], 2));

    let mut stage = Stage::new(Protocol::CopsRt, 1, Some(Flaw::OneRound));
    assert_eq!(read_amid_writes(&mut stage, acl, album, acl), (vec![1, 20], 1));
}

/// The other order: the album is read before the change, the rights after it. Old album and new rights
/// are consistent, and one round suffices.
#[test]
fn an_album_read_too_early_is_consistent() {
    let mut stage = Stage::new(Protocol::CopsRt, 1, None);
    let [acl, album] = stage.keys_apart(2)[..] else { panic!("two keys") };
    assert_eq!(read_amid_writes(&mut stage, acl, album, album), (vec![2, 10], 1));
}

/// A transaction that takes longer than `trans_time` begins again, since the versions that a second
/// round asks for may have been dropped.
#[test]
fn a_transaction_that_takes_too_long_begins_again() {
    let mut stage = Stage::new(Protocol::CopsRt, 1, None);
    let [acl, album] = stage.keys_apart(2)[..] else { panic!("two keys") };
    stage.write(0, 1, acl, 1);
    stage.begin(0, 9, Call::ReadTrans(vec![acl, album]));
    stage.deliver(|packet| reads(packet, acl));
    stage.wait(TRANS_TIME_US * 2);
    stage.write(0, 1, acl, 2);
    let answers: Vec<_> = std::iter::from_fn(|| stage.answer(0)).collect();
    let answer = answers.last().expect("the transaction is answered");
    assert_eq!(answer.found[0].value, [2]);
}

/// Thesis §6.1: b2 depends on a2, and c2 on b2. If the dependency of b2 were collected before all data
/// centers have a2 and b2, c2 would not name a2, and a reader could see a1 with c2.
#[test]
fn dependencies_are_not_collected_before_the_write_is_everywhere() {
    for flaw in [None, Some(Flaw::PrematureCollection)] {
        let mut stage = Stage::new(Protocol::CopsRt, 2, flaw);
        let [a, b, c] = stage.keys_apart(3)[..] else { panic!("three keys") };
        stage.write(0, 1, a, 1);
        stage.all();
        let a2 = stage.write(0, 1, a, 2);
        let b2 = stage.write(0, 1, b, 2);
        // Data center 1 is cut off while the time of a transaction passes.
        stage.wait(TRANS_TIME_US * 2);
        stage.within(0);
        assert_eq!(stage.read(0, 2, b), [2]);
        let c2 = stage.write(0, 2, c, 2);

        stage.begin(1, 9, Call::ReadTrans(vec![a, c]));
        stage.deliver(|packet| packet.to.dc() == 1 && reads(packet, a));
        let is_read = |packet: &Packet| reads(packet, a) || reads(packet, c);
        for dep in [a2, b2, c2] {
            stage.deliver(|packet| replicates(packet, dep, 1) && !is_read(packet));
        }
        stage.wait(RETRY_US);
        stage.deliver(|packet| {
            let is_ack = matches!(message(packet), None | Some(Message::Committed { .. }));
            !is_read(packet) && !is_ack && matches!(packet.to, Address::Server(_))
        });
        stage.within(1);
        let answer = stage.answer(1).expect("the transaction is answered");
        let values: Vec<_> = answer.found.iter().map(|found| found.value.clone()).collect();
        match flaw {
            None => assert_eq!(values, [[2], [2]], "a2 is in the past of c2"),
            Some(_) => assert_eq!(values, [[1], [2]], "the flaw shows a1 with c2"),
        }
    }
}
