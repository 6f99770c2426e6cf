//! A data center that is admitted again is not confused with its previous incarnation: not by
//! sessions of the old one, and sessions of the new one are not confused by remains of the old.

use mingle_geo::flaw::Planted;
use mingle_geo::message::Missing;
use mingle_geo::session::Token;
use mingle_geo::{
    Address, DcId, Envelope, Event, Key, Kind, Message, Op, OpId, PartitionId, Refusal, Update,
};
use mingle_model::{Origin, TransactionId, Value};

use crate::strong::map::{Map, is_committed};

const FAR: u64 = 20_000;
const THREE: &[&[u64]] = &[&[0, FAR, FAR], &[FAR, 0, FAR], &[FAR, FAR, 0]];
const D0: DcId = DcId(0);
const COMING_UP: Refusal = Refusal::ComingUp { dc: D0, incarnation: 1 };

/// The id of an operation that several processes may run.
fn forgotten() -> OpId {
    let transaction = TransactionId { origin: Origin(1_000), sequence: 1 };
    OpId { transaction, phase: 1, position: 0 }
}

fn map() -> Map {
    Map::new(THREE, 2, Planted::default())
}

fn key() -> Key {
    Key::new(Kind::Register, "lost")
}

fn of_d0(address: Address) -> bool {
    matches!(address, Address::Replica(D0, _))
}

fn around_the_first(from: Address, envelope: &Envelope) -> bool {
    let is_between = matches!((from, envelope.to), (Address::Replica(..), Address::Replica(..)));
    is_between && of_d0(from) != of_d0(envelope.to)
}

/// True for parts of a state transfer to one replica of the first data center.
fn state_for_the_second(_: Address, envelope: &Envelope) -> bool {
    let is_there = envelope.to == Address::Replica(D0, PartitionId(1));
    is_there && matches!(envelope.message, Message::TransferPart(_))
}

fn attach(map: &mut Map, client: usize, dc: DcId) -> Event {
    map.call(client, |session, now, out| session.attach(now, dc, out).expect("idle")).0
}

fn barrier(map: &mut Map, client: usize) -> Event {
    map.call(client, |session, now, out| session.barrier(now, out).expect("idle")).0
}

/// The first data center commits a transaction that no other receives, and is lost and given up.
/// Returns its session.
fn given_up(map: &mut Map) -> usize {
    let author = map.session(0, Planted::default());
    map.hold(around_the_first);
    let (written, _) = map.write(author, (&key(), Op::Write(Value::Int(1))), None);
    assert!(is_committed(&written));
    map.lose(0);
    map.fence(1, 0);
    map.run_for(5_000_000);
    assert!(map.replica(1, 0).replica().members().cut_of(D0, 0).is_some());
    map.release();
    author
}

fn all_lost(missing: &[Missing]) -> bool {
    missing.iter().all(|missing| missing.is_lost && missing.dc == D0)
}

#[test]
fn who_has_not_heard_that_it_is_given_up_takes_no_session_that_has() {
    let mut map = map();
    map.hold(around_the_first);
    map.fence(1, 0);
    map.run_for(5_000_000);
    assert!(!map.replica(0, 0).replica().is_over(), "it has not heard of it");
    let client = map.session(1, Planted::default());
    assert_eq!(barrier(&mut map, client), Event::Uniform);
    let event = attach(&mut map, client, D0);
    assert_eq!(event, Event::Failed(Refusal::TimedOut { on: None }));
    map.release();
    map.run_for(3_000_000);
    let event = attach(&mut map, client, D0);
    assert_eq!(event, Event::Failed(Refusal::Fenced { dc: D0, incarnation: 0 }));
    assert_eq!(attach(&mut map, client, DcId(2)), Event::Resumed(DcId(2)));
}

#[test]
fn nor_one_that_has_joined_what_somebody_saw_who_has() {
    let mut map = map();
    map.hold(around_the_first);
    map.fence(1, 0);
    map.run_for(5_000_000);
    // It has seen an earlier transaction, like every session at the first data center.
    let (old, later) = (map.session(0, Planted::default()), map.session(1, Planted::default()));
    let (written, _) = map.write(old, (&key(), Op::Write(Value::Int(1))), None);
    assert!(is_committed(&written));
    // The other's past is there too; only its epoch is missing.
    assert_eq!(barrier(&mut map, later), Event::Uniform);
    let mut token = None;
    map.call(later, |session, now, out| {
        token = Some(session.token());
        session.barrier(now, out).expect("idle");
    });
    let token = token.expect("it was taken");
    assert!(token.epoch > 0 && token.newest == token.epoch, "{token:?}");
    let mut joined = None;
    let (event, _) = map.call(old, |session, now, out| {
        let past_vec = session.past_vec();
        session.join(&Token { past_vec, ..token.clone() });
        joined = Some(session.token());
        session.attach(now, D0, out).expect("idle");
    });
    let joined = joined.expect("it was taken");
    assert_eq!((joined.epoch, joined.newest), (0, token.newest), "both are handed on");
    assert_eq!(event, Event::Failed(Refusal::TimedOut { on: None }));
}

