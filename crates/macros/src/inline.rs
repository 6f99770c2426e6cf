//! A program inside the macro call.
//!
//! The macro writes its tokens as text again, each on its original line and column, and the Mingle
//! compiler reads that text. So each byte of the text belongs to a Rust token, and mistakes are
//! shown at that token.

use mingle_lang::diagnostic::{Diagnostic, Severity};
use mingle_lang::syntax::{self, Source};
use proc_macro2::{Delimiter, LineColumn, Spacing, Span, TokenStream, TokenTree};

use crate::mistakes::{error, warning};

/// The text of tokens.
#[derive(Default)]
struct Text {
    written: String,
    /// The end of the text: the line in the Rust source, and the column in characters.
    line: usize,
    column: usize,
    /// True if the text may continue without a blank.
    joins: bool,
    /// The piece of text of each token, in order.
    pieces: Vec<Piece>,
}

/// The mapping from bytes of a text to tokens.
pub(crate) struct Pieces(Vec<Piece>);

struct Piece {
    /// First byte.
    start: usize,
    span: Span,
}

/// Returns the text of these tokens, and its pieces.
pub(crate) fn text(input: TokenStream) -> (String, Pieces) {
    let first = input.clone().into_iter().next().map(|token| token.span().start());
    let LineColumn { line, column } = first.unwrap_or(LineColumn { line: 1, column: 0 });
    let mut text = Text { line, column, ..Text::default() };
    text.stream(input);
    text.written.push('\n');
    (text.written, Pieces(text.pieces))
}

pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let (text, pieces) = text(input);
    let checked = mingle_lang::check(text);
    let mistakes = checked.diagnostics.iter().enumerate().map(|(index, found)| {
        let (start, end) = pieces.host(&checked.source, found.span);
        let message = pieces.message(&checked.source, found);
        match found.severity() {
            Severity::Error => error(start, end, &message),
            Severity::Warning => warning(start, index, &message),
        }
    });
    let mut items: TokenStream = mistakes.collect();
    items.extend(mingle_gen::rust::items(&checked, "that stands here"));
    items
}

impl Text {
    fn stream(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            if let TokenTree::Punct(hash) = &token
                && hash.as_char() == '#'
                && let Some(docs) = Doc::parse(&mut tokens.clone())
            {
                self.doc(&docs);
                for _ in 0..docs.tokens {
                    tokens.next();
                }
                continue;
            }
            self.token(token);
        }
    }

    fn token(&mut self, token: TokenTree) {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => return self.stream(group.stream()),
                };
                self.piece(open, group.span_open());
                self.stream(group.stream());
                self.piece(close, group.span_close());
            }
            TokenTree::Punct(punct) => {
                self.piece(punct.as_char().encode_utf8(&mut [0; 4]), punct.span());
                self.joins = punct.spacing() == Spacing::Joint;
            }
            other => self.piece(&other.to_string(), other.span()),
        }
    }

    /// Writes a token at its place, or after a blank if the text is already past that place: tokens
    /// made by macros have arbitrary places.
    fn piece(&mut self, text: &str, span: Span) {
        let (start, end) = (span.start(), span.end());
        if !self.joins {
            self.go_to(start);
        }
        self.pieces.push(Piece { start: self.written.len(), span });
        self.written.push_str(text);
        self.joins = false;
        (self.line, self.column) = (end.line, end.column);
    }

    fn go_to(&mut self, place: LineColumn) {
        if place.line > self.line {
            self.written.extend(std::iter::repeat_n('\n', place.line - self.line));
            self.written.extend(std::iter::repeat_n(' ', place.column));
        } else if place.line == self.line && place.column >= self.column {
            self.written.extend(std::iter::repeat_n(' ', place.column - self.column));
        } else {
            self.written.push(' ');
        }
    }

    /// Writes a doc comment, which takes whole lines.
    fn doc(&mut self, docs: &Doc) {
        let Some(text) = &docs.text else { return };
        let (start, end) = (docs.span.start(), docs.span.end());
        self.go_to(start);
        for line in text.split('\n') {
            self.pieces.push(Piece { start: self.written.len(), span: docs.span });
            self.written.push_str("///");
            self.written.push_str(line);
            self.written.push('\n');
        }
        self.joins = false;
        (self.line, self.column) = (end.line + 1, 0);
    }
}

impl Pieces {
    /// Returns the Rust tokens at which a span of the program begins and ends.
    fn host(&self, source: &Source, span: syntax::Span) -> (Span, Span) {
        let bytes = source.bytes(span);
        (self.at(bytes.start), self.at(bytes.end.saturating_sub(1).max(bytes.start)))
    }

    fn at(&self, byte: usize) -> Span {
        let after = self.0.partition_point(|piece| piece.start <= byte);
        let piece = after.checked_sub(1).and_then(|last| self.0.get(last));
        piece.map_or_else(Span::call_site, |piece| piece.span)
    }

    /// Returns the mistake in words: the Rust compiler shows the place itself.
    fn message(&self, source: &Source, found: &Diagnostic) -> String {
        let title = format!("[{}]: {}", found.code, found.title);
        let labels = found.labels.iter().map(|label| {
            if label.span == found.span {
                return format!("  {}", label.message);
            }
            // A macro can mark one place only; the message names the lines of the others.
            let LineColumn { line, column } = self.host(source, label.span).0.start();
            format!("  line {line}, column {}: {}", column + 1, label.message)
        });
        let notes = found.notes.iter().map(|note| format!("note: {note}"));
        let help = found.help.iter().map(|help| format!("help: {}", help.message));
        let lines = std::iter::once(title).chain(labels).chain(notes).chain(help);
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// A doc comment, which the Rust compiler has turned into an attribute.
struct Doc {
    /// None for `//!`, which documents nothing here.
    text: Option<String>,
    span: Span,
    /// The number of tokens after the `#`.
    tokens: usize,
}

impl Doc {
    /// Reads `[doc = "…"]`, or `![doc = "…"]`.
    fn parse(tokens: &mut impl Iterator<Item = TokenTree>) -> Option<Self> {
        let mut next = tokens.next()?;
        let mut count = 1;
        let is_inner = matches!(&next, TokenTree::Punct(punct) if punct.as_char() == '!');
        if is_inner {
            next = tokens.next()?;
            count += 1;
        }
        let TokenTree::Group(group) = next else { return None };
        let mut inner = group.stream().into_iter();
        let is_doc = matches!(inner.next()?, TokenTree::Ident(name) if name == "doc")
            && matches!(inner.next()?, TokenTree::Punct(punct) if punct.as_char() == '=');
        let TokenTree::Literal(literal) = inner.next()? else { return None };
        let syn::Lit::Str(text) = syn::Lit::new(literal) else { return None };
        let text = (!is_inner).then(|| text.value());
        let is_attribute = is_doc && group.delimiter() == Delimiter::Bracket;
        is_attribute.then(|| Self { text, span: group.span(), tokens: count })
    }
}
