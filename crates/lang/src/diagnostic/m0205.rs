#![doc = include_str!("m0205.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) fn render(name: &str, span: Span, result: &str, end: Span) -> Diagnostic {
    let title = format!("`{name}` can end without the `{result}` that it returns");
    Diagnostic::new(Code::M0205, title, span, format!("declares a result of type `{result}`"))
        .with_label(end, "a path ends here without `return`")
}
