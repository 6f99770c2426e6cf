#![doc = include_str!("m0605.md")]

use super::{Code, Diagnostic};
use crate::hir::Bounds;
use crate::syntax::Span;

pub(crate) enum Leaves {
    /// `add` of a bounded counter.
    Add { field: String, bounds: Bounds },
    /// The deletion of an object that has a bounded counter.
    Delete { field: String, bounds: Bounds },
    /// Bounds between which no value lies.
    Empty { min: i64, max: i64 },
}

pub(crate) fn render(leaves: Leaves, span: Span) -> Diagnostic {
    let new = |title: String, label: &str| Diagnostic::new(Code::M0605, title, span, label);
    match leaves {
        Leaves::Add { field, bounds } => {
            new(format!("`add` could leave the bounds of `{field}`, a `{bounds}`"), "could leave the bounds")
                .with_note("`take(n)` takes `n` if the bounds allow it and says if it did; `give(n)` gives it back")
        }
        Leaves::Delete { field, bounds } => {
            new(format!("an object with a `{bounds}` cannot be deleted"), "would reset the counter")
                .with_note(format!("`{field}` keeps account of what callers hold; `take` what is left instead"))
        }
        Leaves::Empty { min, max } => {
            new(format!("no value lies between {min} and {max}"), "`min` is greater than `max`")
        }
    }
}
