//! An incarnation of a data center is given up: transactions that only it had are dropped
//! everywhere, promised ones stay, and messages that arrive late from it are ignored.

use mingle_geo::flaw::Planted;
use mingle_geo::{Address, DcId, Envelope, Event, Key, Kind, Message, Op, PartitionId, Refusal};
use mingle_model::Value;

use crate::strong::map::{Map, is_committed, is_replication};

const FAR: u64 = 20_000;
const THREE: &[&[u64]] = &[&[0, FAR, FAR], &[FAR, 0, FAR], &[FAR, FAR, 0]];
const D0: DcId = DcId(0);

fn map_with(planted: Planted) -> Map {
    Map::new(THREE, 2, planted)
}

fn map() -> Map {
    map_with(Planted::default())
}

/// A register of this partition, with two partitions.
fn register(partition: u16, name: &str) -> Key {
    let keys = (0..1_000).map(|index| Key::new(Kind::Register, format!("{name}{index}")));
    let mut of_partition = keys.filter(|key| key.partition(2) == PartitionId(partition));
    of_partition.next().expect("some name hashes there")
}

fn write(map: &mut Map, client: usize, key: &Key, value: i64) -> Event {
    map.write(client, (key, Op::Write(Value::Int(value))), None).0
}

fn value(map: &mut Map, client: usize, key: &Key) -> Option<i64> {
    let state = map.read(client, false, key);
    let (event, _) = map.call(client, |session, now, out| session.commit(now, out).expect("idle"));
    assert!(is_committed(&event));
    state.as_register().expect("a register").value().and_then(Value::as_int)
}

/// Returns a replica's value of a key, even if it is not visible yet.
fn held(map: &Map, dc: u8, key: &Key) -> Option<i64> {
    let replica = map.replica(dc, key.partition(2).0).replica();
    let state = replica.inspect(key, &replica.known_vec()).expect("readable");
    state.as_register().expect("a register").value().and_then(Value::as_int)
}

fn of_d0(address: Address) -> bool {
    matches!(address, Address::Replica(D0, _))
}

fn is_far(from: Address, to: Address) -> bool {
    matches!((from, to), (Address::Replica(..), Address::Replica(..))) && of_d0(from) != of_d0(to)
}

/// True for messages between the first data center and the others.
fn around_the_first(from: Address, envelope: &Envelope) -> bool {
    is_far(from, envelope.to)
}

/// True for replication from the first data center's second partition.
fn second_of_the_first(from: Address, envelope: &Envelope) -> bool {
    from == Address::Replica(D0, PartitionId(1)) && is_replication(envelope)
}

/// True for replication from the first data center to the third.
fn first_to_third(from: Address, envelope: &Envelope) -> bool {
    let is_there = matches!(envelope.to, Address::Replica(DcId(2), _));
    of_d0(from) && is_there && is_replication(envelope)
}

/// Gives up the first data center, and returns its cut.
fn fence(map: &mut Map) -> mingle_geo::Timestamp {
    map.fence(1, 0);
    map.run_for(5_000_000);
    let cut = map.replica(1, 0).replica().members().cut_of(D0, 0).expect("it is fenced");
    for (dc, partition) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
        let replica = map.replica(dc, partition).replica();
        assert_eq!(replica.members().epoch(), 2, "d{dc} p{partition}");
        assert_eq!(replica.known_vec()[D0], cut, "d{dc} p{partition}");
    }
    cut
}

#[test]
fn what_is_below_the_cut_reaches_everyone_and_what_is_above_vanishes() {
    let mut map = map();
    let (author, readers) = (map.session(0, Planted::default()), [1, 2]);
    let readers = readers.map(|dc| map.session(dc, Planted::default()));
    let (kept, part, rest) = (register(0, "kept"), register(0, "part"), register(1, "rest"));
    map.hold(first_to_third);
    assert!(is_committed(&write(&mut map, author, &kept, 1)));
    map.run_for(200_000);
    assert_eq!(value(&mut map, readers[0], &kept), Some(1));
    assert_eq!(held(&map, 2, &kept), None);
    // Only one part of a transaction over two partitions leaves.
    map.hold(second_of_the_first);
    let update =
        |key: &Key| mingle_geo::Update { key: key.clone(), op: Op::Write(Value::Int(2)), id: None };
    let (both, _) = map.call(author, |session, now, out| {
        session.write(now, update(&part)).expect("idle");
        session.write(now, update(&rest)).expect("idle");
        session.commit(now, out).expect("idle");
    });
    assert!(is_committed(&both));
    map.run_for(100_000);
    assert_eq!((held(&map, 1, &part), held(&map, 1, &rest)), (Some(2), None));
    map.lose(0);
    fence(&mut map);
    for (dc, reader) in [(1, readers[0]), (2, readers[1])] {
        assert_eq!((held(&map, dc, &part), held(&map, dc, &rest)), (None, None));
        let shown = [&kept, &part, &rest].map(|key| value(&mut map, reader, key));
        assert_eq!(shown, [Some(1), None, None]);
    }
    // The other data centers continue.
    assert!(is_committed(&write(&mut map, readers[0], &part, 3)));
    map.run_for(1_000_000);
    assert_eq!(value(&mut map, readers[1], &part), Some(3));
}

