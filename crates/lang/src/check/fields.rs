//! Fields of objects and structs: reads, and places of assignments.

use mingle_model::{FieldType, Type};

use super::expr::Evaluated;
use super::methods::operations;
use super::{Body, Checker};
use crate::diagnostic::m0203::{self, Fixed};
use crate::diagnostic::m0204::{self, Unfit};
use crate::diagnostic::{Edit, alias, m0101};
use crate::hir::{Expr, ExprKind, ObjectId, Place};
use crate::names::Typed;
use crate::ops::Op;
use crate::syntax::Span;
use crate::syntax::ast::{self, Ident};

impl Checker<'_> {
    /// Returns the object and field behind `object.field`; none if a mistake was reported.
    pub(super) fn place(
        &mut self,
        span: Span,
        object: Expr,
        kind: ObjectId,
        field: &Ident,
    ) -> Option<Place> {
        let declared = self.program.objects[kind.index()].declared.clone();
        if let Some(index) = declared.field_index(&field.name) {
            self.note_member(field, &declared.name);
            if self.is_broken_field(&declared.name, &field.name) {
                return None;
            }
            return Some(Place { object: Box::new(object), kind, field: index as u16, span });
        }
        let known = declared.fields.iter().map(|field| &*field.name).chain([&*declared.key_name]);
        self.unknown_field(&declared.name, field, known);
        None
    }

    /// True if the field is declared with a type that has a mistake.
    pub(super) fn is_broken_field(&self, of: &str, field: &str) -> bool {
        self.broken_fields.iter().any(|(owner, name)| &**owner == of && &**name == field)
    }

    pub(super) fn unknown_field<'n>(
        &mut self,
        of: &str,
        field: &Ident,
        known: impl IntoIterator<Item = &'n str>,
    ) {
        if self.is_broken_field(of, &field.name) {
            return;
        }
        let known: Vec<&str> = known.into_iter().collect();
        let near = self.diagnostics.near_miss(&field.name, known.iter().copied());
        let what = format!("field of `{of}`");
        let found = m0101::render_known(&what, &field.name, field.span, near, &known);
        let is_operation = matches!(&*field.name, "exists" | "delete") && near.is_none();
        let edit = Edit { span: field.span, text: format!("{}()", field.name) };
        self.diagnostics.push(if is_operation {
            found.with_help("it is an operation", vec![edit])
        } else {
            found
        });
    }

    pub(super) fn field(
        &mut self,
        body: &mut Body,
        span: Span,
        object: &ast::Expr,
        field: &Ident,
    ) -> Option<Evaluated> {
        if let ast::ExprKind::Name(name) = &object.kind
            && let Some((of, declared)) = self.enum_named(body, name)
        {
            return self.enum_value(span, (&of, declared), object.span, field);
        }
        let evaluated = self.evaluate(body, object, None)?;
        if let Evaluated::Collection(_, found) = &evaluated
            && let on = Typed::Collection(found.clone())
            && let Some(means) = operation_meant(&on, &field.name)
        {
            self.operation_without_call(&on, field, means);
            return None;
        }
        let object = self.as_value(evaluated, object.span)?;
        match object.value_type.clone() {
            Type::Ref(name) => self.field_of_object(span, object, &name, field),
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
                let on = Typed::Value(other);
                if let Some(means) = operation_meant(&on, &field.name) {
                    self.operation_without_call(&on, field, means);
                    return None;
                }
                let unfit = Unfit::Field { on: on.to_string(), name: field.name.to_string() };
                self.diagnostics.push(m0204::render(unfit, field.span));
                None
            }
        }
    }

    /// Checks a read of a field of an object, or of its key.
    fn field_of_object(
        &mut self,
        span: Span,
        object: Expr,
        name: &str,
        field: &Ident,
    ) -> Option<Evaluated> {
        let kind = self.object_of(name)?;
        let declared = self.program.objects[kind.index()].declared.clone();
        if field.name == declared.key_name {
            self.note_member(field, &declared.name);
            if self.is_broken_field(name, &field.name) {
                return None;
            }
            let kind = ExprKind::Local(Op::KeyOf, vec![object]);
            let value_type = declared.key_type.clone();
            return Some(Evaluated::Value(Expr { kind, value_type, span }));
        }
        let place = self.place(span, object, kind, field)?;
        Some(match &declared.fields[usize::from(place.field)].field_type {
            FieldType::Register(value_type) => {
                let value_type = value_type.clone();
                let read = Expr { kind: ExprKind::Register(place), value_type, span };
                Evaluated::Value(self.as_declared(read))
            }
            collection => Evaluated::Collection(place, collection.clone()),
        })
    }

    /// Reports an operation that is named without its parentheses.
    fn operation_without_call(&mut self, on: &Typed, field: &Ident, means: &str) {
        let unfit = Unfit::NoCall {
            on: on.to_string(),
            name: field.name.to_string(),
            means: means.to_owned(),
        };
        self.diagnostics.push(m0204::render(unfit, field.span));
    }

    /// Returns the assigned register and its type; none if a mistake was reported.
    pub(super) fn assigned_field(
        &mut self,
        body: &mut Body,
        place: &ast::Expr,
        object: &ast::Expr,
        field: &Ident,
        (op, value): (ast::AssignOp, &ast::Expr),
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
                            edits: as_operation((place.span, &field.name), other, op, value),
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
}

/// Returns the operation without arguments that a field's name means.
fn operation_meant(on: &Typed, name: &str) -> Option<&'static str> {
    let known = operations(on);
    let same = known.iter().find(|known| **known == name).copied();
    let means = same.or_else(|| alias::method(known, name));
    means.filter(|means| {
        matches!(*means, "size" | "value" | "keys" | "to_list" | "is_some" | "exists")
    })
}

/// Returns the edits that turn an assignment to a collection into its operation.
fn as_operation(
    (place, field): (Span, &str),
    field_type: &FieldType,
    op: ast::AssignOp,
    value: &ast::Expr,
) -> Vec<Edit> {
    use ast::AssignOp as A;
    let is_sum = matches!(value.kind, ast::ExprKind::Binary(..));
    let (operation, from) = match (field_type, op, &value.kind) {
        (FieldType::Counter, A::Add, _) => ("add({read})", value.span),
        (FieldType::Counter, A::Subtract, _) if is_sum => ("add(-({read}))", value.span),
        (FieldType::Counter, A::Subtract, _) => ("add(-{read})", value.span),
        (FieldType::Counter, A::Set, ast::ExprKind::Binary(ast::BinaryOp::Add, left, right))
            if matches!(left.kind, ast::ExprKind::Field(..)) =>
        {
            ("add({read})", right.span)
        }
        (FieldType::Set(_), A::Add, _) => ("insert({read})", value.span),
        (FieldType::Set(_), A::Subtract, _) => ("remove({read})", value.span),
        (FieldType::Log(_), A::Add, _) => ("append({read})", value.span),
        _ => return Vec::new(),
    };
    let whole = Span { start: place.end - 1, end: value.span.end };
    // The second edit lies within the first, which repeats its text.
    vec![
        Edit { span: whole, text: format!("{field}.{operation}") },
        Edit { span: from, text: "{text}".into() },
    ]
}
