//! A vote is a function of the log: while only the leader has a prepare, no session is told the
//! leader's future vote.

use mingle_geo::certify::GroupMessage;
use mingle_geo::flaw::Planted;
use mingle_geo::{Address, Envelope, Event, Key, Kind, Message, Op, Update};
use mingle_model::Value;

use crate::strong::map::{Map, is_committed};

const FAR: u64 = 10_000;
const THREE: &[&[u64]] = &[&[0, FAR, FAR], &[FAR, 0, FAR], &[FAR, FAR, 0]];

fn is_consensus(_: Address, envelope: &Envelope) -> bool {
    matches!(envelope.message, Message::Group(GroupMessage::Consensus(_)))
}

/// Returns the events that the author of a strong transaction, at the leader's data center,
/// receives while no entry can be chosen, and after that.
fn told(planted: Planted) -> (Option<Event>, Option<Event>) {
    let mut map = Map::new(THREE, 1, planted);
    let author = map.session(0, planted);
    let seat = Key::new(Kind::Register, "seat");
    map.read(author, true, &seat);
    map.hold(is_consensus);
    map.start(author, |session, now, out| {
        let update = Update { key: seat, op: Op::Write(Value::Int(1)), id: None };
        session.write(now, update).expect("idle");
        session.commit(now, out).expect("idle");
    });
    map.run_for(3_000_000);
    let early = map.event(author);
    map.release();
    let late = early.is_none().then(|| map.end(author).0);
    (early, late)
}

#[test]
fn nobody_is_told_of_a_vote_that_is_not_chosen() {
    let (early, late) = told(Planted::default());
    assert_eq!(early, None);
    assert!(late.as_ref().is_some_and(is_committed), "{late:?}");
}

/// The same with a leader that votes from its memory.
#[cfg(feature = "planted")]
#[test]
fn a_vote_from_memory_is_told_before_anybody_has_it() {
    let (early, _) = told(mingle_geo::flaw::Flaw::VoteFromMemory.into());
    assert!(early.as_ref().is_some_and(is_committed), "{early:?}");
}
