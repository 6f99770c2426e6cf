#![doc = include_str!("m0202.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

/// The mismatch in number or name.
#[derive(Clone, Debug)]
pub(crate) enum Arity {
    /// The number of arguments.
    Arguments { of: String, expected: usize, found: usize },
    /// Missing fields.
    Missing { of: String, fields: Vec<String> },
    /// A field given twice.
    Twice { name: String, first: Span },
    /// `new` without a key although the object's key cannot be drawn. The level is that of a store which does not
    /// draw numbers, if the key is one.
    KeyNeeded { object: String, key: String, is_put: bool, level: Option<String> },
    /// The number of variables of a `for`.
    Variables { over: String, expected: usize },
}

pub(crate) fn render(arity: Arity, span: Span) -> Diagnostic {
    let new = |title: String, label: String| Diagnostic::new(Code::M0202, title, span, label);
    match arity {
        Arity::Arguments { of, expected, found } => {
            let plural = if expected == 1 { "" } else { "s" };
            new(format!("`{of}` takes {expected} argument{plural}, found {found}"), format!("expected {expected}"))
        }
        Arity::Missing { of, fields } => new(
            format!("`{of}` lacks {}", fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ")),
            "every field needs a value".into(),
        ),
        Arity::Twice { name, first } => new(format!("`{name}` is given twice"), "again".into()).with_label(first, "first here"),
        Arity::KeyNeeded { object, key, is_put, level } => {
            let why = match (is_put, level) {
                (true, _) => "`put` needs the key".into(),
                (false, None) => "only a key of type `string` or `int` can be drawn".into(),
                (false, Some(level)) => {
                    format!("a store that is {level} draws no numbers, only keys of type `string`")
                }
            };
            new(format!("`{object}` needs its key `{key}` here"), why)
        }
        Arity::Variables { over, expected: 1 } => new(format!("a `for` over `{over}` takes one variable"), "one too many".into()),
        Arity::Variables { over, .. } => new(format!("a `for` over `{over}` takes two variables: key and value"), "one is missing".into()),
    }
}
