//! Diagnostics in the protocol's form.

use gen_lsp_types::{
    CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag,
    Position, PublishDiagnosticsParams, Range, Uri,
};
use mingle_lang::diagnostic::{self as lang, Code, Severity};
use serde_json::{Value, json};

use crate::document::Document;

/// The scheme of the pages that explain codes, for clients that can show them.
pub(crate) const EXPLAIN_SCHEME: &str = "mingle-explain";

/// Returns the diagnostics message for a checked document.
pub(crate) fn publish(document: &Document, explains: bool) -> Value {
    // A file of tests is no program; `mingle check` and `mingle test` check it.
    if document.uri.0.ends_with(".test.mingle") {
        return json!(PublishDiagnosticsParams {
            uri: document.uri.clone(),
            diagnostics: Vec::new(),
            version: Some(document.version),
        });
    }
    let version = document.checked();
    let mut diagnostics = of_file(document, document.own(), explains);
    if version.omitted > 0 {
        diagnostics.push(Diagnostic {
            range: Range { start: Position::default(), end: Position::default() },
            severity: Some(DiagnosticSeverity::Information),
            source: Some("mingle".into()),
            message: format!("{} more diagnostics are not shown", version.omitted).into(),
            ..Diagnostic::default()
        });
    }
    json!(PublishDiagnosticsParams {
        uri: document.uri.clone(),
        diagnostics,
        version: Some(document.version),
    })
}

/// Returns the diagnostics of one file of a document's program.
pub(crate) fn of_file(document: &Document, file: usize, explains: bool) -> Vec<Diagnostic> {
    let found = document.checked().diagnostics.iter();
    let here = found.filter(|found| !document.has_parts() || document.file(found.span) == file);
    here.map(|found| diagnostic(document, found, explains)).collect()
}

/// Converts a diagnostic. The labels of its path become related information, in their order; the
/// notes are part of the message.
pub(crate) fn diagnostic(
    document: &Document,
    found: &lang::Diagnostic,
    explains: bool,
) -> Diagnostic {
    let mut message = found.title.clone();
    let alone = found.labels.len() == 1 && found.labels[0].span == found.span;
    if alone {
        message.push('\n');
        message.push_str(&found.labels[0].message);
    }
    for note in &found.notes {
        message.push_str("\nnote: ");
        message.push_str(note);
    }
    let related =
        found.labels.iter().filter(|_| !alone).map(|label| DiagnosticRelatedInformation {
            location: document.location(label.span),
            message: label.message.clone(),
        });
    let related: Vec<_> = related.collect();
    Diagnostic {
        range: document.range(found.span),
        severity: Some(match found.severity() {
            Severity::Error => DiagnosticSeverity::Error,
            Severity::Warning => DiagnosticSeverity::Warning,
        }),
        code: Some(found.code.text().to_owned().into()),
        code_description: explains.then(|| page(found.code)),
        source: Some("mingle".into()),
        message: message.into(),
        related_information: (!related.is_empty()).then_some(related),
        tags: (found.code == Code::W0501).then(|| vec![DiagnosticTag::Unnecessary]),
        data: None,
    }
}

/// Returns the page that explains a code.
fn page(code: Code) -> CodeDescription {
    let href = Uri(format!("{EXPLAIN_SCHEME}:/{}.md", code.text()));
    CodeDescription { href }
}
