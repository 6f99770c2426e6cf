//! Expressions.

use super::super::ast::{BinaryOp, Expr, ExprKind, Ident, Init};
use super::super::lexer::{bytes_value, string_value};
use super::super::token::{Keyword, Punct, Span, TokenKind};
use super::operators::Signs;
use super::stmt::starts_value;
use super::{EXPRESSION_HEIGHT_MAX, Parse, Parser};
use crate::diagnostic::Edit;
use crate::diagnostic::m0001::{Foreign, Syntax};

/// The meaning of a brace after a name: the start of a struct value or of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Braces {
    Allowed,
    /// In the head of `if while for match`, where it starts the body.
    Head,
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parse<Expr> {
        self.expr_with(Braces::Allowed)
    }

    /// An expression in the head of `if while for match`.
    pub(super) fn head_expr(&mut self) -> Parse<Expr> {
        self.expr_with(Braces::Head)
    }

    fn expr_with(&mut self, braces: Braces) -> Parse<Expr> {
        self.nested(|parser| {
            let expr = parser.binary(0, braces)?;
            parser.ternary(expr)
        })
    }

    /// Makes an expression whose highest part has height `parts`.
    pub(super) fn finish(&mut self, kind: ExprKind, span: Span, parts: usize) -> Parse<Expr> {
        self.height = parts + 1;
        if self.height > EXPRESSION_HEIGHT_MAX {
            return Err(self.give_up(Syntax::TooDeep { limit: EXPRESSION_HEIGHT_MAX }, self.here()));
        }
        Ok(Expr { kind, span })
    }

    /// Returns the operator that stands here, and its number of tokens; more than one, or a word, is
    /// an operator of another language.
    fn operator(&self) -> Option<(BinaryOp, u32)> {
        let TokenKind::Punct(punct) = self.kind() else {
            return self.foreign_operator();
        };
        match self.foreign_punct(punct) {
            Some(Signs::Operator(op, count)) => return Some((op, count)),
            Some(Signs::Assign) => return None,
            None => {}
        }
        let op = match punct {
            Punct::Coalesce => BinaryOp::Coalesce,
            Punct::Or => BinaryOp::Or,
            Punct::And => BinaryOp::And,
            Punct::Equal => BinaryOp::Equal,
            Punct::NotEqual => BinaryOp::NotEqual,
            Punct::Less => BinaryOp::Less,
            Punct::LessEqual => BinaryOp::LessEqual,
            Punct::Greater => BinaryOp::Greater,
            Punct::GreaterEqual => BinaryOp::GreaterEqual,
            Punct::Plus => BinaryOp::Add,
            Punct::Minus => BinaryOp::Subtract,
            Punct::Star => BinaryOp::Multiply,
            Punct::Slash => BinaryOp::Divide,
            Punct::Percent => BinaryOp::Remainder,
            _ => return None,
        };
        Some((op, 1))
    }

    pub(super) fn binary(&mut self, weakest: u8, braces: Braces) -> Parse<Expr> {
        let mut left = self.unary(braces)?;
        let mut left_height = self.height;
        let mut compared = false;
        loop {
            if self.is_keyword(Keyword::In) && weakest <= BinaryOp::Equal.precedence() {
                left = self.membership(left, braces)?;
                left_height = self.height;
                continue;
            }
            let Some((op, count)) = self.operator() else { break };
            let precedence = op.precedence();
            if precedence < weakest {
                break;
            }
            if op.is_comparison() {
                if compared {
                    return Err(self.chain(&left, op));
                }
                compared = true;
            }
            self.take_operator(op, count);
            // `??` groups to the right, all others to the left.
            let right_weakest = if op == BinaryOp::Coalesce { precedence } else { precedence + 1 };
            let right = self.nested(|parser| parser.binary(right_weakest, braces))?;
            let span = left.span.to(right.span);
            let parts = left_height.max(self.height);
            let kind = ExprKind::Binary(op, Box::new(left), Box::new(right));
            left = self.finish(kind, span, parts)?;
            left_height = self.height;
            compared &= precedence >= 4;
        }
        self.height = left_height;
        Ok(left)
    }

    pub(super) fn unary(&mut self, braces: Braces) -> Parse<Expr> {
        let start = self.at;
        if self.is_foreign_prefix() {
            return self.foreign_prefix(braces);
        }
        if self.eat(Punct::Not) {
            let inner = self.nested(|parser| parser.unary(braces))?;
            let parts = self.height;
            return self.finish(ExprKind::Not(Box::new(inner)), self.since(start), parts);
        }
        if self.is(Punct::Minus) {
            if self.kind_ahead(1) == TokenKind::Int
                && let Some(expr) = self.negative_literal()?
            {
                return self.postfix(expr);
            }
            self.advance();
            let inner = self.nested(|parser| parser.unary(braces))?;
            let parts = self.height;
            return self.finish(ExprKind::Negate(Box::new(inner)), self.since(start), parts);
        }
        let primary = self.primary(braces)?;
        self.postfix(primary)
    }

    /// Reads `-` and an integer as one literal, so that the smallest `int` can be written.
    fn negative_literal(&mut self) -> Parse<Option<Expr>> {
        let start = self.at;
        self.advance();
        let digits = self.text().replace('_', "");
        let Ok(value) = format!("-{digits}").parse::<i64>() else {
            let text = format!("-{digits}");
            return Err(self.mistake(Syntax::Number { text, mended: None }));
        };
        self.advance();
        self.finish(ExprKind::Int(value), self.since(start), 0).map(Some)
    }

    fn postfix(&mut self, mut expr: Expr) -> Parse<Expr> {
        let mut height = self.height;
        loop {
            if let Some(foreign) = self.foreign_postfix(&expr) {
                let parts = height.max(self.height);
                let span = self.since(expr.span.start);
                expr = match foreign? {
                    // Brackets read an entry with `get`.
                    Some(kind) => {
                        let ExprKind::Index(_, key) = kind else {
                            expr = self.finish(ExprKind::Error, span, parts)?;
                            height = self.height;
                            continue;
                        };
                        let name = Ident { name: "get".into(), span: key.span };
                        let kind = ExprKind::Method(Box::new(expr), name, vec![*key]);
                        self.finish(kind, span, parts)?
                    }
                    None => self.finish(ExprKind::Error, span, parts)?,
                };
                height = self.height;
                continue;
            }
            if !self.eat(Punct::Dot) {
                break;
            }
            let name = self.member()?;
            let start = expr.span.start;
            let kind = if self.is(Punct::LeftParen) {
                let args = self.args(Punct::LeftParen, Punct::RightParen)?;
                ExprKind::Method(Box::new(expr), name, args)
            } else {
                self.height = 0;
                ExprKind::Field(Box::new(expr), name)
            };
            let parts = height.max(self.height);
            expr = self.finish(kind, self.since(start), parts)?;
            height = self.height;
        }
        self.height = height;
        self.policy_after(expr)
    }

    /// Reads the name after a dot. A method may have the name of a reserved word, for example `put`
    /// of maps.
    fn member(&mut self) -> Parse<Ident> {
        let is_call = self.kind_ahead(1) == TokenKind::Punct(Punct::LeftParen);
        if is_call && matches!(self.kind(), TokenKind::Keyword(_)) {
            let ident = Ident { name: self.intern(self.at), span: self.here() };
            self.advance();
            return Ok(ident);
        }
        self.ident("a field or method")
    }

    /// Reads arguments in brackets, and sets `height` to that of the highest argument.
    pub(super) fn args(&mut self, open: Punct, close: Punct) -> Parse<Vec<Expr>> {
        let at = self.at;
        self.expect(open)?;
        let (mut args, mut height) = (Vec::new(), 0);
        while !self.is(close) {
            args.push(self.expr()?);
            height = height.max(self.height);
            if self.eat(Punct::Comma) {
                continue;
            }
            if !self.starts_argument(close) {
                break;
            }
            let edit = self.insert_after(self.before(), ",");
            self.miss(",", "the value", Some(edit));
        }
        self.close_bracket(at, close)?;
        self.height = height;
        Ok(args)
    }

    /// True if another argument starts here, without the comma before it.
    fn starts_argument(&self, close: Punct) -> bool {
        let is_name = self.kind_ahead(1) == TokenKind::Punct(Punct::Colon);
        // Between strings a `+` may be missing as well.
        let is_string = |token: u32| self.kind_at(token) == TokenKind::String;
        let may_be_sum =
            close == Punct::RightParen && (is_string(self.at) || is_string(self.before()));
        starts_value(self.kind())
            && !(self.on_new_line() || self.starts_anew() || is_name || may_be_sum)
    }

    /// Reads fields and values in braces, and sets `height` to that of the highest value.
    fn inits(&mut self) -> Parse<Vec<Init>> {
        self.open_brace("the name")?;
        let (mut inits, mut height) = (Vec::new(), 0);
        while !self.is(Punct::RightBrace) {
            let name = self.ident("a field")?;
            let value = self.init_value(&name)?;
            height = height.max(self.height);
            inits.push(Init { name, value });
            let is_separator = self.kind_ahead(1) == TokenKind::Ident
                && self.kind_ahead(2) == TokenKind::Punct(Punct::Colon);
            if self.eat(Punct::Comma)
                || (is_separator && self.eat_instead(Punct::Semicolon, Punct::Comma))
            {
                continue;
            }
            let next = self.kind_ahead(1);
            let is_next = self.kind() == TokenKind::Ident
                && matches!(next, TokenKind::Punct(Punct::Colon | Punct::Assign));
            if !is_next {
                break;
            }
            let edit = self.insert_after(self.before(), ",");
            self.miss(",", "the field", Some(edit));
        }
        let ends = self.is(Punct::RightBrace) || self.is(Punct::Semicolon) || self.starts_anew();
        if !ends && !self.is_swallowed() {
            return Err(self.expected("`,` or `}`".into()));
        }
        self.close_brace();
        self.height = height;
        Ok(inits)
    }

    /// Reads `:` and the value of a field.
    fn init_value(&mut self, name: &Ident) -> Parse<Expr> {
        if matches!(self.kind(), TokenKind::Punct(Punct::Comma | Punct::RightBrace)) {
            let text = format!("{0}: {0}", name.name);
            self.foreign(Foreign::Shorthand, name.span, vec![Edit { span: name.span, text }]);
            return self.finish(ExprKind::Name(name.name.clone()), name.span, 0);
        }
        if !self.eat_instead(Punct::Assign, Punct::Colon) {
            self.expect_before(Punct::Colon, "the name", starts_value)?;
        }
        self.expr()
    }

    fn primary(&mut self, braces: Braces) -> Parse<Expr> {
        let start = self.at;
        self.height = 0;
        match self.kind() {
            TokenKind::Int | TokenKind::String if matches!(self.raw_kind(), TokenKind::Bad(_)) => {
                Ok(self.bad_literal())
            }
            TokenKind::Int => self.int(),
            TokenKind::Float => {
                let value = self.text().replace('_', "").parse().expect("the lexer saw a float");
                self.literal(ExprKind::Float(value))
            }
            TokenKind::String => {
                let value = string_value(self.text()).into();
                self.literal(ExprKind::String(value))
            }
            TokenKind::Bytes => {
                let value = bytes_value(self.text());
                self.literal(ExprKind::Bytes(value))
            }
            TokenKind::Keyword(keyword) => self.keyword_expr(keyword, braces),
            TokenKind::Ident => self.name_expr(braces),
            TokenKind::Punct(Punct::Dot) if self.kind_ahead(1) == TokenKind::Int => {
                Ok(self.point_first())
            }
            TokenKind::Punct(Punct::LeftParen) => {
                self.advance();
                let inner = self.expr()?;
                let parts = self.height;
                self.close_bracket(start, Punct::RightParen)?;
                self.finish(ExprKind::Paren(Box::new(inner)), self.since(start), parts)
            }
            TokenKind::Punct(Punct::LeftBracket) => {
                let items = self.args(Punct::LeftBracket, Punct::RightBracket)?;
                let parts = self.height;
                self.finish(ExprKind::List(items), self.since(start), parts)
            }
            _ => Err(self.expected("an expression".into())),
        }
    }

    fn literal(&mut self, kind: ExprKind) -> Parse<Expr> {
        let span = self.here();
        self.advance();
        self.finish(kind, span, 0)
    }

    fn int(&mut self) -> Parse<Expr> {
        let text = self.text().replace('_', "");
        match text.parse() {
            Ok(value) => self.literal(ExprKind::Int(value)),
            Err(_) => Err(self.mistake(Syntax::Number { text, mended: None })),
        }
    }

    fn keyword_expr(&mut self, keyword: Keyword, braces: Braces) -> Parse<Expr> {
        let start = self.at;
        match keyword {
            Keyword::True => self.literal(ExprKind::Bool(true)),
            Keyword::False => self.literal(ExprKind::Bool(false)),
            Keyword::None => self.literal(ExprKind::None),
            Keyword::Some => {
                self.advance();
                let open = self.at;
                self.expect(Punct::LeftParen)?;
                let inner = self.expr()?;
                let parts = self.height;
                self.close_bracket(open, Punct::RightParen)?;
                self.finish(ExprKind::Some(Box::new(inner)), self.since(start), parts)
            }
            Keyword::New | Keyword::Put => {
                self.advance();
                let object = self.ident("an object")?;
                if self.is(Punct::LeftParen) {
                    return self.new_call(start);
                }
                let inits = self.inits()?;
                let parts = self.height;
                if braces == Braces::Head {
                    let name = format!("{} {}", keyword.text(), object.name);
                    self.report(Syntax::StructInHead { name }, self.since(start));
                }
                let kind = ExprKind::Create { is_put: keyword == Keyword::Put, object, inits };
                self.finish(kind, self.since(start), parts)
            }
            Keyword::If => self.if_expr(),
            Keyword::Endorse => self.endorse(),
            _ => Err(self.expected("an expression".into())),
        }
    }

    fn if_expr(&mut self) -> Parse<Expr> {
        let start = self.at;
        self.advance();
        let condition = self.condition()?;
        let mut parts = self.height;
        let mut braced = |parser: &mut Self| -> Parse<Expr> {
            parser.open_brace("the condition")?;
            let inner = parser.expr()?;
            parts = parts.max(parser.height);
            if !parser.is(Punct::RightBrace) && !parser.is_keyword(Keyword::Else) {
                return Err(parser.expected("`}`".into()));
            }
            parser.close_brace();
            Ok(inner)
        };
        let then = braced(self)?;
        if !self.eat_keyword(Keyword::Else) {
            return Err(
                self.expected("`else`: an `if` that gives a value needs both branches".into())
            );
        }
        let otherwise = if self.is_keyword(Keyword::If) {
            let inner = self.nested(Self::if_expr)?;
            parts = parts.max(self.height);
            inner
        } else {
            braced(self)?
        };
        let kind = ExprKind::If(Box::new(condition), Box::new(then), Box::new(otherwise));
        self.finish(kind, self.since(start), parts)
    }

    fn endorse(&mut self) -> Parse<Expr> {
        let start = self.at;
        self.advance();
        let open = self.at;
        self.expect(Punct::LeftParen)?;
        let value = self.expr()?;
        let parts = self.height;
        self.close_bracket(open, Punct::RightParen)?;
        if !self.eat_keyword(Keyword::As) {
            return Err(self.expected("`as` and a level".into()));
        }
        let level = self.ident("a level")?;
        let mut reason = None;
        let is_string = self.kind() == TokenKind::String;
        if is_string {
            let edit = self.insert_after(self.before(), " because");
            self.miss("because", "the level", Some(edit));
        }
        if is_string || self.eat_keyword(Keyword::Because) {
            if self.kind() != TokenKind::String {
                return Err(self.expected("the reason, as a string".into()));
            }
            let is_bad = matches!(self.raw_kind(), TokenKind::Bad(_));
            let text = if is_bad { "…".to_owned() } else { string_value(self.text()) };
            reason = Some((text.into(), self.here()));
            self.advance();
        }
        let kind = ExprKind::Endorse { value: Box::new(value), level, reason };
        self.finish(kind, self.since(start), parts)
    }

    fn name_expr(&mut self, braces: Braces) -> Parse<Expr> {
        let start = self.at;
        let name = self.ident("a name")?;
        if self.is(Punct::LeftParen) {
            let args = self.args(Punct::LeftParen, Punct::RightParen)?;
            let parts = self.height;
            return self.finish(ExprKind::Call(name, args), self.since(start), parts);
        }
        let open = self.at;
        if self.eat(Punct::LeftBracket) {
            let key = self.expr()?;
            let parts = self.height;
            self.close_bracket(open, Punct::RightBracket)?;
            return self.finish(ExprKind::Index(name, Box::new(key)), self.since(start), parts);
        }
        if self.is(Punct::LeftBrace) && self.is_struct_value(braces) {
            let inits = self.inits()?;
            let parts = self.height;
            if braces == Braces::Head {
                let syntax = Syntax::StructInHead { name: name.name.to_string() };
                self.report(syntax, self.since(start));
            }
            return self.finish(ExprKind::Struct(name, inits), self.since(start), parts);
        }
        self.finish(ExprKind::Name(name.name), name.span, 0)
    }

    /// True if the brace after a name holds fields.
    ///
    /// In a head, empty braces are the body; braces that hold fields are a mistake there in any case.
    fn is_struct_value(&self, braces: Braces) -> bool {
        match (self.kind_ahead(1), self.kind_ahead(2)) {
            (TokenKind::Ident, TokenKind::Punct(Punct::Colon)) => true,
            (TokenKind::Punct(Punct::RightBrace), _) => braces == Braces::Allowed,
            // Broken fields: outside of a head nothing else begins on the line of the brace.
            _ => braces == Braces::Allowed && !self.is_first_of_line(self.ahead(1)),
        }
    }
}
