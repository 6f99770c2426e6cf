//! Tokens, and spans that count them.

use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A name, or a word that is reserved only in places.
    Ident,
    /// An integer literal.
    Int,
    /// A float literal.
    Float,
    /// A string literal, quotes included.
    String,
    /// A bytes literal, `b` and quotes included.
    Bytes,
    /// A word that is reserved everywhere.
    Keyword(Keyword),
    /// Punctuation or an operator.
    Punct(Punct),
    /// Text that is no token; the reason says why.
    Bad(BadToken),
    /// The end of the program.
    End,
}

/// Why some text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadToken {
    /// A character that starts no token.
    Character,
    /// A string without its closing quote.
    UnterminatedString,
    /// An unknown escape, or U+0000, in a string.
    Escape,
    /// A number that is not written as one.
    Number,
    /// A block comment.
    BlockComment,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum $name { $($variant,)* }

        impl $name {
            /// How it is written.
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Reads it back.
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

/// One token: its kind and where its text stands in [`Source::text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// First byte.
    pub start: u32,
    /// First byte after it.
    pub end: u32,
}

/// A comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trivia {
    /// The token that it stands before.
    pub before: u32,
    /// Whether it documents what follows: `///`.
    pub is_doc: bool,
    /// First byte.
    pub start: u32,
    /// First byte after it, the line's end excluded.
    pub end: u32,
}

/// A run of tokens: from `start`, up to but without `end`. Empty, it stands before `start`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First token.
    pub start: u32,
    /// First token after it.
    pub end: u32,
}

impl Span {
    /// The span of one token.
    pub fn token(index: u32) -> Self {
        Self { start: index, end: index + 1 }
    }

    /// From the start of this to the end of `other`.
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end.max(self.end) }
    }

    /// The place before this span.
    pub fn before(self) -> Self {
        Self { start: self.start, end: self.start }
    }

    /// Whether `other` lies within this span.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A program as tokens, with the text that they are cut from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The text.
    pub text: String,
    /// The tokens; the last one is [`TokenKind::End`].
    pub tokens: Vec<Token>,
    /// The comments, in order.
    pub trivia: Vec<Trivia>,
}

impl Source {
    /// The text of one token.
    pub fn token_text(&self, index: u32) -> &str {
        let token = self.tokens[index as usize];
        &self.text[token.start as usize..token.end as usize]
    }

    /// The text of a span, comments within it included.
    pub fn span_text(&self, span: Span) -> &str {
        &self.text[self.bytes(span)]
    }

    /// The bytes that a span covers.
    pub fn bytes(&self, span: Span) -> Range<usize> {
        let start = self.tokens[span.start as usize].start as usize;
        if span.end <= span.start {
            return start..start;
        }
        start..self.tokens[span.end as usize - 1].end as usize
    }

    /// The comments that stand before a token.
    pub fn trivia_before(&self, token: u32) -> &[Trivia] {
        let from = self.trivia.partition_point(|trivia| trivia.before < token);
        let to = self.trivia.partition_point(|trivia| trivia.before <= token);
        &self.trivia[from..to]
    }

    /// The text of a comment.
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

/// Where spans lie for whoever gave the tokens: lines and columns for text, the host language's
/// spans for a macro.
pub trait Places {
    /// What names a place.
    type Place;

    /// The place of a span.
    fn place(&self, span: Span) -> Self::Place;
}

/// Lines of a text: from bytes to lines and columns.
#[derive(Clone, Debug)]
pub struct TextPlaces<'a> {
    source: &'a Source,
    line_starts: Vec<u32>,
}

impl<'a> TextPlaces<'a> {
    /// The table for one source.
    pub fn new(source: &'a Source) -> Self {
        let breaks = source.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts =
            std::iter::once(0).chain(breaks.map(|(index, _)| index as u32 + 1)).collect();
        Self { source, line_starts }
    }

    /// The source.
    pub fn source(&self) -> &'a Source {
        self.source
    }

    /// The line and column of a byte.
    pub fn position(&self, byte: usize) -> Position {
        let line = self.line_starts.partition_point(|start| *start as usize <= byte) - 1;
        let start = self.line_starts[line] as usize;
        let column = self.source.text[start..byte].chars().count();
        Position { line: line as u32 + 1, column: column as u32 + 1 }
    }
}

impl Places for TextPlaces<'_> {
    type Place = (Position, Position);

    fn place(&self, span: Span) -> Self::Place {
        let bytes = self.source.bytes(span);
        (self.position(bytes.start), self.position(bytes.end))
    }
}
