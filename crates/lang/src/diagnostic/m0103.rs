#![doc = include_str!("m0103.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) fn render(above: (&str, Span), below: (&str, Span)) -> Diagnostic {
    let title = format!("`{}` is not strictly stronger than `{}`", above.0, below.0);
    Diagnostic::new(Code::M0103, title, above.1, "expected the stronger level first")
        .with_label(below.1, "expected a level weaker than the first")
        .with_note("the built-in levels, strongest first: linearizable, snapshot, causal, eventual")
}
