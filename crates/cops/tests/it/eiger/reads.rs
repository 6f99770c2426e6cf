//! Read-only transactions (thesis §5.3).

use mingle_cops::column::{Column, Content, Predicate, Slice};
use mingle_cops::config::{Config, Protocol, keep_all};
use mingle_cops::deps::Dep;
use mingle_cops::eiger::client::{Call, Client};
use mingle_cops::flaw::Flaw;
use mingle_cops::locator::Locator;
use mingle_cops::message::{Address, ClientId, Frame, Message, Output, Packet, Point};

use super::{FAMILIES, column, delete, insert, reads, values};
use crate::stage::{EigerStage, RETRY_US, TRANS_TIME_US, message};

/// Gives the first round of a client these intervals, and returns the rows that it reads again, each
/// with the effective time.
fn second_round(intervals: &[(u64, u64)], flaw: Option<Flaw>) -> Vec<(u32, u64)> {
    let locator = Locator::new(1, 1).unwrap();
    let (trans_time_us, retry_us, handler) = (TRANS_TIME_US, RETRY_US, keep_all as _);
    let protocol = Protocol::Eiger;
    let config = Config { protocol, locator, trans_time_us, retry_us, handler, flaw };
    let mut client = Client::new(config, ClientId { dc: 0, number: 0 });
    let slices = (0..intervals.len() as u32).map(column).collect();
    let request = client.call(0, 1, Call::MultigetSlice(slices)).unwrap();
    while client.poll().is_some() {}
    for (part, (evt, lvt)) in intervals.iter().enumerate() {
        let (evt, lvt, is_pending) = (*evt, *lvt, false);
        let cells = Vec::new();
        let message = Message::SliceResult { request, part, cells, evt, lvt, is_pending };
        let (from, to) =
            (Address::Server(locator.server(0, 0)), Address::Client(ClientId { dc: 0, number: 0 }));
        client.handle(0, Packet { from, to, time: lvt, frame: Frame::Plain(message) });
    }
    let again = std::iter::from_fn(|| client.poll()).filter_map(|output| match output {
        Output::Send(packet) => match message(&packet) {
            Some(Message::MultigetSlice { slice, at, .. }) => Some((slice.key, at.unwrap())),
            _ => None,
        },
        Output::Event(_) => None,
    });
    again.collect()
}

/// Thesis, Figure 5.4(b): location 2 has K from 12 on, and location 1 answered until 10. The effective
/// time is 15, the smallest latest valid time that is not before 12, and only location 1 is read again.
#[test]
fn location_1_is_read_again_at_time_15() {
    assert_eq!(second_round(&[(2, 10), (12, 16), (7, 15)], None), [(0, 15)]);
}

/// Thesis, Figure 5.4(a): one logical time is in all intervals, so one round suffices.
#[test]
fn a_time_in_all_intervals_makes_one_round() {
    assert_eq!(second_round(&[(2, 10), (3, 9), (7, 8)], None), []);
    assert_eq!(second_round(&[(2, 10), (10, 12)], None), [], "10 is in both");
}

/// An interval that ends at the largest EVT contains it.
#[test]
fn the_largest_evt_can_be_the_effective_time() {
    assert_eq!(second_round(&[(2, 10), (12, 12)], None), [(0, 12)]);
    assert_eq!(second_round(&[(2, 10), (12, 12)], Some(Flaw::StrictLargestEvt)), []);
}

/// The same over servers: location 1 is read before it changes from A to B, location 2 after it has
/// become K.
#[test]
fn an_early_answer_is_read_again_at_the_effective_time() {
    let mut stage = EigerStage::new(Protocol::Eiger, 1, None);
    let [one, two, three] = stage.keys_apart(3)[..] else { panic!("three keys") };
    let (a, b, k, q) = (1, 2, 11, 17);
    stage.mutate(0, 1, vec![insert(one, a)]);
    stage.mutate(0, 1, vec![insert(three, q)]);
    stage.begin(0, 9, Call::MultigetSlice([one, two, three].map(column).to_vec()));
    stage.deliver(|packet| reads(packet, one));
    for mutation in [insert(one, b), insert(two, k)] {
        stage.begin(0, 1, Call::BatchMutate(vec![mutation]));
        stage.deliver(|packet| !super::is_read(packet));
        assert_eq!(stage.answer(0).unwrap().written.len(), 1);
    }
    stage.within(0);
    let answer = stage.answer(0).unwrap();
    assert_eq!(values(&answer), [Some(b), Some(k), Some(q)]);
    assert_eq!((answer.rounds, stage.count(Point::SecondRound)), (2, 1));
}

