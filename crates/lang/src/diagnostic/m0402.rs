#![doc = include_str!("m0402.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) fn render(read: Span, write: Span) -> Diagnostic {
    let diagnostic = Diagnostic::new(
        Code::M0402,
        "an endorsed value depends on what this transaction writes",
        read,
        "read before all else, for the sake of an `endorse`",
    );
    let diagnostic = if read == write { diagnostic } else { diagnostic.with_label(write, "may be written here before") };
    diagnostic.with_note("what is endorsed is computed in read-only phases before all others; read it before the write, or endorse in a transaction of its own")
}