/// A data center is cut off, given up, and comes back with its transactions from the meantime.
/// Returns true if another data center has accepted them.
fn comes_back(map: &mut Map) -> bool {
    let (author, late) = (map.session(0, Planted::default()), register(0, "late"));
    map.hold(around_the_first);
    assert!(is_committed(&write(map, author, &late, 7)));
    map.run_for(100_000);
    let cut = fence(map);
    assert_eq!(value(map, author, &late), Some(7), "it has not heard of it");
    map.release();
    map.run_for(3_000_000);
    let known = |dc| map.replica(dc, 0).replica().known_vec()[D0];
    held(map, 1, &late).is_some() || held(map, 2, &late).is_some() || known(1).max(known(2)) > cut
}

#[test]
fn one_that_comes_back_late_is_told_and_stops() {
    let mut map = map();
    assert!(!comes_back(&mut map), "its late batch was accepted");
    assert!((0..2).all(|partition| map.replica(0, partition).replica().is_over()));
    let client = map.session(0, Planted::default());
    let fenced = Refusal::Fenced { dc: D0, incarnation: 0 };
    let keys = vec![register(0, "late")];
    let (event, _) =
        map.call(client, |session, now, out| session.read(now, keys, out).expect("idle"));
    assert_eq!(event, Event::Failed(fenced.clone()));
    let event = write(&mut map, client, &register(1, "more"), 1);
    assert!(matches!(&event, Event::Unknown { refusal, .. } if *refusal == fenced), "{event:?}");
}

#[cfg(feature = "planted")]
#[test]
fn a_late_batch_that_is_accepted_is_seen() {
    let planted = mingle_geo::flaw::Flaw::FencedAccepted.into();
    assert!(comes_back(&mut map_with(planted)));
}

/// Attaches a session to the second data center, with the surviving part of its past.
fn attach(map: &mut Map, client: usize) -> Event {
    let to = DcId(1);
    map.call(client, |session, now, out| session.attach(now, to, out).expect("idle")).0
}

#[test]
fn a_session_goes_on_elsewhere_with_a_loss_that_is_certain_and_named() {
    let mut map = map();
    let (author, onlooker) =
        (map.session(0, Planted::default()), map.session(0, Planted::default()));
    let (kept, lost) = (register(0, "kept"), register(1, "lost"));
    assert!(is_committed(&write(&mut map, author, &kept, 1)));
    map.run_for(1_000_000);
    assert_eq!(value(&mut map, onlooker, &kept), Some(1));
    let (event, _) =
        map.call(onlooker, |session, now, out| session.barrier(now, out).expect("idle"));
    assert_eq!(event, Event::Uniform);
    map.hold(around_the_first);
    let Event::Committed { id, .. } = write(&mut map, author, &lost, 2) else {
        panic!("it is not committed")
    };
    map.lose(0);
    // The data center may come back until it is given up.
    let Event::Waiting(missing) = attach(&mut map, author) else { panic!("it did not wait") };
    assert!(missing.iter().all(|missing| missing.dc == D0 && !missing.is_lost));
    let cut = fence(&mut map);
    let (event, _) = map.call(author, |_, _, _| {});
    let Event::Waiting(missing) = event else { panic!("{event:?}") };
    assert!(missing.iter().all(|missing| missing.is_lost && missing.have == cut), "{missing:?}");
    let (event, _) =
        map.call(author, |session, now, out| session.accept_loss(now, out).expect("it waits"));
    let (dc, lost_ids) = (DcId(1), vec![id]);
    let expected =
        Event::ResumedWithLoss { dc, lost: lost_ids, is_complete: true, is_certain: true };
    assert_eq!(event, expected);
    assert_eq!(value(&mut map, author, &kept), Some(1));
    assert_eq!(value(&mut map, author, &lost), None);
    assert!(is_committed(&write(&mut map, author, &lost, 3)), "it goes on");
    // A session whose past is complete there loses nothing.
    assert_eq!(attach(&mut map, onlooker), Event::Resumed(dc));
}

