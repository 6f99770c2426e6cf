//! Convergence under any causal delivery, and agreement with a plain sequential model.

mod join;

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Origin, TransactionId, Value};
use proptest::prelude::*;

use super::*;
use crate::timestamp::{DcId, Timestamp};

const REPLICAS: usize = 3;

/// A replica that applies operations as they arrive, each as its own transaction.
#[derive(Clone)]
struct Site {
    state: State,
    seen: Vector,
    clock: u64,
}

#[derive(Clone)]
struct Sent {
    cause: Cause,
    op: Op,
    id: Option<OpId>,
}

/// Sites that deliver each other's operations causally, in the order of the schedule.
struct Sites {
    sites: Vec<Site>,
    sent: Vec<Vec<Sent>>,
}

impl Sites {
    fn new(kind: Kind) -> Self {
        let site = Site { state: State::new(kind), seen: Vector::ZERO, clock: 0 };
        Self { sites: vec![site; REPLICAS], sent: vec![Vec::new(); REPLICAS] }
    }

    fn run(&mut self, at: usize, op: &Op, id: Option<OpId>) {
        let origin = DcId(at as u8);
        let site = &mut self.sites[at];
        site.clock = site.clock.max(site.seen.highest().0) + 1;
        let version = Version { timestamp: Timestamp(site.clock), origin, index: 0 };
        let cause = Cause { version, seen: site.seen };
        let op = site.state.measured(op, &site.seen, &[]);
        site.state.apply(&cause, &op, id.as_ref());
        site.seen[origin] = version.timestamp;
        self.sent[at].push(Sent { cause, op, id });
    }

    /// Delivers the next operation of `from` at `to`, if its causes are there.
    fn deliver(&mut self, from: usize, to: usize) -> bool {
        let site = &mut self.sites[to];
        let origin = DcId(from as u8);
        let have = site.seen[origin];
        let next = self.sent[from].iter().find(|sent| sent.cause.version.timestamp > have);
        let Some(sent) = next.filter(|sent| from != to && site.seen.covers(&sent.cause.seen))
        else {
            return false;
        };
        site.state.apply(&sent.cause, &sent.op, sent.id.as_ref());
        site.seen[origin] = sent.cause.version.timestamp;
        true
    }

    fn deliver_all(&mut self) {
        let pairs = |index: usize| (index / REPLICAS, index % REPLICAS);
        while (0..REPLICAS * REPLICAS).map(pairs).any(|(from, to)| self.deliver(from, to)) {}
    }
}

#[derive(Clone, Debug)]
enum Step {
    Run(usize, Op, Option<u32>),
    Deliver(usize, usize),
}

fn value() -> impl Strategy<Value = Value> {
    (0i64..4).prop_map(Value::Int)
}

fn op(kind: Kind) -> BoxedStrategy<Op> {
    match kind {
        Kind::Register => {
            prop_oneof![4 => value().prop_map(Op::Write), 1 => Just(Op::Erase)].boxed()
        }
        Kind::Counter => {
            prop_oneof![4 => (-3i64..9).prop_map(Op::Add), 1 => Just(Op::Reset)].boxed()
        }
        Kind::Set => prop_oneof![
            4 => value().prop_map(Op::Insert),
            2 => value().prop_map(Op::Remove),
            1 => Just(Op::Clear)
        ]
        .boxed(),
        Kind::Map => prop_oneof![
            3 => (value(), value()).prop_map(|(key, value)| Op::Put(key, value)),
            3 => (value(), -3i64..9).prop_map(|(key, amount)| Op::Increment(key, amount)),
            2 => value().prop_map(Op::Delete),
            1 => Just(Op::Empty)
        ]
        .boxed(),
        Kind::Log => prop_oneof![4 => value().prop_map(Op::Append), 1 => Just(Op::Clear)].boxed(),
        Kind::Item => super::item::tests::item_op().prop_map(Op::Item).boxed(),
    }
}

