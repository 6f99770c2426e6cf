//! Queries that the compiler declares for a store, and that the store answers by its own means.

use crate::{IndexRead, Name};

/// A query of a store that no program declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuiltinQuery {
    /// A read of an index.
    Index(IndexRead),
    /// The next number for the key of a `new` without one: a positive one, or what the database's own sequence
    /// gives. No other draw gives it, whether or not its transaction commits. If an object of this kind has it all the
    /// same, since its creator gave the number, the commit that creates the object again is a conflict. The argument names
    /// the draw within its transaction.
    Draw(Name),
}

impl BuiltinQuery {
    /// Returns the read of an index.
    pub fn index(&self) -> Option<&IndexRead> {
        match self {
            Self::Index(read) => Some(read),
            Self::Draw(_) => None,
        }
    }

    /// Returns the kind of object whose keys it draws.
    ///
    /// ```
    /// use mingle_model::BuiltinQuery;
    ///
    /// let query = BuiltinQuery::Draw("Order".into());
    /// assert_eq!(query.draws().map(|kind| &**kind), Some("Order"));
    /// assert!(query.index().is_none());
    /// ```
    pub fn draws(&self) -> Option<&Name> {
        match self {
            Self::Draw(kind) => Some(kind),
            Self::Index(_) => None,
        }
    }
}
