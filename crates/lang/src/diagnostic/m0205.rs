#![doc = include_str!("m0205.md")]

use super::{Code, Diagnostic, Edit};
use crate::syntax::Span;

/// Renders a path without a result; `last` is the first token of a value that ends the transaction.
pub(crate) fn render(
    name: &str,
    span: Span,
    result: &str,
    (end, last): (Span, Option<Span>),
) -> Diagnostic {
    let title = format!("`{name}` can end without the `{result}` that it returns");
    let declared = format!("declares a result of type `{result}`");
    let plain = Diagnostic::new(Code::M0205, title, span, declared);
    match last {
        Some(value) => plain
            .with_label(value, "this value is not returned")
            .with_help("return it", vec![Edit { span: value, text: "return {text}".into() }]),
        None => plain.with_label(end, "a path ends here without `return`"),
    }
}
