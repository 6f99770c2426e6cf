//! Assignments and values of other languages.

use super::super::ast::{Expr, ExprKind, StmtKind};
use super::super::token::{Keyword, Punct, Span, TokenKind};
use super::{Mistake, Parse, Parser};
use crate::diagnostic::m0001::Foreign;
use crate::diagnostic::{Edit, alias};

impl Parser<'_> {
    /// Reads `++i`.
    pub(super) fn increment_before(&mut self, sign: Punct) -> Parse<StmtKind> {
        let start = self.at;
        self.advance();
        self.advance();
        let place = self.expr()?;
        self.increment(sign, start, &place);
        self.close(Punct::Semicolon, "the expression")?;
        Ok(StmtKind::Expr(self.error_expr()))
    }

    fn increment(&mut self, sign: Punct, start: u32, place: &Expr) {
        let (found, means) = if sign == Punct::Plus { ("++", "+= 1") } else { ("--", "-= 1") };
        let text = format!("{} {means}", self.source.span_text(place.span));
        let span = self.since(start);
        self.foreign(Foreign::Increment { found, means }, span, vec![Edit { span, text }]);
    }

    /// Reads what other languages assign with: `i++`, `x *= 2`. None if nothing of the kind stands
    /// here.
    pub(super) fn foreign_assignment(&mut self, place: &Expr) -> Option<Parse<StmtKind>> {
        let TokenKind::Punct(sign) = self.kind() else { return None };
        let next = self.kind_ahead(1);
        if sign == Punct::Assign && matches!(place.kind, ExprKind::Error) {
            return Some(Err(Mistake));
        }
        if !self.is_adjacent(self.at) {
            return None;
        }
        let start = place.span.start;
        if matches!(sign, Punct::Plus | Punct::Minus) && next == TokenKind::Punct(sign) {
            self.advance();
            self.advance();
            self.increment(sign, start, place);
            let closed = self.close(Punct::Semicolon, "the expression");
            return Some(closed.map(|()| StmtKind::Expr(self.error_expr())));
        }
        let is_operator = matches!(
            sign,
            Punct::Star | Punct::Slash | Punct::Percent | Punct::Coalesce | Punct::And | Punct::Or
        );
        if !is_operator || next != TokenKind::Punct(Punct::Assign) {
            return None;
        }
        let found = format!("{}=", sign.text());
        let operator = Span { start: self.at, end: self.ahead(1) + 1 };
        self.advance();
        self.advance();
        let place_text = self.source.span_text(place.span).to_owned();
        let Ok(value) = self.expr() else { return Some(Err(Mistake)) };
        let value_text = self.source.span_text(value.span);
        let value_text = match value.kind {
            ExprKind::Binary(..) => format!("({value_text})"),
            _ => value_text.to_owned(),
        };
        let text = format!("{place_text} = {place_text} {} {value_text}", sign.text());
        let edits = vec![Edit { span: self.since(start), text }];
        self.foreign(Foreign::CompoundAssign(found), operator, edits);
        let closed = self.close(Punct::Semicolon, "the value");
        Some(closed.map(|()| StmtKind::Expr(self.error_expr())))
    }

    /// Reads what other languages write after a value: `as int`, `=> …`.
    pub(super) fn foreign_value_end(&mut self, value: Expr) -> Parse<Expr> {
        if self.is(Punct::FatArrow) {
            return Err(self.foreign_mistake(Foreign::Lambda, self.here(), Vec::new()));
        }
        if !self.is_keyword(Keyword::As) || self.kind_ahead(1) != TokenKind::Ident {
            return Ok(value);
        }
        let start = value.span.start;
        self.advance();
        let means = alias::type_name(self.text())
            .filter(|means| matches!(*means, "int" | "float" | "string"));
        self.advance();
        let span = self.since(start);
        let text = means.map(|means| format!("{means}({})", self.source.span_text(value.span)));
        let edits = text.map(|text| Edit { span, text }).into_iter().collect();
        self.foreign(Foreign::Cast, span, edits);
        Ok(Expr { kind: ExprKind::Error, span })
    }

    /// Reads a condition, in which `=` compares.
    pub(super) fn condition(&mut self) -> Parse<Expr> {
        let condition = self.head_expr()?;
        self.compared(condition, true)
    }

    pub(super) fn require_condition(&mut self) -> Parse<Expr> {
        let condition = self.expr()?;
        self.compared(condition, false)
    }

    fn compared(&mut self, left: Expr, is_head: bool) -> Parse<Expr> {
        if !self.is(Punct::Assign) {
            return Ok(left);
        }
        let (span, start) = (self.here(), left.span.start);
        self.foreign(Foreign::AssignInCondition, span, vec![Edit { span, text: "==".into() }]);
        self.advance();
        if is_head {
            self.head_expr()?
        } else {
            self.expr()?
        };
        Ok(Expr { kind: ExprKind::Error, span: self.since(start) })
    }
}
