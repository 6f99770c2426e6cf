//! What the checker notes while it resolves names.

use std::collections::BTreeMap;

use mingle_model::{Name, Type};

use super::Typed;
use crate::syntax::Span;

/// A variable as it was bound.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) name: Name,
    pub(crate) var_type: Option<Type>,
    /// `let`, `var`, or nothing where it is bound otherwise.
    pub(crate) word: &'static str,
}

/// What was resolved, in terms of tokens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// From the token of a use to that of the declaration.
    pub(crate) uses: BTreeMap<u32, u32>,
    /// Uses of fields and keys: the object or struct, and the name.
    pub(crate) members: BTreeMap<u32, (Name, Name)>,
    /// Uses of levels.
    pub(crate) levels: BTreeMap<u32, Name>,
    pub(crate) builtin: BTreeMap<u32, String>,
    /// By where they end and start.
    pub(crate) types: BTreeMap<(u32, u32), Typed>,
    /// By the token that names them.
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
