#![doc = include_str!("m0606.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) fn render_hold(span: Span, isolated: Span) -> Diagnostic {
    Diagnostic::new(
        Code::M0606,
        "an `isolated` transaction takes at each store in its turn",
        span,
        "would have to run ahead",
    )
    .with_label(isolated, "isolated")
    .with_note("its result is needed before its store is visited; drop `isolated`, or take from a store that is visited first")
}

pub(crate) fn render(span: Span, isolated: Span, own: &str) -> Diagnostic {
    Diagnostic::new(
        Code::M0606,
        "an `isolated` transaction reads at the level of each store",
        span,
        "has a policy",
    )
    .with_label(isolated, "isolated")
    .with_note(format!("`at {own}` after the read asks for the store's own level"))
}
