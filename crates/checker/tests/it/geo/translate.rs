//! Translation between the store's own types and those of recorded runs.

use std::sync::Arc;

use mingle_checker::geo::{
    Body, Content, Element, Item, ItemKind, ItemOp, Op, OpId, Place, Side, Vector,
};
use mingle_geo::types::item::{self, ItemType};
use mingle_geo::{DcId, Kind, State, Timestamp, Version};
use mingle_model::Value;

pub fn kind(kind: ItemKind) -> Kind {
    match kind {
        ItemKind::Register => Kind::Register,
        ItemKind::Counter => Kind::Counter,
        ItemKind::Set => Kind::Set,
        ItemKind::Map => Kind::Map,
        ItemKind::Log => Kind::Log,
        ItemKind::Item => Kind::Item,
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
        Op::Item(_) => unreachable!("see item_op"),
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
        Kind::Item => unreachable!("see item"),
        Kind::Log => Content::Log(state.as_log().expect("a log").iter().cloned().collect()),
    }
}

fn place(place: &Place) -> item::Place {
    match place.clone() {
        Place::Value => item::Place::Value,
        Place::Field(field) => item::Place::Field(field),
        Place::Score(member) => item::Place::Score(member),
    }
}

/// Returns an operation on an item of any type; `version` is that of an element's push.
pub fn item_op(op: &ItemOp, version: impl Fn(&Element) -> Version) -> mingle_geo::Op {
    mingle_geo::Op::Item(match op.clone() {
        ItemOp::Set(value) => item::ItemOp::Set(value),
        ItemOp::Delete => item::ItemOp::Delete,
        ItemOp::Put(at, value) => item::ItemOp::Put(place(&at), value),
        ItemOp::Add(at, amount) => item::ItemOp::Add(place(&at), amount),
        ItemOp::Drop(at) => item::ItemOp::Drop(place(&at)),
        ItemOp::Insert(value) => item::ItemOp::Insert(value),
        ItemOp::Remove(value) => item::ItemOp::Remove(value),
        ItemOp::Push(Side::Left, value) => item::ItemOp::Push(item::Side::Left, value),
        ItemOp::Push(Side::Right, value) => item::ItemOp::Push(item::Side::Right, value),
        ItemOp::Pull(elements) => item::ItemOp::Pull(elements.iter().map(version).collect()),
        ItemOp::Expire(deadline_us) => item::ItemOp::Expire(deadline_us),
    })
}

/// Returns the content of an item of any type for a reader whose own entry has reached this time.
pub fn item(state: &State, now_us: u64, name: impl Fn(Version) -> Element) -> Content {
    let view = state.as_item().expect("an item").at(now_us);
    let owned = |(key, value): (&Value, Value)| (key.clone(), value);
    let body = view.shown_type().map(|of| match of {
        ItemType::Value => Body::Value(view.value().expect("it shows a value")),
        ItemType::Hash => Body::Hash(view.fields().map(owned).collect()),
        ItemType::SortedSet => Body::SortedSet(view.scores().map(owned).collect()),
        ItemType::Set => Body::Set(view.members().cloned().collect()),
        ItemType::List => {
            let elements = view.elements();
            Body::List(elements.map(|one| (name(one.version), one.value.clone())).collect())
        }
    });
    Content::Item { body, deadline_us: view.deadline_us() }
}

/// Returns the state of an unchanged item.
pub fn nothing(item: Item) -> Arc<State> {
    Arc::new(State::new(kind(item.kind)))
}
