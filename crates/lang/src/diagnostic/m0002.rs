#![doc = include_str!("m0002.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) fn render(span: Span, loop_head: Span) -> Diagnostic {
    Diagnostic::new(Code::M0002, "`return` stands in a loop", span, "returns from within the loop")
        .with_label(loop_head, "this loop")
        .with_note("keep the result in a `var` and return it after the loop")
}
