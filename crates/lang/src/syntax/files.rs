//! A program of several files as one sequence of tokens.
//!
//! The texts stand one after another in [`Source::text`], imported files before the files that import
//! them, and each file keeps its own [`TokenKind::End`]. So a span is a span of the whole program, and
//! the table of [`File`]s leads from a place back to its file. [`Source::joined_text`] is the same
//! program as one text without imports.

use std::ops::Range;

use super::lexer::{lex, string_value};
use super::token::{Source, Span, TokenKind};

/// A file of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, for messages: the path from the root file, or the root's own name.
    pub name: String,
    /// Its first byte in the program's text.
    pub(crate) start: u32,
    /// Its first token.
    pub(crate) token: u32,
    /// The imports at its head: the token of the path, and the result.
    pub(crate) imports: Vec<(u32, Result<(), Refused>)>,
}

/// The reason why a file cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The program came as a text alone.
    NoFiles,
    /// The path is not one that a program may have; the text says what is expected.
    Path(&'static str),
    /// The file cannot be read, with the path that was tried and the reason.
    Unreadable(String, String),
    /// The import closes a cycle of these files; the first one is also the last.
    Cycle(Vec<String>),
    /// The program has more files, or more bytes, than this; the text names what is counted.
    TooMany(&'static str, usize),
}

/// The text of a file, with its name and the results of its imports.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) text: String,
    /// In the order of the imports.
    pub(crate) imports: Vec<Result<(), Refused>>,
}

impl File {
    /// Returns the results of its imports, in order.
    pub(crate) fn results(&self) -> Vec<Result<(), Refused>> {
        self.imports.iter().map(|(_, result)| result.clone()).collect()
    }
}

impl Source {
    /// Reads the tokens of a program of several files, which stand in this order.
    pub(crate) fn of_files(parts: Vec<Part>) -> Self {
        let mut whole = Self::default();
        for part in parts {
            if !whole.files.is_empty() {
                // No line has a part in two files.
                whole.text.push('\n');
            }
            let source = lex(part.text);
            let (start, token) = (whole.text.len() as u32, whole.tokens.len() as u32);
            let paths = head(&source, 0).into_iter().map(|import| import.start + 1 + token);
            let imports = paths.zip(part.imports).collect();
            whole.text.push_str(&source.text);
            for mut found in source.tokens {
                (found.start, found.end) = (found.start + start, found.end + start);
                whole.tokens.push(found);
            }
            for mut found in source.trivia {
                found.before += token;
                (found.start, found.end) = (found.start + start, found.end + start);
                whole.trivia.push(found);
            }
            whole.files.push(File { name: part.name, start, token, imports });
        }
        whole
    }

    /// Returns the program with another text of one file, whose imports count as they were.
    pub fn with_text(&self, file: usize, text: String) -> Self {
        if self.files.is_empty() {
            return lex(text);
        }
        let mut text = Some(text);
        let part = |(index, known): (usize, &File)| Part {
            name: known.name.clone(),
            text: (text.take_if(|_| index == file))
                .unwrap_or_else(|| self.text[self.file_bytes(index)].to_owned()),
            imports: known.results(),
        };
        Self::of_files(self.files.iter().enumerate().map(part).collect())
    }

    /// Returns the index of the file that contains a byte; 0 if the program is one text.
    pub fn file_at(&self, byte: usize) -> usize {
        self.files.partition_point(|file| file.start as usize <= byte).saturating_sub(1)
    }

    /// Returns the name of the file that contains a byte; none if the program is one text.
    pub fn file_name(&self, byte: usize) -> Option<&str> {
        self.files.get(self.file_at(byte)).map(|file| &*file.name)
    }

    /// Returns the bytes of a file within the program's text.
    pub fn file_bytes(&self, file: usize) -> Range<usize> {
        let start = self.files.get(file).map_or(0, |file| file.start as usize);
        let next = self.files.get(file + 1).map(|next| next.start as usize - 1);
        start..next.unwrap_or(self.text.len())
    }

    /// Returns the result of the import whose path is this token: none unless a loader has seen it.
    pub(crate) fn import_result(&self, path: u32) -> Option<&Result<(), Refused>> {
        let file = self.files.partition_point(|file| file.token <= path).checked_sub(1)?;
        let imports = &self.files[file].imports;
        let at = imports.binary_search_by_key(&path, |(token, _)| *token).ok()?;
        Some(&imports[at].1)
    }

    /// Returns the last token of the file that contains a token: its end.
    pub(crate) fn end_of_file(&self, token: u32) -> u32 {
        let next = self.files.partition_point(|file| file.token <= token);
        let after = self.files.get(next).map_or(self.tokens.len() as u32, |file| file.token);
        after.saturating_sub(1)
    }

    /// Returns the program as one text without imports: what is stored, sent and hashed. A program
    /// of one text is this text. It depends on the contents of the files and on their order, not on
    /// their names.
    pub fn joined_text(&self) -> String {
        if self.files.is_empty() {
            return self.text.clone();
        }
        let mut joined = String::with_capacity(self.text.len());
        for (index, file) in self.files.iter().enumerate() {
            let bytes = self.file_bytes(index);
            let mut at = bytes.start;
            if !joined.is_empty() && self.text[bytes.clone()].starts_with('\u{feff}') {
                at += '\u{feff}'.len_utf8();
            }
            for import in head(self, file.token) {
                let import = self.bytes(import);
                joined.push_str(&self.text[at..import.start]);
                at = import.end + line_end(&self.text[import.end..bytes.end]);
            }
            let is_last = index + 1 == self.files.len();
            let docs = self.trivia_before(self.end_of_file(file.token)).iter();
            for trivia in docs.filter(|trivia| trivia.is_doc && !is_last) {
                // At the end of a file it documents nothing, and so it must remain.
                let slash = trivia.start as usize + 2;
                joined.push_str(&self.text[at..slash]);
                joined.push(' ');
                at = slash + 1;
            }
            joined.push_str(&self.text[at..bytes.end]);
            if !is_last && !joined.is_empty() && !joined.ends_with(['\n', '\r']) {
                joined.push('\n');
            }
        }
        joined
    }
}

/// Returns the length of the line's end and the blanks before it; 0 if more stands on the line.
fn line_end(rest: &str) -> usize {
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    match &rest.as_bytes()[blanks..] {
        [b'\r', b'\n', ..] => blanks + 2,
        [b'\n' | b'\r', ..] => blanks + 1,
        [] => blanks,
        _ => 0,
    }
}

/// Returns the imports at the head of a file that begins at a token.
pub(crate) fn head(source: &Source, first: u32) -> Vec<Span> {
    let kind = |token: u32| source.tokens.get(token as usize).map(|token| token.kind);
    let mut found = Vec::new();
    let mut at = first;
    while kind(at) == Some(TokenKind::Ident)
        && source.token_text(at) == "import"
        && kind(at + 1) == Some(TokenKind::String)
    {
        let has_end =
            matches!(kind(at + 2), Some(TokenKind::Punct(super::token::Punct::Semicolon)));
        let end = at + 2 + u32::from(has_end);
        found.push(Span { start: at, end });
        at = end;
    }
    found
}

/// Returns the paths that the head of a text imports.
pub(crate) fn imported(text: &str) -> Vec<String> {
    let source = lex(text);
    let paths = head(&source, 0).into_iter().map(|import| source.token_text(import.start + 1));
    paths.map(string_value).collect()
}
