//! What a strong transaction uses, by which it conflicts with others.
//!
//! An item may be a whole collection, but elements of it are used one by one: so an item is used as a
//! whole or in part, and whoever uses a part names the element too. Additions to a counter and lines
//! of a log are parts that nobody names: they do not conflict with each other, since certification
//! puts them in an order that all replicas follow. Whoever lists the names of items uses the list as a
//! whole, and whoever adds to them or takes away uses a part of it.

use std::collections::BTreeMap;

use mingle_geo::certify::{Access, Touch};
use mingle_geo::{Key, Op, Update};
use mingle_model::Value;
use mingle_store::Read;

use super::name;

/// How an item is used.
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

    /// Which two uses of one item conflict.
    pub const CONFLICTS: [(Self, Self); 5] = [
        (Self::Write, Self::Write),
        (Self::Write, Self::WritePart),
        (Self::Write, Self::Read),
        (Self::Write, Self::ReadPart),
        (Self::WritePart, Self::Read),
    ];

    /// What certification knows it by.
    pub fn label(self) -> &'static str {
        match self {
            Self::ReadPart => "read part",
            Self::WritePart => "write part",
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// Whether it writes.
    pub fn access(self) -> Access {
        match self {
            Self::ReadPart | Self::Read => Access::Read,
            Self::WritePart | Self::Write => Access::Write,
        }
    }
}

/// All that a transaction uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses(BTreeMap<Key, Use>);

impl Uses {
    /// Whether it uses nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// It uses this item too.
    pub fn add(&mut self, key: Key, how: Use) {
        self.0.entry(key).and_modify(|before| *before = before.join(how)).or_insert(how);
    }

    /// What a read of this item looks at.
    pub fn read(&mut self, read: &Read, item: &Key) {
        match read {
            Read::Contains(_, element) | Read::Entry(_, element) => {
                self.add(item.clone(), Use::ReadPart);
                self.add(name::element(item, element), Use::Read);
            }
            _ => self.add(item.clone(), Use::Read),
        }
    }

    /// What these operations change.
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

    /// Each item, and how it is used.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Use)> {
        self.0.iter()
    }

    /// The same, taken apart.
    pub fn into_items(self) -> impl Iterator<Item = (Key, Use)> {
        self.0.into_iter()
    }

    /// All of it, for certification.
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

    /// Two uses together are in the way of whatever either of them is in the way of.
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
