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

/// The maximum number of names that a message lists.
const LISTED_MAX: usize = 15;

/// Like [`render`], and lists the names that are known if none is near.
pub(crate) fn render_known(
    what: &str,
    name: &str,
    span: Span,
    near: Option<&str>,
    known: &[&str],
) -> Diagnostic {
    let diagnostic = render(what, name, span, near);
    if near.is_some() || known.is_empty() || known.len() > LISTED_MAX {
        return diagnostic;
    }
    let listed: Vec<String> = known.iter().map(|known| format!("`{known}`")).collect();
    diagnostic.with_note(format!("there is {}", listed.join(", ")))
}

/// Renders a word of another language, with the text that says the same.
pub(crate) fn render_alias(what: &str, name: &str, span: Span, means: &str) -> Diagnostic {
    render(what, name, span, None)
        .with_help(format!("write `{means}`"), vec![Edit { span, text: means.to_owned() }])
}
