//! Conversions: built-in functions of one argument, whose operation depends on its type.

use std::sync::Arc;

use mingle_model::{Date, Decimal, Type, Value};

use super::call::BUILTINS;
use super::operators::strip;
use super::{Body, Checker};
use crate::diagnostic::m0204::{self, Unfit};
use crate::hir::{Expr, ExprKind};
use crate::ops::Op;
use crate::syntax::Span;
use crate::syntax::ast;

impl Checker<'_> {
    /// Checks `to(of)`.
    pub(super) fn convert(
        &mut self,
        body: &mut Body,
        span: Span,
        to: &str,
        of: &ast::Expr,
    ) -> Option<Expr> {
        let arg = self.value(body, of)?;
        if let ast::ExprKind::String(text) = strip(of)
            && let Some(read) = constant(to, text)
        {
            return match read {
                Ok((value, value_type)) => {
                    Some(Expr { kind: ExprKind::Const(value), value_type, span })
                }
                Err(why) => {
                    self.diagnostics.push(m0204::render(Unfit::Text { why }, of.span));
                    None
                }
            };
        }
        if is_same(to, &arg.value_type) {
            return Some(arg);
        }
        let Some((op, value_type)) = conversion(to, &arg.value_type) else {
            let to = BUILTINS.iter().find(|known| **known == to).copied().unwrap_or("convert");
            let unfit = Unfit::Convert { to, found: arg.value_type.to_string() };
            self.diagnostics.push(m0204::render(unfit, of.span));
            return None;
        };
        Some(Expr { kind: ExprKind::Local(op, vec![arg]), value_type, span })
    }
}

/// Returns the value of a conversion of a text that stands in the program, where it is no option: the text is
/// read when the program is checked.
fn constant(to: &str, text: &str) -> Option<Result<(Value, Type), String>> {
    match to {
        "date" => Some(Date::parse(text).map(|date| (Value::Date(date), Type::Date))),
        "decimal" => {
            Some(Decimal::parse(text).map(|number| (Value::Decimal(number), Type::Decimal)))
        }
        _ => None,
    }
}

/// True if a conversion leaves values of this type as they are.
fn is_same(to: &str, found: &Type) -> bool {
    matches!(
        (to, found),
        ("int", Type::Int)
            | ("float", Type::Float)
            | ("time", Type::Time)
            | ("date", Type::Date)
            | ("decimal", Type::Decimal)
    )
}

/// Returns the operation of a conversion, and the type of its result.
fn conversion(to: &str, found: &Type) -> Option<(Op, Type)> {
    let option = |inner| Type::Option(Arc::new(inner));
    Some(match (to, found) {
        (
            "string",
            Type::Bool
            | Type::Int
            | Type::Float
            | Type::String
            | Type::Time
            | Type::Date
            | Type::Decimal
            | Type::Enum(_),
        ) => (Op::ToString, Type::String),
        ("int", Type::Float) => (Op::IntFromFloat, Type::Int),
        ("int", Type::Time) => (Op::IntFromTime, Type::Int),
        ("int", Type::Date) => (Op::IntFromDate, Type::Int),
        ("int", Type::String) => (Op::IntFromString, option(Type::Int)),
        ("int", Type::Decimal) => (Op::IntFromDecimal, Type::Int),
        ("float", Type::Decimal) => (Op::FloatFromDecimal, Type::Float),
        ("decimal", Type::Int) => (Op::DecimalFromInt, Type::Decimal),
        ("decimal", Type::String) => (Op::DecimalFromString, option(Type::Decimal)),
        ("float", Type::Int) => (Op::FloatFromInt, Type::Float),
        ("float", Type::String) => (Op::FloatFromString, option(Type::Float)),
        ("date", Type::Time) => (Op::DateFromTime, Type::Date),
        ("date", Type::String) => (Op::DateFromString, option(Type::Date)),
        ("time", Type::Date) => (Op::TimeFromDate, Type::Time),
        ("abs", Type::Int) => (Op::AbsInt, Type::Int),
        ("abs", Type::Decimal) => (Op::AbsDecimal, Type::Decimal),
        ("abs", Type::Float) => (Op::AbsFloat, Type::Float),
        _ => return None,
    })
}