/// The types that the plain model has; items have [one of their own](super::item::tests).
const MODELLED: [Kind; 5] = [Kind::Register, Kind::Counter, Kind::Set, Kind::Map, Kind::Log];

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![5 => prop::sample::select(MODELLED.to_vec()), 2 => Just(Kind::Item)]
}

/// Generates operations without ids; if `ids` is true, with ids, some of which repeat.
fn steps(kind: Kind, ids: bool) -> impl Strategy<Value = Vec<Step>> {
    let number = if ids { prop::option::of(0u32..6).boxed() } else { Just(None).boxed() };
    let run = (0..REPLICAS, op(kind), number).prop_map(|(at, op, id)| Step::Run(at, op, id));
    let deliver = (0..REPLICAS, 0..REPLICAS).prop_map(|(from, to)| Step::Deliver(from, to));
    prop::collection::vec(prop_oneof![run, deliver], 0..40)
}

fn op_id(number: u32) -> OpId {
    let transaction = TransactionId { origin: Origin(1), sequence: number.into() };
    OpId { transaction, phase: 0, position: 0 }
}

/// Returns the operation with this id, the same at every site.
fn identified(kind: Kind, number: u32) -> Op {
    let value = Value::Int((number % 4).into());
    match kind {
        Kind::Register => Op::Write(value),
        Kind::Counter => Op::Add(i64::from(number) + 1),
        Kind::Set => Op::Insert(value),
        Kind::Map if number.is_multiple_of(2) => Op::Put(value, Value::Int(number.into())),
        Kind::Map => Op::Increment(value, i64::from(number) + 1),
        Kind::Log => Op::Append(value),
        Kind::Item => Op::Item(super::item::tests::identified(number)),
    }
}

fn play(kind: Kind, steps: &[Step]) -> Sites {
    let mut sites = Sites::new(kind);
    for step in steps {
        match step {
            Step::Run(at, op, None) => sites.run(*at, op, None),
            Step::Run(at, _, Some(number)) => {
                sites.run(*at, &identified(kind, *number), Some(op_id(*number)));
            }
            Step::Deliver(from, to) => {
                sites.deliver(*from, *to);
            }
        }
    }
    sites
}

fn with_kind(ids: bool) -> impl Strategy<Value = (Kind, Vec<Step>)> {
    kind().prop_flat_map(move |kind| (Just(kind), steps(kind, ids)))
}

proptest! {
    #[test]
    fn sites_that_have_the_same_operations_have_the_same_state((kind, steps) in with_kind(false)) {
        let mut sites = play(kind, &steps);
        sites.deliver_all();
        prop_assert_eq!(&sites.sites[0].state, &sites.sites[1].state);
        prop_assert_eq!(&sites.sites[0].state, &sites.sites[2].state);
    }

    #[test]
    fn they_do_where_operations_repeat((kind, steps) in with_kind(true)) {
        let mut sites = play(kind, &steps);
        sites.deliver_all();
        prop_assert_eq!(&sites.sites[0].state, &sites.sites[1].state);
        prop_assert_eq!(&sites.sites[0].state, &sites.sites[2].state);
    }

    /// In the order of versions, which extends causality, the state is the same too: so the point
    /// at which folding cut the order of arrival does not matter.
    #[test]
    fn the_order_of_versions_gives_the_same_state((kind, steps) in with_kind(true)) {
        let mut sites = play(kind, &steps);
        sites.deliver_all();
        let mut all: Vec<Sent> = sites.sent.concat();
        all.sort_by_key(|sent| sent.cause.version);
        let mut state = State::new(kind);
        for sent in &all {
            state.apply(&sent.cause, &sent.op, sent.id.as_ref());
        }
        prop_assert_eq!(&sites.sites[0].state, &state);
    }

    #[test]
    fn one_site_alone_agrees_with_the_plain_model(
        (kind, ops) in prop::sample::select(MODELLED.to_vec())
            .prop_flat_map(|kind| (Just(kind), prop::collection::vec(op(kind), 0..30)))
    ) {
        let mut sites = Sites::new(kind);
        let mut model = Model::default();
        for op in &ops {
            sites.run(0, op, None);
            model.run(op);
            prop_assert_eq!(Model::of(&sites.sites[0].state), model.clone());
        }
    }

    /// Additions of one id count once, even if many sites run them without seeing each other.
    #[test]
    fn repeated_additions_count_once(runs in prop::collection::vec((0..REPLICAS, 0u32..6), 1..20)) {
        let mut sites = Sites::new(Kind::Counter);
        for (at, number) in &runs {
            sites.run(*at, &identified(Kind::Counter, *number), Some(op_id(*number)));
        }
        sites.deliver_all();
        let distinct: BTreeSet<u32> = runs.iter().map(|(_, number)| *number).collect();
        let expected: i128 = distinct.iter().map(|number| i128::from(*number) + 1).sum();
        for site in &sites.sites {
            prop_assert_eq!(site.state.as_counter().expect("a counter").value(), expected);
        }
    }
}

