//! The parser: recursive descent, with operators by precedence.
//!
//! It recovers: where the meaning of a mistake is clear, for example a missing `;` or a word of
//! another language, it reports the mistake with the edit that mends it and reads on as if it were
//! mended. Any other mistake loses its statement, and a mistake in the head of an item loses the
//! rest of that item. Mistakes after it are reported too.

mod allow;
mod enumeration;
mod expr;
mod field;
mod foreign;
mod foreign_item;
mod foreign_value;
mod import;
mod index;
mod item;
mod odd;
mod operators;
mod policy;
mod recovery;
mod skip;
mod stmt;
mod types;

use std::collections::HashSet;

use mingle_model::Name;

use super::ast::{Ident, Program};
use super::token::{BadToken, Keyword, Punct, Source, Span, TokenKind};
use crate::diagnostic::m0001::{self, Syntax};
use crate::diagnostic::{Diagnostic, Diagnostics};
use odd::Odd;
use recovery::Missing;

/// The maximum depth of the parser's recursion: blocks in blocks, parentheses in parentheses.
pub const NESTING_MAX: usize = 128;

/// The maximum height of an expression, so that later passes can recurse too.
pub const EXPRESSION_HEIGHT_MAX: usize = 256;

/// The maximum number of mistakes; after that, reading stops.
const MISTAKES_MAX: usize = 500;

/// Words that start an item if a name follows them.
const ITEM_WORDS: [&str; 8] =
    ["level", "store", "object", "struct", "enum", "fn", "transaction", "isolated"];

/// Reads a program from its tokens. Unreadable parts are missing from the tree and described by the
/// diagnostics.
///
/// # Examples
///
/// ```
/// use mingle_lang::syntax::{lex, parse};
///
/// let (program, diagnostics) = parse(&lex("store accounts: linearizable;"));
/// assert_eq!((program.items.len(), diagnostics.len()), (1, 0));
/// ```
pub fn parse(source: &Source) -> (Program, Vec<Diagnostic>) {
    let odd = Odd::find(source);
    let mut parser = Parser {
        source,
        at: 0,
        end: source.end_of_file(0),
        skipped: odd.skipped,
        torn: odd.torn,
        given_up: Vec::new(),
        next_skipped: 0,
        is_lost: false,
        item_start: 0,
        open_braces: Vec::new(),
        missing: Vec::new(),
        meant: None,
        gives_result: false,
        is_doubtful: false,
        is_unbalanced: false,
        greater_split: false,
        depth: 0,
        height: 0,
        names: HashSet::new(),
        diagnostics: Diagnostics::default(),
        last_mistake: None,
        mistakes: 0,
    };
    parser.skip_odd();
    let program = parser.program();
    parser.report_missing();
    parser.report_odd(odd.mistakes);
    (program, parser.diagnostics.into_sorted())
}

/// The error after a mistake was reported; a caller that can recover continues after it.
struct Mistake;

type Parse<T> = Result<T, Mistake>;

struct Parser<'a> {
    source: &'a Source,
    at: u32,
    /// The end of the file that is read.
    end: u32,
    /// Runs of tokens that are no part of the program, and the first of them that lies ahead.
    skipped: Vec<Span>,
    next_skipped: usize,
    /// Lines torn by a string without an end: other mistakes there follow from it.
    torn: Vec<Span>,
    /// The parts that were skipped after a mistake.
    given_up: Vec<Span>,
    /// True if a part was lost that other parts may name.
    is_lost: bool,
    /// The first token of the current item.
    item_start: u32,
    /// The opening braces around the current token.
    open_braces: Vec<u32>,
    /// Missing punctuation, reported at the end.
    missing: Vec<Missing>,
    /// A word of another language, and the word that is meant.
    meant: Option<(u32, Keyword)>,
    /// True if a bracket of the current statement has no counterpart, so that its parts may belong
    /// together differently.
    is_doubtful: bool,
    /// True if a brace of the current item has no counterpart.
    is_unbalanced: bool,
    /// True in a transaction that declares a result.
    gives_result: bool,
    /// True if the `>` of the `>=` at `at` was taken as the end of a type.
    greater_split: bool,
    depth: usize,
    /// The height of the expression read last.
    height: usize,
    names: HashSet<Name>,
    diagnostics: Diagnostics,
    /// The token at which the last mistake was reported.
    last_mistake: Option<u32>,
    mistakes: usize,
}