/// An absent column is an answer with an interval: a transaction that inserts a column into each of two
/// rows is not read half, though the first row was empty when it was read.
#[test]
fn an_empty_slice_is_read_again_too() {
    for flaw in [None, Some(Flaw::EmptySliceWithoutInterval)] {
        let mut stage = EigerStage::new(Protocol::Eiger, 1, flaw);
        let [alice, bob] = stage.keys_apart(2)[..] else { panic!("two keys") };
        stage.begin(0, 9, Call::MultigetSlice([alice, bob].map(column).to_vec()));
        stage.deliver(|packet| reads(packet, alice));
        stage.begin(0, 1, Call::AtomicMutate([alice, bob].map(|key| insert(key, 5)).to_vec()));
        stage.deliver(|packet| !super::is_read(packet));
        assert_eq!(stage.answer(0).unwrap().written.len(), 1);
        stage.within(0);
        assert!(stage.count(Point::ColumnAbsent) > 0);
        let found = values(&stage.answer(0).unwrap());
        match flaw {
            None => assert_eq!(found, [Some(5), Some(5)]),
            Some(_) => assert_eq!(found, [None, Some(5)], "the flaw shows half of the friendship"),
        }
    }
}

/// Two slices are read again, and the answer for the second comes first.
#[test]
fn answers_of_the_second_round_come_in_any_order() {
    for flaw in [None, Some(Flaw::MatchedByPosition)] {
        let mut stage = EigerStage::new(Protocol::Eiger, 1, flaw);
        let [x, y, z] = stage.keys_apart(3)[..] else { panic!("three keys") };
        let rows = [x, y, z];
        stage.begin(0, 9, Call::MultigetSlice(rows.map(column).to_vec()));
        stage.deliver(|packet| reads(packet, x) || reads(packet, y));
        let mutations = [(x, 1), (y, 2), (z, 3)].map(|(key, value)| insert(key, value));
        stage.begin(0, 1, Call::AtomicMutate(mutations.to_vec()));
        stage.deliver(|packet| !super::is_read(packet));
        assert_eq!(stage.answer(0).unwrap().written.len(), 1);
        let is_first = |packet: &Packet| match message(packet) {
            Some(Message::MultigetSlice { at, .. }) => at.is_none(),
            _ => true,
        };
        stage.deliver(is_first);
        let is_of_y = |packet: &Packet| {
            reads(packet, y) || matches!(message(packet), Some(Message::SliceResult { .. }))
        };
        stage.deliver(is_of_y);
        stage.within(0);
        let found = values(&stage.answer(0).unwrap());
        match flaw {
            None => assert_eq!(found, [Some(1), Some(2), Some(3)]),
            Some(_) => assert_eq!(found, [Some(2), Some(1), Some(3)], "the flaw swaps them"),
        }
    }
}

/// Thesis §5.2: a reader of a deleted column depends on the delete, although the library strips the
/// column: in another data center its next write comes after the delete.
#[test]
fn tombstones_carry_dependencies() {
    for flaw in [None, Some(Flaw::TombstoneForgotten)] {
        let mut stage = EigerStage::new(Protocol::Eiger, 2, flaw);
        let [friend, note] = stage.keys_apart(2)[..] else { panic!("two keys") };
        stage.mutate(0, 1, vec![insert(friend, 1)]);
        stage.all();
        let gone = stage.mutate(0, 1, vec![delete(friend)]);
        let answer = stage.columns(0, 2, [friend]);
        assert!(answer.slices[0].is_empty(), "the column is stripped");
        assert_eq!(answer.deleted[0][0].content, Content::Deleted);
        let write = stage.mutate(0, 2, vec![insert(note, 2)]);
        stage.deliver(|packet| crate::stage::replicates(packet, write, 1));
        let found = values(&stage.columns(1, 3, [friend, note]));
        match flaw {
            None => assert_eq!(found, [Some(1), None]),
            Some(_) => {
                assert_eq!(found, [Some(1), Some(2)], "the flaw shows a friend that was removed");
            }
        }
        stage.deliver(|packet| crate::stage::replicates(packet, gone, 1));
        assert_eq!(values(&stage.columns(1, 3, [friend, note])), [None, Some(2)]);
    }
}