/// The types as plain single-threaded data structures.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    register: Option<Value>,
    counter: i128,
    set: BTreeSet<Value>,
    map: BTreeMap<Value, Value>,
    counts: BTreeMap<Value, i128>,
    log: Vec<Value>,
    /// All that an item shows, as text.
    item: Option<String>,
}

impl Model {
    fn run(&mut self, op: &Op) {
        match op.clone() {
            Op::Write(value) => self.register = Some(value),
            Op::Erase => self.register = None,
            Op::Add(amount) => self.counter += i128::from(amount),
            Op::Reset => self.counter = 0,
            Op::Insert(value) => {
                self.set.insert(value);
            }
            Op::Remove(value) => {
                self.set.remove(&value);
            }
            Op::Clear => {
                self.set.clear();
                self.log.clear();
            }
            Op::Put(key, value) => {
                self.map.insert(key, value);
            }
            Op::Increment(key, amount) => {
                *self.counts.entry(key).or_default() += i128::from(amount);
            }
            Op::Delete(key) => {
                self.map.remove(&key);
                self.counts.remove(&key);
            }
            Op::Empty => {
                self.map.clear();
                self.counts.clear();
            }
            Op::Append(value) => self.log.push(value),
            other => panic!("{other:?} is not what a client says"),
        }
    }

    fn of(state: &State) -> Self {
        let (entries, counts) = state.as_map().map_or_else(Default::default, |map| {
            let entries = map.entries().map(|(key, value)| (key.clone(), value.clone()));
            let counts = map.counts().map(|(key, counter)| (key.clone(), counter.value()));
            (entries.collect(), counts.collect())
        });
        Self {
            register: state.as_register().and_then(Register::value).cloned(),
            counter: state.as_counter().map_or(0, Counter::value),
            set: state.as_set().map(|set| set.iter().cloned().collect()).unwrap_or_default(),
            map: entries,
            counts,
            log: state.as_log().map(|log| log.iter().cloned().collect()).unwrap_or_default(),
            item: state.as_item().map(|item| super::item::tests::shown(item.at(0))),
        }
    }
}

#[test]
fn an_insertion_survives_a_removal_that_did_not_see_it() {
    let mut sites = Sites::new(Kind::Set);
    let value = Value::Int(1);
    sites.run(0, &Op::Insert(value.clone()), None);
    sites.deliver(0, 1);
    sites.run(1, &Op::Remove(value.clone()), None);
    sites.run(0, &Op::Insert(value.clone()), None);
    sites.deliver_all();
    for site in &sites.sites {
        assert!(site.state.as_set().expect("a set").contains(&value));
    }
}