/// True for answers to commits from the first data center.
fn answers_of_the_first(from: Address, envelope: &Envelope) -> bool {
    of_d0(from) && matches!(envelope.message, Message::OutcomeReply(_))
}

/// True for these answers and for all messages to other data centers.
fn all_of_the_first(from: Address, envelope: &Envelope) -> bool {
    answers_of_the_first(from, envelope) || is_far(from, envelope.to)
}

#[test]
fn how_an_unanswered_commit_ended_is_certain_once_its_data_center_is_given_up() {
    let mut map = map();
    let (one, other) = (map.session(0, Planted::default()), map.session(0, Planted::default()));
    let (kept, lost) = (register(0, "kept"), register(1, "lost"));
    map.hold(answers_of_the_first);
    let survives = write(&mut map, one, &kept, 1);
    map.hold(all_of_the_first);
    let vanishes = write(&mut map, other, &lost, 2);
    assert!(matches!((&survives, &vanishes), (Event::Unknown { .. }, Event::Unknown { .. })));
    map.lose(0);
    fence(&mut map);
    for client in [one, other] {
        assert_eq!(attach(&mut map, client), Event::Resumed(DcId(1)));
    }
    let mut ask = |client| {
        map.call(client, |session, now, out| session.ask(now, out).expect("one is open")).0
    };
    let (survives, vanishes) = (ask(one), ask(other));
    assert!(is_committed(&survives), "{survives:?}");
    assert!(matches!(vanishes, Event::Aborted { .. }), "{vanishes:?}");
}

fn attach_to(map: &mut Map, client: usize, dc: DcId) -> Event {
    map.call(client, |session, now, out| session.attach(now, dc, out).expect("idle")).0
}

#[test]
fn the_next_incarnation_comes_with_empty_disks_and_takes_its_part() {
    let mut map = map();
    let [old, other, third] = [0, 1, 2].map(|dc| map.session(dc, Planted::default()));
    let (kept, lost, later) = (register(0, "kept"), register(1, "lost"), register(1, "later"));
    assert!(is_committed(&write(&mut map, old, &kept, 1)));
    map.run_for(1_000_000);
    map.hold(around_the_first);
    let Event::Committed { id, .. } = write(&mut map, old, &lost, 2) else { panic!("it commits") };
    map.lose(0);
    let cut = fence(&mut map);
    map.release();
    assert!(is_committed(&write(&mut map, other, &later, 3)));
    // It may start before it is admitted, and serves no client until it has copied the state.
    map.start_anew(0);
    map.run_for(1_000_000);
    assert!(map.replica(0, 0).replica().is_coming_up());
    map.admit(1, 0);
    map.run_for(10_000_000);
    for (dc, partition) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] {
        let (replica, group) =
            (map.replica(dc, partition).replica(), map.replica(dc, partition).group());
        assert_eq!(replica.members().epoch(), 3, "d{dc} p{partition}");
        assert!(!replica.is_coming_up() && group.is_member(), "d{dc} p{partition}");
        assert!(replica.uniform_vec()[D0] > cut, "its new transactions lie above the cut");
    }
    // A session of the old incarnation is not accepted as one of the new.
    let fenced = Refusal::Fenced { dc: D0, incarnation: 1 };
    let keys = vec![kept.clone()];
    let (event, _) = map.call(old, |session, now, out| session.read(now, keys, out).expect("idle"));
    assert_eq!(event, Event::Failed(fenced));
    let Event::Waiting(missing) = attach_to(&mut map, old, D0) else { panic!("it has lost some") };
    assert!(missing.iter().all(|missing| missing.is_lost && missing.have == cut), "{missing:?}");
    let (event, _) =
        map.call(old, |session, now, out| session.accept_loss(now, out).expect("it waits"));
    let lost_ids = vec![id];
    let expected =
        Event::ResumedWithLoss { dc: D0, lost: lost_ids, is_complete: true, is_certain: true };
    assert_eq!(event, expected);
    let shown = [&kept, &lost, &later].map(|key| value(&mut map, old, key));
    assert_eq!(shown, [Some(1), None, Some(3)]);
    // Its writes reach the others.
    assert!(is_committed(&write(&mut map, old, &lost, 4)));
    map.run_for(1_000_000);
    assert_eq!(value(&mut map, third, &lost), Some(4));
    // It votes: with it there is still a majority when another is lost.
    map.lose(1);
    map.run_for(5_000_000);
    map.begin_strong(old);
    let strong = write(&mut map, old, &register(0, "strong"), 5);
    assert!(is_committed(&strong), "{strong:?}");
}
