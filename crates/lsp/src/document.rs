//! An open document, and the compiler's results for it.

use std::cell::OnceCell;

use gen_lsp_types::{Location, Position, Range, TextEdit, Uri};
use mingle_lang::diagnostic::{Diagnostic, Edit};
use mingle_lang::incremental::{Incremental, Version};
use mingle_lang::names::Names;
use mingle_lang::syntax::{Span, TokenKind};
use serde::Deserialize;

use crate::text::{Encoding, Lines};

/// A change of a range, or of the whole document. An unreadable range is an error here; the
/// protocol's own type would take the change for one of the whole document.
#[derive(Debug, Deserialize)]
pub(crate) struct Change {
    range: Option<Range>,
    text: String,
}

/// An open document.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) uri: Uri,
    pub(crate) version: i32,
    pub(crate) encoding: Encoding,
    text: String,
    lines: Lines,
    pub(crate) program: Incremental,
    /// The compiler's view of the text; none after a change.
    checked: Option<Version>,
    names: OnceCell<Names>,
    /// True if the client has the diagnostics of this version.
    pub(crate) is_published: bool,
}

impl Document {
    pub(crate) fn new(uri: Uri, version: i32, text: String, encoding: Encoding) -> Self {
        Self {
            uri,
            version,
            encoding,
            lines: Lines::new(&text),
            text,
            program: Incremental::default(),
            checked: None,
            names: OnceCell::new(),
            is_published: false,
        }
    }

    /// Applies a change from the client.
    pub(crate) fn change(&mut self, change: Change) {
        match change.range {
            None => self.text = change.text,
            Some(range) => {
                let start = self.byte(range.start);
                let end = self.byte(range.end).max(start);
                self.text.replace_range(start..end, &change.text);
            }
        }
        self.lines = Lines::new(&self.text);
        self.checked = None;
        self.names = OnceCell::new();
        self.is_published = false;
    }

    /// Checks the text, unless it is already checked.
    pub(crate) fn check(&mut self) {
        if self.checked.is_none() {
            self.checked = Some(self.program.check(self.text.as_str()));
        }
    }

    /// Returns the result of the check.
    pub(crate) fn checked(&self) -> &Version {
        self.checked.as_ref().expect("a document is checked before it is asked about")
    }

    /// Tries the advice of some diagnostics, and keeps helpful advice.
    pub(crate) fn advise(&mut self, diagnostics: &mut [Diagnostic]) {
        self.check();
        if let Some(version) = &self.checked {
            self.program.advise(version, diagnostics);
        }
    }

    /// Returns the resolved names.
    pub(crate) fn names(&self) -> &Names {
        let version = self.checked();
        self.names.get_or_init(|| Names::of(&version.syntax))
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn byte(&self, position: Position) -> usize {
        self.lines.byte(&self.text, position, self.encoding)
    }

    pub(crate) fn position(&self, byte: usize) -> Position {
        self.lines.position(&self.text, byte, self.encoding)
    }

    /// Returns the range of a span of the checked text.
    pub(crate) fn range(&self, span: Span) -> Range {
        self.lines.range(&self.text, self.checked().source.bytes(span), self.encoding)
    }

    pub(crate) fn location(&self, span: Span) -> Location {
        Location { uri: self.uri.clone(), range: self.range(span) }
    }

    pub(crate) fn edit(&self, edit: &Edit) -> TextEdit {
        TextEdit { range: self.range(edit.span), new_text: edit.text.clone() }
    }

    /// Returns the token at a place; of two that touch there, the one that is a word.
    pub(crate) fn token(&self, position: Position) -> Option<u32> {
        let byte = self.byte(position) as u32;
        let tokens = &self.checked().source.tokens;
        let first = tokens.partition_point(|token| token.end < byte);
        let touching = tokens[first..].iter().zip(first as u32..);
        let touching = touching
            .take_while(|(token, _)| token.start <= byte)
            .filter(|(token, _)| token.kind != TokenKind::End);
        let is_word = |kind| matches!(kind, TokenKind::Ident | TokenKind::Keyword(_));
        let best = touching.max_by_key(|(token, _)| (is_word(token.kind), token.start));
        best.map(|(_, index)| index)
    }
}
