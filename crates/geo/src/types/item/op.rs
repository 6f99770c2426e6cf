//! Operations on items.

use mingle_model::Value;
use serde::{Deserialize, Serialize};

use super::sum::Removal;
use crate::timestamp::Version;

/// A cell of an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Place {
    /// The item's value.
    Value,
    /// A field of its hash.
    Field(Value),
    /// The score of a member of its sorted set.
    Score(Value),
}

impl Place {
    fn weight(&self) -> usize {
        match self {
            Self::Value => 0,
            Self::Field(key) | Self::Score(key) => key.weight(),
        }
    }
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Side {
    /// The first element.
    Left,
    /// The last element.
    Right,
}

/// The parts of an item that an operation removes, and that are measured where it commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleared {
    /// The additions, by cell.
    pub added: Vec<(Place, Removal)>,
    /// True if the snapshot shows a deadline.
    pub has_deadline: bool,
}

/// An operation on an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ItemOp {
    /// Removes everything that its snapshot held, of every type, and the deadline; then puts the
    /// value.
    Set(Value),
    /// Removes everything that its snapshot held, of every type, and the deadline.
    Delete,
    /// Gives a cell this value, instead of the values and additions that its snapshot held.
    Put(Place, Value),
    /// Adds to a cell.
    Add(Place, i64),
    /// Removes the values and additions of a cell that its snapshot held.
    Drop(Place),
    /// Inserts a member into the set.
    Insert(Value),
    /// Removes a member from the set, as far as its snapshot held it.
    Remove(Value),
    /// Adds an element at an end of the list.
    Push(Side, Value),
    /// Removes these elements of the list; see [`Element`](super::Element).
    Pull(Vec<Version>),
    /// Lets the item expire at this time, in microseconds since 1970, or never.
    Expire(Option<u64>),
    /// The replicated form of [`Set`](Self::Set) for an item with additions or a deadline.
    SetSeen(Value, Cleared),
    /// The replicated form of [`Delete`](Self::Delete) for an item with additions or a deadline.
    DeleteSeen(Cleared),
    /// The replicated form of [`Put`](Self::Put) for a cell with additions.
    PutSeen(Place, Value, Removal),
    /// The replicated form of [`Drop`](Self::Drop) for a cell with additions.
    DropSeen(Place, Removal),
}

impl ItemOp {
    /// True if it removes other transactions' values without replacing them.
    pub(in crate::types) fn takes_away(&self) -> bool {
        matches!(
            self,
            Self::Delete
                | Self::DeleteSeen(_)
                | Self::Drop(_)
                | Self::DropSeen(..)
                | Self::Remove(_)
                | Self::Pull(_)
                | Self::Expire(_)
        )
    }

    /// True if it takes away part of a sum, which has to be measured where it commits.
    pub(in crate::types) fn measures(&self) -> bool {
        matches!(self, Self::Set(_) | Self::Delete | Self::Put(..) | Self::Drop(_))
    }

    /// True if only replicas create it, from other operations.
    pub(in crate::types) fn is_measured(&self) -> bool {
        matches!(
            self,
            Self::SetSeen(..) | Self::DeleteSeen(_) | Self::PutSeen(..) | Self::DropSeen(..)
        )
    }

    /// True if it takes back `earlier`, an addition or a deadline of its own transaction.
    pub(in crate::types) fn takes_back(&self, earlier: &Self) -> bool {
        let clears =
            matches!(self, Self::Set(_) | Self::Delete | Self::SetSeen(..) | Self::DeleteSeen(_));
        let Self::Add(of, _) = earlier else {
            return clears && matches!(earlier, Self::Expire(_));
        };
        match self {
            _ if clears => true,
            Self::Put(place, _)
            | Self::Drop(place)
            | Self::PutSeen(place, ..)
            | Self::DropSeen(place, _) => place == of,
            _ => false,
        }
    }

    /// Returns a rough count of the bytes of memory that it points to.
    pub(in crate::types) fn weight(&self) -> usize {
        match self {
            Self::Set(value) | Self::Insert(value) | Self::Remove(value) | Self::Push(_, value) => {
                value.weight()
            }
            Self::Put(place, value) => place.weight() + value.weight(),
            Self::Add(place, _) | Self::Drop(place) => place.weight(),
            Self::Pull(elements) => size_of_val(elements.as_slice()),
            Self::SetSeen(value, cleared) => value.weight() + weight(&cleared.added),
            Self::DeleteSeen(cleared) => weight(&cleared.added),
            Self::PutSeen(place, value, removal) => {
                place.weight() + value.weight() + removal.weight()
            }
            Self::DropSeen(place, removal) => place.weight() + removal.weight(),
            Self::Delete | Self::Expire(_) => 0,
        }
    }
}

fn weight(removals: &[(Place, Removal)]) -> usize {
    let weights = removals
        .iter()
        .map(|(place, removal)| size_of::<(Place, Removal)>() + place.weight() + removal.weight());
    weights.sum()
}
