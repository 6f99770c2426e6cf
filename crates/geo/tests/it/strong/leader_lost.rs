//! The leader's data center is lost at any moment of a strong commit: before a prepare arrives,
//! while it is not chosen, between vote and decision, before a delivery. The transaction ends with
//! the same outcome for every observer, and others commit, within ten seconds.

use mingle_geo::flaw::Planted;
use mingle_geo::session::CallError;
use mingle_geo::{Event, Key, Kind, Op, PartitionId, Refusal, State, Update};
use mingle_model::Value;

use crate::strong::map::{Map, is_committed};

const FAR: u64 = 40_000;
const THREE: &[&[u64]] = &[&[0, FAR, FAR], &[FAR, 0, FAR], &[FAR, FAR, 0]];

const WITHIN_US: u64 = 10_000_000;

fn number(state: &State) -> i64 {
    let value = state.as_register().and_then(|register| register.value());
    value.and_then(Value::as_int).unwrap_or(0)
}

/// A register of each partition.
fn keys() -> [Key; 2] {
    [0, 1].map(|partition| {
        let mut keys = (0..100).map(|index| Key::new(Kind::Register, format!("seat {index}")));
        keys.find(|key| key.partition(2) == PartitionId(partition)).expect("some name hashes there")
    })
}

/// Returns the values that a new strong transaction reads, if it can read.
fn read_both(map: &mut Map, client: usize) -> Option<[i64; 2]> {
    let (event, _) = map.call(client, |session, now, out| {
        session.begin_strong(now).expect("idle");
        session.read(now, keys().to_vec(), out).expect("idle");
    });
    match event {
        Event::Read(states) => Some([0, 1].map(|at| number(&states[at]))),
        _ => None,
    }
}

fn write_both(map: &mut Map, client: usize, value: i64) {
    map.start(client, |session, now, out| {
        for key in keys() {
            let update = Update { key, op: Op::Write(Value::Int(value)), id: None };
            session.write(now, update).expect("idle");
        }
        session.commit(now, out).expect("idle");
    });
}

/// Returns the outcome of a commit, asking every possible replica; `None` if it is not known in
/// time.
fn ended(map: &mut Map, client: usize, until_us: u64) -> Option<Event> {
    loop {
        let (event, _) = map.end(client);
        let is_open = matches!(&event, Event::Failed(Refusal::TimedOut { .. } | Refusal::Busy));
        if map.now_us > until_us {
            return None;
        }
        if !is_open {
            return Some(event);
        }
        map.start(client, |session, now, out| match session.ask(now, out) {
            Ok(()) => {}
            Err(CallError::Busy) => panic!("a call is under way"),
            Err(error) => panic!("{error}"),
        });
    }
}

/// Returns the others' view of a commit, once one of them has committed on top of it.
fn seen_by_others(map: &mut Map, until_us: u64) -> Option<[i64; 2]> {
    let other = map.session(2, Planted::default());
    while map.now_us < until_us {
        if let Some(seen) = read_both(map, other) {
            write_both(map, other, 2);
            if ended(map, other, until_us).as_ref().is_some_and(is_committed) {
                return Some(seen);
            }
        }
        map.run_for(100_000);
    }
    None
}

/// Loses the leader's data center `ms` milliseconds after a session at `dc` began a commit.
fn lost_after(dc: u8, ms: u64) -> (Map, usize) {
    let mut map = Map::new(THREE, 2, Planted::default());
    let author = map.session(dc, Planted::default());
    assert_eq!(read_both(&mut map, author), Some([0; 2]));
    write_both(&mut map, author, 1);
    map.run_for(ms * 1_000);
    map.lose(0);
    (map, author)
}

#[test]
fn a_commit_is_not_lost_with_its_leader() {
    for ms in (0..200).step_by(4) {
        let (mut map, author) = lost_after(1, ms);
        let until_us = map.now_us + WITHIN_US;
        let event = ended(&mut map, author, until_us);
        assert!(event.as_ref().is_some_and(is_committed), "lost after {ms} ms: {event:?}");
        let seen = seen_by_others(&mut map, until_us);
        assert_eq!(seen, Some([1; 2]), "lost after {ms} ms");
    }
}

#[test]
fn a_commit_whose_coordinator_is_lost_too_is_seen_as_a_whole_or_not_at_all() {
    let (mut shown, mut gone) = (0, 0);
    for ms in (0..200).step_by(4) {
        let (mut map, author) = lost_after(0, ms);
        let is_acknowledged = map.event(author).as_ref().is_some_and(is_committed);
        let until_us = map.now_us + WITHIN_US;
        let seen = seen_by_others(&mut map, until_us);
        let seen = seen.unwrap_or_else(|| panic!("lost after {ms} ms: others wait"));
        assert!(
            seen == [1; 2] || seen == [0; 2] && !is_acknowledged,
            "lost after {ms} ms: {seen:?}"
        );
        *(if seen == [1; 2] { &mut shown } else { &mut gone }) += 1;
    }
    assert!(shown > 3 && gone > 3, "{shown} were committed, {gone} were not");
}
