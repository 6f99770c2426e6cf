//! Tokens, and spans that count them.

use std::ops::Range;

use super::files::File;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A name, or a word that is reserved only in some places.
    Ident,
    /// An integer literal.
    Int,
    /// A float literal.
    Float,
    /// A duration: an integer and its unit, `20ms` or `1s`.
    Duration,
    /// A string literal, quotes included.
    String,
    /// A bytes literal, `b` and quotes included.
    Bytes,
    /// A word that is reserved everywhere.
    Keyword(Keyword),
    /// Punctuation or an operator.
    Punct(Punct),
    /// Text that is no token, with the reason.
    Bad(BadToken),
    /// The end of the program.
    End,
}

/// The reason why a text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadToken {
    /// A character that starts no token.
    Character,
    /// A string without its closing quote.
    UnterminatedString,
    /// An unknown escape, or U+0000, in a string.
    Escape,
    /// A malformed number.
    Number,
    /// A block comment.
    BlockComment,
    /// A string in quotes of another kind, which are closed on their line.
    Quotes,
    /// Invisible characters that are no blanks of the language.
    Blank,
    /// A comment from `#` to the line's end.
    HashComment,
    /// `#[…]`
    Attribute,
    /// Another spelling of this token.
    Lookalike(Punct),
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum $name { $($variant,)* }

        impl $name {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns its text.
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Returns the value with this text.
            pub fn from_text(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// The words that are reserved everywhere.
    Keyword {
        Let = "let", Var = "var", If = "if", Else = "else", While = "while", For = "for",
        Match = "match", Require = "require", Return = "return", New = "new", Put = "put",
        Endorse = "endorse", As = "as", Because = "because", Some = "some", None = "none",
        True = "true", False = "false", In = "in",
    }
}

words! {
    /// Punctuation and operators.
    Punct {
        LeftBrace = "{", RightBrace = "}", LeftParen = "(", RightParen = ")",
        LeftBracket = "[", RightBracket = "]", Semicolon = ";", Colon = ":", Comma = ",",
        Dot = ".", Arrow = "->", FatArrow = "=>", Assign = "=", PlusAssign = "+=",
        MinusAssign = "-=", Plus = "+", Minus = "-", Star = "*", Slash = "/", Percent = "%",
        Not = "!", Equal = "==", NotEqual = "!=", Less = "<", LessEqual = "<=",
        Greater = ">", GreaterEqual = ">=", And = "&&", Or = "||", Coalesce = "??",
    }
}

/// One token: its kind and the place of its text in [`Source::text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// First byte.
    pub start: u32,
    /// The first byte after it.
    pub end: u32,
}

/// A comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trivia {
    /// The token that follows the comment.
    pub before: u32,
    /// True if it documents the following token: `///`.
    pub is_doc: bool,
    /// First byte.
    pub start: u32,
    /// The first byte after it, the line's end excluded.
    pub end: u32,
}

/// A run of tokens, from `start` up to but without `end`. An empty span stands before `start`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First token.
    pub start: u32,
    /// The first token after it.
    pub end: u32,
}

impl Span {
    /// Returns the span of one token.
    pub fn token(index: u32) -> Self {
        Self { start: index, end: index + 1 }
    }

    /// Returns the span from the start of this one to the end of `other`.
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end.max(self.end) }
    }

    /// Returns the empty span before this one.
    pub fn before(self) -> Self {
        Self { start: self.start, end: self.start }
    }

    /// True if `other` lies within this span.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A program as tokens, with its text.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The text.
    pub text: String,
    /// The tokens; the last one is [`TokenKind::End`].
    pub tokens: Vec<Token>,
    /// The comments, in order.
    pub trivia: Vec<Trivia>,
    /// The files of a program that imports; empty if the program is one text.
    pub files: Vec<File>,
}

impl Source {
    /// Returns the text of one token.
    pub fn token_text(&self, index: u32) -> &str {
        let token = self.tokens[index as usize];
        &self.text[token.start as usize..token.end as usize]
    }

    /// Returns the text of a span, including comments within it.
    pub fn span_text(&self, span: Span) -> &str {
        &self.text[self.bytes(span)]
    }

    /// Returns the bytes that a span covers.
    pub fn bytes(&self, span: Span) -> Range<usize> {
        // There is nothing past the last token: a span there means the end.
        let last = self.tokens.len().saturating_sub(1);
        let token = |index: usize| self.tokens.get(index.min(last));
        let start = token(span.start as usize).map_or(0, |token| token.start as usize);
        if span.end <= span.start {
            return start..start;
        }
        start..token(span.end as usize - 1).map_or(0, |token| token.end as usize)
    }

    /// Returns the comments before a token.
    pub fn trivia_before(&self, token: u32) -> &[Trivia] {
        let from = self.trivia.partition_point(|trivia| trivia.before < token);
        let to = self.trivia.partition_point(|trivia| trivia.before <= token);
        &self.trivia[from..to]
    }

    /// Returns the text of a comment.
    pub fn trivia_text(&self, trivia: Trivia) -> &str {
        &self.text[trivia.start as usize..trivia.end as usize]
    }
}

/// A line and a column, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// The places of spans for the producer of the tokens: lines and columns for text, the host
/// language's spans for a macro.
pub trait Places {
    /// The type of a place.
    type Place;

    /// Returns the place of a span.
    fn place(&self, span: Span) -> Self::Place;
}

