#![doc = include_str!("m0001.md")]

pub(crate) mod foreign;

use super::{Code, Diagnostic, Edit};
use crate::syntax::Span;
pub(crate) use foreign::Foreign;

/// The syntax mistake.
#[derive(Clone, Debug)]
pub(crate) enum Syntax {
    /// The parser expected one thing and found another.
    Expected { expected: String, found: String },
    /// A terminator, separator or bracket is missing after the marked text. There is an edit for
    /// each place in the item where the same one is missing.
    Missing { token: &'static str, after: String, found: String, edits: Vec<Edit> },
    /// A bracket or brace without its counterpart: the edits add it, if its place is known.
    Unclosed { open: &'static str, close: &'static str, place: Span, edits: Vec<Edit> },
    /// A character that starts no token.
    Character { text: String },
    /// A string without an end, and the string with one.
    UnterminatedString { mended: Option<String> },
    /// An invalid escape.
    Escape,
    /// An invalid number, or one that is too large, and the number that is meant.
    Number { text: String, mended: Option<String> },
    /// Syntax of another language, with the edits that write it in this one.
    Foreign { foreign: Foreign, edits: Vec<Edit> },
    /// Syntax reserved for a later version.
    Reserved { what: &'static str },
    /// An import that does not stand at the head of its file.
    LateImport,
    /// A reserved word as a name.
    ReservedWord { word: String, expected: String },
    /// A chain of comparisons.
    Chain { operator: &'static str, edits: Vec<Edit> },
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
        Syntax::Missing { token, after, found, edits } => {
            let many = edits.len() > 1;
            let plain = new(format!("expected `{token}` after {after}, found {found}"), &format!("`{token}` is missing after this"));
            let plain = if many { plain.with_note(format!("it is missing at {} places", edits.len())) } else { plain };
            let help = if many { format!("add each `{token}`") } else { format!("add `{token}`") };
            if edits.is_empty() { plain } else { plain.with_help(help, edits) }
        }
        Syntax::Unclosed { open, close, place, edits } => {
            let plain = new(format!("this `{open}` is not closed"), &format!("no `{close}` belongs to it"))
                .with_label(place, format!("`{close}` is missing after this"));
            if edits.is_empty() { plain } else { plain.with_help(format!("add `{close}`"), edits) }
        }
        Syntax::Character { text } => {
            let shown: String = text.chars().take(20).collect();
            new(format!("`{}` starts nothing that the language knows", shown.escape_debug()), "not a token")
        }
        Syntax::UnterminatedString { mended } => {
            let plain = new("the string has no closing quote on its line".into(), "it starts here")
                .with_note("a line break in a string is written `\\n`");
            with_text(plain, "close it", mended)
        }
        Syntax::Escape => new("the string holds an escape or a character that it may not hold".into(), "in here")
            .with_note("strings know `\\n \\t \\r \\\\ \\\"` and `\\u{…}` and hold no U+0000; bytes are ASCII, with `\\xNN` beyond it"),
        Syntax::Number { text, mended } => {
            let plain = new(format!("`{text}` is not a number of the language"), "not an `int` or `float`");
            if mended.is_some() {
                return with_text(plain, "write it in digits", mended);
            }
            plain.with_note("an `int` lies between -9223372036854775808 and 9223372036854775807 and is written in decimal, `_` allowed; a `float` has digits on both sides of its point")
        }
        Syntax::Foreign { foreign, edits } => foreign::render(&foreign, span, edits),
        Syntax::Reserved { what } => new(format!("{what} is reserved for a later version of the language"), "not in this version"),
        Syntax::LateImport => new("an import stands after an item".into(), "imports stand at the head of a file"),
        Syntax::ReservedWord { word, expected } => {
            new(format!("expected {expected}, found the reserved word `{word}`"), "this word cannot be a name")
        }
        Syntax::Chain { operator, edits } => with_edits(new(format!("comparisons do not chain: `{operator}` after another comparison"), "a second comparison")
            .with_note("write `a < b && b < c`"), "compare twice", edits),
        Syntax::TooDeep { limit } => new(format!("nested more than {limit} deep"), "this is too deep"),
        Syntax::StructInHead { name } => new(
            format!("`{name} {{ … }}` in the head of a statement needs parentheses"),
            "without them the brace starts the body",
        )
        .with_help("add them", vec![Edit { span, text: "({text})".into() }]),
        Syntax::Arms { missing } => new(format!("`match` needs one `some(…)` and one `none` arm, and has no `{missing}` arm"), "in this `match`"),
        Syntax::TooMany => new("too many mistakes to go on".into(), "reading stops here"),
    }
}

/// Adds the advice to write `text` at the place of the diagnostic.
fn with_text(diagnostic: Diagnostic, message: &str, text: Option<String>) -> Diagnostic {
    let span = diagnostic.span;
    match text {
        Some(text) => diagnostic.with_help(message, vec![Edit { span, text }]),
        None => diagnostic,
    }
}

/// Adds advice unless it has no edits.
fn with_edits(diagnostic: Diagnostic, message: &str, edits: Vec<Edit>) -> Diagnostic {
    if edits.is_empty() { diagnostic } else { diagnostic.with_help(message, edits) }
}
