//! Items of recorded runs, their operations and their contents.

use std::fmt;

use mingle_model::{TransactionId, Value};

use super::any::{Body, ItemOp};
use super::problem::Short;

/// The type of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    /// One value; the last writer's is visible, and a merge gets the values in conflict with it.
    Register,
    /// A sum.
    Counter,
    /// Distinct values; insertions win.
    Set,
    /// Registers and counters by key.
    Map,
    /// Lines in the order of versions.
    Log,
    /// Any of several types, the last that it was given; see [`ItemOp`].
    Item,
}

/// A data item. Its type is part of its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item {
    /// Its type.
    pub kind: ItemKind,
    /// Its number; two items of different types may share it.
    pub key: u64,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ItemKind::Register => "register",
            ItemKind::Counter => "counter",
            ItemKind::Set => "set",
            ItemKind::Map => "map",
            ItemKind::Log => "log",
            ItemKind::Item => "item",
        };
        write!(f, "{kind} {}", self.key)
    }
}

/// The id of one operation, the same for every run by every process: of several runs, one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId {
    /// The transaction that the operation belongs to.
    pub transaction: TransactionId,
    /// Its phase.
    pub phase: u32,
    /// Its place in the phase.
    pub position: u32,
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transaction, phase, position } = self;
        write!(f, "{}/{phase}/{position}", Short(transaction))
    }
}

/// An operation that changes an item, as a client requests it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sets a register.
    Write(Value),
    /// Empties a register.
    Erase,
    /// Adds to a counter.
    Add(i64),
    /// Removes all additions to a counter that its transaction sees.
    Reset,
    /// Inserts a value into a set.
    Insert(Value),
    /// Removes a value from a set.
    Remove(Value),
    /// Removes all that its transaction sees of a set or log.
    Clear,
    /// Sets the value of a map's key.
    Put(Value, Value),
    /// Adds to the counter of a map's key.
    Increment(Value, i64),
    /// Removes the value and the counter of a map's key.
    Delete(Value),
    /// Removes all that its transaction sees of a map.
    Empty,
    /// Adds a line to a log.
    Append(Value),
    /// Changes an item of any type.
    Item(ItemOp),
}

impl Op {
    /// True if it changes items of this type.
    pub fn fits(&self, kind: ItemKind) -> bool {
        match self {
            Self::Write(_) | Self::Erase => kind == ItemKind::Register,
            Self::Add(_) | Self::Reset => kind == ItemKind::Counter,
            Self::Insert(_) | Self::Remove(_) => kind == ItemKind::Set,
            Self::Clear => matches!(kind, ItemKind::Set | ItemKind::Log),
            Self::Put(..) | Self::Increment(..) | Self::Delete(_) | Self::Empty => {
                kind == ItemKind::Map
            }
            Self::Append(_) => kind == ItemKind::Log,
            Self::Item(_) => kind == ItemKind::Item,
        }
    }
}

/// The content of an item as found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The concurrent values, in the order of their versions: the last one is visible, and a merge
    /// gets them all if there are several. Empty if the register has no value.
    Register(Vec<Value>),
    /// The sum.
    Counter(i128),
    /// The values, in their order.
    Set(Vec<Value>),
    /// A map.
    Map {
        /// The keys that have a value, each with the last writer's value, in order of keys.
        entries: Vec<(Value, Value)>,
        /// The keys that have a counter, each with its sum, in order of keys.
        counts: Vec<(Value, i128)>,
    },
    /// The lines, in their order.
    Log(Vec<Value>),
    /// An item of any type.
    Item {
        /// The content, of the type that it shows; none if it does not exist.
        body: Option<Body>,
        /// Its deadline, in microseconds of the store's timestamps; none if it does not exist or does
        /// not expire.
        deadline_us: Option<u64>,
    },
}
