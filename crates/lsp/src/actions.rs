//! Code actions: the advice of diagnostics, as changes to the text.

use std::collections::HashMap;

use gen_lsp_types::{CodeAction, CodeActionKind, CodeActionParams, WorkspaceEdit};
use mingle_lang::diagnostic as lang;
use serde_json::{Value, json};

use crate::diagnostics::diagnostic;
use crate::document::Document;

/// Returns the advice of all diagnostics that touch a range.
pub(crate) fn actions(document: &mut Document, params: &CodeActionParams, explains: bool) -> Value {
    let wants_fixes = params.context.only.as_ref().is_none_or(|kinds| {
        // `quickfix` itself, or the empty kind, which includes all kinds.
        kinds.iter().any(|kind| *kind == CodeActionKind::QuickFix || kind.as_str().is_empty())
    });
    if !wants_fixes {
        return json!([]);
    }
    let bytes = document.byte(params.range.start)..=document.byte(params.range.end);
    let source = &document.checked().source;
    let touches = |found: &&lang::Diagnostic| {
        let span = source.bytes(found.span);
        span.start <= *bytes.end() && *bytes.start() <= span.end
    };
    let mut found: Vec<lang::Diagnostic> =
        document.checked().diagnostics.iter().filter(touches).cloned().collect();
    document.advise(&mut found);
    let mut actions = Vec::new();
    for found in &found {
        let shown = diagnostic(document, found, explains);
        for help in found.help.iter().filter(|help| !help.edits.is_empty()) {
            let edits = help.edits.iter().map(|edit| document.edit(edit)).collect();
            let changes = HashMap::from([(document.uri.clone(), edits)]);
            actions.push(CodeAction {
                title: help.message.clone(),
                kind: Some(CodeActionKind::QuickFix),
                diagnostics: Some(vec![shown.clone()]),
                edit: Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }),
                ..CodeAction::default()
            });
        }
    }
    json!(actions)
}
