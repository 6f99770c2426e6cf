#![doc = include_str!("m0001.md")]

use super::{Code, Diagnostic, Edit};
use crate::syntax::Span;

/// The syntax mistake.
#[derive(Clone, Debug)]
pub(crate) enum Syntax {
    /// The parser expected one thing and found another.
    Expected { expected: String, found: String },
    /// A terminator or separator is missing after the text before it.
    Missing { token: &'static str, after: String, found: String },
    /// A character that starts no token.
    Character { text: String },
    /// A string without an end.
    UnterminatedString,
    /// An invalid escape.
    Escape,
    /// An invalid number, or one that is too large.
    Number { text: String },
    /// A block comment.
    BlockComment,
    /// Syntax reserved for a later version.
    Reserved { what: &'static str },
    /// A reserved word as a name.
    ReservedWord { word: String, expected: String },
    /// A chain of comparisons.
    Chain { operator: &'static str },
    /// Nesting beyond the limit.
    TooDeep { limit: usize },
    /// A struct value in the head of a statement.
    StructInHead { name: String },
    /// `match` lacks an arm, or has it twice.
    Arms { missing: &'static str },
    /// More syntax mistakes than are reported.
    TooMany,
}

pub(crate) fn render(syntax: Syntax, span: Span) -> Diagnostic {
    let new = |title: String, label: &str| Diagnostic::new(Code::M0001, title, span, label);
    match syntax {
        Syntax::Expected { expected, found } => {
            new(format!("expected {expected}, found {found}"), &format!("expected {expected}"))
        }
        Syntax::Missing { token, after, found } => {
            new(format!("expected `{token}` after {after}, found {found}"), &format!("`{token}` is missing before this"))
                .with_help(format!("add `{token}`"), vec![Edit { span: span.before(), text: format!("{token} ") }])
        }
        Syntax::Character { text } => {
            let shown: String = text.chars().take(20).collect();
            new(format!("`{}` starts nothing that the language knows", shown.escape_debug()), "not a token")
        }
        Syntax::UnterminatedString => new("the string has no closing quote on its line".into(), "it starts here")
            .with_note("a line break in a string is written `\\n`"),
        Syntax::Escape => new("the string holds an escape or a character that it may not hold".into(), "in here")
            .with_note("strings know `\\n \\t \\r \\\\ \\\"` and `\\u{…}` and hold no U+0000; bytes are ASCII, with `\\xNN` beyond it"),
        Syntax::Number { text } => new(format!("`{text}` is not a number of the language"), "not an `int` or `float`")
            .with_note("an `int` lies between -9223372036854775808 and 9223372036854775807 and is written in decimal, `_` allowed; a `float` has digits on both sides of its point"),
        Syntax::BlockComment => new("there are no block comments".into(), "write `//` before each line"),
        Syntax::Reserved { what } => new(format!("{what} is reserved for a later version of the language"), "not in this version"),
        Syntax::ReservedWord { word, expected } => {
            new(format!("expected {expected}, found the reserved word `{word}`"), "this word cannot be a name")
        }
        Syntax::Chain { operator } => new(format!("comparisons do not chain: `{operator}` after another comparison"), "a second comparison")
            .with_note("write `a < b && b < c`"),
        Syntax::TooDeep { limit } => new(format!("nested more than {limit} deep"), "this is too deep"),
        Syntax::StructInHead { name } => new(
            format!("`{name} {{ … }}` in the head of a statement needs parentheses"),
            "without them the brace starts the body",
        ),
        Syntax::Arms { missing } => new(format!("`match` needs one `some(…)` and one `none` arm, and has no `{missing}` arm"), "in this `match`"),
        Syntax::TooMany => new("too many mistakes to go on".into(), "reading stops here"),
    }
}
