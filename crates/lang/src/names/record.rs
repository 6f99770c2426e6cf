//! The names that the checker records while it resolves them.

use std::collections::BTreeMap;

use mingle_model::{Name, Type};

use super::Typed;
use crate::syntax::Span;

/// A variable binding.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) name: Name,
    pub(crate) var_type: Option<Type>,
    /// `let`, `var`, or empty for other bindings.
    pub(crate) word: &'static str,
}

/// The resolved names, by token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// Each use's token, with its declaration's token.
    pub(crate) uses: BTreeMap<u32, u32>,
    /// Uses of fields and keys: the object or struct, and the name.
    pub(crate) members: BTreeMap<u32, (Name, Name)>,
    /// Uses of levels.
    pub(crate) levels: BTreeMap<u32, Name>,
    pub(crate) builtin: BTreeMap<u32, String>,
    /// Types of expressions, by their end and start.
    pub(crate) types: BTreeMap<(u32, u32), Typed>,
    /// Variables, by the token that names them.
    pub(crate) variables: BTreeMap<u32, Bound>,
}

impl Record {
    pub(crate) fn member(&mut self, at: Span, owner: &Name, member: &Name) {
        self.members.insert(at.start, (owner.clone(), member.clone()));
    }

    pub(crate) fn typed(&mut self, span: Span, found: Typed) {
        self.types.insert((span.end, span.start), found);
    }
}
