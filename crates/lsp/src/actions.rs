//! Code actions: the advice of diagnostics, and `allow` for warnings, as changes to the text.

use std::collections::HashMap;

use gen_lsp_types::{CodeAction, CodeActionKind, CodeActionParams, TextEdit, Uri, WorkspaceEdit};
use mingle_lang::diagnostic as lang;
use serde_json::{Value, json};

use crate::diagnostics::diagnostic;
use crate::document::Document;

/// The reason that an added `allow` has until the programmer writes another one.
const BECAUSE: &str = "the reason why this does not matter here";

/// Returns the advice of all diagnostics that touch a range, and how to allow warnings there.
pub(crate) fn actions(document: &mut Document, params: &CodeActionParams, explains: bool) -> Value {
    let wants_fixes = params.context.only.as_ref().is_none_or(|kinds| {
        // `quickfix` itself, or the empty kind, which includes all kinds.
        kinds.iter().any(|kind| *kind == CodeActionKind::QuickFix || kind.as_str().is_empty())
    });
    if !wants_fixes {
        return json!([]);
    }
    let offset = document.offset();
    let bytes =
        offset + document.byte(params.range.start)..=offset + document.byte(params.range.end);
    let source = &document.checked().source;
    let touches = |found: &&lang::Diagnostic| {
        let span = source.bytes(found.span);
        document.is_own(found.span) && span.start <= *bytes.end() && *bytes.start() <= span.end
    };
    let mut found: Vec<lang::Diagnostic> =
        document.checked().diagnostics.iter().filter(touches).cloned().collect();
    document.advise(&mut found);
    let mut actions = Vec::new();
    for found in &found {
        let shown = diagnostic(document, found, explains);
        let mut add = |title: String, changes: HashMap<Uri, Vec<TextEdit>>| {
            actions.push(CodeAction {
                title,
                kind: Some(CodeActionKind::QuickFix),
                diagnostics: Some(vec![shown.clone()]),
                edit: Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }),
                ..CodeAction::default()
            });
        };
        for help in found.help.iter().filter(|help| !help.edits.is_empty()) {
            add(help.message.clone(), document.changes(&help.edits));
        }
        if let Some(edit) = allowed(document, found) {
            add(
                format!("Allow {} here, with a reason", found.code),
                HashMap::from([(document.uri.clone(), vec![edit])]),
            );
        }
    }
    json!(actions)
}

/// Returns the edit that allows a warning before the statement or item around it.
fn allowed(document: &Document, found: &lang::Diagnostic) -> Option<TextEdit> {
    if found.severity() != lang::Severity::Warning || found.code == lang::Code::W0504 {
        return None;
    }
    let part = lang::allowing(&document.checked().syntax, found.span)?;
    let range = document.range(part.before());
    let line = document.text().lines().nth(range.start.line as usize).unwrap_or_default();
    let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
    let code = found.code.text();
    Some(TextEdit { range, new_text: format!("allow {code} because \"{BECAUSE}\"\n{indent}") })
}
