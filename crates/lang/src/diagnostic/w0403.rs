#![doc = include_str!("w0403.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) fn render(span: Span, level: &str) -> Diagnostic {
    Diagnostic::new(Code::W0403, "this endorsement has no effect", span, format!("nothing that it reaches needs it as {level}"))
        .with_note("remove it: an endorsement that is not needed hides the ones that are")
}
