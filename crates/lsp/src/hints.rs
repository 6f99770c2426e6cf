//! Inlay hints: the store at which each statement runs.

use gen_lsp_types::{InlayHint, InlayHintKind, Range};
use mingle_lang::insight::{self, Step, Visit};
use mingle_lang::split::Mode;
use mingle_lang::syntax::ast::ItemKind;
use mingle_lang::syntax::token::Punct;
use mingle_lang::syntax::{Source, Span, TokenKind};
use serde_json::{Value, json};

use crate::document::Document;

/// Returns the hints within a range.
pub(crate) fn hints(document: &Document, range: Range) -> Value {
    let offset = document.offset();
    let bytes = offset + document.byte(range.start)..=offset + document.byte(range.end);
    let version = document.checked();
    let mut hints = Vec::new();
    for item in &version.syntax.items {
        let found = version.source.bytes(item.span);
        let is_seen = found.start <= *bytes.end() && *bytes.start() <= found.end;
        if !is_seen || !document.is_own(item.span) || !matches!(item.kind, ItemKind::Transaction(_))
        {
            continue;
        }
        let steps = insight::steps(document.names(), item.span.start).unwrap_or_default();
        for step in &steps {
            let end = version.source.bytes(head(&version.source, step.span)).end;
            if bytes.contains(&end) && step.visits.iter().any(|visit| visit.store.is_some()) {
                hints.push(hint(document, step, end));
            }
        }
    }
    json!(hints)
}

fn hint(document: &Document, step: &Step, end: usize) -> InlayHint {
    let stores = step.visits.iter().filter_map(|visit| visit.store.as_deref());
    let label = format!("@ {}", stores.collect::<Vec<_>>().join(" → "));
    let lines = step.visits.iter().map(phase);
    InlayHint {
        position: document.position(end - document.offset()),
        label: label.into(),
        kind: None::<InlayHintKind>,
        text_edits: None,
        tooltip: Some(lines.collect::<Vec<_>>().join("\n").into()),
        padding_left: Some(true),
        padding_right: Some(false),
        data: None,
    }
}

/// Describes a phase in words.
pub(crate) fn phase(visit: &Visit) -> String {
    let Visit { phase, store, level, mode, before_endorsement } = visit;
    let (Some(store), Some(level)) = (store, level) else {
        return format!("phase {phase}, which visits no store");
    };
    let mode = match (before_endorsement, mode) {
        (true, _) => "which reads before an endorsement",
        (false, Mode::Read) => "which only reads",
        (false, Mode::Write) => "which writes",
    };
    format!("phase {phase} at `{store}` ({level}), {mode}")
}

/// Returns the head of a loop or branch, up to the brace; the whole of any other statement.
pub(crate) fn head(source: &Source, span: Span) -> Span {
    let kind = |token: u32| source.tokens[token as usize].kind;
    if span.end <= span.start || kind(span.end - 1) != TokenKind::Punct(Punct::RightBrace) {
        return span;
    }
    let mut depth = 0_usize;
    for token in span.start..span.end {
        match kind(token) {
            TokenKind::Punct(Punct::LeftParen | Punct::LeftBracket) => depth += 1,
            TokenKind::Punct(Punct::RightParen | Punct::RightBracket) => {
                depth = depth.saturating_sub(1);
            }
            TokenKind::Punct(Punct::LeftBrace) if depth == 0 => {
                return Span { start: span.start, end: token.max(span.start + 1) };
            }
            _ => {}
        }
    }
    span
}
