//! Only one other data center has the newest transactions of a data center that is given up. They
//! are handed on before the cut is final, or are given up with that data center: no replica waits
//! for transactions that no data center has.

use mingle_geo::flaw::Planted;
use mingle_geo::members::Standing;
use mingle_geo::{Address, DcId, Envelope, Event, Key, Kind, Message, Op, PartitionId};
use mingle_model::Value;

use crate::strong::map::{Map, is_committed};

const FAR: u64 = 20_000;
const FIVE: &[&[u64]] = &[&[FAR; 5] as &[u64]; 5];
const D3: DcId = DcId(3);
const D4: DcId = DcId(4);

/// Returns a key of the last partition.
fn key() -> Key {
    let keys = (0..1_000).map(|index| Key::new(Kind::Register, format!("alone{index}")));
    let mut of_last = keys.filter(|key| key.partition(2) == PartitionId(1));
    of_last.next().expect("some name hashes there")
}

/// True for group messages of the third data center, so that the others report first.
fn of_the_third(from: Address, envelope: &Envelope) -> bool {
    matches!(from, Address::Replica(DcId(2), _)) && matches!(envelope.message, Message::Group(_))
}

/// True for these messages, and for replication of the fourth data center's transactions to any data
/// center except the fifth.
fn beyond_the_fifth(from: Address, envelope: &Envelope) -> bool {
    let Message::Replicate(replicate) = &envelope.message else {
        return of_the_third(from, envelope);
    };
    replicate.origin == D3 && !matches!(envelope.to, Address::Replica(D4, _))
}

fn attach(map: &mut Map, client: usize) -> Event {
    let to = DcId(0);
    map.call(client, |session, now, out| session.attach(now, to, out).expect("idle")).0
}

fn value(map: &mut Map, client: usize) -> Option<i64> {
    let state = map.read(client, false, &key());
    let (event, _) = map.call(client, |session, now, out| session.commit(now, out).expect("idle"));
    assert!(is_committed(&event));
    state.as_register().expect("a register").value().and_then(Value::as_int)
}

fn standing(map: &Map) -> Standing {
    map.replica(0, 0).replica().members().of(D3).standing
}

fn cut(map: &Map) -> Option<mingle_geo::Timestamp> {
    map.replica(0, 0).replica().members().cut_of(D3, 0)
}

/// The fourth data center is lost and given up, and only the fifth has its last write. Returns the
/// writing session.
fn alone(map: &mut Map) -> usize {
    let author = map.session(3, Planted::default());
    map.hold(beyond_the_fifth);
    let (written, _) = map.write(author, (&key(), Op::Write(Value::Int(1))), None);
    assert!(is_committed(&written));
    map.run_for(200_000);
    map.lose(3);
    map.fence(0, 3);
    map.run_for(5_000_000);
    assert_eq!((standing(map), cut(map)), (Standing::Settling, None));
    let replica = map.replica(4, 1).replica();
    let held = replica.inspect(&key(), &replica.known_vec()).expect("readable");
    assert!(held.as_register().expect("a register").value().is_some());
    author
}

#[test]
fn it_is_handed_on_before_the_cut_stands() {
    let mut map = Map::new(FIVE, 2, Planted::default());
    let (author, reader) = (alone(&mut map), map.session(1, Planted::default()));
    let Event::Waiting(missing) = attach(&mut map, author) else { panic!("it did not wait") };
    assert!(missing.iter().all(|missing| missing.dc == D3 && !missing.is_lost), "{missing:?}");
    map.hold(|_, _| false);
    map.run_for(2_000_000);
    assert_eq!(standing(&map), Standing::Fenced);
    let (event, _) = map.call(author, |_, _, _| {});
    assert_eq!(event, Event::Resumed(DcId(0)), "nothing is lost");
    assert_eq!([value(&mut map, author), value(&mut map, reader)], [Some(1), Some(1)]);
}

#[test]
fn it_is_lost_with_the_one_that_has_it_and_nobody_waits_for_it() {
    let mut map = Map::new(FIVE, 2, Planted::default());
    let (author, reader) = (alone(&mut map), map.session(1, Planted::default()));
    map.lose(4);
    map.hold(|_, _| false);
    map.fence(0, 4);
    map.run_for(5_000_000);
    let cut = cut(&map).expect("who is left agrees on another");
    for (dc, partition) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] {
        let replica = map.replica(dc, partition).replica();
        assert_eq!(replica.known_vec()[D3], cut, "d{dc} p{partition}");
    }
    let Event::Waiting(missing) = attach(&mut map, author) else { panic!("it did not wait") };
    assert!(missing.iter().any(|missing| missing.dc == D3 && missing.is_lost), "{missing:?}");
    map.call(author, |session, now, out| session.accept_loss(now, out).expect("it waits"));
    assert_eq!([value(&mut map, author), value(&mut map, reader)], [None, None]);
    // The next incarnation copies the surviving state.
    map.start_anew(3);
    map.admit(0, 3);
    map.run_for(10_000_000);
    for partition in 0..2 {
        assert!(!map.replica(3, partition).replica().is_coming_up(), "p{partition}");
    }
    let later = map.session_of((3, 1), Planted::default());
    let (written, _) = map.write(later, (&key(), Op::Write(Value::Int(2))), None);
    assert!(is_committed(&written));
    map.run_for(1_000_000);
    assert_eq!(value(&mut map, reader), Some(2));
}

/// True for replication of the fifth data center's transactions to the first two, and for states to
/// the fourth's last partition.
fn around_the_third(_: Address, envelope: &Envelope) -> bool {
    let Address::Replica(dc, partition) = envelope.to else { return false };
    match &envelope.message {
        Message::Replicate(replicate) => replicate.origin == D4 && dc.0 < 2,
        Message::TransferPart(_) => (dc, partition) == (D3, PartitionId(1)),
        _ => false,
    }
}

/// True for these messages, and for group messages of the third data center.
fn with_the_third_silent(from: Address, envelope: &Envelope) -> bool {
    around_the_third(from, envelope) || of_the_third(from, envelope)
}

#[test]
fn who_has_not_come_up_says_nothing_of_what_it_has_lost() {
    let mut map = Map::new(FIVE, 2, Planted::default());
    let (author, reader) = (map.session(4, Planted::default()), map.session(1, Planted::default()));
    map.hold(around_the_third);
    let (written, _) = map.write(author, (&key(), Op::Write(Value::Int(1))), None);
    assert!(is_committed(&written));
    let (event, _) = map.call(author, |session, now, out| session.barrier(now, out).expect("idle"));
    assert_eq!(event, Event::Uniform, "three have it");
    map.lose(3);
    map.fence(0, 3);
    map.run_for(5_000_000);
    map.start_anew(3);
    map.admit(0, 3);
    map.run_for(5_000_000);
    assert!(map.replica(3, 1).replica().is_coming_up());
    map.hold(with_the_third_silent);
    map.lose(4);
    map.fence(0, 4);
    map.run_for(5_000_000);
    let standing = |map: &Map| map.replica(0, 0).replica().members().of(D4).standing;
    assert_eq!(standing(&map), Standing::Fencing, "the third alone has what was promised");
    map.hold(|_, _| false);
    map.run_for(10_000_000);
    assert_eq!(standing(&map), Standing::Fenced);
    assert_eq!(attach(&mut map, author), Event::Resumed(DcId(0)));
    assert_eq!([value(&mut map, author), value(&mut map, reader)], [Some(1), Some(1)]);
}
