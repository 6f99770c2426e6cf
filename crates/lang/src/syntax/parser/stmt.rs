//! Statements.

use super::super::ast::{AssignOp, Block, Else, Expr, ExprKind, Ident, If, Let, Stmt, StmtKind};
use super::super::token::{Keyword, Punct, Span, TokenKind};
use super::{Mistake, Parse, Parser};
use crate::diagnostic::Edit;
use crate::diagnostic::m0001::{Foreign, Syntax};

impl Parser<'_> {
    pub(super) fn block(&mut self) -> Parse<Block> {
        self.nested(|parser| {
            let start = parser.at;
            parser.pass_strays();
            if !parser.is(Punct::LeftBrace) && parser.closing_braces() <= parser.open_braces.len() {
                return parser.unbraced_block();
            }
            parser.open_brace("the head of the block")?;
            let statements = parser.statements();
            parser.close_brace();
            Ok(Block { statements, span: parser.since(start) })
        })
    }

    pub(super) fn statements(&mut self) -> Vec<Stmt> {
        let mut statements = Vec::new();
        while !self.is(Punct::RightBrace) && self.kind() != TokenKind::End && !self.at_item() {
            statements.push(self.one_statement());
        }
        statements
    }

    /// Reads a statement; one that cannot be read is skipped.
    pub(super) fn one_statement(&mut self) -> Stmt {
        let allows = self.allows();
        let (start, braces) = (self.at, self.open_braces.len());
        let outer = std::mem::take(&mut self.is_doubtful);
        let mut kind = self.statement().unwrap_or_else(|Mistake| {
            self.open_braces.truncate(braces);
            self.skip_statement(start);
            if self.at == start {
                self.advance();
            }
            StmtKind::Error
        });
        if self.is_doubtful {
            self.drop_values(&mut kind);
        }
        self.is_doubtful |= outer;
        Stmt { allows, kind, span: self.since(start) }
    }

    /// Drops the expressions of a statement whose brackets do not match.
    fn drop_values(&self, kind: &mut StmtKind) {
        let nothing = self.error_expr();
        match kind {
            StmtKind::Let(binding) => binding.value = nothing,
            StmtKind::Return(value) => *value = Some(nothing),
            StmtKind::Assign { .. } | StmtKind::Require { .. } | StmtKind::Expr(_) => {
                *kind = StmtKind::Expr(nothing);
            }
            StmtKind::If(branch) => branch.condition = nothing,
            StmtKind::While { condition, .. } => *condition = nothing,
            _ => {}
        }
    }

    pub(super) fn at_let(&self) -> bool {
        self.is_keyword(Keyword::Let) || self.is_keyword(Keyword::Var)
    }

    pub(super) fn statement(&mut self) -> Parse<StmtKind> {
        if let Some(foreign) = self.foreign_statement() {
            return foreign;
        }
        match self.kind() {
            TokenKind::Keyword(Keyword::Let | Keyword::Var) => {
                self.let_binding().map(StmtKind::Let)
            }
            TokenKind::Keyword(Keyword::If) => self.if_statement().map(StmtKind::If),
            TokenKind::Keyword(Keyword::While) => {
                self.advance();
                let condition = self.head()?;
                Ok(StmtKind::While { condition, body: self.block()? })
            }
            TokenKind::Keyword(Keyword::For) => self.for_statement(),
            TokenKind::Keyword(Keyword::Match) => self.match_statement(),
            TokenKind::Keyword(Keyword::Require) => self.require_statement(),
            TokenKind::Keyword(Keyword::Return) => {
                self.advance();
                let is_bare = self.is(Punct::Semicolon) || self.is(Punct::RightBrace);
                let value = if is_bare { None } else { Some(self.value()?) };
                self.close(Punct::Semicolon, "`return`")?;
                Ok(StmtKind::Return(value))
            }
            TokenKind::Punct(Punct::Semicolon) => {
                let span = self.here();
                self.foreign(Foreign::Surplus(";"), span, vec![self.remove(span)]);
                self.advance();
                self.statement_after()
            }
            _ => self.expression_statement(),
        }
    }

    pub(super) fn let_binding(&mut self) -> Parse<Let> {
        let (start, braces) = (self.at, self.open_braces.len());
        let mutable = self.let_mut() || self.is_keyword(Keyword::Var);
        self.advance();
        if self.is_word("mut") && self.kind_ahead(1) == TokenKind::Ident {
            self.advance();
        }
        let name = self.ident("the name of the variable")?;
        let written_type = if self.eat(Punct::Colon) { Some(self.type_expr()?) } else { None };
        let value = match self.let_value() {
            Ok(value) => value,
            // The variable is declared all the same.
            Err(Mistake) => {
                self.open_braces.truncate(braces);
                self.skip_statement(start);
                self.error_expr()
            }
        };
        Ok(Let { mutable, name, written_type, value, span: self.since(start) })
    }

    fn let_value(&mut self) -> Parse<Expr> {
        if self.is(Punct::Semicolon) || (self.on_new_line() && !self.is(Punct::Assign)) {
            let span = Span::token(self.before());
            return Err(self.foreign_mistake(Foreign::NoValue, span, Vec::new()));
        }
        self.expect_before(Punct::Assign, "the name", starts_value)?;
        let value = self.value()?;
        self.close(Punct::Semicolon, "the value")?;
        Ok(value)
    }

    /// Reads an expression whose value is used, and what other languages write after one.
    fn value(&mut self) -> Parse<Expr> {
        let value = self.expr()?;
        self.foreign_value_end(value)
    }

    /// Reads the head of a statement, up to its brace.
    fn head(&mut self) -> Parse<Expr> {
        let braces = self.open_braces.len();
        let condition = self.condition().and_then(|condition| {
            let is_end = self.is(Punct::LeftBrace) || self.is(Punct::Colon) || self.on_new_line();
            let is_end = is_end || self.is(Punct::RightParen) || self.starts_anew();
            if is_end || self.is_word("then") || self.is_word("do") || !self.brace_on_line() {
                return Ok(condition);
            }
            Err(self.expected("an operator or `{`".into()))
        });
        match condition {
            Ok(condition) => Ok(condition),
            Err(Mistake) => {
                self.open_braces.truncate(braces);
                self.skip_head()?;
                Ok(self.error_expr())
            }
        }
    }

    fn if_statement(&mut self) -> Parse<If> {
        self.nested(|parser| {
            parser.advance();
            let condition = parser.head()?;
            let then_block = parser.block()?;
            let is_else_if = parser.else_if();
            let else_branch = if !is_else_if && !parser.eat_keyword(Keyword::Else) {
                None
            } else if is_else_if || parser.is_keyword(Keyword::If) {
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
        if self.is(Punct::LeftParen) {
            return self.for_in_parentheses();
        }
        self.for_after_word()
    }

    pub(super) fn for_after_word(&mut self) -> Parse<StmtKind> {
        let first = self.ident("the loop's variable")?;
        let is_second = self.kind() == TokenKind::Ident
            && self.kind_ahead(1) == TokenKind::Keyword(Keyword::In);
        if is_second {
            let edit = self.insert_after(self.before(), ",");
            self.miss(",", "the loop's variable", Some(edit));
        }
        let second = if is_second || self.eat(Punct::Comma) {
            Some(self.ident("the second variable")?)
        } else {
            None
        };
        self.expect_in()?;
        let iterated = self.head()?;
        Ok(StmtKind::For { first, second, iterated, body: self.block()? })
    }

    fn match_statement(&mut self) -> Parse<StmtKind> {
        let head = self.here();
        self.advance();
        let scrutinee = self.head()?;
        self.open_brace("the head of the `match`")?;
        let braces = self.open_braces.len();
        if self.at_answer_arm() {
            let Ok(arms) = self.answer_arms() else {
                self.open_braces.truncate(braces - 1);
                self.skip_braces();
                return Ok(StmtKind::Error);
            };
            return Ok(StmtKind::MatchAnswer { scrutinee, arms });
        }
        let Ok(Arms { some: some_arm, none: none_arm, some_first }) = self.arms() else {
            self.open_braces.truncate(braces - 1);
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
            self.foreign_arm();
            if self.is_keyword(Keyword::Some) && arms.some.is_none() {
                self.advance();
                let open = self.at;
                self.expect(Punct::LeftParen)?;
                let name = self.ident("a name for the value")?;
                self.close_bracket_before(open, Punct::RightParen, Punct::FatArrow)?;
                self.arrow()?;
                arms.some_first = arms.none.is_none();
                arms.some = Some((name, self.arm_block()?));
            } else if self.is_keyword(Keyword::None) && arms.none.is_none() {
                self.advance();
                self.arrow()?;
                arms.none = Some(self.arm_block()?);
            } else {
                return Err(self.expected("one `some(…) => { … }` and one `none => { … }`".into()));
            }
            self.eat(Punct::Comma);
        }
        self.close_brace();
        Ok(arms)
    }

    pub(super) fn arrow(&mut self) -> Parse<()> {
        if self.eat_instead(Punct::Arrow, Punct::FatArrow)
            || self.eat_instead(Punct::Colon, Punct::FatArrow)
        {
            return Ok(());
        }
        let brace = TokenKind::Punct(Punct::LeftBrace);
        self.expect_before(Punct::FatArrow, "the arm", |next| next == brace)
    }

    fn require_statement(&mut self) -> Parse<StmtKind> {
        self.advance();
        let condition = self.require_condition()?;
        self.pass_strays();
        while self.is_doubtful && !self.is_keyword(Keyword::Else) && !self.is(Punct::Semicolon) {
            if self.starts_anew() || self.kind() == TokenKind::String {
                break;
            }
            self.advance();
        }
        if self.is(Punct::Comma) && self.kind_ahead(1) == TokenKind::String {
            let edits = vec![self.replace_here(" else")];
            let sign = Foreign::Sign { found: ",".into(), means: "else".into() };
            self.foreign(sign, self.here(), edits);
            self.advance();
        } else if self.is(Punct::Semicolon) {
            let span = Span::token(self.before());
            let edits = vec![self.insert_after(self.before(), " else \"…\"")];
            return Err(self.foreign_mistake(Foreign::RequireMessage, span, edits));
        } else if self.kind() == TokenKind::String {
            let edit = self.insert_after(self.before(), " else");
            self.miss("else", "the condition", Some(edit));
        } else if !self.eat_keyword(Keyword::Else) {
            return Err(self.expected("`else` and a message".into()));
        }
        let message = self.expr()?;
        self.pass_strays();
        let code = if self.eat_keyword(Keyword::As) { Some(self.ident("a code")?) } else { None };
        self.close(Punct::Semicolon, "the `require`")?;
        Ok(StmtKind::Require { condition, message, code })
    }

    fn expression_statement(&mut self) -> Parse<StmtKind> {
        let braces = self.open_braces.len();
        let place = self.expr()?;
        let op = match self.kind() {
            TokenKind::Punct(Punct::Assign) => AssignOp::Set,
            TokenKind::Punct(Punct::PlusAssign) => AssignOp::Add,
            TokenKind::Punct(Punct::MinusAssign) => AssignOp::Subtract,
            _ => return self.end_of_expression(place),
        };
        if matches!(place.kind, ExprKind::Error) {
            return Err(Mistake);
        }
        if !is_place(&place) {
            return Err(self.mistake(Syntax::Expected {
                expected: "`;`: only a variable or a field can be assigned".into(),
                found: self.found(),
            }));
        }
        self.advance();
        let value = match self.value().and_then(|value| {
            self.close(Punct::Semicolon, "the value")?;
            Ok(value)
        }) {
            Ok(value) => value,
            Err(Mistake) => {
                self.open_braces.truncate(braces);
                self.skip_statement(place.span.start);
                self.error_expr()
            }
        };
        Ok(StmtKind::Assign { place, op, value })
    }

    /// Reads the end of a statement that is an expression.
    fn end_of_expression(&mut self, expr: Expr) -> Parse<StmtKind> {
        if let Some(foreign) = self.foreign_assignment(&expr) {
            return foreign;
        }
        if let Some(head) = self.headless(&expr) {
            return head;
        }
        if self.is(Punct::RightBrace) && self.gives_result {
            let calls = matches!(expr.kind, ExprKind::Method(..));
            if !calls || self.open_braces.len() == 1 {
                let text = format!("return {};", self.source.span_text(expr.span));
                let edits = vec![Edit { span: expr.span, text }];
                self.foreign(Foreign::LastValue, expr.span, edits);
                return Ok(StmtKind::Return(Some(expr)));
            }
        }
        self.close(Punct::Semicolon, "the expression")?;
        if matches!(expr.kind, ExprKind::Error) {
            return Ok(StmtKind::Error);
        }
        Ok(StmtKind::Expr(expr))
    }

    pub(super) fn error_expr(&self) -> Expr {
        Expr { kind: ExprKind::Error, span: Span::token(self.before()) }
    }
}

/// True if a value may start with a token of this kind.
pub(super) fn starts_value(kind: TokenKind) -> bool {
    match kind {
        TokenKind::Ident
        | TokenKind::Int
        | TokenKind::Float
        | TokenKind::String
        | TokenKind::Bytes => true,
        TokenKind::Keyword(keyword) => matches!(
            keyword,
            Keyword::True
                | Keyword::False
                | Keyword::None
                | Keyword::Some
                | Keyword::New
                | Keyword::Put
                | Keyword::If
                | Keyword::Endorse
        ),
        TokenKind::Punct(punct) => {
            matches!(punct, Punct::LeftParen | Punct::LeftBracket | Punct::Not | Punct::Minus)
        }
        TokenKind::Duration | TokenKind::Bad(_) | TokenKind::End => false,
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
