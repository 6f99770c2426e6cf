#![doc = include_str!("w0502.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) fn render(second: Span, first: Span) -> Diagnostic {
    Diagnostic::new(Code::W0502, "a crash may leave one of two writes without the other", second, "a second write")
        .with_label(first, "a first write, at a level that promises no atomic commit")
        .with_note("`causal` and stronger levels commit all writes of a transaction together")
}
