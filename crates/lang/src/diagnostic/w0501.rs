#![doc = include_str!("w0501.md")]

use super::{Code, Diagnostic, Edit};
use crate::syntax::Span;

pub(crate) fn render(what: &str, name: &str, span: Span, can_rename: bool) -> Diagnostic {
    let diagnostic = Diagnostic::new(Code::W0501, format!("{what} `{name}` is not used"), span, "not used");
    if can_rename {
        diagnostic.with_help("a name that starts with `_` says that this is meant", vec![Edit { span, text: format!("_{name}") }])
    } else {
        diagnostic
    }
}
