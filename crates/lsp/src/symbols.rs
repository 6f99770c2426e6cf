//! The outline of a document.

use gen_lsp_types::{DocumentSymbol, SymbolKind};
use mingle_lang::syntax::Span;
use mingle_lang::syntax::ast::{Ident, Item, ItemKind, Param};
use serde_json::{Value, json};

use crate::document::Document;

/// Returns the items of a document, with their fields and operations.
pub(crate) fn symbols(document: &Document) -> Value {
    let items = document.checked().syntax.items.iter().filter(|item| document.is_own(item.span));
    json!(items.filter_map(|item| symbol(document, item)).collect::<Vec<_>>())
}

fn symbol(document: &Document, item: &Item) -> Option<DocumentSymbol> {
    let child = |kind, name: &Ident, span| one(document, kind, name, span, Vec::new());
    let params = |kind, params: &[Param]| {
        let children = params
            .iter()
            .map(|param| child(kind, &param.name, param.name.span.to(param.param_type.span)));
        children.flatten().collect::<Vec<_>>()
    };
    let (kind, name, children) = match &item.kind {
        ItemKind::Level { name, .. } => (SymbolKind::EnumMember, name, Vec::new()),
        ItemKind::Store(store) => {
            let operations = store.operations.iter();
            let operations = operations
                .filter_map(|found| child(SymbolKind::Method, &found.name, found.span))
                .collect();
            (SymbolKind::Module, &store.name, operations)
        }
        ItemKind::Object(object) => {
            let mut children = params(SymbolKind::Key, std::slice::from_ref(&object.key));
            let fields = object.fields.iter();
            children.extend(
                fields.filter_map(|found| child(SymbolKind::Field, &found.name, found.span)),
            );
            (SymbolKind::Class, &object.name, children)
        }
        ItemKind::Struct(found) => {
            (SymbolKind::Struct, &found.name, params(SymbolKind::Field, &found.fields))
        }
        ItemKind::Enum(found) => {
            let values = found.values.iter();
            let values = values.filter_map(|value| {
                let end = value.label.as_ref().map_or(value.name.span, |(_, label)| *label);
                child(SymbolKind::EnumMember, &value.name, value.name.span.to(end))
            });
            (SymbolKind::Enum, &found.name, values.collect())
        }
        ItemKind::Function(found) => (SymbolKind::Function, &found.name, Vec::new()),
        ItemKind::Transaction(found) => (SymbolKind::Event, &found.name, Vec::new()),
    };
    one(document, kind, name, item.span, children)
}

/// Returns a symbol; none without a name, which the protocol does not allow.
#[expect(deprecated, reason = "the field has to be filled in")]
fn one(
    document: &Document,
    kind: SymbolKind,
    name: &Ident,
    span: Span,
    children: Vec<DocumentSymbol>,
) -> Option<DocumentSymbol> {
    if name.name.is_empty() {
        return None;
    }
    let detail = document.names().at(name.span.start).map(|found| found.shown.clone());
    Some(DocumentSymbol {
        name: name.name.to_string(),
        detail,
        kind,
        tags: None,
        deprecated: None,
        range: document.range(span),
        selection_range: document.range(name.span),
        children: (!children.is_empty()).then_some(children),
    })
}
