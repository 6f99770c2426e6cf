//! Enumerations.

use mingle_model::Name;

use super::{Ident, Span};

/// An enumeration.
#[derive(Clone, Debug, PartialEq)]
pub struct Enum {
    /// Its name.
    pub name: Ident,
    /// Its values.
    pub values: Vec<EnumValue>,
}

/// A value of an enumeration: `name`, or `name = "label"`.
#[derive(Clone, Debug, PartialEq)]
pub struct EnumValue {
    /// Doc comment.
    pub docs: String,
    /// Its name.
    pub name: Ident,
    /// Its label, if that is written.
    pub label: Option<(Name, Span)>,
}
