//! From uses to declarations, and back.

use gen_lsp_types::{DocumentHighlight, Position};
use mingle_lang::names::Declaration;
use mingle_lang::syntax::Span;
use serde_json::{Value, json};

use crate::document::Document;

/// Returns the declaration of the name at a place.
pub(crate) fn declared(document: &Document, position: Position) -> Option<&Declaration> {
    document.names().at(document.token(position)?)
}

/// Returns the place of the declaration of the name at a place.
pub(crate) fn definition(document: &Document, position: Position) -> Value {
    let imported = || document.import_at(document.token(position)?);
    let declared = declared(document, position).map(|found| document.location(found.span));
    json!(declared.or_else(imported))
}

/// Returns the places where the name is used.
pub(crate) fn references(document: &Document, position: Position, with_declared: bool) -> Value {
    let spans = spans(document, position, with_declared);
    json!(
        spans.map(|spans| {
            spans.into_iter().map(|span| document.location(span)).collect::<Vec<_>>()
        })
    )
}

/// Returns all places of the name, for highlighting.
pub(crate) fn highlights(document: &Document, position: Position) -> Value {
    let highlight = |span| DocumentHighlight { range: document.range(span), kind: None };
    let spans = spans(document, position, true);
    json!(spans.map(|spans| spans.into_iter().map(highlight).collect::<Vec<_>>()))
}

fn spans(document: &Document, position: Position, with_declared: bool) -> Option<Vec<Span>> {
    let found = declared(document, position)?;
    let mut spans: Vec<Span> = document.names().references(found.span).collect();
    spans.extend(with_declared.then_some(found.span));
    spans.sort_unstable();
    Some(spans)
}
