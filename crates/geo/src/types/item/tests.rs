//! The rules of concurrent updates, each by its cases.

mod once;
mod plain;

use mingle_model::Value;
use proptest::prelude::*;

use super::super::{Kind, OpId, State};
use super::*;
use crate::timestamp::PartitionId;

pub(in crate::types) use once::identified;

/// Generates operations as clients request them.
pub(in crate::types) fn item_op() -> impl Strategy<Value = ItemOp> {
    let place = prop_oneof![
        2 => Just(Place::Value),
        1 => (0i64..2).prop_map(|field| Place::Field(Value::Int(field))),
        1 => Just(Place::Score(Value::Int(0))),
    ];
    let side = prop_oneof![Just(Side::Left), Just(Side::Right)];
    prop_oneof![
        2 => value().prop_map(ItemOp::Set),
        1 => Just(ItemOp::Delete),
        2 => (place.clone(), value()).prop_map(|(place, value)| ItemOp::Put(place, value)),
        4 => (place.clone(), -3i64..9).prop_map(|(place, amount)| ItemOp::Add(place, amount)),
        1 => place.prop_map(ItemOp::Drop),
        1 => value().prop_map(ItemOp::Insert),
        1 => value().prop_map(ItemOp::Remove),
        2 => (side, value()).prop_map(|(side, value)| ItemOp::Push(side, value)),
        1 => prop::option::of(0u64..40).prop_map(ItemOp::Expire),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    (0i64..4).prop_map(Value::Int)
}

/// Sites that run operations at chosen times, and deliver each other's in the order of their times.
#[derive(Clone)]
struct World {
    sites: Vec<(State, Vector)>,
    sent: Vec<(Cause, Op, Option<OpId>)>,
}

impl World {
    fn new() -> Self {
        Self { sites: vec![(State::new(Kind::Item), Vector::ZERO); 3], sent: Vec::new() }
    }

    /// Runs an operation at a site, at a time in microseconds.
    fn run(&mut self, at: u8, time_us: u64, op: ItemOp) -> Version {
        self.run_once(at, time_us, op, None::<OpId>)
    }

    /// Does the same for an operation with an id.
    fn run_once(
        &mut self,
        at: u8,
        time_us: u64,
        op: ItemOp,
        id: impl Into<Option<OpId>>,
    ) -> Version {
        let id = id.into();
        let (state, seen) = &mut self.sites[usize::from(at)];
        let timestamp = Timestamp::new(time_us, PartitionId(0));
        let version = Version { timestamp, origin: DcId(at), index: 0 };
        assert!(seen.highest() < timestamp, "a commit is above its snapshot");
        let cause = Cause { version, seen: *seen };
        let op = state.measured(&Op::Item(op), seen, &[]);
        state.apply(&cause, &op, id.as_ref());
        seen[DcId(at)] = timestamp;
        self.sent.push((cause, op, id));
        version
    }

    /// Delivers all operations that a site lacks.
    fn deliver(&mut self, to: u8) {
        let mut sent = self.sent.clone();
        sent.sort_by_key(|(cause, ..)| cause.version);
        let (state, seen) = &mut self.sites[usize::from(to)];
        for (cause, op, id) in &sent {
            let Version { timestamp, origin, .. } = cause.version;
            if seen[origin] < timestamp {
                state.apply(cause, op, id.as_ref());
                seen[origin] = timestamp;
            }
        }
    }

    fn deliver_all(&mut self) {
        (0..3).for_each(|to| self.deliver(to));
    }

    /// Delivers everything, and returns what `see` sees at this time, the same at all sites, settled
    /// or not.
    fn seen<T: PartialEq + std::fmt::Debug>(
        &mut self,
        now_us: u64,
        see: impl Fn(View<'_>) -> T,
    ) -> T {
        self.deliver_all();
        let view = |state: &State| see(state.as_item().expect("an item").at(now_us));
        let found = view(&self.sites[0].0);
        for (state, _) in &self.sites {
            assert_eq!(view(state), found);
            let mut settled = state.clone();
            settled.settle(now_us);
            assert_eq!(view(&settled), found, "settled");
        }
        found
    }
}

fn int(value: i64) -> Value {
    Value::Int(value)
}

fn text(value: &str) -> Value {
    Value::Bytes(value.as_bytes().into())
}

/// Runs the operations beside each other, in each order of their times, after `before`; returns the
/// value that all sites show in the end.
fn beside(before: &[ItemOp], ops: &[ItemOp]) -> Vec<Option<Value>> {
    let mut found = Vec::new();
    for turn in 0..ops.len() {
        let mut world = World::new();
        for (at, op) in before.iter().enumerate() {
            world.run(0, 10 + at as u64, op.clone());
        }
        world.deliver_all();
        for (at, op) in ops.iter().enumerate() {
            let time_us = 100 + ((at + turn) % ops.len()) as u64;
            world.run(at as u8, time_us, op.clone());
        }
        found.push(world.seen(1_000, |view| view.value()));
    }
    found
}

#[test]
fn a_cell_merges_as_its_table_says() {
    let (set, add, delete) =
        (|n| ItemOp::Set(int(n)), ItemOp::Add(Place::Value, 1), ItemOp::Delete);
    assert_eq!(beside(&[], &[set(5), add.clone()]), [Some(int(6)), Some(int(6))]);
    let seven = [set(7)];
    assert_eq!(beside(&seven, &[delete.clone(), add.clone()]), [Some(int(1)), Some(int(1))]);
    assert_eq!(beside(&seven, &[delete.clone(), set(3)]), [Some(int(3)), Some(int(3))]);
    // The winner is the one with the higher version.
    let three = [Some(int(8)), Some(int(8)), Some(int(6))];
    assert_eq!(beside(&[], &[set(5), set(7), add.clone()]), three);
    let alone = [Some(text("x")), Some(text("x"))];
    assert_eq!(beside(&[], &[ItemOp::Set(text("x")), add.clone()]), alone);
    // An addition that a losing write took stays taken.
    let one = [add.clone()];
    let both = [Some(int(7)), Some(int(5))];
    assert_eq!(beside(&one, &[set(5), set(7)]), both);
    assert_eq!(beside(&one, &[delete.clone(), delete]), [None, None]);
    // Fields are cells too.
    let place = Place::Field(text("f"));
    let mut world = World::new();
    world.run(0, 10, ItemOp::Put(place.clone(), int(5)));
    world.run(1, 11, ItemOp::Add(place.clone(), 2));
    assert_eq!(world.seen(20, |view| view.field(&text("f"))), Some(int(7)));
    world.run(2, 30, ItemOp::Drop(place.clone()));
    world.run(1, 31, ItemOp::Add(place, 4));
    assert_eq!(world.seen(40, |view| view.field(&text("f"))), Some(int(4)));
}

#[test]
fn sums_are_limited_where_they_are_shown() {
    let mut world = World::new();
    for (at, amount) in [(0, i64::MAX), (1, i64::MAX), (2, -1)] {
        world.run(at, 10 + u64::from(at), ItemOp::Add(Place::Value, amount));
    }
    assert_eq!(world.seen(20, |view| view.value()), Some(int(i64::MAX)));
    world.run(0, 30, ItemOp::Add(Place::Value, i64::MIN));
    assert_eq!(world.seen(40, |view| view.value()), Some(int(i64::MAX - 2)));
}

#[test]
fn an_item_shows_the_type_it_was_given_last() {
    let mut world = World::new();
    world.run(0, 10, ItemOp::Insert(text("m")));
    world.run(1, 11, ItemOp::Push(Side::Left, text("e")));
    assert_eq!(world.seen(20, |view| view.shown_type()), Some(ItemType::List));
    // Removing what is shown shows what is below.
    let element = world.seen(20, |view| view.elements().next().map(|element| element.version));
    world.run(0, 30, ItemOp::Pull(element.into_iter().collect()));
    assert_eq!(world.seen(40, |view| view.shown_type()), Some(ItemType::Set));
    // A value displaces all that it saw, of every type, and not what is beside it.
    world.run(0, 50, ItemOp::Set(text("v")));
    world.run(1, 51, ItemOp::Put(Place::Score(text("m")), int(1)));
    assert_eq!(world.seen(60, |view| view.shown_type()), Some(ItemType::SortedSet));
    world.run(2, 70, ItemOp::Delete);
    assert!(!world.seen(80, |view| view.exists()));
    // Taken additions show no type.
    world.run(0, 90, ItemOp::Add(Place::Field(text("f")), 1));
    world.run(1, 91, ItemOp::Insert(text("m")));
    world.deliver_all();
    world.run(0, 95, ItemOp::Drop(Place::Field(text("f"))));
    assert_eq!(world.seen(99, |view| view.shown_type()), Some(ItemType::Set));
}

#[test]
fn a_list_keeps_every_element_and_removes_them_by_identity() {
    let mut world = World::new();
    for (at, time_us, side, value) in
        [(0, 10, Side::Right, "a"), (1, 11, Side::Right, "b"), (2, 12, Side::Left, "c")]
    {
        world.run(at, time_us, ItemOp::Push(side, text(value)));
    }
    let values = |view: View<'_>| view.elements().map(|it| it.value.clone()).collect::<Vec<_>>();
    assert_eq!(world.seen(20, values), ["c", "a", "b"].map(text));
    let first = world.seen(20, |view| view.elements().next().map(|it| it.version));
    let first: Vec<Version> = first.into_iter().collect();
    // Two removals of one element beside each other, and a push of the same value.
    world.run(0, 30, ItemOp::Pull(first.clone()));
    world.run(1, 31, ItemOp::Pull(first));
    world.run(2, 32, ItemOp::Push(Side::Left, text("c")));
    assert_eq!(world.seen(40, values), ["c", "a", "b"].map(text));
    world.run(0, 50, ItemOp::Push(Side::Left, text("d")));
    assert_eq!(world.seen(60, values), ["d", "c", "a", "b"].map(text));
}

#[test]
fn a_life_ends_at_its_deadline_and_an_empty_one_begins() {
    let mut world = World::new();
    world.run(0, 10, ItemOp::Set(int(5)));
    world.run(0, 11, ItemOp::Expire(Some(100)));
    assert_eq!(
        world.seen(99, |view| (view.value(), view.deadline_us())),
        (Some(int(5)), Some(100))
    );
    assert_eq!(world.seen(100, |view| (view.value(), view.deadline_us())), (None, None));
    // An addition begins anew, and so does a field.
    world.run(1, 120, ItemOp::Add(Place::Value, 1));
    assert_eq!(world.seen(130, |view| view.value()), Some(int(1)));
    assert_eq!(world.seen(130, |view| view.deadline_us()), None);
}

/// An operation with its site and its time.
type Fact = (u8, u64, ItemOp);

#[test]
fn the_last_fact_before_the_deadline_decides() {
    let expire = |deadline_us| ItemOp::Expire(Some(deadline_us));
    // Each case: facts with their sites and times, beside each other; and the ends that are seen.
    let cases: [(&[Fact], u64, bool); 7] = [
        (&[(0, 20, expire(50)), (1, 30, ItemOp::Expire(None))], 60, true),
        (&[(0, 20, expire(50)), (1, 50, ItemOp::Expire(None))], 60, false),
        (&[(0, 20, expire(50)), (1, 30, expire(90))], 60, true),
        (&[(0, 20, expire(50)), (1, 30, expire(90))], 90, false),
        (&[(0, 20, expire(90)), (1, 30, expire(50))], 60, false),
        // It commits after its deadline: it ends the life at once.
        (&[(0, 20, expire(15))], 30, false),
        (&[(0, 20, expire(15)), (1, 21, ItemOp::Expire(None))], 30, false),
    ];
    for (facts, now_us, is_there) in cases {
        for hurried in [false, true] {
            let mut world = World::new();
            world.run(2, 10, ItemOp::Insert(text("m")));
            world.deliver_all();
            for (at, time_us, fact) in facts {
                world.run(*at, *time_us, fact.clone());
                if hurried && world.sites.iter().all(|(_, seen)| seen.highest().micros() < 15) {
                    world.deliver_all();
                }
            }
            assert_eq!(world.seen(now_us, |view| view.exists()), is_there, "{facts:?} {now_us}");
        }
    }
}

#[test]
fn an_end_divides_additions_that_it_did_not_know() {
    let mut world = World::new();
    world.run(0, 10, ItemOp::Add(Place::Value, 1));
    world.deliver_all();
    world.run(0, 20, ItemOp::Expire(Some(100)));
    // Another site has not heard of the deadline.
    world.run(1, 90, ItemOp::Add(Place::Value, 2));
    world.run(1, 110, ItemOp::Add(Place::Value, 4));
    let apart = world.clone();
    assert_eq!(world.sites[1].0.as_item().expect("an item").at(120).value(), Some(int(7)));
    assert_eq!(world.seen(120, |view| view.value()), Some(int(4)));
    // A removal that was measured without the deadline takes what it saw, and no more.
    let mut world = apart;
    world.run(2, 115, ItemOp::Add(Place::Value, 8));
    world.run(1, 120, ItemOp::Delete);
    assert_eq!(world.seen(130, |view| view.value()), Some(int(8)));
}

/// What an ended life held is dropped, also the sums that its removals left, and what comes late
/// from a site that had not heard of the end finds the item as if it were there.
#[test]
fn an_ended_life_leaves_nothing_and_late_removals_do_no_harm() {
    let mut world = World::new();
    for (at, time_us) in [(0, 10), (1, 11), (2, 12)] {
        world.run(at, time_us, ItemOp::Add(Place::Field(text("f")), 1));
    }
    world.deliver_all();
    world.run(0, 20, ItemOp::Delete);
    world.deliver_all();
    world.run(0, 30, ItemOp::Add(Place::Field(text("f")), 5));
    world.run(0, 31, ItemOp::Expire(Some(100)));
    // Site 1 knows of neither; site 2 of both.
    world.run(1, 105, ItemOp::Add(Place::Field(text("f")), 7));
    let late = world.sent.len();
    world.run(1, 107, ItemOp::Delete);
    world.run(1, 108, ItemOp::Add(Place::Field(text("f")), 9));
    let expected = world.clone().seen(120, |view| view.field(&text("f")));
    assert_eq!(expected, Some(int(9)));
    let (mut state, seen) = world.sites[0].clone();
    state.settle(104);
    assert!(state.is_blank(), "{state:?}");
    let mut state = State::absent(Kind::Item, 104);
    for (cause, op, id) in &world.sent[late - 1..] {
        assert!(seen[cause.version.origin] < cause.version.timestamp);
        state.apply(cause, op, id.as_ref());
    }
    assert_eq!(state.as_item().expect("an item").at(120).field(&text("f")), expected);
}

#[test]
fn a_reader_goes_by_its_snapshot_and_by_what_it_holds() {
    let mut world = World::new();
    world.run(0, 10, ItemOp::Set(int(1)));
    world.run(0, 11, ItemOp::Expire(Some(100)));
    // The clock of another site is ahead.
    world.run(1, 150, ItemOp::Insert(text("m")));
    assert_eq!(world.seen(50, |view| view.shown_type()), Some(ItemType::Set));
    let alone = world.sites[0].0.clone();
    assert!(alone.as_item().expect("an item").at(50).has_member(&text("m")));
}

#[test]
fn what_settling_keeps_is_bounded() {
    let mut state = State::new(Kind::Item);
    let mut seen = Vector::ZERO;
    for time_us in 1..=1_000 {
        let timestamp = Timestamp::new(time_us, PartitionId(0));
        let version = Version { timestamp, origin: DcId(0), index: 0 };
        let op = match time_us % 3 {
            0 => ItemOp::Set(int(1)),
            1 => ItemOp::Add(Place::Value, 1),
            _ => ItemOp::Expire(Some(time_us + 10_000)),
        };
        let cause = Cause { version, seen };
        let op = state.measured(&Op::Item(op), &seen, &[]);
        state.apply(&cause, &op, None);
        seen[DcId(0)] = timestamp;
    }
    let weight = |state: &State| format!("{state:?}").len();
    let before = weight(&state);
    state.settle(2_000);
    assert!(weight(&state) * 20 < before, "{state:?}");
    assert_eq!(state.due_us(), None, "{state:?}");
}

proptest! {
    /// Sites that settle at any time, as far as they have heard of the others, show the same as
    /// those that never do.
    #[test]
    fn settling_shows_nothing(
        steps in prop::collection::vec((0u8..3, 1u64..9, item_op(), 0u8..4, 0u32..24), 1..40),
    ) {
        let (mut plain, mut settled) = (World::new(), World::new());
        let mut time_us = 10;
        for (at, step_us, op, then, number) in steps {
            time_us += step_us;
            // Some of the operations have ids, and repeat.
            let id = (number < 8).then(|| once::id(number));
            let op = if id.is_some() { identified(number) } else { op };
            plain.run_once(at, time_us, op.clone(), id);
            settled.run_once(at, time_us, op, id);
            if let Some(to) = [0, 1, 2].get(usize::from(then)) {
                plain.deliver(*to);
                settled.deliver(*to);
                let (state, seen) = &mut settled.sites[usize::from(*to)];
                let heard = (0..3).map(|dc| seen[DcId(dc)].micros()).min();
                state.settle(heard.unwrap_or_default());
                if state.is_blank() {
                    *state = State::absent(Kind::Item, heard.unwrap_or_default());
                }
            }
            for (plain, settled) in plain.sites.iter().zip(&settled.sites) {
                let see = |state: &State| shown(state.as_item().expect("an item").at(time_us));
                prop_assert_eq!(see(&plain.0), see(&settled.0));
            }
        }
        let found = plain.seen(time_us, shown);
        prop_assert_eq!(settled.seen(time_us, shown), found.clone());
        let [one, other] = [0, 1].map(|at| settled.sites[at].clone());
        let mut joined = one.0;
        joined.join(&one.1, &other.0, &other.1);
        prop_assert_eq!(shown(joined.as_item().expect("an item").at(time_us)), found);
    }
}

/// Returns all that a view shows, as text.
pub(in crate::types) fn shown(view: View<'_>) -> String {
    let elements: Vec<_> = view.elements().map(|element| element.value).collect();
    let (fields, scores): (Vec<_>, Vec<_>) = (view.fields().collect(), view.scores().collect());
    let members: Vec<_> = view.members().collect();
    let (of, deadline_us) = (view.shown_type(), view.deadline_us());
    format!(
        "{of:?} {:?} {fields:?} {scores:?} {members:?} {elements:?} {deadline_us:?}",
        view.value()
    )
}
