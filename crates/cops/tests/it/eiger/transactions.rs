//! Write-only transactions (thesis §5.4).

use mingle_cops::config::Protocol;
use mingle_cops::deps::Dep;
use mingle_cops::eiger::client::{Answer, Call};
use mingle_cops::flaw::Flaw;
use mingle_cops::message::{Address, ClientId, Frame, Message, Packet, Point};

use super::{column, insert, is_commit, is_read, values};
use crate::stage::{EigerStage, message, replicates};

/// True if the packet is a vote.
fn is_vote(packet: &Packet) -> bool {
    matches!(message(packet), Some(Message::YesVote { .. }))
}

/// Reads two rows with everything delivered except what `is_held` names.
fn read_amid(stage: &mut EigerStage, rows: [u32; 2], is_held: fn(&Packet) -> bool) -> Answer {
    let request = stage.begin(0, 9, Call::MultigetSlice(rows.map(column).to_vec()));
    stage.deliver(|packet| !is_held(packet));
    let mut answers = std::iter::from_fn(|| stage.answer(0));
    answers.find(|answer| answer.request == request).expect("a read waits for no transaction")
}

/// A transaction that waits for a vote is not visible, and no read waits for it: the cohort asks the
/// coordinator, which has not committed.
#[test]
fn a_read_amid_votes_sees_neither_half() {
    let mut stage = EigerStage::new(Protocol::Eiger, 1, None);
    let [x, y] = stage.keys_apart(2)[..] else { panic!("two keys") };
    stage.begin(0, 1, Call::AtomicMutate(vec![insert(x, 1), insert(y, 2)]));
    stage.deliver(|packet| !is_vote(packet));
    let answer = read_amid(&mut stage, [x, y], is_vote);
    assert_eq!((values(&answer), answer.rounds), (vec![None, None], 2));
    assert_eq!(stage.count(Point::Indirection), 1);
    stage.within(0);
    assert_eq!(stage.answer(0).unwrap().written.len(), 1);
    assert_eq!(values(&stage.columns(0, 9, [x, y])), [Some(1), Some(2)]);
    assert_eq!(stage.count(Point::SeveralServers), 1);
}

/// A committed transaction is visible at all participants, also at a cohort that its commit has not
/// reached: the coordinator tells the cohort.
#[test]
fn a_read_amid_commits_sees_both_halves() {
    for flaw in [None, Some(Flaw::PendingIgnored)] {
        let mut stage = EigerStage::new(Protocol::Eiger, 1, flaw);
        let [x, y] = stage.keys_apart(2)[..] else { panic!("two keys") };
        let both = stage.begin(0, 1, Call::AtomicMutate(vec![insert(x, 1), insert(y, 2)]));
        stage.deliver(|packet| !is_commit(packet));
        assert_eq!(stage.answer(0).unwrap().request, both);
        let answer = read_amid(&mut stage, [x, y], is_commit);
        if flaw.is_some() {
            assert!(values(&answer).contains(&None), "the flaw shows one half");
            continue;
        }
        assert_eq!((values(&answer), answer.rounds), (vec![Some(1), Some(2)], 2));
        stage.within(0);
        assert_eq!(values(&stage.columns(0, 9, [x, y])), [Some(1), Some(2)]);
    }
}

/// The answer that a transaction was not committed at one time says nothing of a later time.
#[test]
fn not_committed_yet_is_no_answer_for_later() {
    for flaw in [None, Some(Flaw::NotYetReused)] {
        let mut stage = EigerStage::new(Protocol::Eiger, 1, flaw);
        let [x, y] = stage.keys_apart(2)[..] else { panic!("two keys") };
        let both = stage.begin(0, 1, Call::AtomicMutate(vec![insert(x, 1), insert(y, 2)]));
        stage.deliver(|packet| !is_vote(packet));
        let answer = read_amid(&mut stage, [x, y], is_vote);
        assert_eq!(values(&answer), [None, None]);
        stage.deliver(|packet| !is_commit(packet));
        assert_eq!(stage.answer(0).unwrap().request, both);
        let found = values(&read_amid(&mut stage, [x, y], is_commit));
        match flaw {
            None => assert_eq!(found, [Some(1), Some(2)]),
            Some(_) => assert_eq!(found.iter().flatten().count(), 1, "the flaw shows one half"),
        }
    }
}

