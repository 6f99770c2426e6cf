//! Items of any type ([`ItemKind::Item`](super::ItemKind::Item)): their operations, their contents,
//! and the meaning of the visible operations.
//!
//! The general rule of [`values`](super::values) gives the operations that stand. This module adds
//! time. The time of an operation is that of its transaction's timestamp, and the time of a reader
//! is that of its snapshot's entry of its own data center, or that of the last visible operation on
//! the item, if it is later.
//!
//! - A *fact* is an operation that says when the item expires: at a deadline, or never. `Set` and
//!   `Delete` are facts if the last fact that their transaction sees is a deadline of a life that has
//!   not ended by the highest entry of its snapshot; an `Expire` that comes before one of them in its
//!   transaction is no fact. A `Set` or `Delete` with an operation id is always a fact. Facts are ordered
//!   by version; of several runs of one operation, the lowest visible one is a fact. A fact with a deadline ends the item's life at the deadline, or right after
//!   its own time if the deadline is not later, unless the next fact is older than that end.
//! - An operation older than an end that the reader's time has reached counts no more.
//! - Of the operations that stand and count, the one with the highest version determines the type
//!   that the item shows.
//!
//! The operations of a running transaction come last in all orders. They are later than any
//! deadline, and end no life.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{TransactionId, Value};

use super::history::Content;

/// A cell of an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The item's value.
    Value,
    /// A field of its hash.
    Field(Value),
    /// The score of a member of its sorted set.
    Score(Value),
}

impl Place {
    /// Returns its field or member; none for the item's value.
    fn key(&self) -> Option<&Value> {
        match self {
            Self::Value => None,
            Self::Field(key) | Self::Score(key) => Some(key),
        }
    }

    /// True if both belong to one type.
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The first element.
    Left,
    /// The last element.
    Right,
}

/// An element of a list, named by the operation that pushed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Element {
    /// The transaction that pushed it.
    pub transaction: TransactionId,
    /// The place of the push among the updates of its transaction.
    pub index: usize,
}

/// An operation on an item of any type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemOp {
    /// Removes everything that its transaction sees, of every type; then puts the value. The item
    /// does not expire.
    Set(Value),
    /// Removes everything that its transaction sees, of every type. The item does not expire.
    Delete,
    /// Gives a cell a value, instead of the values and additions that its transaction sees.
    Put(Place, Value),
    /// Adds to a cell.
    Add(Place, i64),
    /// Removes the values and additions of a cell that its transaction sees.
    Drop(Place),
    /// Inserts a member into the set.
    Insert(Value),
    /// Removes the insertions of a member that its transaction sees.
    Remove(Value),
    /// Adds an element at an end of the list.
    Push(Side, Value),
    /// Removes these elements of the list.
    Pull(Vec<Element>),
    /// Lets the item expire at a time of the store's timestamps, in microseconds, or never.
    Expire(Option<u64>),
}

/// The content of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A value.
    Value(Value),
    /// The fields with their values, in the order of the fields.
    Hash(Vec<(Value, Value)>),
    /// The members, in their order.
    Set(Vec<Value>),
    /// The members with their scores, in the order of the members.
    SortedSet(Vec<(Value, Value)>),
    /// The elements with their values, in the order of the list.
    List(Vec<(Element, Value)>),
}

/// An operation that a reader sees.
#[derive(Clone, Debug)]
pub struct Seen<'r> {
    pub op: &'r ItemOp,
    /// The operation itself; for a push, the name of its element.
    pub name: Element,
    /// Its time; `u64::MAX` for an operation of the reader's transaction, which still runs.
    pub time_us: u64,
    /// True if the reader sees an operation that removes it.
    pub is_taken: bool,
    /// True if it says when the item expires.
    pub is_fact: bool,
}

impl ItemOp {
    /// True if it removes any operation.
    pub(super) fn is_taker(&self) -> bool {
        matches!(
            self,
            Self::Set(_)
                | Self::Delete
                | Self::Put(..)
                | Self::Drop(_)
                | Self::Remove(_)
                | Self::Pull(_)
        )
    }

    /// True if it removes an operation that it observes.
    pub(super) fn takes(&self, other: &Self, name: &Element) -> bool {
        match (self, other) {
            (_, Self::Delete | Self::Drop(_) | Self::Remove(_) | Self::Pull(_)) => false,
            (_, Self::Expire(_)) => false,
            (Self::Set(_) | Self::Delete, _) => true,
            (Self::Put(place, _) | Self::Drop(place), _) => other.cell() == Some(place),
            (Self::Remove(member), Self::Insert(other)) => member == other,
            (Self::Pull(elements), Self::Push(..)) => elements.contains(name),
            _ => false,
        }
    }

    /// Returns the cell that has its value or amount.
    fn cell(&self) -> Option<&Place> {
        match self {
            Self::Set(_) => Some(&Place::Value),
            Self::Put(place, _) | Self::Add(place, _) => Some(place),
            _ => None,
        }
    }

    /// Returns the deadline that it sets.
    pub(super) fn deadline_us(&self) -> Option<u64> {
        if let Self::Expire(deadline_us) = self { *deadline_us } else { None }
    }

    /// True if it removes everything, also the deadline.
    pub(super) fn clears(&self) -> bool {
        matches!(self, Self::Set(_) | Self::Delete)
    }

