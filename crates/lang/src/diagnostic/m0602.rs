#![doc = include_str!("m0602.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;
use super::Edit;

pub(crate) enum Misuse {
    /// An answer as a plain value; the edit that reads it at the level of its store, if that is known.
    Plain { own_level: Option<Edit> },
    /// A `var` that holds an answer.
    Var { keyword: Span },
    /// The type where no answer may stand.
    Type,
}

pub(crate) fn render(misuse: Misuse, span: Span) -> Diagnostic {
    let new = |title: &str, label: &str| Diagnostic::new(Code::M0602, title, span, label);
    match misuse {
        Misuse::Plain { own_level } => {
            let found = new(
                "this answer may be weak or late: it cannot be used as a plain value",
                "may be weak or late",
            )
            .with_note("`match` it, return it, or bind it with `let`");
            match own_level {
                Some(edit) => found.with_help("wait for the answer at the store's own level", vec![edit]),
                None => found,
            }
        }
        Misuse::Var { keyword } => new(
            "a variable that holds an answer is assigned once",
            "holds an answer that may be weak or late",
        )
        .with_help("bind it with `let`", vec![Edit { span: keyword, text: "let".into() }]),
        Misuse::Type => new("`rushed<…>` is the type of a result or of a `let`", "not allowed here")
            .with_note("fields, parameters and other types hold plain values"),
    }
}
