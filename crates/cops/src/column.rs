//! Eiger's data model: rows with columns in families (thesis §5.1 and §5.2).
//!
//! ```text
//!   key ─┬─ Standard(0) ─┬─ column 1 ─ 42
//!        │               └─ column 2 ─ tombstone
//!        └─ Counter(1)  ─── column 1 ─ 7, the sum of +1, +2 and +4
//! ```
//!
//! All columns of a key have one server. A column that was never written is absent, which is an answer
//! to a read as much as a value is.

use std::fmt;

use crate::clock::Timestamp;
use crate::deps::Dep;

/// A column family: a set of columns of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Columns that an insert overwrites.
    Standard(u8),
    /// Columns that additions change.
    Counter(u8),
}

/// A column: a name, within a super column if that is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Column {
    /// The super column; 0 if there is none.
    pub super_column: u32,
    /// The name.
    pub name: u32,
}

impl Column {
    /// Creates a column outside of super columns.
    pub fn named(name: u32) -> Self {
        Self { super_column: 0, name }
    }
}

/// A location: the compound key of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The key of the row.
    pub key: u32,
    /// The column family.
    pub family: Family,
    /// The column.
    pub column: Column,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, family, column: Column { super_column, name } } = self;
        match family {
            Family::Standard(family) => write!(f, "{key}:{family}:{super_column}:{name}"),
            Family::Counter(family) => write!(f, "{key}:counter {family}:{super_column}:{name}"),
        }
    }
}

/// An update of one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Overwrites a column of a standard family.
    Insert(u64),
    /// Overwrites a column of a standard family with a tombstone.
    Delete,
    /// Adds to a column of a counter family.
    Add(i64),
}

/// An update and its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// The location.
    pub location: Location,
    /// The update.
    pub update: Update,
}

impl Mutation {
    /// True if the family takes this kind of update.
    pub(crate) fn fits(&self) -> bool {
        let is_counter = matches!(self.location.family, Family::Counter(_));
        matches!(self.update, Update::Add(_)) == is_counter
    }
}

/// The columns of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// The first `count` columns that are not deleted, from `start` to `stop`, both included.
    Range {
        /// The first column.
        start: Column,
        /// The last column.
        stop: Column,
        /// The largest number of columns.
        count: usize,
    },
    /// Columns by name.
    Names(Vec<Column>),
}

/// A subset of the columns of one key in one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The key.
    pub key: u32,
    /// The family.
    pub family: Family,
    /// The columns.
    pub predicate: Predicate,
}

impl Slice {
    /// Returns the location of a column of the slice's row.
    pub(crate) fn at(&self, column: Column) -> Location {
        Location { key: self.key, family: self.family, column }
    }

    /// True if the slice has this location.
    pub(crate) fn has(&self, location: Location) -> bool {
        let is_column = match &self.predicate {
            Predicate::Range { start, stop, .. } => (*start..=*stop).contains(&location.column),
            Predicate::Names(names) => names.contains(&location.column),
        };
        (location.key, location.family) == (self.key, self.family) && is_column
    }
}

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The value of an insert.
    Value(u64),
    /// The sum of a counter column.
    Sum(i64),
    /// A tombstone.
    Deleted,
}

/// A column in the answer to a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The column.
    pub column: Column,
    /// Its content.
    pub content: Content,
    /// The timestamp of the newest operation in it.
    pub ts: Timestamp,
    /// The dependencies of a read: one for a value or a tombstone, and for a counter the last addition
    /// of each data center, unless another one of these depends on it.
    pub deps: Vec<Dep>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_takes_updates_of_its_kind() {
        let fits = |family, update| {
            let location = Location { key: 1, family, column: Column::named(2) };
            Mutation { location, update }.fits()
        };
        let (standard, counter) = (Family::Standard(0), Family::Counter(0));
        assert!(fits(standard, Update::Insert(1)) && fits(standard, Update::Delete));
        assert!(fits(counter, Update::Add(1)));
        assert!(!fits(standard, Update::Add(1)));
        assert!(!fits(counter, Update::Insert(1)) && !fits(counter, Update::Delete));
    }

    #[test]
    fn a_slice_has_the_columns_between_its_ends() {
        let (key, family) = (1, Family::Standard(0));
        let (start, stop) = (Column::named(2), Column::named(4));
        let slice = Slice { key, family, predicate: Predicate::Range { start, stop, count: 1 } };
        let has = |key, name| slice.has(Location { key, family, column: Column::named(name) });
        assert_eq!([1, 2, 4, 5].map(|name| has(1, name)), [false, true, true, false]);
        assert!(!has(2, 3));
    }
}
