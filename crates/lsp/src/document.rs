//! An open document, and the compiler's results for it.

use std::cell::OnceCell;
use std::collections::HashMap;

use gen_lsp_types::{Location, Position, Range, TextEdit, Uri};
use mingle_lang::diagnostic::{Diagnostic, Edit};
use mingle_lang::files::resolve;
use mingle_lang::incremental::{Incremental, Version};
use mingle_lang::names::Names;
use mingle_lang::syntax::lexer::string_value;
use mingle_lang::syntax::{Source, Span, TokenKind};
use serde::Deserialize;

use crate::files::{path_of, uri_of};
use crate::text::{Encoding, Lines};

/// A change of a range, or of the whole document. An unreadable range is an error here; the
/// protocol's own type would take the change for one of the whole document.
#[derive(Debug, Deserialize)]
pub(crate) struct Change {
    range: Option<Range>,
    text: String,
}

/// The root of a document's program.
#[derive(Clone, Debug)]
pub(crate) enum Root {
    /// It was not searched for since the files have changed.
    Unknown,
    /// The document itself.
    Own,
    /// The file with this path.
    Of(String),
}

/// A file of the checked program.
#[derive(Debug)]
struct Part {
    uri: Uri,
    lines: Lines,
}

/// An open document.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) uri: Uri,
    pub(crate) version: i32,
    pub(crate) encoding: Encoding,
    /// The path of its file.
    path: String,
    text: String,
    lines: Lines,
    /// The root of its program.
    pub(crate) root: Root,
    /// The files of its program, in order.
    parts: Vec<Part>,
    /// The document's own part.
    own: usize,
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
            path: path_of(&uri),
            root: Root::Unknown,
            parts: Vec::new(),
            own: 0,
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
        self.touch();
    }

    /// Forgets the result of the check: a file of the program has changed.
    pub(crate) fn touch(&mut self) {
        self.checked = None;
        self.names = OnceCell::new();
        self.is_published = false;
    }

    /// True if the document must be checked before it is asked about.
    pub(crate) fn is_stale(&self) -> bool {
        self.checked.is_none()
    }

    /// True if other files belong to the checked program.
    pub(crate) fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Checks the program that the document is a part of. `known` are the addresses of open files.
    pub(crate) fn check(&mut self, source: Source, known: &HashMap<String, Uri>) {
        let part = |index: usize| {
            let name = &source.files[index].name;
            let uri = known.get(name).cloned().unwrap_or_else(|| uri_of(name));
            Part { uri, lines: Lines::new(&source.text[source.file_bytes(index)]) }
        };
        self.parts = (0..source.files.len()).map(part).collect();
        self.own = source.files.iter().position(|file| file.name == self.path).unwrap_or(0);
        self.checked = Some(self.program.check_source(source));
    }

    /// Returns the path of its file.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// True if the document is the root of its program.
    pub(crate) fn is_root(&self) -> bool {
        self.own + 1 >= self.parts.len()
    }

    /// Returns the addresses of the other files of the program.
    pub(crate) fn others(&self) -> impl Iterator<Item = (usize, &Uri)> {
        let others = self.parts.iter().enumerate().filter(|(index, _)| *index != self.own);
        others.map(|(index, part)| (index, &part.uri))
    }

    /// Returns the file of a span of the checked program.
    pub(crate) fn file(&self, span: Span) -> usize {
        let source = &self.checked().source;
        source.file_at(source.bytes(span).start)
    }

    /// True if a span of the checked program lies in this document.
    pub(crate) fn is_own(&self, span: Span) -> bool {
        self.parts.is_empty() || self.file(span) == self.own
    }

    /// Returns the document's own file in the checked program.
    pub(crate) fn own(&self) -> usize {
        self.own
    }

    /// Returns the first byte of the document within the program's text.
    pub(crate) fn offset(&self) -> usize {
        self.checked().source.file_bytes(self.own).start
    }

    /// Returns the result of the check.
    pub(crate) fn checked(&self) -> &Version {
        self.checked.as_ref().expect("a document is checked before it is asked about")
    }

    /// Tries the advice of some diagnostics, and keeps helpful advice.
    pub(crate) fn advise(&mut self, diagnostics: &mut [Diagnostic]) {
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

    /// Returns the range of a span of the checked program in its file.
    pub(crate) fn range(&self, span: Span) -> Range {
        let source = &self.checked().source;
        let bytes = source.bytes(span);
        let file = source.file_at(bytes.start);
        let whole = source.file_bytes(file);
        let lines = self.parts.get(file).map_or(&self.lines, |part| &part.lines);
        let bytes = bytes.start - whole.start..bytes.end - whole.start;
        lines.range(&source.text[whole], bytes, self.encoding)
    }

    /// Returns the file that the import around a token names, if it is a part of the program.
    pub(crate) fn import_at(&self, token: u32) -> Option<Location> {
        let version = self.checked();
        let source = &version.source;
        let mut imports = version.syntax.imports.iter();
        let path = imports.find(|import| import.span.contains(Span::token(token)))?.path;
        if source.tokens[path.start as usize].kind != TokenKind::String {
            return None;
        }
        let written = string_value(source.token_text(path.start));
        let name = resolve(&self.path, &written).ok()?;
        let file = source.files.iter().position(|file| file.name == name)?;
        let start = Position { line: 0, character: 0 };
        let range = Range { start, end: start };
        Some(Location { uri: self.parts.get(file)?.uri.clone(), range })
    }

    /// Returns the address of the file of a span.
    fn uri_at(&self, span: Span) -> &Uri {
        self.parts.get(self.file(span)).map_or(&self.uri, |part| &part.uri)
    }

    pub(crate) fn location(&self, span: Span) -> Location {
        Location { uri: self.uri_at(span).clone(), range: self.range(span) }
    }

    /// Describes the line of a span: `line 3`, or `line 3 of items.mingle` in another file.
    pub(crate) fn line(&self, span: Span) -> String {
        let line = self.range(span).start.line + 1;
        let name = self.checked().source.files.get(self.file(span)).map(|file| &file.name);
        match name.and_then(|name| name.rsplit('/').next()).filter(|_| !self.is_own(span)) {
            Some(name) => format!("line {line} of {name}"),
            None => format!("line {line}"),
        }
    }

    /// Returns edits by the files that they change.
    pub(crate) fn changes(&self, edits: &[Edit]) -> HashMap<Uri, Vec<TextEdit>> {
        let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
        for edit in edits {
            let change = TextEdit { range: self.range(edit.span), new_text: edit.text.clone() };
            changes.entry(self.uri_at(edit.span).clone()).or_default().push(change);
        }
        changes
    }

    /// Returns the token at a place; of two that touch there, the one that is a word.
    pub(crate) fn token(&self, position: Position) -> Option<u32> {
        let byte = (self.byte(position) + self.offset()) as u32;
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
