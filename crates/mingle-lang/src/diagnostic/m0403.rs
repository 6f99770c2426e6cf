#![doc = include_str!("m0403.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) fn render(span: Span, isolated: Span) -> Diagnostic {
    Diagnostic::new(Code::M0403, "`endorse` stands in an `isolated` transaction", span, "reads its store before all others, and again later")
        .with_label(isolated, "each store is visited once, in one order")
}
