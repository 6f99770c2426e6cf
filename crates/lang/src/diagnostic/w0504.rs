#![doc = include_str!("w0504.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) fn render(code: &str, span: Span) -> Diagnostic {
    let title = format!("this `allow` has no effect: {code} is not given here");
    Diagnostic::new(Code::W0504, title, span, "no such warning in what follows")
        .with_note("remove it: an `allow` that is not needed hides a warning that comes later")
}
