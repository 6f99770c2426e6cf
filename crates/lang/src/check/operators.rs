//! Operators and the types that they accept.

use std::sync::Arc;

use mingle_model::Type;

use super::expr::Evaluated;
use super::{Body, Checker};
use crate::diagnostic::m0201::Mismatch;
use crate::diagnostic::m0204::{self, Unfit};
use crate::hir::{Expr, ExprKind};
use crate::ops::Op;
use crate::syntax::Span;
use crate::syntax::ast::{self, BinaryOp};

impl Checker<'_> {
    pub(super) fn binary(
        &mut self,
        body: &mut Body,
        span: Span,
        op: BinaryOp,
        left: &ast::Expr,
        right: &ast::Expr,
        expected: Option<&Type>,
    ) -> Option<Evaluated> {
        let value = |op, args, value_type| {
            Some(Evaluated::Value(Expr { kind: ExprKind::Local(op, args), value_type, span }))
        };
        match op {
            BinaryOp::And | BinaryOp::Or => {
                let (left, right) =
                    self.guarded(body, "in an operand of `&&` or `||`", |checker, body| {
                        (
                            checker.value_of(body, left, &Type::Bool),
                            checker.value_of(body, right, &Type::Bool),
                        )
                    });
                let op = if op == BinaryOp::And { Op::And } else { Op::Or };
                value(op, vec![left?, right?], Type::Bool)
            }
            BinaryOp::Coalesce => self.coalesce(body, span, left, right, expected),
            BinaryOp::Equal | BinaryOp::NotEqual => {
                let (left, right) = self.same_type(body, left, right)?;
                let op = if op == BinaryOp::Equal { Op::Equal } else { Op::NotEqual };
                value(op, vec![left, right], Type::Bool)
            }
            BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual => {
                let (left, right) = self.same_type(body, left, right)?;
                self.ordered(&left.value_type, span)?;
                let op = match op {
                    BinaryOp::Less => Op::Less,
                    BinaryOp::LessEqual => Op::LessEqual,
                    BinaryOp::Greater => Op::Greater,
                    _ => Op::GreaterEqual,
                };
                value(op, vec![left, right], Type::Bool)
            }
            _ => {
                let list = expected.filter(|expected| matches!(expected, Type::List(_)));
                let evaluated = self.evaluate(body, left, list);
                let left = evaluated.and_then(|evaluated| self.as_value(evaluated, left.span));
                let hint = left
                    .as_ref()
                    .map(|left| left.value_type.clone())
                    .filter(|found| matches!(found, Type::List(_)));
                let by_literal = literal_divisor(right);
                let evaluated = self.evaluate(body, right, hint.as_ref());
                let right_value =
                    evaluated.and_then(|evaluated| self.as_value(evaluated, right.span));
                let (left, right) = (left?, right_value?);
                let Some((local, result)) =
                    Self::arithmetic(op, &left.value_type, &right.value_type)
                else {
                    return self.mismatch(unfit_operands(op, &left, &right), span);
                };
                match local {
                    Op::DivideInt if by_literal => {
                        value(Op::DivideIntBy, vec![left, right], Type::Int)
                    }
                    Op::RemainderInt if by_literal => {
                        value(Op::RemainderIntBy, vec![left, right], Type::Int)
                    }
                    local => value(local, vec![left, right], result),
                }
            }
        }
    }

    fn coalesce(
        &mut self,
        body: &mut Body,
        span: Span,
        left: &ast::Expr,
        right: &ast::Expr,
        expected: Option<&Type>,
    ) -> Option<Evaluated> {
        let (left_span, right_span) = (left.span, right.span);
        let (left, right) = self.guarded(body, "in an operand of `??`", |checker, body| {
            let wrapped = expected.map(|expected| Type::Option(Arc::new(expected.clone())));
            let evaluated = checker.evaluate(body, left, wrapped.as_ref());
            let left = evaluated.and_then(|evaluated| checker.as_value(evaluated, left_span));
            let hint = match left.as_ref().map(|left| &left.value_type) {
                Some(Type::Option(inner)) => match (strip(right), &**inner) {
                    // `none` must be an option: unless options nest, it has the type of the left
                    // operand.
                    (ast::ExprKind::None, inner) if !matches!(inner, Type::Option(_)) => {
                        left.as_ref().map(|left| left.value_type.clone())
                    }
                    _ => Some((**inner).clone()),
                },
                _ => None,
            };
            let evaluated = checker.evaluate(body, right, hint.as_ref());
            (left, evaluated.and_then(|evaluated| checker.as_value(evaluated, right_span)))
        });
        let (left, right) = (left?, right?);
        let Type::Option(inner) = &left.value_type else {
            let mismatch = Mismatch::Types {
                expected: format!("option<{}>", right.value_type),
                found: left.value_type.to_string(),
            };
            return self.mismatch(mismatch, left_span);
        };
        let op = if right.value_type == **inner {
            Op::OrValue
        } else if right.value_type == left.value_type {
            Op::OrOption
        } else {
            let mismatch = Mismatch::Types {
                expected: inner.to_string(),
                found: right.value_type.to_string(),
            };
            return self.mismatch(mismatch, right_span);
        };
        let value_type = right.value_type.clone();
        Some(Evaluated::Value(Expr {
            kind: ExprKind::Local(op, vec![left, right]),
            value_type,
            span,
        }))
    }

    /// Checks two values of one type; either may determine the type of the other.
    pub(super) fn same_type(
        &mut self,
        body: &mut Body,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Option<(Expr, Expr)> {
        if tells_nothing(left) {
            let right = self.value(body, right);
            let left = self.value_like(body, left, right.as_ref());
            return left.zip(right);
        }
        let left = self.value(body, left);
        let right = self.value_like(body, right, left.as_ref());
        left.zip(right)
    }

    /// Checks a value of the same type as another; of any type if the other has a mistake.
    pub(super) fn value_like(
        &mut self,
        body: &mut Body,
        expr: &ast::Expr,
        other: Option<&Expr>,
    ) -> Option<Expr> {
        match other {
            Some(other) => self.value_of(body, expr, &other.value_type),
            // Mistakes inside the expression are reported, but not that its type alone is unknown.
            None if tells_nothing(expr) => None,
            None => self.value(body, expr),
        }
    }

    pub(super) fn ordered(&mut self, found: &Type, span: Span) -> Option<()> {
        if matches!(
            found,
            Type::Int
                | Type::Float
                | Type::String
                | Type::Bytes
                | Type::Time
                | Type::Date
                | Type::Decimal
        ) {
            return Some(());
        }
        self.diagnostics.push(m0204::render(Unfit::Order { found: found.to_string() }, span));
        None
    }

    /// Returns the operation of an arithmetic operator, and the type of its result.
    pub(super) fn arithmetic(op: BinaryOp, left: &Type, right: &Type) -> Option<(Op, Type)> {
        let option = || Type::Option(Arc::new(Type::Int));
        Some(match (op, left, right) {
            (BinaryOp::Add, Type::Int, Type::Int) => (Op::AddInt, Type::Int),
            (BinaryOp::Subtract, Type::Int, Type::Int) => (Op::SubtractInt, Type::Int),
            (BinaryOp::Multiply, Type::Int, Type::Int) => (Op::MultiplyInt, Type::Int),
            (BinaryOp::Divide, Type::Int, Type::Int) => (Op::DivideInt, option()),
            (BinaryOp::Remainder, Type::Int, Type::Int) => (Op::RemainderInt, option()),
            (BinaryOp::Add, Type::Float, Type::Float) => (Op::AddFloat, Type::Float),
            (BinaryOp::Subtract, Type::Float, Type::Float) => (Op::SubtractFloat, Type::Float),
            (BinaryOp::Multiply, Type::Float, Type::Float) => (Op::MultiplyFloat, Type::Float),
            (BinaryOp::Divide, Type::Float, Type::Float) => (Op::DivideFloat, Type::Float),
            (BinaryOp::Remainder, Type::Float, Type::Float) => (Op::RemainderFloat, Type::Float),
            (BinaryOp::Add, Type::String, Type::String) => (Op::ConcatString, Type::String),
            (BinaryOp::Add, Type::Time, Type::Int) => (Op::AddTime, Type::Time),
            (BinaryOp::Subtract, Type::Time, Type::Int) => (Op::SubtractMs, Type::Time),
            (BinaryOp::Subtract, Type::Time, Type::Time) => (Op::SubtractTime, Type::Int),
            (BinaryOp::Add, Type::Decimal, Type::Decimal) => (Op::AddDecimal, Type::Decimal),
            (BinaryOp::Subtract, Type::Decimal, Type::Decimal) => {
                (Op::SubtractDecimal, Type::Decimal)
            }
            (BinaryOp::Multiply, Type::Decimal, Type::Decimal) => {
                (Op::MultiplyDecimal, Type::Decimal)
            }
            (BinaryOp::Add, Type::Date, Type::Int) => (Op::AddDate, Type::Date),
            (BinaryOp::Subtract, Type::Date, Type::Int) => (Op::SubtractDays, Type::Date),
            (BinaryOp::Subtract, Type::Date, Type::Date) => (Op::SubtractDate, Type::Int),
            (BinaryOp::Add, Type::List(a), Type::List(b)) if a == b => {
                (Op::ConcatList, left.clone())
            }
            _ => return None,
        })
    }
}

