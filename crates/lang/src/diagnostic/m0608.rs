#![doc = include_str!("m0608.md")]

use super::flow::Place;
use super::{Code, Diagnostic, Edit};
use crate::syntax::Span;

/// `fields` are those of the `unique` at `span`, which begins with the token `word`.
pub(crate) fn render(fields: &[&str], store: &Place, span: Span, word: Span) -> Diagnostic {
    Diagnostic::new(
        Code::M0608,
        format!("`unique {}` at {store}, which cannot keep it", fields.join(", ")),
        span,
        "two replicas may both find no such object and both write one",
    )
    .with_note("keep the object in a `linearizable` or `snapshot` store, or make the value the key: `put` then writes one object")
    .with_help("only find objects by it", vec![Edit { span: word, text: "index by".into() }])
}
