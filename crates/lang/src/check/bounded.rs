//! Bounded counters: their bounds, and the places where `take` and `give` may stand.

use mingle_model::{FieldType, ObjectType, Type};

use super::expr::Evaluated;
use super::{Body, Checker};
use crate::diagnostic::Edit;
use crate::diagnostic::m0605::{self, Leaves};
use crate::diagnostic::m0607::{self, Misplaced};
use crate::hir::{Bounds, CollectionRead, Expr, ExprKind, ObjectId, Place, WriteOp};
use crate::names::Typed;
use crate::syntax::Span;
use crate::syntax::ast::{self, Ident, TypeKind};

/// Returns the span of an expression without the parentheses around it.
pub(super) fn whole(expr: &ast::Expr) -> Span {
    match &expr.kind {
        ast::ExprKind::Paren(inner) => whole(inner),
        _ => expr.span,
    }
}

impl Checker<'_> {
    /// Returns the bounds that an object declares for its counters.
    pub(super) fn bounds_declared(
        &mut self,
        object: &ast::Object,
        declared: &ObjectType,
    ) -> Vec<(u16, Bounds)> {
        let mut found: Vec<(u16, Bounds)> = Vec::new();
        for field in &object.fields {
            let TypeKind::Counter(bounds) = field.field_type.kind else { continue };
            let Some(at) = declared.field_index(&field.name.name) else { continue };
            let is_first = !found.iter().any(|(known, _)| usize::from(*known) == at);
            if !bounds.is_bounded() || !is_first {
                continue;
            }
            if let (Some(min), Some(max)) = (bounds.min, bounds.max)
                && min > max
            {
                let span = field.field_type.span;
                self.diagnostics.push(m0605::render(Leaves::Empty { min, max }, span));
            }
            if declared.fields[at].field_type == FieldType::Counter {
                found.push((at as u16, bounds));
            }
        }
        found
    }

    /// Returns the bounds of a place, if it is a counter with bounds.
    pub(super) fn bounds_at(&self, place: &Place) -> Option<Bounds> {
        self.program.objects[place.kind.index()].bounds_of(place.field)
    }

    /// Checks a condition of a statement, which may be a `take` as a whole.
    pub(super) fn condition(&mut self, body: &mut Body, condition: &ast::Expr) -> Option<Expr> {
        body.effect = Some(whole(condition));
        self.value_of(body, condition, &Type::Bool)
    }

    /// Checks an operation of a counter with bounds.
    pub(super) fn bounded_method(
        &mut self,
        body: &mut Body,
        span: Span,
        place: Place,
        bounds: Bounds,
        name: &Ident,
        args: &[ast::Expr],
    ) -> Option<Evaluated> {
        match &*name.name {
            "value" => {
                let args = self.arguments(body, span, "value", &[], args)?;
                let kind = ExprKind::Collection(place, CollectionRead::CounterValue, args);
                let read = Expr { kind, value_type: Type::Int, span };
                Some(Evaluated::Value(self.as_declared(read)))
            }
            "take" | "give" => self.take(body, span, place, bounds, name, args),
            "add" => {
                for arg in args {
                    self.value(body, arg);
                }
                let field = &self.program.objects[place.kind.index()].declared.fields
                    [usize::from(place.field)];
                let leaves = Leaves::Add { field: field.name.to_string(), bounds };
                self.diagnostics.push(m0605::render(leaves, span));
                None
            }
            _ => self.no_method(body, &Typed::Bounded(bounds), name, args),
        }
    }

    fn take(
        &mut self,
        body: &mut Body,
        span: Span,
        place: Place,
        bounds: Bounds,
        name: &Ident,
        args: &[ast::Expr],
    ) -> Option<Evaluated> {
        let effect = body.effect.take();
        let errors = self.diagnostics.errors;
        let mut args = self.arguments(body, span, &name.name, &[Some(Type::Int)], args)?;
        let amount = Box::new(args.pop()?);
        let operation = name.name.to_string();
        let misplaced = if body.function.is_some() {
            Some(Misplaced::Function { operation })
        } else if *name.name == *"give" && bounds.max.is_none() {
            self.no_write(body, "`give`", span)?;
            return Some(Evaluated::Write(WriteOp::Give(place, amount)));
        } else if effect != Some(span) {
            Some(Misplaced::Inside { operation })
        } else {
            None
        };
        if let Some(misplaced) = misplaced {
            if self.diagnostics.errors == errors {
                self.diagnostics.push(m0607::render(misplaced, span));
            }
            return None;
        }
        let kind = ExprKind::Take { place, amount, gives: *name.name == *"give" };
        Some(Evaluated::Value(Expr { kind, value_type: Type::Bool, span }))
    }

    /// Reports a `take` whose result is dropped.
    pub(super) fn no_dropped_take(&mut self, expr: &ast::Expr, value: &Expr) -> Option<()> {
        let ExprKind::Take { gives, .. } = &value.kind else { return Some(()) };
        let operation = if *gives { "give" } else { "take" }.to_owned();
        let edit = Edit { span: expr.span, text: "require {text} else \"none left\"".into() };
        self.diagnostics.push(m0607::render(Misplaced::Dropped { operation, edit }, expr.span));
        None
    }

    /// Reports the deletion of an object with a bounded counter.
    pub(super) fn no_delete(&mut self, kind: ObjectId, span: Span) -> Option<()> {
        let object = &self.program.objects[kind.index()];
        let Some((field, bounds)) = object.bounds.first() else { return Some(()) };
        let field = object.declared.fields[usize::from(*field)].name.to_string();
        let leaves = Leaves::Delete { field, bounds: *bounds };
        self.diagnostics.push(m0605::render(leaves, span));
        None
    }
}
