//! Resets whose snapshots lack some transactions that their entries reach.

use mingle_model::{Origin, TransactionId};

use super::*;
use crate::timestamp::{DcId, Timestamp};

fn op_id(number: u32) -> OpId {
    let transaction = TransactionId { origin: Origin(1), sequence: number.into() };
    OpId { transaction, phase: 0, position: 0 }
}

/// A reset takes away only those additions within its snapshot's entries that the snapshot
/// contains.
#[test]
fn a_reset_measures_what_its_snapshot_holds() {
    let own = DcId(0);
    let version = |at| Version { timestamp: Timestamp(at), origin: own, index: 0 };
    let cause = |at| Cause { version: version(at), seen: Vector::ZERO };
    let additions = [(10, 1), (40, 20), (45, 300)];
    let snapshot = Vector::ZERO.with(own, Timestamp(50));
    // The addition at 40 is not in the snapshot.
    let mut held = State::new(Kind::Counter);
    for (at, amount) in [additions[0], additions[2]] {
        held.apply(&cause(at), &Op::Add(amount), None);
    }
    let recent = [
        Recent { version: version(40), op: &Op::Add(20), id: None, is_held: false },
        Recent { version: version(45), op: &Op::Add(300), id: None, is_held: true },
    ];
    let reset = held.measured(&Op::Reset, &snapshot, &recent);
    let mut state = State::new(Kind::Counter);
    for (at, amount) in additions {
        state.apply(&cause(at), &Op::Add(amount), None);
    }
    state.apply(&cause(60), &reset, None);
    // The reset is applied twice, as if two resets had seen the same.
    state.apply(&cause(61), &reset, None);
    let counter = state.as_counter().expect("a counter");
    assert_eq!(counter.value(), 20);
    assert!(counter.is_present());
}

/// Two resets lack the same addition and took away a later one, which was already folded where the
/// second was measured.
#[test]
fn what_is_folded_is_not_taken_away_twice() {
    let own = DcId(0);
    let version = |at| Version { timestamp: Timestamp(at), origin: own, index: 0 };
    let cause = |at| Cause { version: version(at), seen: Vector::ZERO };
    let snapshot = Vector::ZERO.with(own, Timestamp(50));
    let mut held = State::new(Kind::Counter);
    held.apply(&cause(45), &Op::Add(300), None);
    let missing = Recent { version: version(40), op: &Op::Add(20), id: None, is_held: false };
    let folded = Recent { version: version(45), op: &Op::Add(300), id: None, is_held: true };
    let resets = [
        held.measured(&Op::Reset, &snapshot, &[missing, folded]),
        held.measured(&Op::Reset, &snapshot, &[missing]),
    ];
    for order in [[0, 1], [1, 0]] {
        let mut state = held.clone();
        state.apply(&cause(40), &Op::Add(20), None);
        for (at, reset) in order.into_iter().enumerate() {
            state.apply(&cause(60 + at as u64), &resets[reset], None);
        }
        assert_eq!(state.as_counter().expect("a counter").value(), 20, "{order:?}");
    }
}

/// A run that saw an earlier run adds nothing, so a reset takes nothing of it away. Another reset
/// that saw the first run alone agrees.
#[test]
fn a_reset_takes_a_repeated_addition_away_once() {
    let (own, third, id) = (DcId(1), DcId(0), op_id(1));
    let version = |at| Version { timestamp: Timestamp(at), origin: own, index: 0 };
    let seen = |at| Vector::ZERO.with(own, Timestamp(at));
    let add = Op::Add(100);
    let runs = [(2, seen(0)), (8, seen(7).with(third, Timestamp(6)))];
    let runs = runs.map(|(at, seen)| Cause { version: version(at), seen });
    let missing = Recent { version: version(5), op: &Op::Add(5), id: None, is_held: false };
    let recent =
        |cause: &Cause| Recent { version: cause.version, op: &add, id: Some(&id), is_held: true };
    let mut resets = Vec::new();
    for (held, at) in [(&runs[..], 11), (&runs[..1], 5)] {
        let mut state = State::new(Kind::Counter);
        let mut recents = vec![missing];
        for cause in held {
            state.apply(cause, &add, Some(&id));
            recents.push(recent(cause));
        }
        let snapshot = seen(10).with(third, Timestamp(at));
        let reset = state.measured(&Op::Reset, &snapshot, &recents);
        let version = Version { timestamp: Timestamp(at + 9), origin: third, index: 0 };
        resets.push((Cause { version, seen: snapshot }, reset));
    }
    let mut state = State::new(Kind::Counter);
    for cause in &runs {
        state.apply(cause, &add, Some(&id));
    }
    state.apply(&Cause { version: version(5), seen: seen(4) }, &Op::Add(5), None);
    for (cause, reset) in &resets {
        state.apply(cause, reset, None);
    }
    assert_eq!(state.as_counter().expect("a counter").value(), 5);
}

/// An earlier reset lacked two additions, one of them negative, and the snapshot of the running
/// reset contains that one: on its own snapshot it leaves nothing, even if the earlier reset still
/// lacks the other addition.
#[test]
fn an_own_reset_leaves_nothing_of_its_snapshot() {
    let own = DcId(0);
    let version = |at| Version { timestamp: Timestamp(at), origin: own, index: 0 };
    let cause = |at| Cause { version: version(at), seen: Vector::ZERO };
    let snapshot = Vector::ZERO.with(own, Timestamp(50));
    let mut state = State::new(Kind::Counter);
    state.apply(&cause(10), &Op::Add(4), None);
    let missing = [(20, Op::Add(-1)), (30, Op::Add(9))];
    let recent = missing.each_ref().map(|(at, op)| Recent {
        version: version(*at),
        op,
        id: None,
        is_held: false,
    });
    let reset = state.measured(&Op::Reset, &snapshot, &recent);
    state.apply(&cause(20), &missing[0].1, None);
    state.apply(&cause(60), &reset, None);
    assert_eq!(state.as_counter().expect("a counter").value(), -1);
    state.apply_own(&cause(u64::MAX), &Op::Reset, None);
    assert_eq!(state.as_counter().expect("a counter").value(), 0);
}
