#![doc = include_str!("m0401.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) fn render(span: Span) -> Diagnostic {
    Diagnostic::new(Code::M0401, "`endorse` needs a reason", span, "expected `because` and a reason that is not empty")
        .with_note("the reason tells the next reader why a weaker value may be trusted here; `mingle check --endorsements` lists them")
}
