//! Enumerations: their declarations, and their values in expressions.

use std::collections::HashMap;
use std::sync::Arc;

use mingle_model::{EnumType, EnumValue, Name, Type, Value};

use super::expr::Evaluated;
use super::{Body, Checker, Named};
use crate::diagnostic::m0201::Mismatch;
use crate::diagnostic::{m0101, m0102, m0201};
use crate::hir::{Expr, ExprKind};
use crate::syntax::Span;
use crate::syntax::ast::{self, Ident};

impl Checker<'_> {
    /// Declares an enumeration and its values.
    pub(super) fn declare_enum(&mut self, written: &ast::Enum) {
        if written.values.is_empty() {
            let mismatch = Mismatch::EmptyEnum { name: written.name.name.to_string() };
            self.diagnostics.push(m0201::render(mismatch, written.name.span));
        }
        let (mut names, mut labels) = (HashMap::new(), HashMap::new());
        let mut values: Vec<EnumValue> = Vec::new();
        for value in self.bounded(&written.name, &written.values, "values") {
            let name = &value.name;
            if let Some(first) = names.insert(name.name.clone(), name.span) {
                self.diagnostics.push(m0102::render(&name.name, name.span, Some(first)));
                continue;
            }
            let (label, span) =
                value.label.clone().unwrap_or_else(|| (name.name.clone(), name.span));
            if let Some(first) = labels.insert(label.clone(), span) {
                self.diagnostics.push(m0102::render(&label, span, Some(first)));
                continue;
            }
            values.push(EnumValue { name: name.name.clone(), label });
        }
        let index = self.program.enums.len();
        let name = written.name.name.clone();
        self.program.enums.push(Arc::new(EnumType { name, values }));
        self.declare_name(&written.name, Named::Enum(index));
    }

    /// Returns the enumeration of this name, unless a variable of the body hides it.
    pub(super) fn enum_named(&self, body: &Body, name: &Name) -> Option<(Arc<EnumType>, Span)> {
        if body.find(name).is_some() {
            return None;
        }
        match self.names.get(name) {
            Some((Named::Enum(index), declared)) => {
                Some((Arc::clone(&self.program.enums[*index]), *declared))
            }
            _ => None,
        }
    }

    /// Checks `Enum.value`; none if a mistake was reported.
    pub(super) fn enum_value(
        &mut self,
        span: Span,
        (of, declared): (&Arc<EnumType>, Span),
        at: Span,
        value: &Ident,
    ) -> Option<Evaluated> {
        self.note_use(at, declared);
        let Some(found) = of.values.iter().find(|known| known.name == value.name) else {
            let known: Vec<&str> = of.values.iter().map(|known| &*known.name).collect();
            let near = self.diagnostics.near_miss(&value.name, known.iter().copied());
            let what = format!("value of `{}`", of.name);
            let found = m0101::render_known(&what, &value.name, value.span, near, &known);
            self.diagnostics.push(found);
            return None;
        };
        self.note_member(value, &of.name);
        let kind = ExprKind::Const(Value::String(found.label.clone()));
        Some(Evaluated::Value(Expr { kind, value_type: Type::Enum(Arc::clone(of)), span }))
    }
}
