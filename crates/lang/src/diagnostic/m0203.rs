#![doc = include_str!("m0203.md")]

use super::{Code, Diagnostic, Edit};
use crate::syntax::Span;

/// The thing that cannot be assigned.
#[derive(Clone, Debug)]
pub(crate) enum Fixed {
    /// A `let`, and its keyword.
    Let { name: String, declared: Span, keyword: Span },
    /// A parameter, a loop variable, or the variable of an arm.
    Bound { name: String, declared: Span },
    /// The key of an object.
    Key { object: String, key: String },
    /// A collection. The edits turn the assignment into an operation, if there is one.
    Collection { field: String, field_type: String, edits: Vec<Edit> },
    /// A field of a struct value.
    StructField { name: String },
}

pub(crate) fn render(fixed: Fixed, span: Span) -> Diagnostic {
    let new = |title: String, label: &str| Diagnostic::new(Code::M0203, title, span, label);
    match fixed {
        Fixed::Let { name, declared, keyword } => new(format!("`{name}` is a `let` and cannot be assigned"), "assigned here")
            .with_label(declared, "declared here")
            .with_help("declare it with `var`", vec![Edit { span: keyword, text: "var".into() }]),
        Fixed::Bound { name, declared } => new(format!("`{name}` cannot be assigned"), "assigned here")
            .with_label(declared, "a parameter, or bound by a `for` or `match`")
            .with_note(format!("copy it: `var copy = {name};`")),
        Fixed::Key { object, key } => new(format!("`{key}` is the key of `{object}` and never changes"), "assigned here"),
        Fixed::Collection { field, field_type, edits } => {
            let plain = new(
                format!("`{field}` is a `{field_type}`, which is changed by its operations, not assigned"),
                "assigned here",
            );
            if edits.is_empty() { plain } else { plain.with_help("call the operation", edits) }
        }
        Fixed::StructField { name } => new(format!("`{name}` is a field of a struct, and structs are values that do not change"), "assigned here")
            .with_note("assign a new struct as a whole"),
    }
}
