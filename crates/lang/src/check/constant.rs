//! Constants: the defaults of fields.

use mingle_model::{Type, Value};

use super::{Body, Checker, DEFAULT};
use crate::diagnostic::m0201::{self, Mismatch};
use crate::hir::{Expr, ExprKind};
use crate::ops;
use crate::syntax::ast;

impl Checker<'_> {
    /// Returns the value of a constant expression of this type; none if a mistake was reported.
    pub(super) fn constant(&mut self, written: &ast::Expr, expected: &Type) -> Option<Value> {
        let mut body = Body::new(None);
        body.reads_only = Some(DEFAULT);
        body.open();
        let checked = self.value_of(&mut body, written, expected)?;
        let value = constant_value(&checked);
        if value.is_none() {
            self.diagnostics.push(m0201::render(Mismatch::NotConstant, written.span));
        }
        value
    }
}

fn constant_value(expr: &Expr) -> Option<Value> {
    match &expr.kind {
        ExprKind::Const(value) => Some(value.clone()),
        ExprKind::Local(op, args) => {
            let args: Option<Vec<Value>> = args.iter().map(constant_value).collect();
            ops::apply(op, &args?).ok()
        }
        ExprKind::Struct(inits) => {
            let mut values: Vec<(u16, Value)> = inits
                .iter()
                .map(|(index, value)| Some((*index, constant_value(value)?)))
                .collect::<Option<_>>()?;
            values.sort_by_key(|(index, _)| *index);
            Some(Value::Struct(values.into_iter().map(|(_, value)| value).collect()))
        }
        _ => None,
    }
}