#[test]
fn a_reset_leaves_what_it_did_not_see() {
    let mut sites = Sites::new(Kind::Counter);
    sites.run(0, &Op::Add(5), None);
    sites.deliver(0, 1);
    sites.run(1, &Op::Reset, None);
    sites.run(0, &Op::Add(7), None);
    sites.run(0, &Op::Reset, None);
    sites.run(2, &Op::Add(11), None);
    sites.deliver_all();
    for site in &sites.sites {
        assert_eq!(site.state.as_counter().expect("a counter").value(), 11);
    }
}

#[test]
fn who_removes_one_run_of_an_operation_removes_the_operation() {
    let mut sites = Sites::new(Kind::Set);
    let (value, id) = (Value::Int(1), Some(op_id(1)));
    sites.run(0, &Op::Insert(value.clone()), id);
    sites.run(1, &Op::Insert(value.clone()), id);
    sites.deliver(0, 2);
    sites.run(2, &Op::Remove(value.clone()), None);
    sites.deliver_all();
    for site in &sites.sites {
        assert_eq!(site.state.as_set().expect("a set").count(), 0);
    }
}

/// The removal saw one run of the insertion, not the other.
#[test]
fn an_insertion_survives_the_removal_of_a_repeated_one() {
    let mut sites = Sites::new(Kind::Set);
    let (value, id) = (Value::Int(1), Some(op_id(1)));
    sites.run(0, &Op::Insert(value.clone()), id);
    sites.deliver(0, 2);
    sites.run(2, &Op::Remove(value.clone()), None);
    sites.run(1, &Op::Insert(value.clone()), None);
    sites.run(1, &Op::Insert(value.clone()), id);
    sites.deliver_all();
    for site in &sites.sites {
        assert!(site.state.as_set().expect("a set").contains(&value));
    }
}

#[test]
fn siblings_stand_until_a_write_has_seen_them() {
    let mut sites = Sites::new(Kind::Register);
    sites.run(0, &Op::Write(Value::Int(1)), None);
    sites.run(1, &Op::Write(Value::Int(2)), None);
    sites.deliver_all();
    let offered = |sites: &Sites| {
        let register = sites.sites[2].state.as_register().expect("a register");
        register.merged(|values| Value::list(values.iter().copied().cloned()))
    };
    let both = Value::list([Value::Int(1), Value::Int(2)]);
    assert_eq!(offered(&sites), Some(both));
    sites.run(2, &Op::Write(Value::Int(3)), None);
    assert_eq!(offered(&sites), Some(Value::Int(3)));
}

#[test]
fn forgotten_ids_are_new_again() {
    let mut sites = Sites::new(Kind::Counter);
    sites.run(0, &Op::Add(1), Some(op_id(1)));
    sites.run(0, &Op::Add(1), Some(op_id(1)));
    assert_eq!(sites.sites[0].state.as_counter().expect("a counter").value(), 1);
    sites.sites[0].state.forget_ids(|id, _| id.transaction.sequence <= 1);
    sites.run(0, &Op::Add(1), Some(op_id(1)));
    assert_eq!(sites.sites[0].state.as_counter().expect("a counter").value(), 2);
}

/// A snapshot that reaches a transaction's timestamp, but lacks a transaction of a third data
/// center that it had seen, does not contain it.
#[test]
fn who_saw_one_of_several_runs_takes_all_away_even_once_the_id_is_past() {
    let cause = |dc, at: u64, seen: Vector| Cause {
        version: Version { timestamp: Timestamp(at), origin: DcId(dc), index: 0 },
        seen,
    };
    let (first, second) = (cause(0, 10, Vector::ZERO), cause(1, 20, Vector::ZERO));
    let (write, id) = (Op::Write(Value::Int(200)), op_id(1));
    let mut state = State::new(Kind::Register);
    state.apply(&first, &write, Some(&id));
    state.apply(&second, &write, Some(&id));
    // Both are folded, and no more runs can come.
    state.forget_ids(|_, _| true);
    let later = cause(2, 30, Vector::ZERO.with(DcId(1), Timestamp(20)));
    state.apply(&later, &Op::Write(Value::Int(401)), None);
    let register = state.as_register().expect("a register");
    assert_eq!(
        register.siblings().map(|(_, value)| value.clone()).collect::<Vec<_>>(),
        [Value::Int(401)]
    );
    // There is no value under the id any more.
    state.forget_ids(|_, _| true);
    state.apply(&first, &write, Some(&id));
    assert_eq!(state.as_register().expect("a register").siblings().len(), 2);
}

