#![doc = include_str!("m0102.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

/// Renders a second declaration; `first` is the place of the first one, none if the name is built
/// in.
pub(crate) fn render(name: &str, span: Span, first: Option<Span>) -> Diagnostic {
    match first {
        Some(first) => Diagnostic::new(Code::M0102, format!("`{name}` is declared twice"), span, "declared again")
            .with_label(first, "first declared here"),
        None => Diagnostic::new(Code::M0102, format!("`{name}` is a name of the language itself"), span, "cannot be declared"),
    }
}
