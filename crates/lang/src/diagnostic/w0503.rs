#![doc = include_str!("w0503.md")]

use super::flow::Place;
use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) fn render(span: Span, store: &Place, is_new: bool) -> Diagnostic {
    let what = if is_new { "this `new`" } else { "this `require`" };
    Diagnostic::new(
        Code::W0503,
        format!("{what} checks uniqueness at {store}, which cannot promise it"),
        span,
        "two replicas may both find nothing and both write",
    )
    .with_note("keep what must be unique in a `linearizable` or `snapshot` store, or use `put`")
}