#[test]
fn to_reach_to_a_timestamp_is_not_to_hold_it() {
    let (own, third) = (DcId(0), DcId(1));
    let version = |at| Version { timestamp: Timestamp(at), origin: own, index: 0 };
    let seen = |third_at, own_at| {
        Vector::ZERO.with(third, Timestamp(third_at)).with(own, Timestamp(own_at))
    };
    let insertion = Cause { version: version(40), seen: seen(9, 30) };
    let removal = Cause { version: version(60), seen: seen(5, 50) };
    let value = Value::Int(1);
    for order in [[0, 1], [1, 0]] {
        let mut state = State::new(Kind::Set);
        for step in order {
            match step {
                0 => state.apply(&insertion, &Op::Insert(value.clone()), None),
                _ => state.apply(&removal, &Op::Remove(value.clone()), None),
            }
        }
        assert!(state.as_set().expect("a set").contains(&value), "{order:?}");
    }
}

#[test]
fn changes_are_told_apart_whatever_the_order() {
    let ops = [Op::Insert(Value::Int(1)), Op::Remove(Value::Int(1)), Op::Insert(Value::Int(2))];
    let causes = (0..3).map(|dc| Cause {
        version: Version { timestamp: Timestamp(10), origin: DcId(dc), index: 0 },
        seen: Vector::ZERO,
    });
    let steps: Vec<_> = causes.zip(&ops).collect();
    let mut states = vec![State::new(Kind::Set); 2];
    assert_eq!((states[0].changes(), states[0].removals()), (0, 0));
    let mut seen = vec![0];
    for (cause, op) in &steps {
        states[0].apply(cause, op, None);
        assert!(!seen.contains(&states[0].changes()));
        seen.push(states[0].changes());
    }
    for (cause, op) in steps.iter().rev() {
        states[1].apply(cause, op, None);
    }
    assert_eq!(states[0].changes(), states[1].changes());
    assert_eq!(states[0].removals(), states[1].removals());
    assert_eq!(states[0].removals(), steps[1].0.version.digest());
    let set = states[0].as_set().expect("a set");
    assert_eq!(set.version(&Value::Int(2)), Some(steps[2].0.version));
    assert_eq!(set.version(&Value::Int(3)), None);
}

/// Resets that each know of different runs of one addition agree in every order of arrival.
#[test]
fn resets_that_know_of_other_runs_agree() {
    use Step::{Deliver, Run};
    let (run, named, reset) = (
        |at| Run(at, Op::Add(0), None),
        |at| Run(at, Op::Add(0), Some(5)),
        |at| Run(at, Op::Reset, None),
    );
    let steps = [
        named(0),
        run(0),
        named(1),
        Deliver(1, 2),
        run(0),
        run(0),
        Deliver(1, 0),
        run(1),
        run(1),
        reset(1),
        Deliver(1, 2),
        Deliver(0, 2),
        reset(0),
        Deliver(1, 2),
        reset(2),
    ];
    let mut sites = play(Kind::Counter, &steps);
    sites.deliver_all();
    assert_eq!(sites.sites[0].state, sites.sites[1].state);
    assert_eq!(sites.sites[0].state, sites.sites[2].state);
    let mut all = sites.sent.concat();
    all.sort_by_key(|sent| sent.cause.version);
    let mut state = State::new(Kind::Counter);
    for sent in &all {
        state.apply(&sent.cause, &sent.op, sent.id.as_ref());
    }
    assert_eq!(sites.sites[0].state, state);
}