    /// True if it adds something to the content.
    fn is_placed(&self) -> bool {
        self.cell().is_some() || matches!(self, Self::Insert(_) | Self::Push(..))
    }
}

/// Returns the content that these operations have, in the order of versions, for a reader whose own
/// entry has reached this time.
pub fn content(seen: &[Seen<'_>], own_entry_us: u64) -> Content {
    let times = seen.iter().map(|one| one.time_us).filter(|time_us| *time_us < u64::MAX);
    let now_us = times.max().unwrap_or(0).max(own_entry_us);
    let facts =
        seen.iter().filter(|one| one.is_fact).map(|one| (one.time_us, one.op.deadline_us()));
    let facts: Vec<(u64, Option<u64>)> = facts.collect();
    let begin_us = last_end(&facts, now_us);
    let is_left = |one: &&Seen<'_>| one.time_us >= begin_us && !one.is_taken && one.op.is_placed();
    let left: Vec<&Seen<'_>> = seen.iter().filter(is_left).collect();
    let body = left.last().map(|highest| body(highest.op, &left));
    // The last fact belongs to the present life, or to one that is over.
    let deadline_us = facts.last().filter(|(time_us, _)| *time_us >= begin_us);
    let deadline_us = deadline_us.and_then(|(_, deadline_us)| *deadline_us);
    Content::Item { deadline_us: deadline_us.filter(|_| body.is_some()), body }
}

/// True if a life that has a deadline has not ended by this time, by these facts in the order of
/// versions.
pub fn has_deadline(facts: &[(u64, Option<u64>)], now_us: u64) -> bool {
    let begin_us = last_end(facts, now_us);
    facts.last().is_some_and(|(time_us, deadline_us)| *time_us >= begin_us && deadline_us.is_some())
}

/// Returns the last end of a life up to this time; 0 if no life has ended.
fn last_end(facts: &[(u64, Option<u64>)], now_us: u64) -> u64 {
    let mut last_us = 0;
    for (place, (time_us, deadline_us)) in facts.iter().enumerate() {
        let Some(deadline_us) = deadline_us else { continue };
        let end_us = if deadline_us > time_us { *deadline_us } else { time_us.saturating_add(1) };
        let is_late = facts.get(place + 1).is_none_or(|(next_us, _)| *next_us >= end_us);
        if *time_us < u64::MAX && end_us <= now_us && is_late {
            last_us = end_us.max(last_us);
        }
    }
    last_us
}

/// Returns the content of the type that an operation belongs to.
fn body(highest: &ItemOp, left: &[&Seen<'_>]) -> Body {
    let Some(place) = highest.cell() else {
        return if matches!(highest, ItemOp::Push(..)) {
            Body::List(list(left))
        } else {
            set(left)
        };
    };
    let of_type = cells(left).into_iter().filter(|(other, _)| place.is_like(other));
    let mut of_type = of_type.map(|(place, value)| (place.key().cloned(), value)).peekable();
    if let Some((None, value)) = of_type.peek() {
        return Body::Value(value.clone());
    }
    let entries = of_type.filter_map(|(key, value)| Some((key?, value))).collect();
    if matches!(place, Place::Field(_)) { Body::Hash(entries) } else { Body::SortedSet(entries) }
}

/// Returns the values of the cells.
fn cells<'r>(left: &[&Seen<'r>]) -> BTreeMap<&'r Place, Value> {
    let mut parts: BTreeMap<&Place, (Option<&Value>, i128)> = BTreeMap::new();
    for one in left {
        let Some(place) = one.op.cell() else { continue };
        let (base, sum) = parts.entry(place).or_default();
        match one.op {
            // The operations are in the order of versions: the last value is the base.
            ItemOp::Set(value) | ItemOp::Put(_, value) => *base = Some(value),
            ItemOp::Add(_, amount) => *sum += i128::from(*amount),
            _ => {}
        }
    }
    let shown = |(base, sum): (Option<&Value>, i128)| match base {
        Some(Value::Int(base)) => limited(i128::from(*base) + sum),
        Some(base) => base.clone(),
        None => limited(sum),
    };
    parts.into_iter().map(|(place, parts)| (place, shown(parts))).collect()
}

fn set(left: &[&Seen<'_>]) -> Body {
    let members = left.iter().filter_map(|one| match one.op {
        ItemOp::Insert(member) => Some(member.clone()),
        _ => None,
    });
    let members: BTreeSet<Value> = members.collect();
    Body::Set(members.into_iter().collect())
}

/// Returns the nearest integer of 64 bits.
fn limited(sum: i128) -> Value {
    let nearest = if sum < 0 { i64::MIN } else { i64::MAX };
    Value::Int(i64::try_from(sum).unwrap_or(nearest))
}

/// Returns the elements of a list: the last one pushed at the left end is the first.
fn list(left: &[&Seen<'_>]) -> Vec<(Element, Value)> {
    let of = |side: Side| {
        let pushed = left.iter().filter_map(move |one| match one.op {
            ItemOp::Push(at, value) if *at == side => Some((one.name, value.clone())),
            _ => None,
        });
        pushed.collect::<Vec<_>>()
    };
    of(Side::Left).into_iter().rev().chain(of(Side::Right)).collect()
}
