#![doc = include_str!("m0603.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;
use super::Edit;

pub(crate) enum Arms {
    /// An arm after one that takes all its answers.
    Order { name: String, before: String, at: Span },
    /// An arm after `late`.
    AfterLate { name: String },
    /// A second `late`.
    Again,
    /// Neither `late` nor `eventual`; the closing brace.
    Incomplete { end: Span },
}

pub(crate) fn render(arms: Arms, span: Span) -> Diagnostic {
    let new = |title: String, label: &str| Diagnostic::new(Code::M0603, title, span, label);
    match arms {
        Arms::Order { name, before, at } => new(
            format!("the arm `{name}` is never taken: `{before}` before it takes all its answers"),
            "never taken",
        )
        .with_label(at, format!("takes every answer that is at least {before}"))
        .with_note("the arms stand from the strongest level to the weakest"),
        Arms::AfterLate { name } => {
            new(format!("the arm `{name}` stands after `late`"), "after `late`")
                .with_note("`late` is the last arm")
        }
        Arms::Again => new("there is a second arm `late`".into(), "the second one"),
        Arms::Incomplete { end } => new(
            "this `match` has neither an arm `late` nor an arm `eventual`".into(),
            "some answers have no arm",
        )
        .with_note("with `late` the bound is hard; with `eventual(…)` and no `late`, the first answer counts once the bound is over")
        .with_help(
            "add an arm for answers that are late or weaker",
            vec![Edit { span: end.before(), text: "late => {}\n".into() }],
        ),
    }
}
