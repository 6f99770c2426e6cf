//! Indexes of objects, in the checked program.

use mingle_model::{Name, Type};

use super::Object;
use crate::syntax::Span;

/// An index of an object.
#[derive(Clone, Debug)]
pub struct Index {
    /// The name under which it is read.
    pub name: Name,
    /// The fields that it is ordered by, with the types of the values by which it finds them.
    pub fields: Vec<(Name, Type)>,
    /// The first of its queries in [`Store::operations`](super::Store::operations): for each number of leading
    /// values from 0 on, the one that gives refs and the one that counts.
    pub first: u32,
    /// The span of its name, or of its first word if it has none.
    pub span: Span,
    /// The span of the whole declaration.
    pub whole: Span,
    /// True if its name is written.
    pub is_named: bool,
    /// True if it is a `unique`.
    pub is_unique: bool,
}

impl Index {
    /// Returns the index of a query in the operations of its store.
    pub fn query(&self, equal: usize, counts: bool) -> u32 {
        self.first + 2 * equal as u32 + u32::from(counts)
    }

    /// Returns the names of its fields, with commas between them.
    pub fn field_names(&self) -> String {
        let names: Vec<&str> = self.fields.iter().map(|(name, _)| &**name).collect();
        names.join(", ")
    }

    /// Returns the index of the query that finds another object with the same values in all fields.
    pub fn others(&self) -> u32 {
        self.query(self.fields.len(), false)
    }
}

impl Object {
    /// Returns the fields of an index of it.
    ///
    /// # Panics
    ///
    /// When the index is another object's.
    pub fn fields_of(&self, index: &Index) -> Vec<u16> {
        let place = |name: &Name| {
            self.declared.field_index(name).expect("an index has fields of its object") as u16
        };
        index.fields.iter().map(|(name, _)| place(name)).collect()
    }
}
