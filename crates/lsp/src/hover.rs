//! Hover: the declaration of a name, its type, the sources of its value with their paths, and the
//! phases where the statement runs.

use std::fmt::Write as _;

use gen_lsp_types::{Hover, MarkupContent, MarkupKind, Position};
use mingle_lang::insight::{self, Provenance};
use mingle_lang::names::{Declaration, Kind};
use mingle_lang::syntax::Span;
use serde_json::{Value, json};

use crate::document::Document;
use crate::hints::{head, phase};

/// Returns the hover text for a place.
pub(crate) fn hover(document: &Document, position: Position) -> Value {
    let Some(token) = document.token(position) else { return Value::Null };
    let names = document.names();
    let mut parts = Vec::new();
    let declared = names.at(token);
    let expression = names.type_at(token);
    match (declared, names.builtin_at(token)) {
        (Some(declared), _) => parts.push(declaration(declared)),
        (None, Some(builtin)) => parts.push(builtin.to_owned()),
        (None, None) => {}
    }
    if let Some((span, found)) = expression
        && declared.is_none()
    {
        parts.push(format!("`{}` is `{found}`", line(document.checked().source.span_text(span))));
    }
    parts.extend(depends(document, token, declared, expression.map(|(span, _)| span)));
    parts.extend(runs(document, token));
    parts.extend(explained(document, token));
    if parts.is_empty() {
        return Value::Null;
    }
    json!(Hover {
        contents: MarkupContent { kind: MarkupKind::Markdown, value: parts.join("\n\n") }.into(),
        range: Some(document.range(Span::token(token))),
    })
}

fn declaration(declared: &Declaration) -> String {
    let shown = format!("```mingle\n{}\n```", declared.shown);
    if declared.docs.is_empty() { shown } else { format!("{shown}\n\n{}", declared.docs) }
}

/// Describes the stores' data on which the value at a token depends.
fn depends(
    document: &Document,
    token: u32,
    declared: Option<&Declaration>,
    expression: Option<Span>,
) -> Option<String> {
    let names = document.names();
    let variable = declared
        .filter(|found| matches!(found.kind, Kind::Variable | Kind::Parameter))
        .map(|found| &*found.name);
    let span = if variable.is_some() { Span::token(token) } else { expression? };
    let Provenance { origins } = insight::provenance(names, span, variable)?;
    if origins.is_empty() {
        return Some("Depends on no store's data.".into());
    }
    let mut text = String::new();
    for origin in origins {
        writeln!(text, "Depends on {}:", origin.source).expect("a string takes it");
        for label in origin.path {
            let line = document.line(label.span);
            let words = self::line(document.checked().source.span_text(label.span));
            writeln!(text, "- {line}, `{words}`: {}", label.message).expect("a string takes it");
        }
    }
    Some(text)
}

/// Describes where the statement around a token runs.
fn runs(document: &Document, token: u32) -> Option<String> {
    let steps = insight::steps(document.names(), token)?;
    let source = &document.checked().source;
    let here = Span::token(token);
    // For a loop or branch only its head counts: the statements in it are separate steps.
    let around = steps.iter().filter(|step| head(source, step.span).contains(here));
    let step = around.min_by_key(|step| step.span.end - step.span.start)?;
    let visits: Vec<String> = step.visits.iter().map(phase).collect();
    Some(format!("Runs in {}.", visits.join(", and in ")))
}

/// Describes the diagnostics at a token.
fn explained(document: &Document, token: u32) -> Option<String> {
    let found = &document.checked().diagnostics;
    let here = found.iter().filter(|found| found.span.contains(Span::token(token)));
    let mut codes: Vec<_> = here.map(|found| found.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let lines = codes
        .iter()
        .map(|code| format!("**{code}**: {}; see `mingle explain {code}`", code.summary()));
    (!codes.is_empty()).then(|| lines.collect::<Vec<_>>().join("\n\n"))
}

/// Returns a text on one line, shortened if it is too long.
fn line(text: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "'");
    match line.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
