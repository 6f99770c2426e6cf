//! Operations with ids: of several runs one counts, for each operation of each type.

use mingle_model::{Origin, TransactionId};

use super::*;

/// Returns the operation with this number, the same at every site.
pub(in crate::types) fn identified(number: u32) -> ItemOp {
    let (field, amount) = (Value::Int((number % 2).into()), i64::from(number) + 1);
    match number % 8 {
        0 => ItemOp::Add(Place::Value, amount),
        1 => ItemOp::Push(Side::Left, Value::Int(number.into())),
        2 => ItemOp::Insert(field),
        3 => ItemOp::Expire(Some(30)),
        4 => ItemOp::Put(Place::Field(field), Value::Int(number.into())),
        5 => ItemOp::Add(Place::Score(field), amount),
        6 => ItemOp::Set(Value::Int(number.into())),
        _ => ItemOp::Push(Side::Right, Value::Int(number.into())),
    }
}

/// Returns the id of this number.
pub fn id(number: u32) -> OpId {
    let transaction = TransactionId { origin: Origin(1), sequence: number.into() };
    OpId { transaction, phase: 0, position: 0 }
}

/// The operations that add something to an item, with what the item shows after one run.
fn additions() -> Vec<(ItemOp, &'static str)> {
    vec![
        (ItemOp::Add(Place::Value, 3), "Some(Value) Some(Int(3)) [] [] [] [] None"),
        (ItemOp::Set(int(5)), "Some(Value) Some(Int(5)) [] [] [] [] None"),
        (ItemOp::Add(Place::Field(int(1)), 3), "Some(Hash) None [(Int(1), Int(3))] [] [] [] None"),
        (
            ItemOp::Put(Place::Score(int(1)), int(2)),
            "Some(SortedSet) None [] [(Int(1), Int(2))] [] [] None",
        ),
        (ItemOp::Insert(int(1)), "Some(Set) None [] [] [Int(1)] [] None"),
        (ItemOp::Push(Side::Left, int(1)), "Some(List) None [] [] [] [Int(1)] None"),
        (ItemOp::Push(Side::Right, int(1)), "Some(List) None [] [] [] [Int(1)] None"),
    ]
}

#[test]
fn two_runs_beside_each_other_count_once_and_so_do_later_ones() {
    for (op, expected) in additions() {
        for first in 0..2 {
            let mut world = World::new();
            world.run_once(first, 10, op.clone(), id(1));
            world.run_once(1 - first, 20, op.clone(), id(1));
            assert_eq!(world.seen(30, shown), expected, "{op:?}");
            world.run_once(2, 40, op.clone(), id(1));
            assert_eq!(world.seen(50, shown), expected, "{op:?}");
            // Another id is another operation.
            world.run_once(2, 60, op.clone(), id(2));
            let is_same = matches!(op, ItemOp::Set(_) | ItemOp::Put(..) | ItemOp::Insert(_));
            assert_eq!(world.seen(70, shown) == expected, is_same, "{op:?}");
        }
    }
}

/// The removal saw one of the runs, the first or the second; or both of them.
#[test]
fn a_removal_that_saw_a_run_takes_the_operation_away_for_good() {
    for (op, _) in additions() {
        for saw in [[true, false], [false, true], [true, true]] {
            let mut world = World::new();
            world.run_once(0, 10, op.clone(), id(1));
            world.run_once(1, 20, op.clone(), id(1));
            let sent = world.sent.clone();
            world.sent =
                sent.iter().zip(saw).filter(|(_, saw)| *saw).map(|(it, _)| it.clone()).collect();
            world.deliver(2);
            world.run(2, 30, ItemOp::Delete);
            let removal = world.sent.pop().expect("it ran");
            world.sent = sent;
            let partly = world.clone();
            // All that is there is delivered in both orders: the runs first, and the removal first.
            for removal_first in [false, true] {
                let mut world = partly.clone();
                if !removal_first {
                    (0..2).for_each(|to| world.deliver(to));
                }
                let (cause, op, id) = &removal;
                let sites = &mut world.sites[..2];
                for (at, (state, seen)) in sites.iter_mut().enumerate() {
                    // A removal comes after all that it saw.
                    if removal_first && saw[1 - at] {
                        continue;
                    }
                    state.apply(cause, op, id.as_ref());
                    seen[DcId(2)] = cause.version.timestamp;
                }
                world.sent.push(removal.clone());
                assert!(!world.seen(40, |view| view.exists()), "{op:?} {saw:?} {removal_first}");
            }
        }
    }
}

#[test]
fn an_element_is_removed_by_the_version_of_any_run() {
    for (puller, removed) in [(0, 10), (1, 20)] {
        let mut world = World::new();
        for (at, time_us) in [(0, 10), (1, 20)] {
            world.run_once(at, time_us, ItemOp::Push(Side::Right, text("e")), id(1));
        }
        let known = |view: View<'_>| view.elements().next().map(|element| element.version);
        let state = &world.sites[usize::from(puller)].0;
        let version = known(state.as_item().expect("an item").at(25)).expect("it is there");
        assert_eq!(version.timestamp.micros(), removed);
        world.run(puller, 30, ItemOp::Pull(vec![version]));
        assert_eq!(world.seen(40, known), None, "{puller}");
        // A removal under an id that has not seen the element leaves it.
        let other = world.run(0, 50, ItemOp::Push(Side::Right, text("f")));
        world.run_once(1, 51, ItemOp::Pull(vec![other]), id(2));
        assert_eq!(world.seen(60, known), Some(other));
    }
}

#[test]
fn a_deadline_that_is_set_again_under_its_id_is_set_once() {
    let mut world = World::new();
    world.run(0, 5, ItemOp::Set(int(1)));
    world.deliver_all();
    world.run_once(0, 10, ItemOp::Expire(Some(100)), id(1));
    world.deliver(2);
    // It does not expire any more, says an operation that saw the first run.
    world.run(2, 20, ItemOp::Expire(None));
    world.run_once(1, 30, ItemOp::Expire(Some(100)), id(1));
    assert_eq!(world.seen(200, |view| (view.exists(), view.deadline_us())), (true, None));
    // A value, too, clears a deadline once.
    world.run_once(0, 210, ItemOp::Set(int(2)), id(2));
    world.deliver(2);
    world.run(2, 220, ItemOp::Expire(Some(300)));
    world.run_once(1, 230, ItemOp::Set(int(2)), id(2));
    assert_eq!(world.seen(250, |view| view.deadline_us()), Some(300));
}

/// The lower run moves an addition into the life before.
#[test]
fn the_lowest_run_decides_the_life() {
    let mut world = World::new();
    world.run(0, 10, ItemOp::Insert(text("m")));
    world.run(0, 11, ItemOp::Expire(Some(50)));
    world.deliver_all();
    world.run_once(1, 60, ItemOp::Add(Place::Value, 1), id(1));
    let late = world.clone();
    assert_eq!(world.seen(70, |view| view.value()), Some(int(1)));
    let mut world = late;
    world.run_once(0, 40, ItemOp::Add(Place::Value, 1), id(1));
    assert_eq!(world.seen(70, |view| view.value()), None);
}
