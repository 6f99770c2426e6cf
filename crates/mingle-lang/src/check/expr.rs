//! Expressions.

use std::sync::Arc;

use mingle_model::{FieldType, Type, Value};

use super::{Body, Checker, Named};
use crate::diagnostic::m0201::{self, Mismatch};
use crate::diagnostic::m0202::{self, Arity};
use crate::diagnostic::m0203::{self, Fixed};
use crate::diagnostic::m0204::{self, Unfit};
use crate::diagnostic::m0206::{self, Collection};
use crate::diagnostic::{m0101, m0401, m0403, near_miss};
use crate::hir::{Expr, ExprKind, ObjectId, Place, WriteOp};
use crate::ops::Op;
use crate::syntax::Span;
use crate::syntax::ast::{self, BinaryOp, Ident};

/// What an expression turned out to be.
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
    /// A value of any type; none if a mistake was reported.
    pub(super) fn value(&mut self, body: &mut Body, expr: &ast::Expr) -> Option<Expr> {
        let evaluated = self.evaluate(body, expr, None)?;
        self.as_value(evaluated, expr.span)
    }

    /// A value of this type; none if a mistake was reported.
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

    /// Reports a write where only reads may stand.
    pub(super) fn no_write(&mut self, body: &Body, what: &str, span: Span) -> Option<()> {
        let Some(place) = body.reads_only else {
            return Some(());
        };
        self.diagnostics
            .push(m0201::render(Mismatch::Write { what: what.to_owned(), place }, span));
        None
    }

    /// Checks an expression; `expected` helps where the expression alone does not tell its type.
    pub(super) fn evaluate(
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
            ast::ExprKind::Name(name) => {
                let Some(var) = body.find(name) else {
                    return self.unknown_variable(body, name, span);
                };
                body.used[var.index()] = true;
                value(ExprKind::Var(var), body.vars[var.index()].var_type.clone()?)
            }
            ast::ExprKind::Paren(inner) => self.evaluate(body, inner, expected),
            ast::ExprKind::Field(object, field) => self.field(body, span, object, field),
            ast::ExprKind::Method(object, name, args) => {
                self.method(body, span, object, name, args)
            }
            ast::ExprKind::Call(name, args) => self.call(body, span, name, args),
            ast::ExprKind::Index(object, key) => {
                let id = self.object(object);
                let Some(id) = id else {
                    self.value(body, key);
                    return None;
                };
                self.object_used[id.index()] = true;
                let declared = self.program.objects[id.index()].declared.clone();
                let key = self.value_of(body, key, &declared.key_type)?;
                value(
                    ExprKind::Local(Op::MakeRef(declared.name.clone()), vec![key]),
                    Type::Ref(declared.name.clone()),
                )
            }
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
                let (then, otherwise) = self.guarded(
                    body,
                    "in a branch of an `if` that gives a value",
                    |checker, body| {
                        let evaluated = checker.evaluate(body, then, expected);
                        let then =
                            evaluated.and_then(|evaluated| checker.as_value(evaluated, then.span));
                        let wanted = then.as_ref().map(|then| then.value_type.clone());
                        let otherwise = match &wanted {
                            Some(wanted) => checker.value_of(body, otherwise, wanted),
                            None => checker.value(body, otherwise),
                        };
                        (then, otherwise)
                    },
                );
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

    fn mismatch(&mut self, mismatch: Mismatch, span: Span) -> Option<Evaluated> {
        self.diagnostics.push(m0201::render(mismatch, span));
        None
    }

    /// Checks something in a place where only reads may stand.
    fn guarded<T>(
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
        let near = near_miss(name, body.visible_names());
        self.diagnostics.push(m0101::render("variable", name, span, near));
        None
    }

    /// The object and field behind `object.field`; none if a mistake was reported.
    fn place(&mut self, span: Span, object: Expr, kind: ObjectId, field: &Ident) -> Option<Place> {
        let declared = self.program.objects[kind.index()].declared.clone();
        if let Some(index) = declared.field_index(&field.name) {
            return Some(Place { object: Box::new(object), kind, field: index as u16, span });
        }
        let known = declared.fields.iter().map(|field| &*field.name).chain([&*declared.key_name]);
        let near = near_miss(&field.name, known);
        self.diagnostics.push(m0101::render(
            &format!("field of `{}`", declared.name),
            &field.name,
            field.span,
            near,
        ));
        None
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
                    let near =
                        near_miss(&field.name, declared.fields.iter().map(|(known, _)| &**known));
                    self.diagnostics.push(m0101::render(
                        &format!("field of `{name}`"),
                        &field.name,
                        field.span,
                        near,
                    ));
                    return None;
                };
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

    /// The register that is assigned, and its type; none if a mistake was reported.
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
            Type::Struct(_) => Fixed::StructField { name: field.name.to_string() },
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
        let mut values = Some(Vec::new());
        for item in items {
            let value = match &inner {
                Some(inner) => self.value_of(body, item, inner),
                None => self.value(body, item),
            };
            if inner.is_none() {
                inner = value.as_ref().map(|value| value.value_type.clone());
            }
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

    fn struct_value(
        &mut self,
        body: &mut Body,
        span: Span,
        name: &Ident,
        inits: &[ast::Init],
    ) -> Option<Evaluated> {
        let declared = match self.names.get(&name.name) {
            Some((Named::Struct, _)) => self.program.schema.structs.get(&name.name)?.clone(),
            Some((Named::Object(_), _)) => {
                let mismatch = Mismatch::BareObject { name: name.name.to_string() };
                return self.mismatch(mismatch, name.span);
            }
            _ => {
                let structs = self.program.schema.structs.keys().map(|name| &**name);
                let near = near_miss(&name.name, structs);
                self.diagnostics.push(m0101::render("struct", &name.name, name.span, near));
                return None;
            }
        };
        let fields: Vec<(&str, Type)> =
            declared.fields.iter().map(|(name, found)| (&**name, found.clone())).collect();
        let values = self.inits(body, &name.name, &fields, inits);
        let missing: Vec<String> = declared
            .fields
            .iter()
            .filter(|(name, _)| !inits.iter().any(|init| init.name.name == *name))
            .map(|(name, _)| name.to_string())
            .collect();
        if !missing.is_empty() {
            let arity = Arity::Missing { of: name.name.to_string(), fields: missing };
            self.diagnostics.push(m0202::render(arity, span));
            return None;
        }
        let value_type = Type::Struct(name.name.clone());
        Some(Evaluated::Value(Expr { kind: ExprKind::Struct(values?), value_type, span }))
    }

    /// Fields and their values in braces; none if a mistake was reported.
    fn inits(
        &mut self,
        body: &mut Body,
        of: &str,
        fields: &[(&str, Type)],
        inits: &[ast::Init],
    ) -> Option<Vec<(u16, Expr)>> {
        let mut values = Some(Vec::new());
        for (index, init) in inits.iter().enumerate() {
            let known = fields.iter().position(|(name, _)| *name == &*init.name.name);
            let Some(known) = known else {
                let near = near_miss(&init.name.name, fields.iter().map(|(name, _)| *name));
                self.diagnostics.push(m0101::render(
                    &format!("field of `{of}`"),
                    &init.name.name,
                    init.name.span,
                    near,
                ));
                self.value(body, &init.value);
                values = None;
                continue;
            };
            if let Some(first) =
                inits[..index].iter().find(|other| other.name.name == init.name.name)
            {
                let arity =
                    Arity::Twice { name: init.name.name.to_string(), first: first.name.span };
                self.diagnostics.push(m0202::render(arity, init.name.span));
                values = None;
            }
            let value = self.value_of(body, &init.value, &fields[known].1);
            values = values.zip(value).map(|(mut values, value)| {
                values.push((known as u16, value));
                values
            });
        }
        values
    }

    fn create(
        &mut self,
        body: &mut Body,
        span: Span,
        is_put: bool,
        object: &Ident,
        inits: &[ast::Init],
    ) -> Option<Evaluated> {
        let kind = self.object(object)?;
        self.object_used[kind.index()] = true;
        let declared = self.program.objects[kind.index()].declared.clone();
        // The key stands first, then the registers; their indices are one higher than in the object.
        let mut fields = vec![(&*declared.key_name, declared.key_type.clone())];
        for field in &declared.fields {
            let written = inits.iter().find(|init| init.name.name == field.name);
            match (&field.field_type, written) {
                (FieldType::Register(value_type), _) => {
                    fields.push((&field.name, value_type.clone()))
                }
                (collection, Some(init)) => {
                    let fact = Collection::Default { field_type: collection.to_string() };
                    self.diagnostics.push(m0206::render(fact, init.name.span));
                    return None;
                }
                (_, None) => fields.push(("", Type::Bool)),
            }
        }
        let word = if is_put { "`put`" } else { "`new`" };
        let allowed = self.no_write(body, word, span);
        let values = self.inits(body, &declared.name, &fields, inits)?;
        let mut key = None;
        let mut registers = Vec::new();
        for (index, value) in values {
            match index.checked_sub(1) {
                None => key = Some(value),
                Some(field) => registers.push((field, value)),
            }
        }
        if key.is_none() && (is_put || declared.key_type != Type::String) {
            let arity = Arity::KeyNeeded {
                object: declared.name.to_string(),
                key: declared.key_name.to_string(),
                is_put,
            };
            self.diagnostics.push(m0202::render(arity, span));
            return None;
        }
        allowed?;
        let key = key.map(Box::new).ok_or_else(|| {
            body.unique_sites += 1;
            body.unique_sites - 1
        });
        let value_type = Type::Ref(declared.name.clone());
        let kind = ExprKind::Create { is_put, kind, key, inits: registers };
        Some(Evaluated::Value(Expr { kind, value_type, span }))
    }

    fn endorse(
        &mut self,
        body: &mut Body,
        span: Span,
        value: &ast::Expr,
        level: &Ident,
        reason: Option<&(mingle_model::Name, Span)>,
        expected: Option<&Type>,
    ) -> Option<Evaluated> {
        let value = self.guarded(body, "in `endorse(…)`", |checker, body| {
            let evaluated = checker.evaluate(body, value, expected)?;
            checker.as_value(evaluated, value.span)
        });
        let level = self.level(level);
        if let Some(isolated) = body.isolated {
            self.diagnostics.push(m0403::render(span, isolated));
        }
        let reason = match reason {
            Some((reason, _)) if !reason.trim().is_empty() => reason.clone(),
            _ => {
                self.diagnostics.push(m0401::render(span));
                "".into()
            }
        };
        if body.reads_only == Some("in a default") {
            return self.mismatch(Mismatch::NotConstant, span);
        }
        let value = value?;
        let value_type = value.value_type.clone();
        let kind = ExprKind::Endorse { value: Box::new(value), level: level?, reason };
        Some(Evaluated::Value(Expr { kind, value_type, span }))
    }

    fn binary(
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
                    let (left, right) = (left.value_type.to_string(), right.value_type.to_string());
                    return self
                        .mismatch(Mismatch::Operands { operator: op.text(), left, right }, span);
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
                    // `none` stands for an option here, whatever is within the left one.
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

    /// Two values of one type, either of which may tell the other's.
    pub(super) fn same_type(
        &mut self,
        body: &mut Body,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Option<(Expr, Expr)> {
        let tells_nothing = match strip(left) {
            ast::ExprKind::None => true,
            ast::ExprKind::List(items) => items.is_empty(),
            _ => false,
        };
        if tells_nothing {
            let right = self.value(body, right);
            let left = match &right {
                Some(right) => self.value_of(body, left, &right.value_type),
                None => None,
            };
            return left.zip(right);
        }
        let left = self.value(body, left);
        let right = match &left {
            Some(left) => self.value_of(body, right, &left.value_type),
            None => {
                // Whatever is wrong inside is worth saying; its type alone is not.
                if !matches!(strip(right), ast::ExprKind::None | ast::ExprKind::List(_)) {
                    self.value(body, right);
                }
                None
            }
        };
        left.zip(right)
    }

    pub(super) fn ordered(&mut self, found: &Type, span: Span) -> Option<()> {
        if matches!(found, Type::Int | Type::Float | Type::String | Type::Bytes | Type::Time) {
            return Some(());
        }
        self.diagnostics.push(m0204::render(Unfit::Order { found: found.to_string() }, span));
        None
    }

    /// The operation behind an arithmetic operator, and the type of its result.
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
            (BinaryOp::Add, Type::List(a), Type::List(b)) if a == b => {
                (Op::ConcatList, left.clone())
            }
            _ => return None,
        })
    }
}

/// Whether a divisor is a literal other than 0.
fn literal_divisor(expr: &ast::Expr) -> bool {
    match strip(expr) {
        ast::ExprKind::Int(value) => *value != 0,
        ast::ExprKind::Negate(inner) => literal_divisor(inner),
        _ => false,
    }
}

/// The expression in any parentheses.
fn strip(expr: &ast::Expr) -> &ast::ExprKind {
    let mut kind = &expr.kind;
    while let ast::ExprKind::Paren(inner) = kind {
        kind = &inner.kind;
    }
    kind
}