/// A replicated transaction appears at once, after its dependencies, when all of its parts are there.
#[test]
fn a_replicated_transaction_waits_for_its_parts_and_dependencies() {
    let mut stage = EigerStage::new(Protocol::Eiger, 2, None);
    let [x, y, z] = stage.keys_apart(3)[..] else { panic!("three keys") };
    let before = stage.mutate(0, 1, vec![insert(z, 9)]);
    let both = stage.atomic(0, 1, vec![insert(x, 1), insert(y, 2)]);
    stage.deliver(|packet| replicates(packet, both, 1));
    let answer = stage.columns(1, 1, [x, y]);
    assert_eq!((values(&answer), answer.rounds), (vec![None, None], 1));
    assert_eq!(stage.count(Point::DepCheckWaited), 1);
    stage.deliver(|packet| replicates(packet, before, 1) && !is_commit(packet));
    assert_eq!(values(&stage.columns(1, 1, [x, y, z])), [Some(1), Some(2), Some(9)]);
}

/// Thesis §5.4.3: a replicated transaction below newer values is never visible, reads of these do not
/// ask for it, and it counts as applied: what depends on it appears.
#[test]
fn an_older_transaction_below_newer_values_counts_as_applied() {
    for flaw in [None, Some(Flaw::OlderNotApplied)] {
        let mut stage = EigerStage::new(Protocol::Eiger, 2, flaw);
        let [x, y, z] = stage.keys_apart(3)[..] else { panic!("three keys") };
        let older: Dep = stage.atomic(0, 1, vec![insert(x, 1), insert(y, 1)]);
        let after = stage.mutate(0, 1, vec![insert(z, 3)]);
        for _ in 0..20 {
            stage.mutate(1, 1, vec![insert(x, 9)]);
            stage.mutate(1, 1, vec![insert(y, 9)]);
        }
        stage.deliver(|packet| {
            let is_due = replicates(packet, older, 1) || replicates(packet, after, 1);
            is_due && !is_commit(packet)
        });
        assert_eq!(stage.count(Point::OlderTransaction), 2);
        stage.begin(1, 2, Call::MultigetSlice([x, y].map(column).to_vec()));
        stage.deliver(is_read);
        let answer = stage.answer(1).expect("the read waits for nothing");
        assert_eq!((values(&answer), answer.rounds), (vec![Some(9), Some(9)], 1));
        stage.within(1);
        let found = values(&stage.columns(1, 2, [x, y, z]));
        let last = if flaw.is_none() { Some(3) } else { None };
        assert_eq!(found, [Some(9), Some(9), last]);
    }
}

/// A departure that the documentation names, and the reason why simulations have one client in a data
/// center: a client that has not seen the time of a commit can read a cohort as of an earlier time,
/// although the transaction has been answered to another client.
#[test]
fn another_client_can_miss_a_commit_that_was_answered() {
    let mut stage = EigerStage::new(Protocol::Eiger, 1, None);
    let [x, y] = stage.keys_apart(2)[..] else { panic!("two keys") };
    let other = Address::Client(ClientId { dc: 0, number: 1 });
    let locator = stage.locator;
    let ask = |key, time, at| Packet {
        from: other,
        to: Address::Server(locator.server(0, key)),
        time,
        frame: Frame::Plain(Message::MultigetSlice { request: 0, slice: column(key), part: 0, at }),
    };
    // The acknowledgement of the vote tells the time too.
    let is_due = |packet: &Packet| {
        packet.to != other && !is_commit(packet) && !matches!(packet.frame, Frame::Arrived(_))
    };
    // The coordinator is ahead in logical time; the first transaction of a client has it at the first row.
    stage.send(ask(x, 50, None));
    stage.deliver(is_due);
    stage.begin(0, 1, Call::AtomicMutate(vec![insert(x, 1), insert(y, 2)]));
    stage.deliver(is_due);
    assert_eq!(stage.answer(0).unwrap().written.len(), 1, "the transaction is answered");
    stage.take(|packet| packet.to == other);

    let mut read = |at| {
        stage.send(ask(y, 0, at));
        stage.deliver(is_due);
        let results = stage.take(|packet| packet.to == other);
        match results.first().and_then(message) {
            Some(Message::SliceResult { cells, lvt, is_pending, .. }) => {
                (cells.len(), *lvt, *is_pending)
            }
            found => panic!("{found:?}, expected a result"),
        }
    };
    let (_, lvt, is_pending) = read(None);
    assert!(is_pending && lvt < 50, "the cohort has an earlier time: {lvt}");
    assert_eq!(read(Some(lvt)), (0, lvt, false), "the column is absent at that time");
}
