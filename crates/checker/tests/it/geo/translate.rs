//! Translation between the store's own types and those of recorded runs.

use std::sync::Arc;

use mingle_checker::geo::{Content, Item, ItemKind, Op, OpId, Vector};
use mingle_geo::{DcId, Kind, State, Timestamp};

pub fn kind(kind: ItemKind) -> Kind {
    match kind {
        ItemKind::Register => Kind::Register,
        ItemKind::Counter => Kind::Counter,
        ItemKind::Set => Kind::Set,
        ItemKind::Map => Kind::Map,
        ItemKind::Log => Kind::Log,
    }
}

pub fn vector(vector: &Vector) -> mingle_geo::Vector {
    let entries = vector.iter();
    entries.fold(mingle_geo::Vector::ZERO, |all, (dc, at)| all.with(DcId(dc), Timestamp(at)))
}

pub fn op(op: &Op) -> mingle_geo::Op {
    match op.clone() {
        Op::Write(value) => mingle_geo::Op::Write(value),
        Op::Erase => mingle_geo::Op::Erase,
        Op::Add(amount) => mingle_geo::Op::Add(amount),
        Op::Reset => mingle_geo::Op::Reset,
        Op::Insert(value) => mingle_geo::Op::Insert(value),
        Op::Remove(value) => mingle_geo::Op::Remove(value),
        Op::Clear => mingle_geo::Op::Clear,
        Op::Put(key, value) => mingle_geo::Op::Put(key, value),
        Op::Increment(key, amount) => mingle_geo::Op::Increment(key, amount),
        Op::Delete(key) => mingle_geo::Op::Delete(key),
        Op::Empty => mingle_geo::Op::Empty,
        Op::Append(value) => mingle_geo::Op::Append(value),
    }
}

pub fn id(id: &OpId) -> mingle_geo::OpId {
    let OpId { transaction, phase, position } = *id;
    mingle_geo::OpId { transaction, phase, position }
}

/// Returns the content of a state.
pub fn content(state: &State) -> Content {
    let cloned =
        |(one, other): (&mingle_model::Value, &mingle_model::Value)| (one.clone(), other.clone());
    match state.kind() {
        Kind::Register => {
            let register = state.as_register().expect("a register");
            Content::Register(register.siblings().map(|(_, value)| value.clone()).collect())
        }
        Kind::Counter => Content::Counter(state.as_counter().expect("a counter").value()),
        Kind::Set => Content::Set(state.as_set().expect("a set").iter().cloned().collect()),
        Kind::Map => {
            let map = state.as_map().expect("a map");
            let counts = map.counts().map(|(key, counter)| (key.clone(), counter.value()));
            Content::Map { entries: map.entries().map(cloned).collect(), counts: counts.collect() }
        }
        Kind::Item => unreachable!("no history has an item"),
        Kind::Log => Content::Log(state.as_log().expect("a log").iter().cloned().collect()),
    }
}

/// Returns the state of an unchanged item.
pub fn nothing(item: Item) -> Arc<State> {
    Arc::new(State::new(kind(item.kind)))
}
