#![doc = include_str!("w0601.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) fn render(level: &str, own: &str, span: Span) -> Diagnostic {
    let title = format!("the arm `{level}` is never taken: the store is {own}");
    Diagnostic::new(Code::W0601, title, span, "no answer of this store is that strong")
        .with_note("remove it, or move the object to a stronger store")
}