impl Parser<'_> {
    /// Returns the kind of the current token, or the kind that is meant.
    fn kind(&self) -> TokenKind {
        if let Some((at, keyword)) = self.meant
            && at == self.at
        {
            return TokenKind::Keyword(keyword);
        }
        let kind = self.kind_at(self.at);
        if self.greater_split && kind == TokenKind::Punct(Punct::GreaterEqual) {
            return TokenKind::Punct(Punct::Assign);
        }
        kind
    }

    fn raw_kind(&self) -> TokenKind {
        self.source.tokens[self.at as usize].kind
    }

    fn kind_at(&self, token: u32) -> TokenKind {
        match self.source.tokens[self.end.min(token) as usize].kind {
            TokenKind::Bad(BadToken::Lookalike(punct)) => TokenKind::Punct(punct),
            TokenKind::Bad(BadToken::Quotes | BadToken::UnterminatedString | BadToken::Escape) => {
                TokenKind::String
            }
            TokenKind::Bad(BadToken::Number) => TokenKind::Int,
            kind => kind,
        }
    }

    fn kind_ahead(&self, ahead: u32) -> TokenKind {
        self.kind_at(self.ahead(ahead))
    }

    /// Returns the token this far ahead; odd tokens do not count.
    fn ahead(&self, ahead: u32) -> u32 {
        let mut at = self.at + ahead;
        for span in &self.skipped[self.next_skipped..] {
            if span.start > at {
                break;
            }
            at += span.end - span.start;
        }
        at.min(self.end)
    }

    /// Passes over odd tokens at the current place.
    fn skip_odd(&mut self) {
        while let Some(span) = self.skipped.get(self.next_skipped) {
            if span.start > self.at {
                return;
            }
            self.at = self.at.max(span.end);
            self.next_skipped += 1;
        }
    }

    fn text(&self) -> &str {
        self.source.token_text(self.at)
    }

    fn text_ahead(&self, ahead: u32) -> &str {
        self.source.token_text(self.ahead(ahead))
    }

    fn here(&self) -> Span {
        Span::token(self.at)
    }

    /// Returns the span from `start` to the token before this one.
    fn since(&self, start: u32) -> Span {
        Span { start, end: (self.before() + 1).max(start).min(self.at.max(start)) }
    }

    fn advance(&mut self) {
        if self.kind() != TokenKind::End {
            self.at += 1;
            self.greater_split = false;
            self.skip_odd();
        }
    }

    fn is(&self, punct: Punct) -> bool {
        self.kind() == TokenKind::Punct(punct)
    }

    fn is_keyword(&self, keyword: Keyword) -> bool {
        self.kind() == TokenKind::Keyword(keyword)
    }

    fn is_word(&self, word: &str) -> bool {
        self.kind() == TokenKind::Ident && self.text() == word
    }

    fn eat(&mut self, punct: Punct) -> bool {
        let found = self.is(punct);
        if found {
            self.advance();
        }
        found
    }

    fn eat_keyword(&mut self, keyword: Keyword) -> bool {
        let found = self.is_keyword(keyword);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, punct: Punct) -> Parse<()> {
        if self.eat(punct) { Ok(()) } else { Err(self.expected(format!("`{}`", punct.text()))) }
    }

    /// Expects the `>` that ends a type's arguments, also as the first half of `>=`.
    fn close_angle(&mut self) -> Parse<()> {
        if self.eat(Punct::Greater) {
            return Ok(());
        }
        if self.is(Punct::GreaterEqual) {
            self.greater_split = true;
            return Ok(());
        }
        Err(self.expected("`>`".into()))
    }

    fn expect_word(&mut self, word: &str) -> Parse<()> {
        if self.is_word(word) {
            self.advance();
            return Ok(());
        }
        Err(self.expected(format!("`{word}`")))
    }

    fn ident(&mut self, what: &str) -> Parse<Ident> {
        match self.kind() {
            TokenKind::Ident => {
                let ident = Ident { name: self.intern(self.at), span: self.here() };
                self.advance();
                Ok(ident)
            }
            TokenKind::Keyword(word) => {
                let word = word.text().to_owned();
                Err(self.mistake(Syntax::ReservedWord { word, expected: what.to_owned() }))
            }
            _ => Err(self.expected(what.to_owned())),
        }
    }

    fn intern(&mut self, token: u32) -> Name {
        let text = self.source.token_text(token);
        if let Some(name) = self.names.get(text) {
            return name.clone();
        }
        let name = Name::from(text);
        self.names.insert(name.clone());
        name
    }

    fn found(&self) -> String {
        match self.kind() {
            TokenKind::End => "the end of the program".into(),
            TokenKind::Keyword(word) => format!("`{}`", word.text()),
            TokenKind::Punct(punct) => format!("`{}`", punct.text()),
            _ => {
                let shown: String = self.text().chars().take(30).collect();
                format!("`{}`", shown.escape_debug().to_string().replace("\\\"", "\""))
            }
        }
    }

    /// Reports that another token was expected here.
    fn expected(&mut self, expected: String) -> Mistake {
        if self.is_swallowed() {
            return Mistake;
        }
        let syntax = match self.raw_kind() {
            TokenKind::Bad(BadToken::Character) => {
                Syntax::Character { text: self.text().to_owned() }
            }
            _ => Syntax::Expected { expected, found: self.found() },
        };
        self.mistake(syntax)
    }

    fn mistake(&mut self, syntax: Syntax) -> Mistake {
        self.report(syntax, self.here());
        Mistake
    }

    fn report(&mut self, syntax: Syntax, span: Span) {
        // A second complaint about the same token is about the first mistake again.
        let is_torn =
            self.torn.iter().any(|line| line.start <= span.start && span.start < line.end);
        if self.last_mistake == Some(span.start) || is_torn {
            return;
        }
        self.last_mistake = Some(span.start);
        self.mistakes += 1;
        if self.mistakes > MISTAKES_MAX {
            self.give_up(Syntax::TooMany, span);
        } else {
            self.diagnostics.push(m0001::render(syntax, span));
        }
    }

    /// Reports a mistake, and reads no further.
    fn give_up(&mut self, syntax: Syntax, span: Span) -> Mistake {
        self.diagnostics.push(m0001::render(syntax, span));
        self.at = self.end;
        self.last_mistake = Some(self.at);
        Mistake
    }

    /// Runs `read` one nesting level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= NESTING_MAX {
            return Err(self.give_up(Syntax::TooDeep { limit: NESTING_MAX }, self.here()));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Returns the doc comment before the current token.
    fn docs(&self) -> String {
        let trivia = self.source.trivia_before(self.at);
        let lines = trivia.iter().filter(|trivia| trivia.is_doc);
        let texts = lines.map(|line| {
            let text = &self.source.trivia_text(*line)[3..];
            text.strip_prefix(' ').unwrap_or(text)
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::lex;

    fn titles(text: &str) -> Vec<String> {
        let (_, diagnostics) = parse(&lex(text));
        diagnostics.into_iter().map(|diagnostic| diagnostic.title).collect()
    }

    #[test]
    fn each_mistake_is_reported_once() {
        let text = "store a: ;\nobject O in a { key k string; n: int }\n\
                    transaction t() { let = 1; n.x = ; let y = 2 }\nfn f() -> int { 1 + }\n";
        assert_eq!(
            titles(text),
            [
                "expected the store's level, found `;`",
                "expected `:` after the name, found `string`",
                "expected `;` after the field, found `}`",
                "expected the name of the variable, found `=`",
                "expected an expression, found `;`",
                "expected `;` after the value, found `}`",
                "expected an expression, found `}`",
            ]
        );
    }

    #[test]
    fn a_map_has_an_operation_put() {
        assert_eq!(titles("transaction t(r: ref R) { r.map.put(1, 2); }"), [""; 0]);
        assert_eq!(titles("transaction t(r: ref R) { r.put = 1; }").len(), 1);
    }

    #[test]
    fn words_of_statements_in_items_are_passed() {
        assert_eq!(titles("object O in s { key k: int; a: int for; b: int; }").len(), 1);
        assert_eq!(titles("store s: causal { query a() let; while }").len(), 1);
    }

    #[test]
    fn a_mistake_is_no_reason_for_the_next() {
        for text in [
            "match o { some(v) => { a = v; } some(w) => { a = w; } } b = 1;",
            "match o { some(v) => a = v, none => {} } b = 1;",
            "match o { some(v => { a = v; } none => {} } b = 1;",
            "if a == P { a: 1 } { b = 1; }",
        ] {
            let found = titles(&format!("transaction t() {{ {text} }} fn f() -> int {{ 1 }}"));
            assert_eq!(found.len(), 1, "{text}: {found:?}");
        }
        let found = titles("transaction t(let: int, a b: int, c: list<int) { d = ; }");
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(
            titles("object O in s { key k: int; a: int = 3 within 5%; b: int within 5% = 3; }"),
            [
                "`within …` is reserved for a later version of the language",
                "`within …` is reserved for a later version of the language",
            ]
        );
    }

    #[test]
    fn a_broken_part_hides_none_beside_it() {
        let text = "struct P { a: int b: int, c int, d: option, }\n\
                    fn f(x: int y: , z: int) -> int { let = 1; let w = ; x }\n\
                    transaction t(a: int b: int, c int) { let = 2; }\n";
        assert_eq!(
            titles(text),
            [
                "expected `,` after the field, found `b`",
                "expected `:` after the name, found `int`",
                "expected `<` after `option`, found `,`",
                "expected `,` after the parameter, found `y`",
                "expected a type, found `,`",
                "expected the name of the variable, found `=`",
                "expected an expression, found `;`",
                "expected `,` after the parameter, found `b`",
                "expected `:` after the name, found `int`",
                "expected the name of the variable, found `=`",
            ]
        );
    }

    #[test]
    fn depth_is_bounded() {
        for text in [
            format!("fn f() -> int {{ {}1{} }}", "(".repeat(10_000), ")".repeat(10_000)),
            format!("fn f() -> int {{ 1{} }}", "+1".repeat(10_000)),
            format!("fn f() -> bool {{ {}true }}", "!".repeat(10_000)),
            format!("transaction t() {{ {}", "if true {".repeat(10_000)),
            format!("fn f() -> {}int", "option<".repeat(10_000)),
            format!("fn f() -> int {{ {}", "if true { 1 } else ".repeat(10_000)),
            format!("fn f() -> int {{ a{} }}", ".b".repeat(10_000)),
        ] {
            let titles = titles(&text);
            assert!(titles[0].starts_with("nested more than"), "{titles:?}");
        }
    }

    #[test]
    fn type_arguments_may_end_at_an_assignment() {
        assert_eq!(
            titles(
                "object O in s { key k: int; f: option<option<int>>= none; g: option<int>=none; }"
            ),
            [""; 0]
        );
    }
}
