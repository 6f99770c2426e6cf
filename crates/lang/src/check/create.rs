//! Values and objects created with their fields in braces, and endorsements.

use mingle_model::{FieldType, Name, Type};

use super::expr::Evaluated;
use super::{Body, Checker, DEFAULT, Named};
use crate::diagnostic::m0201::Mismatch;
use crate::diagnostic::m0202::{self, Arity};
use crate::diagnostic::m0206::{self, Collection};
use crate::diagnostic::{m0101, m0401};
use crate::hir::{Expr, ExprKind, NewKey};
use crate::syntax::Span;
use crate::syntax::ast::{self, Ident};

impl Checker<'_> {
    pub(super) fn struct_value(
        &mut self,
        body: &mut Body,
        span: Span,
        name: &Ident,
        inits: &[ast::Init],
    ) -> Option<Evaluated> {
        let declared = match self.names.get(&name.name) {
            Some((Named::Struct, declared)) => {
                let declared = *declared;
                self.note_use(name.span, declared);
                self.program.schema.structs.get(&name.name)?.clone()
            }
            Some((Named::Object(_), _)) => {
                let mismatch = Mismatch::BareObject { name: name.name.to_string(), is_type: false };
                return self.mismatch(mismatch, name.span);
            }
            _ => {
                let structs = self.program.schema.structs.keys().map(|name| &**name);
                let near = self.diagnostics.near_miss(&name.name, structs);
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

    /// Checks fields and their values in braces; none if a mistake was reported.
    fn inits(
        &mut self,
        body: &mut Body,
        of: &Name,
        fields: &[(&str, Type)],
        inits: &[ast::Init],
    ) -> Option<Vec<(u16, Expr)>> {
        let mut values = Some(Vec::new());
        for (index, init) in inits.iter().enumerate() {
            let known = fields.iter().position(|(name, _)| *name == &*init.name.name);
            if self.is_broken_field(of, &init.name.name) {
                self.value(body, &init.value);
                values = None;
                continue;
            }
            let Some(known) = known else {
                let left = fields.iter().map(|(name, _)| *name);
                let left = left.filter(|name| !inits.iter().any(|init| &*init.name.name == *name));
                let near = self.diagnostics.near_miss(&init.name.name, left);
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
            self.note_member(&init.name, of);
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

    pub(super) fn create(
        &mut self,
        body: &mut Body,
        span: Span,
        is_put: bool,
        object: &Ident,
        inits: &[ast::Init],
    ) -> Option<Evaluated> {
        let kind = self.object(object)?;
        self.use_object(kind);
        let declared = self.program.objects[kind.index()].declared.clone();
        // The key stands first, then the registers, so their indices are one higher than in the
        // object.
        let mut fields = vec![(&*declared.key_name, declared.key_type.clone())];
        for field in &declared.fields {
            let written = inits.iter().find(|init| init.name.name == field.name);
            match (&field.field_type, written) {
                (FieldType::Register(value_type), _) => {
                    fields.push((&field.name, value_type.clone()));
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
        let key = match key {
            Some(key) => Some(NewKey::Given(Box::new(key))),
            None if is_put => None,
            None => self.drawn_key(body, kind),
        };
        let Some(key) = key else {
            self.key_needed(kind, is_put, span);
            return None;
        };
        allowed?;
        let value_type = Type::Ref(declared.name.clone());
        let kind = ExprKind::Create { is_put, kind, key, inits: registers };
        Some(Evaluated::Value(Expr { kind, value_type, span }))
    }

    pub(super) fn endorse(
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
        let reason = match reason {
            Some((reason, _)) if !reason.trim().is_empty() => reason.clone(),
            _ => {
                self.diagnostics.push(m0401::render(span));
                "".into()
            }
        };
        if body.reads_only == Some(DEFAULT) {
            return self.mismatch(Mismatch::NotConstant, span);
        }
        let value = value?;
        let value_type = value.value_type.clone();
        let kind = ExprKind::Endorse { value: Box::new(value), level: level?, reason };
        Some(Evaluated::Value(Expr { kind, value_type, span }))
    }
}
