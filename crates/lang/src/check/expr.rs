//! Expressions.

use std::sync::Arc;

use mingle_model::{FieldType, Name, Type, Value};

use super::operators::tells_nothing;
use super::{Body, Checker, Named};
use crate::diagnostic::m0201::{self, Mismatch};
use crate::diagnostic::m0204::{self, Unfit};
use crate::diagnostic::m0206::{self, Collection};
use crate::diagnostic::{Edit, alias, m0101};
use crate::hir::{Expr, ExprKind, Place, WriteOp};
use crate::names::Typed;
use crate::ops::Op;
use crate::syntax::Span;
use crate::syntax::ast::{self, Ident};

/// The result of checking an expression.
pub(super) enum Evaluated {
    /// A value.
    Value(Expr),
    /// A collection of an object, which is no value.
    Collection(Place, FieldType),
    /// A write, which gives no value.
    Write(WriteOp),
    /// A command without a result.
    Done(Expr),
}

impl Checker<'_> {
    /// Checks a value of any type; none if a mistake was reported.
    pub(super) fn value(&mut self, body: &mut Body, expr: &ast::Expr) -> Option<Expr> {
        let evaluated = self.evaluate(body, expr, None)?;
        self.as_value(evaluated, expr.span)
    }

    /// Checks a value of this type; none if a mistake was reported.
    pub(super) fn value_of(
        &mut self,
        body: &mut Body,
        expr: &ast::Expr,
        expected: &Type,
    ) -> Option<Expr> {
        let evaluated = self.evaluate(body, expr, Some(expected))?;
        let value = self.as_value(evaluated, expr.span)?;
        if value.value_type == *expected {
            return Some(value);
        }
        let mismatch =
            Mismatch::Types { expected: expected.to_string(), found: value.value_type.to_string() };
        self.diagnostics.push(m0201::render(mismatch, expr.span));
        None
    }

    pub(super) fn as_value(&mut self, evaluated: Evaluated, span: Span) -> Option<Expr> {
        let what = match evaluated {
            Evaluated::Value(value) => return self.plain(value),
            Evaluated::Collection(place, field_type) => {
                let field = &self.program.objects[place.kind.index()].declared.fields
                    [usize::from(place.field)];
                let fact = Collection::Value {
                    field: field.name.to_string(),
                    field_type: field_type.to_string(),
                };
                self.diagnostics.push(m0206::render(fact, span));
                return None;
            }
            Evaluated::Write(_) => "a write".to_owned(),
            Evaluated::Done(_) => "a command without a result".to_owned(),
        };
        self.diagnostics.push(m0201::render(Mismatch::NoValue { what }, span));
        None
    }

    /// Reports a write in a place where only reads may stand.
    pub(super) fn no_write(&mut self, body: &Body, what: &str, span: Span) -> Option<()> {
        let Some(place) = body.reads_only else {
            return Some(());
        };
        self.diagnostics
            .push(m0201::render(Mismatch::Write { what: what.to_owned(), place }, span));
        None
    }

    /// Checks an expression; `expected` helps if the expression alone does not determine its type.
    pub(super) fn evaluate(
        &mut self,
        body: &mut Body,
        expr: &ast::Expr,
        expected: Option<&Type>,
    ) -> Option<Evaluated> {
        let evaluated = self.evaluate_kind(body, expr, expected);
        if let Some(record) = &mut self.record {
            let found = match &evaluated {
                Some(Evaluated::Value(value)) => Some(Typed::Value(value.value_type.clone())),
                Some(Evaluated::Collection(place, found)) => {
                    let bounds = self.program.objects[place.kind.index()].bounds_of(place.field);
                    Some(bounds.map_or_else(|| Typed::Collection(found.clone()), Typed::Bounded))
                }
                _ => None,
            };
            if let Some(found) = found {
                record.typed(expr.span, found);
            }
        }
        evaluated
    }

    fn evaluate_kind(
        &mut self,
        body: &mut Body,
        expr: &ast::Expr,
        expected: Option<&Type>,
    ) -> Option<Evaluated> {
        let span = expr.span;
        let value = |kind, value_type| Some(Evaluated::Value(Expr { kind, value_type, span }));
        let constant = |constant, value_type| value(ExprKind::Const(constant), value_type);
        match &expr.kind {
            ast::ExprKind::Bool(literal) => constant(Value::Bool(*literal), Type::Bool),
            ast::ExprKind::Int(literal) => constant(Value::Int(*literal), Type::Int),
            ast::ExprKind::Float(literal) => constant(Value::from(*literal), Type::Float),
            ast::ExprKind::String(literal) => constant(Value::from(&**literal), Type::String),
            ast::ExprKind::Bytes(literal) => {
                constant(Value::Bytes(literal[..].into()), Type::Bytes)
            }
            ast::ExprKind::None => match expected {
                Some(Type::Option(_)) => constant(Value::NONE, expected.cloned()?),
                Some(other) => {
                    let mismatch = Mismatch::Types {
                        expected: other.to_string(),
                        found: "option<…>".into(),
                    };
                    self.mismatch(mismatch, span)
                }
                None => self.mismatch(Mismatch::Unknown { literal: "none" }, span),
            },
            ast::ExprKind::Name(name) => self.variable(body, name, span),
            ast::ExprKind::Paren(inner) => self.evaluate(body, inner, expected),
            ast::ExprKind::Policy(read, policy) => self.read_with_policy(body, read, policy, span),
            ast::ExprKind::Field(object, field) => self.field(body, span, object, field),
            ast::ExprKind::Method(object, name, args) => {
                self.method(body, span, object, name, args)
            }
            ast::ExprKind::Call(name, args) => self.call(body, span, name, args),
            ast::ExprKind::Index(object, key) => self.handle(body, object, key, span),
            ast::ExprKind::Create { is_put, object, inits } => {
                self.create(body, span, *is_put, object, inits)
            }
            ast::ExprKind::Struct(name, inits) => self.struct_value(body, span, name, inits),
            ast::ExprKind::List(items) => self.list(body, span, items, expected),
            ast::ExprKind::Some(inner) => {
                let expected = match expected {
                    Some(Type::Option(inner)) => Some(&**inner),
                    _ => None,
                };
                let evaluated = self.evaluate(body, inner, expected)?;
                let inner = self.as_value(evaluated, inner.span)?;
                let value_type = Type::Option(Arc::new(inner.value_type.clone()));
                value(ExprKind::Local(Op::Some, vec![inner]), value_type)
            }
            ast::ExprKind::Not(inner) => {
                let inner = self.value_of(body, inner, &Type::Bool)?;
                value(ExprKind::Local(Op::Not, vec![inner]), Type::Bool)
            }
            ast::ExprKind::Negate(inner) => self.negate(body, inner, span),
            ast::ExprKind::Binary(op, left, right) => {
                self.binary(body, span, *op, left, right, expected)
            }
            ast::ExprKind::If(condition, then, otherwise) => {
                let condition = self.value_of(body, condition, &Type::Bool);
                let place = "in a branch of an `if` that gives a value";
                let (then, otherwise) = self.guarded(body, place, |checker, body| {
                    checker.alternatives(body, then, otherwise, expected)
                });
                let then = then?;
                let value_type = then.value_type.clone();
                value(ExprKind::Local(Op::Select, vec![condition?, then, otherwise?]), value_type)
            }
            ast::ExprKind::Endorse { value, level, reason } => {
                self.endorse(body, span, value, level, reason.as_ref(), expected)
            }
            ast::ExprKind::Error => None,
        }
    }

    fn negate(&mut self, body: &mut Body, inner: &ast::Expr, span: Span) -> Option<Evaluated> {
        let inner = self.value(body, inner)?;
        let op = match inner.value_type {
            Type::Int => Op::NegateInt,
            Type::Float => Op::NegateFloat,
            Type::Decimal => Op::NegateDecimal,
            other => {
                let mismatch = Mismatch::Types {
                    expected: "int`, `float` or `decimal".into(),
                    found: other.to_string(),
                };
                return self.mismatch(mismatch, span);
            }
        };
        let value_type = inner.value_type.clone();
        let kind = ExprKind::Local(op, vec![inner]);
        Some(Evaluated::Value(Expr { kind, value_type, span }))
    }

    /// Checks the two branches of an `if` that gives a value.
    fn alternatives(
        &mut self,
        body: &mut Body,
        then: &ast::Expr,
        otherwise: &ast::Expr,
        expected: Option<&Type>,
    ) -> (Option<Expr>, Option<Expr>) {
        if expected.is_none() {
            return self.same_type(body, then, otherwise).unzip();
        }
        let mut first = |checker: &mut Self, expr: &ast::Expr| {
            let evaluated = checker.evaluate(body, expr, expected);
            evaluated.and_then(|evaluated| checker.as_value(evaluated, expr.span))
        };
        // The expected type may be a guess; the other branch determines the type.
        if tells_nothing(then) && !tells_nothing(otherwise) {
            let otherwise = first(self, otherwise);
            return (self.value_like(body, then, otherwise.as_ref()), otherwise);
        }
        let then = first(self, then);
        let otherwise = self.value_like(body, otherwise, then.as_ref());
        (then, otherwise)
    }

    pub(super) fn mismatch(&mut self, mismatch: Mismatch, span: Span) -> Option<Evaluated> {
        self.diagnostics.push(m0201::render(mismatch, span));
        None
    }

    /// Checks something in a place where only reads may stand.
    pub(super) fn guarded<T>(
        &mut self,
        body: &mut Body,
        place: &'static str,
        check: impl FnOnce(&mut Self, &mut Body) -> T,
    ) -> T {
        let outer = body.reads_only;
        body.reads_only = outer.or(Some(place));
        let result = check(self, body);
        body.reads_only = outer;
        result
    }

    fn variable(&mut self, body: &mut Body, name: &str, span: Span) -> Option<Evaluated> {
        let Some(var) = body.find(name) else {
            return self.unknown_variable(body, name, span);
        };
        body.used[var.index()] = true;
        self.note_use(span, body.vars[var.index()].span);
        let value_type = body.vars[var.index()].var_type.clone()?;
        Some(Evaluated::Value(Expr { kind: ExprKind::Var(var), value_type, span }))
    }

    /// `O[key]`
    fn handle(
        &mut self,
        body: &mut Body,
        object: &Ident,
        key: &ast::Expr,
        span: Span,
    ) -> Option<Evaluated> {
        if self.object_of(&object.name).is_none() && body.find(&object.name).is_some() {
            self.index_of_variable(object, key, span);
            return None;
        }
        let Some(id) = self.object(object) else {
            self.value(body, key);
            return None;
        };
        self.use_object(id);
        let declared = self.program.objects[id.index()].declared.clone();
        let key = if self.is_broken_field(&declared.name, &declared.key_name) {
            self.value(body, key)?
        } else {
            self.value_of(body, key, &declared.key_type)?
        };
        let kind = ExprKind::Local(Op::MakeRef(declared.name.clone()), vec![key]);
        let value_type = Type::Ref(declared.name.clone());
        Some(Evaluated::Value(Expr { kind, value_type, span }))
    }

    /// Reports brackets after a variable, which read from no list or map.
    fn index_of_variable(&mut self, object: &Ident, key: &ast::Expr, span: Span) {
        let edits = vec![
            Edit {
                span: Span { start: object.span.end, end: key.span.start },
                text: ".get(".into(),
            },
            Edit { span: Span { start: key.span.end, end: span.end }, text: ")".into() },
        ];
        let unfit = Unfit::Index { name: object.name.to_string(), edits };
        self.diagnostics.push(m0204::render(unfit, span));
    }

    fn unknown_variable(&mut self, body: &Body, name: &str, span: Span) -> Option<Evaluated> {
        if let Some((named, _)) = self.names.get(name) {
            let what = match named {
                Named::Store(_) => "the store",
                Named::Object(_) => "the object",
                Named::Struct => "the struct",
                Named::Enum(index) => {
                    let of = Arc::clone(&self.program.enums[*index]);
                    let declared = self.names[name].1;
                    self.note_use(span, declared);
                    return self.mismatch(Mismatch::BareEnum { of }, span);
                }
                Named::Function(_) => "the function",
            };
            return self.mismatch(Mismatch::NoValue { what: format!("{what} `{name}`") }, span);
        }
        if let Some(means) = alias::constant(name) {
            self.diagnostics.push(m0101::render_alias("variable", name, span, means));
            return None;
        }
        let near = self.diagnostics.near_miss(name, body.visible_names());
        let mut found = m0101::render("variable", name, span, near);
        if matches!(name, "break" | "continue") {
            found = found.with_note(format!(
                "there is no `{name}`: a loop ends by its condition, so put the condition into the `while`, or the rest of the loop into an `if`"
            ));
        }
        self.diagnostics.push(found);
        None
    }

    /// Records a use of a declared name.
    pub(super) fn note_use(&mut self, at: Span, declared: Span) {
        if let Some(record) = &mut self.record {
            record.uses.insert(at.start, declared.start);
        }
    }

    /// Records a use of a field or key of this object or struct.
    pub(super) fn note_member(&mut self, field: &Ident, owner: &Name) {
        if let Some(record) = &mut self.record {
            record.member(field.span, owner, &field.name);
        }
    }

    fn list(
        &mut self,
        body: &mut Body,
        span: Span,
        items: &[ast::Expr],
        expected: Option<&Type>,
    ) -> Option<Evaluated> {
        let mut inner = match expected {
            Some(Type::List(inner)) => Some((**inner).clone()),
            _ => None,
        };
        // The first item that determines its type is checked first, to give the others their type.
        let mut first = None;
        if inner.is_none() {
            let telling = items.iter().position(|item| !tells_nothing(item));
            if let Some(at) = telling.or((!items.is_empty()).then_some(0)) {
                let value = self.value(body, &items[at]);
                inner = value.as_ref().map(|value| value.value_type.clone());
                first = Some((at, value));
            }
        }
        let mut values = Some(Vec::new());
        for (at, item) in items.iter().enumerate() {
            let value = match (&mut first, &inner) {
                (Some((first, value)), _) if *first == at => value.take(),
                (_, Some(inner)) => self.value_of(body, item, inner),
                (_, None) => self.value_like(body, item, None),
            };
            values = values.zip(value).map(|(mut values, value)| {
                values.push(value);
                values
            });
        }
        let Some(inner) = inner else {
            if items.is_empty() {
                return self.mismatch(Mismatch::Unknown { literal: "[]" }, span);
            }
            return None;
        };
        let value_type = Type::List(Arc::new(inner));
        Some(Evaluated::Value(Expr {
            kind: ExprKind::Local(Op::MakeList, values?),
            value_type,
            span,
        }))
    }
}
