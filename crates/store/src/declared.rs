//! The part of a program that a store serves: its objects and declared operations.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::{BuiltinQuery, IndexRead, Level, Name, Schema, Type};

/// The part of a program that concerns one store.
#[derive(Clone, Debug)]
pub struct StoreSchema {
    /// The store's name.
    pub store: Name,
    /// The level that it must give.
    pub level: Level,
    /// All structs and objects of the program; those whose `store` is this one live here.
    pub schema: Arc<Schema>,
    /// Declared operations by name.
    pub operations: BTreeMap<Name, StoreOperation>,
}

impl StoreSchema {
    /// Checks that no object has an index or a key that the store draws, for stores that do neither; `what` names
    /// the store in the message.
    ///
    /// # Errors
    ///
    /// A message that names the first of them.
    pub fn refuse_builtins(&self, what: &str) -> Result<(), String> {
        self.refuse_some(what, |_| true)
    }

    /// Checks that no object has a `unique` or a key that the store draws, for stores that keep indexes and do neither;
    /// `what` names the store in the message.
    ///
    /// # Errors
    ///
    /// A message that names the first of them.
    pub fn refuse_all_but_indexes(&self, what: &str) -> Result<(), String> {
        let is_index = |builtin: &BuiltinQuery| builtin.index().is_some_and(|read| !read.is_unique);
        self.refuse_some(what, |builtin| !is_index(builtin))
    }

    /// Checks that no object has a key that the store draws, for stores that keep indexes and `unique`s; `what` names the
    /// store in the message.
    ///
    /// # Errors
    ///
    /// A message that names the first of them.
    pub fn refuse_draws(&self, what: &str) -> Result<(), String> {
        self.refuse_some(what, |builtin| builtin.draws().is_some())
    }

    fn refuse_some(
        &self,
        what: &str,
        is_refused: impl Fn(&BuiltinQuery) -> bool,
    ) -> Result<(), String> {
        let mut builtins =
            self.operations.values().filter_map(|operation| operation.builtin.as_ref());
        match builtins.find(|builtin| is_refused(builtin)) {
            None => Ok(()),
            Some(BuiltinQuery::Index(read)) if read.is_unique => Err(format!(
                "object {} has a `unique`, {}, and {what} keeps none: make the values the key of an object",
                read.object, read.index
            )),
            Some(BuiltinQuery::Index(read)) => Err(format!(
                "object {} has the index {}, and {what} keeps no indexes: keep the refs in a `set` of another object",
                read.object, read.index
            )),
            Some(BuiltinQuery::Draw(object)) => Err(format!(
                "the program creates {object} by a `new` without a key, and {what} draws no numbers: give the key, \
                 or declare one of type `string`"
            )),
        }
    }
}

/// A declared query or command, and its body in the engine's own language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOperation {
    /// True if it writes.
    pub is_command: bool,
    /// Names and types of its parameters.
    pub parameters: Vec<(Name, Type)>,
    /// The type of its result; none for a command without a result.
    pub result: Option<Type>,
    /// The body from the binding, if that has one.
    pub body: Option<String>,
    /// What it asks if the compiler declares it: such a query has no body, and the store answers it by its own
    /// means.
    pub builtin: Option<BuiltinQuery>,
}

impl StoreOperation {
    /// Returns the read of an index that it is.
    pub fn index(&self) -> Option<&IndexRead> {
        self.builtin.as_ref().and_then(BuiltinQuery::index)
    }

    /// Returns the kind of object whose keys it draws.
    pub fn draws(&self) -> Option<&Name> {
        self.builtin.as_ref().and_then(BuiltinQuery::draws)
    }
}
