#![doc = include_str!("m0101.md")]

use super::{Code, Diagnostic, Edit};
use crate::syntax::Span;

/// Renders an unknown name; `what` is the kind of thing looked up: "store", "field of `User`".
pub(crate) fn render(what: &str, name: &str, span: Span, near: Option<&str>) -> Diagnostic {
    let diagnostic = Diagnostic::new(Code::M0101, format!("no {what} is called `{name}`"), span, "unknown name");
    match near {
        Some(near) => diagnostic.with_help(
            format!("there is `{near}`"),
            vec![Edit { span, text: near.to_owned() }],
        ),
        None => diagnostic,
    }
}