/// Describes operands that an operator does not accept.
fn unfit_operands(op: BinaryOp, left: &Expr, right: &Expr) -> Mismatch {
    let text = match (&left.value_type, &right.value_type) {
        (Type::String, other) if is_shown(other) => Some(right.span),
        (other, Type::String) if is_shown(other) => Some(left.span),
        _ => None,
    };
    let text = text.filter(|_| op == BinaryOp::Add);
    let (left, right) = (left.value_type.to_string(), right.value_type.to_string());
    Mismatch::Operands { operator: op.text(), left, right, text }
}

/// True if `string(…)` takes a value of this type.
pub(super) fn is_shown(found: &Type) -> bool {
    matches!(
        found,
        Type::Int
            | Type::Float
            | Type::Bool
            | Type::Time
            | Type::Date
            | Type::Decimal
            | Type::Enum(_)
    )
}

/// True if a divisor is a literal other than 0.
fn literal_divisor(expr: &ast::Expr) -> bool {
    match strip(expr) {
        ast::ExprKind::Int(value) => *value != 0,
        ast::ExprKind::Negate(inner) => literal_divisor(inner),
        _ => false,
    }
}

/// True if an expression gets its type from its context.
pub(super) fn tells_nothing(expr: &ast::Expr) -> bool {
    match strip(expr) {
        ast::ExprKind::None => true,
        ast::ExprKind::Some(inner) => tells_nothing(inner),
        ast::ExprKind::List(items) => items.iter().all(tells_nothing),
        ast::ExprKind::If(_, then, otherwise) => tells_nothing(then) && tells_nothing(otherwise),
        _ => false,
    }
}

/// Returns the expression inside any parentheses.
pub(super) fn strip(expr: &ast::Expr) -> &ast::ExprKind {
    let mut kind = &expr.kind;
    while let ast::ExprKind::Paren(inner) = kind {
        kind = &inner.kind;
    }
    kind
}