#[test]
fn what_one_that_comes_up_says_is_not_for_sessions_of_what_was_there_before() {
    let mut map = map();
    let author = given_up(&mut map);
    map.start_anew(0);
    map.admit(1, 0);
    map.hold(state_for_the_second);
    map.run_for(3_000_000);
    let epoch = |map: &Map| map.replica(0, 1).replica().members().epoch();
    assert_eq!(epoch(&map), 3, "it is admitted, and knows that");
    assert!(map.replica(0, 1).replica().is_coming_up());
    let fenced = Refusal::Fenced { dc: D0, incarnation: 1 };
    assert_eq!(barrier(&mut map, author), Event::Failed(fenced));
    map.release();
    map.run_for(10_000_000);
    // Otherwise the session would be told that nothing is lost.
    let Event::Waiting(missing) = attach(&mut map, author, D0) else { panic!("it has lost some") };
    assert!(all_lost(&missing), "{missing:?}");
}

#[test]
fn clients_are_served_once_all_partitions_have_come_up() {
    let mut map = map();
    given_up(&mut map);
    let client = map.session(1, Planted::default());
    map.start_anew(0);
    map.admit(1, 0);
    map.hold(state_for_the_second);
    map.run_for(10_000_000);
    assert!(!map.replica(0, 0).replica().is_coming_up());
    assert_eq!(attach(&mut map, client, D0), Event::Failed(COMING_UP));
    map.release();
    map.run_for(10_000_000);
    assert_eq!(attach(&mut map, client, D0), Event::Resumed(D0));
}

#[test]
fn a_commit_that_came_too_early_is_not_said_to_be_undone() {
    let mut map = map();
    given_up(&mut map);
    map.start_anew(0);
    map.admit(1, 0);
    map.hold(state_for_the_second);
    map.run_for(10_000_000);
    let client = map.session_of((0, 1), Planted::default());
    let (event, _) = map.write(client, (&key(), Op::Write(Value::Int(2))), None);
    // The repeated request may arrive once it serves.
    let Event::Unknown { id, refusal } = event else { panic!("{event:?}") };
    assert_eq!(refusal, COMING_UP);
    map.release();
    let (event, _) =
        map.call(client, |session, now, out| session.ask(now, out).expect("it is not known"));
    assert!(matches!(event, Event::Committed { id: of, .. } if of == id), "{event:?}");
}

#[test]
fn a_later_epoch_does_not_hold_what_an_earlier_one_had() {
    let mut map = map();
    let author = given_up(&mut map);
    let mut token = None;
    let (event, _) = map.call(author, |session, now, out| {
        token = Some(session.token());
        session.attach(now, DcId(1), out).expect("idle");
    });
    assert!(matches!(event, Event::Waiting(_)), "{event:?}");
    let token = token.expect("it was taken");
    map.start_anew(0);
    map.admit(1, 0);
    map.run_for(10_000_000);
    let client = map.session(1, Planted::default());
    map.read(client, false, &key());
    let (committed, _) =
        map.call(client, |session, now, out| session.commit(now, out).expect("it runs"));
    assert!(is_committed(&committed));
    // The part of its past that is of the new incarnation has the higher timestamp.
    let mut past_vec = None;
    let (event, _) = map.call(client, |session, now, out| {
        past_vec = Some(session.past_vec());
        session.join(&token);
        session.attach(now, DcId(1), out).expect("idle");
    });
    assert!(past_vec.expect("it was taken").covers(&token.past_vec));
    let Event::Waiting(missing) = event else { panic!("{event:?}") };
    assert!(all_lost(&missing), "{missing:?}");
    let (event, _) =
        map.call(client, |session, now, out| session.accept_loss(now, out).expect("it waits"));
    // Some transactions that are reported lost may belong to the new incarnation.
    assert!(matches!(event, Event::ResumedWithLoss { is_certain: false, .. }), "{event:?}");
}

#[test]
fn an_operation_that_others_have_forgotten_is_not_done_again() {
    let mut map = map();
    let (author, id) = (map.session(0, Planted::default()), forgotten());
    let sum = Key::new(Kind::Counter, "sum");
    let add = |map: &mut Map, client| {
        let update = Update { key: sum.clone(), op: Op::Add(1), id: Some(id) };
        let (event, _) = map.call(client, |session, now, out| {
            session.write(now, update).expect("idle");
            session.commit(now, out).expect("it runs");
        });
        event
    };
    assert!(is_committed(&add(&mut map, author)));
    map.run_for(1_000_000);
    // The operation is not run again, and the lost data center need not be asked.
    given_up(&mut map);
    for dc in [1, 2] {
        map.raise_floor(dc, id.transaction);
    }
    map.run_for(20_000_000);
    map.start_anew(0);
    map.admit(1, 0);
    map.run_for(20_000_000);
    let client = map.session_of((0, 1), Planted::default());
    let event = add(&mut map, client);
    assert!(
        matches!(event, Event::Aborted { refusal: Refusal::BelowFloor { .. }, .. }),
        "{event:?}"
    );
    for dc in 0..3 {
        let reader = map.session_of((dc, u32::from(dc == 0)), Planted::default());
        let found = map.read(reader, false, &sum);
        assert_eq!(found.as_counter().expect("a counter").value(), 1, "d{dc}");
    }
}
