//! Operations and their ids.

use mingle_model::{TransactionId, Value};
use serde::{Deserialize, Serialize};

use super::item::ItemOp;
use super::{Kind, Removal};
use crate::key::Key;

/// The id of one operation, the same for every process that runs it and every run (`by-id` of
/// Mingle's later phases).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OpId {
    /// The transaction that the operation belongs to.
    pub transaction: TransactionId,
    /// Its phase.
    pub phase: u32,
    /// Its index in the phase.
    pub position: u32,
}

/// An operation that changes a data item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Sets a register.
    Write(Value),
    /// Empties a register.
    Erase,
    /// Adds to a counter.
    Add(i64),
    /// Sets a counter to 0, as far as its snapshot saw it.
    Reset,
    /// The replicated form of [`Op::Reset`].
    ResetSeen(Removal),
    /// Puts a value into a set.
    Insert(Value),
    /// Takes a value out of a set.
    Remove(Value),
    /// Empties a set or a log.
    Clear,
    /// Sets the value of a map's key.
    Put(Value, Value),
    /// Adds to the counter of a map's key.
    Increment(Value, i64),
    /// Removes the value and the counter of a map's key.
    Delete(Value),
    /// The replicated form of [`Op::Delete`] for a key that has a counter.
    DeleteSeen(Value, Removal),
    /// Empties a map.
    Empty,
    /// The replicated form of [`Op::Empty`] for a map that has counters.
    EmptySeen(Vec<(Value, Removal)>),
    /// Adds a line to a log.
    Append(Value),
    /// No effect: a later operation of the same transaction took this one back.
    Nothing,
    /// Changes an item of [`Kind::Item`].
    Item(ItemOp),
}

impl Op {
    /// True if the operation changes items of this type; [`Op::Clear`] and [`Op::Nothing`] fit
    /// several.
    pub fn fits(&self, kind: Kind) -> bool {
        match self {
            Self::Write(_) | Self::Erase => kind == Kind::Register,
            Self::Add(_) | Self::Reset | Self::ResetSeen(_) => kind == Kind::Counter,
            Self::Insert(_) | Self::Remove(_) => kind == Kind::Set,
            Self::Clear => matches!(kind, Kind::Set | Kind::Log),
            Self::Put(..) | Self::Increment(..) | Self::Delete(_) | Self::DeleteSeen(..) => {
                kind == Kind::Map
            }
            Self::Empty | Self::EmptySeen(_) => kind == Kind::Map,
            Self::Append(_) => kind == Kind::Log,
            Self::Nothing => true,
            Self::Item(_) => kind == Kind::Item,
        }
    }

    /// True if it removes other transactions' values without replacing them.
    pub fn takes_away(&self) -> bool {
        if let Self::Item(op) = self {
            return op.takes_away();
        }
        !matches!(
            self,
            Self::Write(_)
                | Self::Add(_)
                | Self::Insert(_)
                | Self::Put(..)
                | Self::Increment(..)
                | Self::Append(_)
                | Self::Nothing
        )
    }

    /// True if it takes away part of a sum, which has to be measured where it commits.
    pub fn measures(&self) -> bool {
        match self {
            Self::Item(op) => op.measures(),
            _ => matches!(self, Self::Reset | Self::Delete(_) | Self::Empty),
        }
    }

    /// True if clients must not send it, because only replicas create it from other operations.
    pub fn is_measured(&self) -> bool {
        if let Self::Item(op) = self {
            return op.is_measured();
        }
        matches!(
            self,
            Self::ResetSeen(_) | Self::DeleteSeen(..) | Self::EmptySeen(_) | Self::Nothing
        )
    }

    /// True if this removal takes back `earlier`, an addition to a sum by its own transaction,
    /// which no snapshot contains.
    pub fn takes_back(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (Self::Reset | Self::ResetSeen(_), Self::Add(_))
            | (Self::Empty | Self::EmptySeen(_), Self::Increment(..)) => true,
            (Self::Delete(key) | Self::DeleteSeen(key, _), Self::Increment(other, _)) => {
                key == other
            }
            (Self::Item(op), Self::Item(earlier)) => op.takes_back(earlier),
            _ => false,
        }
    }

    /// Returns a rough count of its bytes of memory.
    pub fn weight(&self) -> usize {
        let inner = match self {
            Self::Write(value) | Self::Insert(value) | Self::Remove(value) => value.weight(),
            Self::Append(value) | Self::Increment(value, _) | Self::Delete(value) => value.weight(),
            Self::DeleteSeen(value, _) => value.weight(),
            Self::Put(key, value) => key.weight() + value.weight(),
            Self::EmptySeen(keys) => keys.iter().map(|(key, _)| key.weight()).sum(),
            Self::Item(op) => op.weight(),
            _ => 0,
        };
        size_of::<Self>() + inner
    }
}

/// One operation on one data item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// The item.
    pub key: Key,
    /// The operation.
    pub op: Op,
    /// Its id, if other transactions may run it too.
    pub id: Option<OpId>,
}

impl Update {
    /// True if a client may send it: the operation fits the item, and no replica has measured it.
    pub fn is_sound(&self) -> bool {
        self.op.fits(self.key.kind) && !self.op.is_measured()
    }
}