/// Lines of a text: from bytes to lines and columns.
#[derive(Clone, Debug)]
pub struct TextPlaces<'a> {
    source: &'a Source,
    line_starts: Vec<u32>,
    /// The index of the first line of each file.
    first_lines: Vec<u32>,
    /// The number of characters that start before each [`BLOCK`] of the text: lines may be as long
    /// as the text, and counting them from their start for every place would be quadratic.
    characters_before: Vec<u32>,
}

/// The number of bytes per entry of `characters_before`.
const BLOCK: usize = 4096;

#[cfg(test)]
thread_local! {
    static MADE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
impl TextPlaces<'_> {
    /// Returns the number of tables that this thread has made.
    pub(crate) fn made() -> usize {
        MADE.get()
    }
}

impl<'a> TextPlaces<'a> {
    /// Creates the table for one source.
    pub fn new(source: &'a Source) -> Self {
        #[cfg(test)]
        MADE.set(MADE.get() + 1);
        let bytes = source.text.as_bytes();
        let starts = std::iter::once(0).chain(line_starts(bytes));
        let mut line_starts: Vec<u32> = starts.map(|start| start as u32).collect();
        // A byte order mark does not count as a character of its file's first line.
        let mut first_lines = Vec::new();
        for file in 0..source.files.len().max(1) {
            let start = source.file_bytes(file).start;
            let line = line_starts.partition_point(|line| (*line as usize) < start);
            first_lines.push(line as u32);
            if source.text[start..].starts_with('\u{feff}') {
                line_starts[line] += '\u{feff}'.len_utf8() as u32;
            }
        }
        let mut before = 0;
        let characters_before = bytes
            .chunks(BLOCK)
            .map(|block| {
                let so_far = before;
                before += characters(block);
                so_far
            })
            .collect();
        Self { source, line_starts, first_lines, characters_before }
    }

    /// Returns the source.
    pub fn source(&self) -> &'a Source {
        self.source
    }

    /// Returns the name of the file of a span; `root` if the program is one text.
    pub fn file<'b>(&'b self, span: Span, root: &'b str) -> &'b str {
        self.source.file_name(self.source.bytes(span).start).unwrap_or(root)
    }

    /// Returns the line and column of a byte in its file; a byte beyond the end counts as the end.
    pub fn position(&self, byte: usize) -> Position {
        let byte = byte.min(self.source.text.len());
        let line = self.line(byte);
        let start = self.line_starts[line] as usize;
        let column = self.characters_up_to(byte).saturating_sub(self.characters_up_to(start));
        let first = self.first_lines.get(self.source.file_at(byte)).copied().unwrap_or(0);
        Position { line: (line as u32).saturating_sub(first) + 1, column: column + 1 }
    }

    /// Returns the bytes of the line that contains a byte, its end included.
    pub fn line_bytes(&self, byte: usize) -> Range<usize> {
        let line = self.line(byte.min(self.source.text.len()));
        let end = self.line_starts.get(line + 1);
        self.line_starts[line] as usize..end.map_or(self.source.text.len(), |start| *start as usize)
    }

    fn line(&self, byte: usize) -> usize {
        self.line_starts.partition_point(|start| *start as usize <= byte).saturating_sub(1)
    }

    fn characters_up_to(&self, byte: usize) -> u32 {
        let block = byte / BLOCK;
        let Some(before) = self.characters_before.get(block) else {
            // The byte just after a text that fills its blocks exactly.
            let last = self.characters_before.len().saturating_sub(1);
            let rest = self.source.text.as_bytes().get(last * BLOCK..byte);
            return self.characters_before.last().copied().unwrap_or(0)
                + rest.map_or(0, characters);
        };
        before + characters(&self.source.text.as_bytes()[block * BLOCK..byte])
    }
}

/// Returns the starts of all lines but the first. A line ends with `\n`, `\r\n`, or `\r` alone.
///
/// # Examples
///
/// ```
/// use mingle_lang::syntax::line_starts;
///
/// assert_eq!(line_starts(b"a\nb\r\nc\rd").collect::<Vec<_>>(), [2, 5, 7]);
/// ```
pub fn line_starts(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let ends = bytes.iter().enumerate().filter(|(at, byte)| match byte {
        b'\n' => true,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    });
    ends.map(|(at, _)| at + 1)
}

/// Returns the number of characters that start in these bytes.
fn characters(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u32
}

impl Places for TextPlaces<'_> {
    type Place = (Position, Position);

    fn place(&self, span: Span) -> Self::Place {
        let bytes = self.source.bytes(span);
        (self.position(bytes.start), self.position(bytes.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_across_blocks() {
        for length in [0, 1, BLOCK / 2, BLOCK, 3 * BLOCK + 7] {
            let text = format!("one\n{}|", "é".repeat(length));
            let source = crate::syntax::lex(text);
            let places = TextPlaces::new(&source);
            let expected = Position { line: 2, column: length as u32 + 2 };
            assert_eq!(places.position(source.text.len()), expected, "{length}");
            assert_eq!(places.line_bytes(5), 4..source.text.len());
        }
    }

    #[test]
    fn a_text_of_whole_blocks_has_an_end() {
        let source = crate::syntax::lex("x".repeat(BLOCK));
        let end = TextPlaces::new(&source).position(BLOCK + 10);
        let column = BLOCK as u32 + 1;
        assert_eq!(end, Position { line: 1, column });
    }
}
