//! Expressions.

use super::super::ast::{BinaryOp, Expr, ExprKind, Ident, Init};
use super::super::lexer::{bytes_value, string_value};
use super::super::token::{Keyword, Punct, Span, TokenKind};
use super::{EXPRESSION_HEIGHT_MAX, Parse, Parser};
use crate::diagnostic::m0001::Syntax;

/// The meaning of a brace after a name: the start of a struct value or of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Braces {
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
        self.nested(|parser| parser.binary(0, braces))
    }

    /// Makes an expression whose highest part has height `parts`.
    fn finish(&mut self, kind: ExprKind, span: Span, parts: usize) -> Parse<Expr> {
        self.height = parts + 1;
        if self.height > EXPRESSION_HEIGHT_MAX {
            return Err(self.give_up(Syntax::TooDeep { limit: EXPRESSION_HEIGHT_MAX }, self.here()));
        }
        Ok(Expr { kind, span })
    }

    fn operator(&self) -> Option<BinaryOp> {
        let TokenKind::Punct(punct) = self.kind() else {
            return None;
        };
        Some(match punct {
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
        })
    }

    fn binary(&mut self, weakest: u8, braces: Braces) -> Parse<Expr> {
        let mut left = self.unary(braces)?;
        let mut left_height = self.height;
        let mut compared = false;
        while let Some(op) = self.operator() {
            let precedence = op.precedence();
            if precedence < weakest {
                break;
            }
            if op.is_comparison() {
                if compared {
                    return Err(self.mistake(Syntax::Chain { operator: op.text() }));
                }
                compared = true;
            }
            self.advance();
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

    fn unary(&mut self, braces: Braces) -> Parse<Expr> {
        let start = self.at;
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
            return Err(self.mistake(Syntax::Number { text: format!("-{digits}") }));
        };
        self.advance();
        self.finish(ExprKind::Int(value), self.since(start), 0).map(Some)
    }

    fn postfix(&mut self, mut expr: Expr) -> Parse<Expr> {
        let mut height = self.height;
        while self.eat(Punct::Dot) {
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
        Ok(expr)
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
    fn args(&mut self, open: Punct, close: Punct) -> Parse<Vec<Expr>> {
        self.expect(open)?;
        let (mut args, mut height) = (Vec::new(), 0);
        while !self.is(close) {
            args.push(self.expr()?);
            height = height.max(self.height);
            if !self.eat(Punct::Comma) {
                break;
            }
        }
        if !self.is(close) {
            return Err(self.expected(format!("`,` or `{}`", close.text())));
        }
        self.advance();
        self.height = height;
        Ok(args)
    }

    /// Reads fields and values in braces, and sets `height` to that of the highest value.
    fn inits(&mut self) -> Parse<Vec<Init>> {
        self.expect(Punct::LeftBrace)?;
        let (mut inits, mut height) = (Vec::new(), 0);
        while !self.is(Punct::RightBrace) {
            let name = self.ident("a field")?;
            self.expect(Punct::Colon)?;
            let value = self.expr()?;
            height = height.max(self.height);
            inits.push(Init { name, value });
            if !self.eat(Punct::Comma) {
                break;
            }
        }
        if !self.is(Punct::RightBrace) {
            return Err(self.expected("`,` or `}`".into()));
        }
        self.advance();
        self.height = height;
        Ok(inits)
    }

    fn primary(&mut self, braces: Braces) -> Parse<Expr> {
        let start = self.at;
        self.height = 0;
        match self.kind() {
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
            TokenKind::Punct(Punct::LeftParen) => {
                self.advance();
                let inner = self.expr()?;
                let parts = self.height;
                if !self.eat(Punct::RightParen) {
                    return Err(self.expected("`)`".into()));
                }
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
            Err(_) => Err(self.mistake(Syntax::Number { text })),
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
                self.expect(Punct::LeftParen)?;
                let inner = self.expr()?;
                let parts = self.height;
                self.expect(Punct::RightParen)?;
                self.finish(ExprKind::Some(Box::new(inner)), self.since(start), parts)
            }
            Keyword::New | Keyword::Put => {
                self.advance();
                let object = self.ident("an object")?;
                if braces == Braces::Head {
                    let name = format!("{} {}", keyword.text(), object.name);
                    self.report(Syntax::StructInHead { name }, self.since(start));
                }
                let inits = self.inits()?;
                let parts = self.height;
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
        let condition = self.head_expr()?;
        let mut parts = self.height;
        let mut braced = |parser: &mut Self| -> Parse<Expr> {
            parser.expect(Punct::LeftBrace)?;
            let inner = parser.expr()?;
            parts = parts.max(parser.height);
            parser.expect(Punct::RightBrace)?;
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
        self.expect(Punct::LeftParen)?;
        let value = self.expr()?;
        let parts = self.height;
        self.expect(Punct::RightParen)?;
        if !self.eat_keyword(Keyword::As) {
            return Err(self.expected("`as` and a level".into()));
        }
        let level = self.ident("a level")?;
        let mut reason = None;
        if self.eat_keyword(Keyword::Because) {
            if self.kind() != TokenKind::String {
                return Err(self.expected("the reason, as a string".into()));
            }
            reason = Some((string_value(self.text()).into(), self.here()));
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
        if self.eat(Punct::LeftBracket) {
            let key = self.expr()?;
            let parts = self.height;
            if !self.eat(Punct::RightBracket) {
                return Err(self.expected("`]`".into()));
            }
            return self.finish(ExprKind::Index(name, Box::new(key)), self.since(start), parts);
        }
        if self.is(Punct::LeftBrace) && self.is_struct_value(braces) {
            if braces == Braces::Head {
                self.report(Syntax::StructInHead { name: name.name.to_string() }, name.span);
            }
            let inits = self.inits()?;
            let parts = self.height;
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
            _ => false,
        }
    }
}
