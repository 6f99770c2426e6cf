//! Statements.

use super::super::ast::{AssignOp, Block, Else, Expr, ExprKind, Ident, If, Let, Stmt, StmtKind};
use super::super::token::{Keyword, Punct, TokenKind};
use super::{Mistake, Parse, Parser};
use crate::diagnostic::m0001::Syntax;

impl Parser<'_> {
    pub(super) fn block(&mut self) -> Parse<Block> {
        self.nested(|parser| {
            let start = parser.at;
            parser.expect(Punct::LeftBrace)?;
            let statements = parser.statements();
            parser.expect(Punct::RightBrace)?;
            Ok(Block { statements, span: parser.since(start) })
        })
    }

    fn statements(&mut self) -> Vec<Stmt> {
        let mut statements = Vec::new();
        while !self.is(Punct::RightBrace) && self.kind() != TokenKind::End && !self.at_item() {
            let start = self.at;
            let kind = self.statement().unwrap_or_else(|Mistake| {
                self.skip_statement();
                if self.at == start {
                    self.advance();
                }
                StmtKind::Error
            });
            statements.push(Stmt { kind, span: self.since(start) });
        }
        statements
    }

    pub(super) fn at_let(&self) -> bool {
        self.is_keyword(Keyword::Let) || self.is_keyword(Keyword::Var)
    }

    fn statement(&mut self) -> Parse<StmtKind> {
        match self.kind() {
            TokenKind::Keyword(Keyword::Let | Keyword::Var) => {
                self.let_binding().map(StmtKind::Let)
            }
            TokenKind::Keyword(Keyword::If) => self.if_statement().map(StmtKind::If),
            TokenKind::Keyword(Keyword::While) => {
                self.advance();
                let condition = self.head_expr()?;
                Ok(StmtKind::While { condition, body: self.block()? })
            }
            TokenKind::Keyword(Keyword::For) => self.for_statement(),
            TokenKind::Keyword(Keyword::Match) => self.match_statement(),
            TokenKind::Keyword(Keyword::Require) => self.require_statement(),
            TokenKind::Keyword(Keyword::Return) => {
                self.advance();
                let value = if self.is(Punct::Semicolon) { None } else { Some(self.expr()?) };
                self.close(Punct::Semicolon, "`return`")?;
                Ok(StmtKind::Return(value))
            }
            TokenKind::Punct(Punct::Semicolon) => Err(self.expected("a statement".into())),
            _ => self.expression_statement(),
        }
    }

    pub(super) fn let_binding(&mut self) -> Parse<Let> {
        let start = self.at;
        let mutable = self.is_keyword(Keyword::Var);
        self.advance();
        let name = self.ident("the name of the variable")?;
        let written_type = if self.eat(Punct::Colon) { Some(self.type_expr()?) } else { None };
        self.expect(Punct::Assign)?;
        let value = self.expr()?;
        self.close(Punct::Semicolon, "the value")?;
        Ok(Let { mutable, name, written_type, value, span: self.since(start) })
    }

    fn if_statement(&mut self) -> Parse<If> {
        self.nested(|parser| {
            parser.advance();
            let condition = parser.head_expr()?;
            let then_block = parser.block()?;
            let else_branch = if !parser.eat_keyword(Keyword::Else) {
                None
            } else if parser.is_keyword(Keyword::If) {
                let start = parser.at;
                let inner = parser.if_statement()?;
                Some(Else::If(Box::new(inner), parser.since(start)))
            } else {
                Some(Else::Block(parser.block()?))
            };
            Ok(If { condition, then_block, else_branch })
        })
    }

    fn for_statement(&mut self) -> Parse<StmtKind> {
        self.advance();
        let first = self.ident("the loop's variable")?;
        let second =
            if self.eat(Punct::Comma) { Some(self.ident("the second variable")?) } else { None };
        if !self.eat_keyword(Keyword::In) {
            return Err(self.expected("`in`".into()));
        }
        let iterated = self.head_expr()?;
        Ok(StmtKind::For { first, second, iterated, body: self.block()? })
    }

    fn match_statement(&mut self) -> Parse<StmtKind> {
        let head = self.here();
        self.advance();
        let scrutinee = self.head_expr()?;
        self.expect(Punct::LeftBrace)?;
        let Ok(Arms { some: some_arm, none: none_arm, some_first }) = self.arms() else {
            self.skip_braces();
            return Ok(StmtKind::Error);
        };
        let missing = if some_arm.is_none() { "some" } else { "none" };
        let (Some((some_name, some_block)), Some(none_block)) = (some_arm, none_arm) else {
            self.report(Syntax::Arms { missing }, head);
            return Ok(StmtKind::Error);
        };
        Ok(StmtKind::Match { scrutinee, some_name, some_block, none_block, some_first })
    }

    /// Reads the arms of a `match`, and the closing brace.
    fn arms(&mut self) -> Parse<Arms> {
        let mut arms = Arms { some: None, none: None, some_first: true };
        while !self.is(Punct::RightBrace) && self.kind() != TokenKind::End {
            if self.is_keyword(Keyword::Some) && arms.some.is_none() {
                self.advance();
                self.expect(Punct::LeftParen)?;
                let name = self.ident("a name for the value")?;
                self.expect(Punct::RightParen)?;
                self.expect(Punct::FatArrow)?;
                arms.some_first = arms.none.is_none();
                arms.some = Some((name, self.block()?));
            } else if self.is_keyword(Keyword::None) && arms.none.is_none() {
                self.advance();
                self.expect(Punct::FatArrow)?;
                arms.none = Some(self.block()?);
            } else {
                return Err(self.expected("one `some(…) => { … }` and one `none => { … }`".into()));
            }
            self.eat(Punct::Comma);
        }
        self.expect(Punct::RightBrace)?;
        Ok(arms)
    }

    fn require_statement(&mut self) -> Parse<StmtKind> {
        self.advance();
        let condition = self.expr()?;
        if !self.eat_keyword(Keyword::Else) {
            return Err(self.expected("`else` and a message".into()));
        }
        let message = self.expr()?;
        let code = if self.eat_keyword(Keyword::As) { Some(self.ident("a code")?) } else { None };
        self.close(Punct::Semicolon, "the `require`")?;
        Ok(StmtKind::Require { condition, message, code })
    }

    fn expression_statement(&mut self) -> Parse<StmtKind> {
        let place = self.expr()?;
        let op = match self.kind() {
            TokenKind::Punct(Punct::Assign) => AssignOp::Set,
            TokenKind::Punct(Punct::PlusAssign) => AssignOp::Add,
            TokenKind::Punct(Punct::MinusAssign) => AssignOp::Subtract,
            _ => {
                self.close(Punct::Semicolon, "the expression")?;
                return Ok(StmtKind::Expr(place));
            }
        };
        if !is_place(&place) {
            return Err(self.mistake(Syntax::Expected {
                expected: "`;`: only a variable or a field can be assigned".into(),
                found: self.found(),
            }));
        }
        self.advance();
        let value = self.expr()?;
        self.close(Punct::Semicolon, "the value")?;
        Ok(StmtKind::Assign { place, op, value })
    }
}

/// The contents of the braces of a `match`.
struct Arms {
    some: Option<(Ident, Block)>,
    none: Option<Block>,
    some_first: bool,
}

fn is_place(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Name(_) | ExprKind::Field(..))
}
