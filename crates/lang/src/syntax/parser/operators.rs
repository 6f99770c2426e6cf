//! Operators and literals of other languages, in expressions.

use super::super::ast::{BinaryOp, Expr, ExprKind, Ident};
use super::super::lexer::bytes_value;
use super::super::token::{BadToken, Punct, Span, TokenKind};
use super::expr::Braces;
use super::{Mistake, Parse, Parser};
use crate::diagnostic::Edit;
use crate::diagnostic::m0001::{Foreign, Syntax};

/// Two signs side by side that other languages have.
pub(super) enum Signs {
    /// An operator, and its number of tokens.
    Operator(BinaryOp, u32),
    /// They assign, or count up and down.
    Assign,
}

impl Parser<'_> {
    /// Returns the operator that a word or a character of another language means here.
    pub(super) fn foreign_operator(&self) -> Option<(BinaryOp, u32)> {
        let one = |op| Some((op, 1));
        if self.kind() == TokenKind::Ident {
            return match self.text() {
                "and" | "AND" => one(BinaryOp::And),
                "or" | "OR" => one(BinaryOp::Or),
                "is" if self.source.token_text(self.ahead(1)) == "not" => {
                    Some((BinaryOp::NotEqual, 2))
                }
                "is" => one(BinaryOp::Equal),
                "mod" | "MOD" => one(BinaryOp::Remainder),
                _ => None,
            };
        }
        match self.raw_kind() {
            TokenKind::Bad(BadToken::Character) if self.text() == "&" => one(BinaryOp::And),
            TokenKind::Bad(BadToken::Character) if self.text() == "|" => one(BinaryOp::Or),
            _ => None,
        }
    }

    /// Returns the meaning of two signs of another language; none if this is one sign.
    pub(super) fn foreign_punct(&self, punct: Punct) -> Option<Signs> {
        if !self.is_adjacent(self.at) {
            return None;
        }
        match (punct, self.kind_ahead(1)) {
            (Punct::Less, TokenKind::Punct(Punct::Greater)) => {
                Some(Signs::Operator(BinaryOp::NotEqual, 2))
            }
            (Punct::Star, TokenKind::Punct(Punct::Star)) => {
                Some(Signs::Operator(BinaryOp::Multiply, 2))
            }
            (Punct::Plus, TokenKind::Punct(Punct::Plus)) => Some(Signs::Assign),
            (Punct::Minus, TokenKind::Punct(Punct::Minus)) => {
                let after = self.kind_ahead(2);
                let ends = matches!(
                    after,
                    TokenKind::Punct(Punct::Semicolon | Punct::RightParen | Punct::RightBrace)
                );
                ends.then_some(Signs::Assign)
            }
            (
                Punct::Star
                | Punct::Slash
                | Punct::Percent
                | Punct::And
                | Punct::Or
                | Punct::Coalesce,
                TokenKind::Punct(Punct::Assign),
            ) => Some(Signs::Assign),
            _ => None,
        }
    }

    /// Passes over an operator, and reports one of another language.
    pub(super) fn take_operator(&mut self, op: BinaryOp, count: u32) {
        let is_plain = count == 1
            && matches!(
                self.raw_kind(),
                TokenKind::Punct(_) | TokenKind::Bad(BadToken::Lookalike(_))
            );
        let start = self.at;
        for _ in 0..count {
            self.advance();
        }
        if is_plain {
            return;
        }
        let span = self.since(start);
        let (found, means) = (self.source.span_text(span).to_owned(), op.text().to_owned());
        if found == "**" {
            self.foreign(Foreign::Power, span, Vec::new());
            return;
        }
        let edits = vec![Edit { span, text: means.clone() }];
        self.foreign(Foreign::Sign { found, means }, span, edits);
    }

    /// Reports a chain of comparisons.
    pub(super) fn chain(&mut self, left: &Expr, op: BinaryOp) -> Mistake {
        let middle = match &left.kind {
            ExprKind::Binary(_, _, right) => Some(right.span),
            _ => None,
        };
        let here = self.here();
        let edits = middle.map_or_else(Vec::new, |middle| {
            let text = format!("&& {} {}", self.source.span_text(middle), op.text());
            vec![Edit { span: here, text }]
        });
        self.mistake(Syntax::Chain { operator: op.text(), edits })
    }

    /// Reads `x in xs`.
    pub(super) fn membership(&mut self, left: Expr, braces: Braces) -> Parse<Expr> {
        let (start, word) = (left.span.start, self.here());
        self.advance();
        let right = self.binary(BinaryOp::Equal.precedence() + 1, braces)?;
        let span = self.since(start);
        let text = format!(
            "{}.contains({})",
            self.source.span_text(right.span),
            self.source.span_text(left.span)
        );
        self.foreign(Foreign::In, word, vec![Edit { span, text }]);
        let name = Ident { name: "contains".into(), span: word };
        let parts = self.height + 1;
        self.finish(ExprKind::Method(Box::new(right), name, vec![left]), span, parts)
    }

    /// True if a word stands here that other languages write before a value.
    pub(super) fn is_foreign_prefix(&self) -> bool {
        if self.kind() != TokenKind::Ident || !matches!(self.text(), "not" | "NOT" | "await") {
            return false;
        }
        let next = self.kind_ahead(1);
        let is_value = super::stmt::starts_value(next) || next == TokenKind::Ident;
        is_value
            && !matches!(
                next,
                TokenKind::Punct(Punct::LeftParen | Punct::LeftBracket | Punct::Minus | Punct::Not)
            )
    }

    pub(super) fn foreign_prefix(&mut self, braces: Braces) -> Parse<Expr> {
        let start = self.at;
        if self.text() == "await" {
            self.await_word();
            return self.nested(|parser| parser.unary(braces));
        }
        let span = Span { start, end: self.ahead(1) + 1 };
        let text = format!("!{}", self.source.token_text(self.ahead(1)));
        let sign = Foreign::Sign { found: self.text().to_owned(), means: "!".into() };
        self.foreign(sign, self.here(), vec![Edit { span, text }]);
        self.advance();
        let inner = self.nested(|parser| parser.unary(braces))?;
        let parts = self.height;
        self.finish(ExprKind::Not(Box::new(inner)), self.since(start), parts)
    }

    /// Reads what other languages write after a value: brackets, `..`, `::`, `?.`. The result is none
    /// inside for a value without meaning here, an index for brackets, and none at all if no such
    /// thing stands here.
    pub(super) fn foreign_postfix(&mut self, expr: &Expr) -> Option<Parse<Option<ExprKind>>> {
        let next = self.kind_ahead(1);
        let is_two = |parser: &Self, punct: Punct| {
            parser.is(punct) && next == TokenKind::Punct(punct) && parser.is_adjacent(parser.at)
        };
        if self.is(Punct::LeftBracket) && !self.on_new_line() {
            return Some(self.index(expr));
        }
        if is_two(self, Punct::Dot) {
            return Some(self.range(expr));
        }
        if is_two(self, Punct::Colon) && self.kind_ahead(2) == TokenKind::Ident {
            let span = Span { start: self.at, end: self.ahead(1) + 1 };
            self.foreign(Foreign::Path, span, vec![Edit { span, text: ".".into() }]);
            self.advance();
            self.advance();
            return Some(self.dropped_member());
        }
        if self.is(Punct::Dot)
            && !matches!(next, TokenKind::Ident | TokenKind::Keyword(_))
            && matches!(expr.kind, ExprKind::Int(_))
            && self.is_adjacent(self.before())
        {
            let span = Span { start: expr.span.start, end: self.at + 1 };
            let text = self.source.span_text(span).to_owned();
            let mended = Some(format!("{text}0"));
            self.advance();
            self.report(Syntax::Number { text, mended }, span);
            return Some(Ok(None));
        }
        if !self.is_text("?") {
            return None;
        }
        let ends = matches!(
            next,
            TokenKind::Punct(
                Punct::Semicolon | Punct::RightParen | Punct::Comma | Punct::RightBrace
            )
        );
        let is_chain = next == TokenKind::Punct(Punct::Dot) && self.is_adjacent(self.at);
        if !ends && !is_chain {
            return None;
        }
        let span = self.here();
        self.foreign(Foreign::OptionMark, span, Vec::new());
        self.advance();
        if is_chain {
            self.advance();
            return Some(self.dropped_member());
        }
        Some(Ok(None))
    }

    /// Reads a field or operation whose value has no meaning.
    fn dropped_member(&mut self) -> Parse<Option<ExprKind>> {
        self.ident("a field or method")?;
        if self.is(Punct::LeftParen) {
            self.args(Punct::LeftParen, Punct::RightParen)?;
        }
        Ok(None)
    }

    /// Reads `[key]` after a value, and a value that is assigned to that entry.
    fn index(&mut self, expr: &Expr) -> Parse<Option<ExprKind>> {
        let open = self.at;
        self.advance();
        let key = self.expr()?;
        self.close_bracket(open, Punct::RightBracket)?;
        let brackets = self.since(open);
        let (on, key_text) = (
            self.source.span_text(expr.span).to_owned(),
            self.source.span_text(key.span).to_owned(),
        );
        if self.is(Punct::Assign) {
            self.advance();
            let value = self.expr()?;
            let span = Span { start: expr.span.start, end: value.span.end };
            let value = self.source.span_text(value.span);
            let text = format!("{on}.put({key_text}, {value})");
            self.foreign(Foreign::AssignEntry, brackets, vec![Edit { span, text }]);
            return Ok(None);
        }
        let span = Span { start: expr.span.start, end: brackets.end };
        let text = format!("{on}.get({key_text})");
        self.foreign(Foreign::IndexValue, brackets, vec![Edit { span, text }]);
        let name = Ident { name: "get".into(), span: brackets };
        Ok(Some(ExprKind::Index(name, Box::new(key))))
    }

    /// Reads `..` and the end of a range.
    fn range(&mut self, expr: &Expr) -> Parse<Option<ExprKind>> {
        self.advance();
        self.advance();
        self.eat(Punct::Assign);
        if super::stmt::starts_value(self.kind()) {
            self.binary(BinaryOp::Add.precedence(), Braces::Head)?;
        }
        let span = self.since(expr.span.start);
        self.foreign(Foreign::Range, span, Vec::new());
        Ok(None)
    }

    /// Reads `? a : b` after a condition.
    pub(super) fn ternary(&mut self, condition: Expr) -> Parse<Expr> {
        if !self.is_text("?") {
            return Ok(condition);
        }
        let (start, mark) = (condition.span.start, self.here());
        let parts = self.height;
        self.advance();
        let then = self.expr()?;
        let parts = parts.max(self.height);
        self.expect(Punct::Colon)?;
        let otherwise = self.expr()?;
        let parts = parts.max(self.height);
        let text = |expr: &Expr| self.source.span_text(expr.span);
        let span = self.since(start);
        let text = format!(
            "if {} {{ {} }} else {{ {} }}",
            text(&condition),
            text(&then),
            text(&otherwise)
        );
        self.foreign(Foreign::Ternary, mark, vec![Edit { span, text }]);
        let kind = ExprKind::If(Box::new(condition), Box::new(then), Box::new(otherwise));
        self.finish(kind, span, parts)
    }

    /// Reads a literal that was reported.
    pub(super) fn bad_literal(&mut self) -> Expr {
        let span = self.here();
        let text = self.text();
        let kind = match self.raw_kind() {
            TokenKind::Bad(BadToken::Number) => ExprKind::Error,
            // A character in other languages, perhaps not a string.
            _ if text.starts_with('\'') && text.chars().count() == 3 => ExprKind::Error,
            _ if text.starts_with("b\"") => ExprKind::Bytes(bytes_value("b\"\"")),
            _ => ExprKind::String("".into()),
        };
        self.advance();
        self.height = 1;
        Expr { kind, span }
    }

    /// Reads a number that begins with its point.
    pub(super) fn point_first(&mut self) -> Expr {
        let start = self.at;
        self.advance();
        self.advance();
        let span = self.since(start);
        let text = self.source.span_text(span).to_owned();
        let mended = Some(format!("0{text}"));
        self.report(Syntax::Number { text, mended }, span);
        self.height = 1;
        Expr { kind: ExprKind::Error, span }
    }

    /// Reads the arguments of `new O(…)`.
    pub(super) fn new_call(&mut self, start: u32) -> Parse<Expr> {
        let span = self.since(start);
        self.foreign(Foreign::NewCall, span, Vec::new());
        if self.args(Punct::LeftParen, Punct::RightParen).is_err() {
            while !self.is(Punct::Semicolon) && !self.starts_anew() {
                self.advance();
            }
        }
        self.finish(ExprKind::Error, self.since(start), 0)
    }
}
