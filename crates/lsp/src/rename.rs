//! Renaming, which changes names and nothing else.
//!
//! A rename replaces one token by another, so every token keeps its number. Clashes are not
//! guessed: the renamed program is checked, and must have the same diagnostics at the same tokens
//! and the same declaration behind every name.

use gen_lsp_types::{Position, PrepareRenamePlaceholder, WorkspaceEdit};
use mingle_lang::diagnostic::{Diagnostic, Edit, edited_source};
use mingle_lang::names::{Declaration, Names};
use mingle_lang::syntax::{Span, TokenKind, lex};
use serde_json::json;

use crate::document::Document;
use crate::names::declared;
use crate::rpc::{Answer, ErrorCode, Failure};

/// Returns the name that a rename at this place would change.
pub(crate) fn prepare(document: &Document, position: Position) -> Answer {
    let found = renamed(document, position)?;
    let token = document.token(position).unwrap_or(found.span.start);
    Ok(json!(PrepareRenamePlaceholder {
        range: document.range(Span::token(token)),
        placeholder: found.name.to_string(),
    }))
}

/// Returns the change that renames the name at a place.
pub(crate) fn rename(document: &mut Document, position: Position, new: &str) -> Answer {
    let found = renamed(document, position)?.clone();
    must_be_name(new)?;
    must_be_understood(document, &found)?;
    let uses = document.names().references(found.span);
    let edits: Vec<Edit> = std::iter::once(found.span)
        .chain(uses)
        .map(|span| Edit { span, text: new.to_owned() })
        .collect();
    if new != &*found.name {
        must_mean_the_same(document, &found, &edits, new)?;
    }
    let changes = document.changes(&edits);
    Ok(json!(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }))
}

fn refused(message: String) -> Failure {
    Failure::new(ErrorCode::RequestFailed, message)
}

fn renamed(document: &Document, position: Position) -> Result<&Declaration, Failure> {
    if let Some(found) = declared(document, position) {
        return Ok(found);
    }
    let text = document.token(position).map(|token| document.checked().source.token_text(token));
    Err(refused(match text {
        Some(text) => format!("`{text}` is no name that this program declares"),
        None => "there is no name here".into(),
    }))
}

fn must_be_name(new: &str) -> Result<(), Failure> {
    let source = lex(new);
    let token = source.tokens[0];
    let is_whole = token.start == 0 && token.end as usize == new.len();
    match token.kind {
        TokenKind::Ident if is_whole => Ok(()),
        TokenKind::Keyword(_) if is_whole => {
            Err(refused(format!("`{new}` is a reserved word and cannot be a name")))
        }
        _ => Err(refused(format!(
            "`{new}` is no name: expected a letter or `_`, then letters, digits and `_`"
        ))),
    }
}

/// Refuses if mistakes hide the meaning of some name: the rename might miss a use.
fn must_be_understood(document: &Document, found: &Declaration) -> Result<(), Failure> {
    let version = document.checked();
    let hides = |found: &&Diagnostic| matches!(&found.code.text()[..3], "M00" | "M01" | "M02");
    let Some(mistake) = version.diagnostics.iter().find(hides) else { return Ok(()) };
    let names = document.names();
    let tokens = 0..version.source.tokens.len() as u32;
    let unknown = tokens.filter(|token| {
        version.source.tokens[*token as usize].kind == TokenKind::Ident
            && version.source.token_text(*token) == &*found.name
            && !names.knows(*token)
            && names.builtin_at(*token).is_none()
    });
    let Some(token) = unknown.min() else { return Ok(()) };
    let line = |span| document.line(span);
    Err(refused(format!(
        "`{}` stands in {} too, and it is not known what it means there until the program's mistakes are mended: {}, {}",
        found.name,
        line(Span::token(token)),
        line(mistake.span),
        mistake.title
    )))
}

fn must_mean_the_same(
    document: &mut Document,
    found: &Declaration,
    edits: &[Edit],
    new: &str,
) -> Result<(), Failure> {
    let renamed = edited_source(&document.checked().source, edits);
    let renamed = document.program.check_source(renamed);
    let old = &document.checked().diagnostics;
    let is_known = |other: &&Diagnostic| {
        !old.iter().any(|known| (known.span, known.code) == (other.span, other.code))
    };
    if let Some(clash) = renamed.diagnostics.iter().find(is_known) {
        return Err(refused(format!("cannot rename `{}` to `{new}`: {}", found.name, clash.title)));
    }
    let names = Names::of(&renamed.syntax);
    if renamed.diagnostics.len() != old.len() || !document.names().agrees_with(&names) {
        let name = &found.name;
        return Err(refused(format!(
            "cannot rename `{name}` to `{new}`: another `{new}` would be meant in some places"
        )));
    }
    Ok(())
}