/// A range gives the first columns that are not deleted; a range from a later to an earlier column has
/// none.
#[test]
fn a_range_skips_deleted_columns() {
    let mut stage = EigerStage::new(Protocol::Eiger, 1, None);
    let at = |name, mutation: super::Mutation| {
        let location = super::Location { column: Column::named(name), ..mutation.location };
        super::Mutation { location, ..mutation }
    };
    let inserts = (1..=4).map(|name| at(name, insert(7, u64::from(name) * 10)));
    stage.mutate(0, 1, inserts.collect());
    stage.mutate(0, 1, vec![at(2, delete(7))]);
    let mut range = |start, stop, count| {
        let (start, stop) = (Column::named(start), Column::named(stop));
        let predicate = Predicate::Range { start, stop, count };
        let slice = Slice { key: 7, family: FAMILIES[0], predicate };
        let answer = stage.call(0, 2, Call::MultigetSlice(vec![slice]));
        answer.slices[0].iter().map(|cell| cell.column.name).collect::<Vec<_>>()
    };
    assert_eq!(range(1, 9, 2), [1, 3]);
    assert_eq!(range(2, 9, 9), [3, 4]);
    assert!(range(1, 9, 0).is_empty());
    assert!(range(4, 1, 9).is_empty());
}

/// Thesis §5.2: a batch over two rows is two operations, and a later write depends on both.
#[test]
fn a_batch_over_two_rows_is_two_operations() {
    let mut stage = EigerStage::new(Protocol::Eiger, 2, None);
    let [x, y, z] = stage.keys_apart(3)[..] else { panic!("three keys") };
    let batch = Call::BatchMutate(vec![insert(x, 1), insert(y, 2)]);
    let written: Vec<Dep> = stage.call(0, 1, batch).written;
    assert_eq!(written.len(), 2);
    let last = stage.mutate(0, 1, vec![insert(z, 3)]);
    for dep in [last, written[0]] {
        stage.deliver(|packet| crate::stage::replicates(packet, dep, 1));
        assert_eq!(stage.value(1, 1, z), None);
    }
    stage.deliver(|packet| crate::stage::replicates(packet, written[1], 1));
    assert_eq!(values(&stage.columns(1, 1, [x, y, z])), [Some(1), Some(2), Some(3)]);
}

/// A transaction that takes longer than `trans_time` begins again.
#[test]
fn a_transaction_that_takes_too_long_begins_again() {
    let mut stage = EigerStage::new(Protocol::Eiger, 1, None);
    let [x, y] = stage.keys_apart(2)[..] else { panic!("two keys") };
    stage.begin(0, 9, Call::MultigetSlice([x, y].map(column).to_vec()));
    stage.deliver(|packet| reads(packet, x));
    stage.wait(TRANS_TIME_US * 2);
    stage.begin(0, 1, Call::BatchMutate(vec![insert(x, 2)]));
    stage.deliver(|packet| !super::is_read(packet));
    assert_eq!(stage.answer(0).unwrap().written.len(), 1);
    stage.within(0);
    assert_eq!(values(&stage.answer(0).unwrap()), [Some(2), None]);
    assert_eq!(stage.count(Point::Restarted), 1);
}

/// Calls that no server could answer are refused, with what was expected.
#[test]
fn calls_without_content_and_updates_of_another_kind_are_refused() {
    let locator = Locator::new(1, 1).unwrap();
    let (trans_time_us, retry_us, handler) = (TRANS_TIME_US, RETRY_US, keep_all as _);
    let (protocol, flaw) = (Protocol::Eiger, None);
    let config = Config { protocol, locator, trans_time_us, retry_us, handler, flaw };
    let mut client = Client::new(config, ClientId { dc: 0, number: 0 });
    let mut refusal = |call| client.call(0, 1, call).unwrap_err();
    assert!(refusal(Call::MultigetSlice(Vec::new())).contains("no slices"));
    assert!(refusal(Call::AtomicMutate(Vec::new())).contains("no mutations"));
    let update = super::Update::Add(1);
    let wrong = super::Mutation { update, ..insert(3, 1) };
    let message = refusal(Call::BatchMutate(vec![wrong]));
    assert!(message.contains("Add(1) at 3:0:0:1"), "{message}");
}
