//! Expressions.

use std::sync::Arc;

use mingle_model::{FieldType, Name, Type, Value};

use super::operators::tells_nothing;
use super::{Body, Checker, Named};
use crate::diagnostic::m0101;
use crate::diagnostic::m0201::{self, Mismatch};
use crate::diagnostic::m0203::{self, Fixed};
use crate::diagnostic::m0204::{self, Unfit};
use crate::diagnostic::m0206::{self, Collection};
use crate::hir::{Expr, ExprKind, ObjectId, Place, WriteOp};
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
            Evaluated::Value(value) => return Some(value),
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
                Some(Evaluated::Collection(_, found)) => Some(Typed::Collection(found.clone())),
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
            ast::ExprKind::String(literal) => {
                constant(Value::String(literal.clone()), Type::String)
            }
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
            ast::ExprKind::Negate(inner) => {
                let inner = self.value(body, inner)?;
                let op = match inner.value_type {
                    Type::Int => Op::NegateInt,
                    Type::Float => Op::NegateFloat,
                    other => {
                        let mismatch = Mismatch::Types {
                            expected: "int` or `float".into(),
                            found: other.to_string(),
                        };
                        return self.mismatch(mismatch, span);
                    }
                };
                let value_type = inner.value_type.clone();
                value(ExprKind::Local(op, vec![inner]), value_type)
            }
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
        let Some(id) = self.object(object) else {
            self.value(body, key);
            return None;
        };
        self.use_object(id);
        let declared = self.program.objects[id.index()].declared.clone();
        let key = self.value_of(body, key, &declared.key_type)?;
        let kind = ExprKind::Local(Op::MakeRef(declared.name.clone()), vec![key]);
        let value_type = Type::Ref(declared.name.clone());
        Some(Evaluated::Value(Expr { kind, value_type, span }))
    }

    fn unknown_variable(&mut self, body: &Body, name: &str, span: Span) -> Option<Evaluated> {
        if let Some((named, _)) = self.names.get(name) {
            let what = match named {
                Named::Store(_) => "the store",
                Named::Object(_) => "the object",
                Named::Struct => "the struct",
                Named::Function(_) => "the function",
            };
            return self.mismatch(Mismatch::NoValue { what: format!("{what} `{name}`") }, span);
        }
        let near = self.diagnostics.near_miss(name, body.visible_names());
        self.diagnostics.push(m0101::render("variable", name, span, near));
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

    /// Returns the object and field behind `object.field`; none if a mistake was reported.
    fn place(&mut self, span: Span, object: Expr, kind: ObjectId, field: &Ident) -> Option<Place> {
        let declared = self.program.objects[kind.index()].declared.clone();
        if let Some(index) = declared.field_index(&field.name) {
            self.note_member(field, &declared.name);
            return Some(Place { object: Box::new(object), kind, field: index as u16, span });
        }
        let known = declared.fields.iter().map(|field| &*field.name).chain([&*declared.key_name]);
        self.unknown_field(&declared.name, field, known);
        None
    }

    fn unknown_field<'n>(
        &mut self,
        of: &str,
        field: &Ident,
        known: impl IntoIterator<Item = &'n str>,
    ) {
        let near = self.diagnostics.near_miss(&field.name, known);
        let what = format!("field of `{of}`");
        self.diagnostics.push(m0101::render(&what, &field.name, field.span, near));
    }

    fn field(
        &mut self,
        body: &mut Body,
        span: Span,
        object: &ast::Expr,
        field: &Ident,
    ) -> Option<Evaluated> {
        let object = self.value(body, object)?;
        match object.value_type.clone() {
            Type::Ref(name) => {
                let kind = self.object_of(&name)?;
                let declared = self.program.objects[kind.index()].declared.clone();
                if field.name == declared.key_name {
                    self.note_member(field, &name);
                    let kind = ExprKind::Local(Op::KeyOf, vec![object]);
                    return Some(Evaluated::Value(Expr {
                        kind,
                        value_type: declared.key_type.clone(),
                        span,
                    }));
                }
                let place = self.place(span, object, kind, field)?;
                Some(match &declared.fields[usize::from(place.field)].field_type {
                    FieldType::Register(value_type) => Evaluated::Value(Expr {
                        kind: ExprKind::Register(place),
                        value_type: value_type.clone(),
                        span,
                    }),
                    collection => Evaluated::Collection(place, collection.clone()),
                })
            }
            Type::Struct(name) => {
                let declared = self.program.schema.structs.get(&name)?.clone();
                let index = declared.fields.iter().position(|(known, _)| *known == field.name);
                let Some(index) = index else {
                    let known = declared.fields.iter().map(|(known, _)| &**known);
                    self.unknown_field(&name, field, known);
                    return None;
                };
                self.note_member(field, &name);
                let kind = ExprKind::Local(Op::StructField(index as u16), vec![object]);
                Some(Evaluated::Value(Expr {
                    kind,
                    value_type: declared.fields[index].1.clone(),
                    span,
                }))
            }
            other => {
                let unfit = Unfit::Field { on: other.to_string(), name: field.name.to_string() };
                self.diagnostics.push(m0204::render(unfit, field.span));
                None
            }
        }
    }

    /// Returns the assigned register and its type; none if a mistake was reported.
    pub(super) fn assigned_field(
        &mut self,
        body: &mut Body,
        place: &ast::Expr,
        object: &ast::Expr,
        field: &Ident,
    ) -> Option<(Place, Type)> {
        let object = self.value(body, object)?;
        let fixed = match object.value_type.clone() {
            Type::Ref(name) => {
                let kind = self.object_of(&name)?;
                let declared = self.program.objects[kind.index()].declared.clone();
                if field.name == declared.key_name {
                    self.note_member(field, &name);
                    Fixed::Key { object: name.to_string(), key: field.name.to_string() }
                } else {
                    let found = self.place(place.span, object, kind, field)?;
                    match &declared.fields[usize::from(found.field)].field_type {
                        FieldType::Register(value_type) => {
                            return Some((found, value_type.clone()));
                        }
                        other => Fixed::Collection {
                            field: field.name.to_string(),
                            field_type: other.to_string(),
                        },
                    }
                }
            }
            Type::Struct(name) => {
                self.note_member(field, &name);
                Fixed::StructField { name: field.name.to_string() }
            }
            other => {
                let unfit = Unfit::Field { on: other.to_string(), name: field.name.to_string() };
                self.diagnostics.push(m0204::render(unfit, field.span));
                return None;
            }
        };
        self.diagnostics.push(m0203::render(fixed, place.span));
        None
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
