#![doc = include_str!("m0206.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) enum Collection {
    /// A collection's type outside a field.
    Type { name: String },
    /// A collection as a value.
    Value { field: String, field_type: String },
    /// A default for a collection.
    Default { field_type: String },
}

pub(crate) fn render(collection: Collection, span: Span) -> Diagnostic {
    let (title, label, note) = match collection {
        Collection::Type { name } => (
            format!("`{name}` is the type of an object's field, not of a value"),
            "not allowed here",
            "`list<…>` is the value type",
        ),
        Collection::Value { field, field_type } => (
            format!("`{field}` is a `{field_type}`: it is used through its operations, not as a value"),
            "used as a value",
            "`to_list()`, `keys()` and `value()` give values",
        ),
        Collection::Default { field_type } => (
            format!("a `{field_type}` starts empty and takes no default"),
            "a default",
            "insert what it should hold when the object is created",
        ),
    };
    Diagnostic::new(Code::M0206, title, span, label).with_note(note)
}
