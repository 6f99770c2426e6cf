#![doc = include_str!("m0404.md")]

use super::flow::Place;
use super::{Code, Diagnostic};
use crate::syntax::Span;

const NOTE: &str = "what is endorsed is computed before all else: endorse the value first, and use it in the branch or loop";

pub(crate) fn render(decides: Span, store: &Place, written: &Place) -> Diagnostic {
    Diagnostic::new(
        Code::M0404,
        format!("whether an endorsement counts depends on {store}, which is visited after {written} was written"),
        decides,
        "decides about an `endorse` before all else, and is read again too late to start over",
    )
    .with_note(NOTE)
}

pub(crate) fn render_behind_return(span: Span, returned: Span) -> Diagnostic {
    Diagnostic::new(
        Code::M0404,
        "an endorsement depends on what may fail or not end, behind a `return`",
        span,
        "runs before all else, for the sake of an `endorse`, whether or not the transaction returns",
    )
    .with_label(returned, "may return before")
    .with_note(NOTE)
}
