//! The items that a strong transaction uses; conflicts between transactions are derived from them.
//!
//! An item may be a whole collection, but its elements are used one by one. So an item is used as a
//! whole or in part, and a transaction that uses a part names the element too. Additions to a
//! counter and lines of a log are parts without a name: they do not conflict with each other, since
//! certification puts them in an order that all replicas follow. A transaction that lists the names
//! of items uses the list as a whole; one that adds or removes items uses a part of the list.

use std::collections::BTreeMap;

use mingle_geo::certify::{Access, Touch};
use mingle_geo::{Key, Op, Update};
use mingle_model::Value;
use mingle_store::Read;

use super::name;

/// The way in which a transaction uses an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// A part of it is read.
    ReadPart,
    /// A part of it is written.
    WritePart,
    /// All of it is read.
    Read,
    /// All of it is written, or read as a whole and written in part.
    Write,
}

impl Use {
    fn join(self, other: Self) -> Self {
        match (self.min(other), self.max(other)) {
            (Self::WritePart, Self::Read) => Self::Write,
            (_, more) => more,
        }
    }

    /// The pairs of uses of one item that conflict.
    pub const CONFLICTS: [(Self, Self); 5] = [
        (Self::Write, Self::Write),
        (Self::Write, Self::WritePart),
        (Self::Write, Self::Read),
        (Self::Write, Self::ReadPart),
        (Self::WritePart, Self::Read),
    ];

    /// Returns the label that certification knows this use by.
    pub fn label(self) -> &'static str {
        match self {
            Self::ReadPart => "read part",
            Self::WritePart => "write part",
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// Returns the access of this use: write for the writing uses, read for the others.
    pub fn access(self) -> Access {
        match self {
            Self::ReadPart | Self::Read => Access::Read,
            Self::WritePart | Self::Write => Access::Write,
        }
    }
}

/// All items that a transaction uses, each with its use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses(BTreeMap<Key, Use>);

impl Uses {
    /// True if no item is used.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a use of an item; two uses of the same item are joined.
    pub fn add(&mut self, key: Key, how: Use) {
        self.0.entry(key).and_modify(|before| *before = before.join(how)).or_insert(how);
    }

    /// Adds the uses of a read of this item.
    pub fn read(&mut self, read: &Read, item: &Key) {
        match read {
            Read::Contains(_, element) | Read::Entry(_, element) => {
                self.add(item.clone(), Use::ReadPart);
                self.add(name::element(item, element), Use::Read);
            }
            _ => self.add(item.clone(), Use::Read),
        }
    }

    /// Adds the uses of these updates.
    pub fn write(&mut self, updates: &[Update]) {
        for Update { key, op, .. } in updates {
            match op {
                Op::Insert(element)
                | Op::Remove(element)
                | Op::Put(element, _)
                | Op::Delete(element) => self.write_part(key, element),
                Op::Add(_) | Op::Append(_) => self.add(key.clone(), Use::WritePart),
                _ => self.add(key.clone(), Use::Write),
            }
            if let Some(list) = name::list_of(key) {
                self.add(list, Use::WritePart);
            }
        }
    }

    fn write_part(&mut self, key: &Key, element: &Value) {
        self.add(key.clone(), Use::WritePart);
        self.add(name::element(key, element), Use::Write);
    }

    /// Returns each item with its use.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Use)> {
        self.0.iter()
    }

    /// Returns each item with its use, by value.
    pub fn into_items(self) -> impl Iterator<Item = (Key, Use)> {
        self.0.into_iter()
    }

    /// Returns all uses as touches for certification.
    pub fn touches(self) -> Vec<Touch> {
        let touch = |(key, how): (Key, Use)| Touch {
            key,
            access: how.access(),
            label: Some(how.label().into()),
        };
        self.0.into_iter().map(touch).collect()
    }
}

#[cfg(test)]
mod tests {
    use mingle_geo::Kind;

    use super::*;
    use crate::geo::relation::conflicts;

    fn uses(how: &[(&str, Use)]) -> Uses {
        let mut uses = Uses::default();
        for (name, how) in how {
            uses.add(Key::new(Kind::Set, name), *how);
        }
        uses
    }

    fn conflict(one: &[(&str, Use)], other: &[(&str, Use)]) -> bool {
        let (conflicts, other) = (conflicts(), uses(other).touches());
        let mut one = uses(one).touches().into_iter();
        one.any(|one| other.iter().any(|other| conflicts.between(&one, other)))
    }

    #[test]
    fn parts_conflict_with_the_whole_and_not_with_each_other() {
        use Use::{Read, ReadPart, Write, WritePart};
        let all = [ReadPart, WritePart, Read, Write];
        for (one, expected) in [
            (ReadPart, [false, false, false, true]),
            (WritePart, [false, false, true, true]),
            (Read, [false, true, false, true]),
            (Write, [true, true, true, true]),
        ] {
            assert_eq!(all.map(|other| conflict(&[("a", one)], &[("a", other)])), expected);
            assert!(all.iter().all(|other| !conflict(&[("a", one)], &[("b", *other)])));
        }
    }

    /// Two joined uses conflict with every use that either of them conflicts with.
    #[test]
    fn what_is_used_twice_is_used_in_both_ways() {
        let all = [Use::ReadPart, Use::WritePart, Use::Read, Use::Write];
        for one in all {
            for other in all {
                for third in all {
                    let either = conflict(&[("a", one)], &[("a", third)])
                        || conflict(&[("a", other)], &[("a", third)]);
                    let both = conflict(&[("a", one), ("a", other)], &[("a", third)]);
                    assert!(both || !either, "{one:?} and {other:?} beside {third:?}");
                }
            }
        }
    }
}
