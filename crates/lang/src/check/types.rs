//! Type expressions.

use std::sync::Arc;

use mingle_model::{FieldType, Name, Schema, Type};

use super::{Checker, Named};
use crate::diagnostic::m0201::{self, Mismatch};
use crate::diagnostic::m0206::{self, Collection};
use crate::diagnostic::{alias, m0101, m0602};
use crate::hir::ObjectId;
use crate::syntax::Span;
use crate::syntax::ast::{Ident, TypeExpr, TypeKind};

/// The types of values and fields, as a message lists them.
const TYPES: [&str; 15] = [
    "bool", "int", "float", "string", "bytes", "time", "date", "decimal", "json", "ref", "option",
    "list", "counter", "set", "map",
];

impl Checker<'_> {
    /// Resolves the type of a value; none if a mistake was reported.
    pub(super) fn value_type(&mut self, written: &TypeExpr) -> Option<Type> {
        match &written.kind {
            TypeKind::Named(name) => self.named_type(name, written.span),
            TypeKind::Ref(object) => {
                let id = self.object(object)?;
                self.use_object(id);
                Some(Type::Ref(object.name.clone()))
            }
            TypeKind::Option(inner) => Some(Type::Option(Arc::new(self.value_type(inner)?))),
            TypeKind::List(inner) => Some(Type::List(Arc::new(self.value_type(inner)?))),
            TypeKind::Counter(_) => self.collection_type("counter", written.span),
            TypeKind::Set(_) => self.collection_type("set", written.span),
            TypeKind::Map(..) => self.collection_type("map", written.span),
            TypeKind::Log(_) => self.collection_type("log", written.span),
            TypeKind::Rushed(_) => {
                self.diagnostics.push(m0602::render(m0602::Misuse::Type, written.span));
                None
            }
            TypeKind::Error => None,
        }
    }

    fn collection_type(&mut self, name: &str, span: Span) -> Option<Type> {
        self.diagnostics.push(m0206::render(Collection::Type { name: name.to_owned() }, span));
        None
    }

    fn named_type(&mut self, name: &Name, span: Span) -> Option<Type> {
        Some(match &**name {
            "bool" => Type::Bool,
            "int" => Type::Int,
            "float" => Type::Float,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "time" => Type::Time,
            "date" => Type::Date,
            "decimal" => Type::Decimal,
            "json" => Type::Json,
            _ => match self.names.get(name) {
                Some((Named::Struct, declared)) => {
                    let declared = *declared;
                    self.note_use(span, declared);
                    Type::Struct(name.clone())
                }
                Some((Named::Enum(index), declared)) => {
                    let (index, declared) = (*index, *declared);
                    self.note_use(span, declared);
                    Type::Enum(Arc::clone(&self.program.enums[index]))
                }
                Some((Named::Object(_), _)) => {
                    self.diagnostics.push(m0201::render(
                        Mismatch::BareObject { name: name.to_string(), is_type: true },
                        span,
                    ));
                    return None;
                }
                _ => {
                    let builtin = [
                        "bool", "int", "float", "string", "bytes", "time", "date", "decimal",
                        "json", "counter",
                    ];
                    let structs = self
                        .names
                        .iter()
                        .filter(|(_, (named, _))| matches!(named, Named::Struct | Named::Enum(_)));
                    let near = self
                        .diagnostics
                        .near_miss(name, structs.map(|(name, _)| &**name).chain(builtin));
                    let found = match alias::type_name(name) {
                        Some(means) => m0101::render_alias("type", name, span, means),
                        None if matches!(&**name, "void" | "unit" | "Void" | "Unit") => {
                            m0101::render("type", name, span, None)
                                .with_note("a transaction without a result declares none")
                        }
                        None => m0101::render_known("type", name, span, near, &TYPES),
                    };
                    self.diagnostics.push(found);
                    return None;
                }
            },
        })
    }

    /// Resolves the type of an object's field.
    pub(super) fn field_type(&mut self, written: &TypeExpr) -> Option<FieldType> {
        Some(match &written.kind {
            TypeKind::Counter(_) => FieldType::Counter,
            TypeKind::Set(inner) => FieldType::Set(self.value_type(inner)?),
            TypeKind::Log(inner) => FieldType::Log(self.value_type(inner)?),
            TypeKind::Map(key, value) => {
                let (key, value) = (self.value_type(key), self.value_type(value));
                FieldType::Map(key?, value?)
            }
            _ => FieldType::Register(self.value_type(written)?),
        })
    }

    /// Resolves an object by its name.
    pub(super) fn object(&mut self, ident: &Ident) -> Option<ObjectId> {
        if let Some((Named::Object(id), declared)) = self.names.get(&ident.name) {
            let (id, declared) = (*id, *declared);
            self.note_use(ident.span, declared);
            return Some(id);
        }
        let objects = self.names.iter().filter(|(_, (named, _))| matches!(named, Named::Object(_)));
        let mut known: Vec<&str> = objects.map(|(name, _)| &**name).collect();
        known.sort_unstable();
        let near = self.diagnostics.near_miss(&ident.name, known.iter().copied());
        let found = m0101::render_known("object", &ident.name, ident.span, near, &known);
        self.diagnostics.push(found);
        None
    }

    /// Returns the object that a `ref` of this type names.
    pub(super) fn object_of(&self, name: &str) -> Option<ObjectId> {
        match self.names.get(name) {
            Some((Named::Object(id), _)) => Some(*id),
            _ => None,
        }
    }
}

/// Returns the types that make up a key: the types of a struct's fields, or the type itself.
pub(super) fn key_parts<'s>(schema: &'s Schema, key_type: &'s Type) -> Vec<&'s Type> {
    match key_type {
        Type::Struct(name) => schema.structs.get(name).map_or_else(Vec::new, |declared| {
            declared.fields.iter().map(|(_, field_type)| field_type).collect()
        }),
        single => vec![single],
    }
}

/// Returns the type in a field's declaration that the field cannot have, and its place: elements of sets and keys of
/// maps have an order, and a `json` has none.
pub(super) fn unfit_element(
    schema: &Schema,
    written: &TypeExpr,
    found: &FieldType,
) -> Option<(Mismatch, Span)> {
    let (inner, span) = match (&written.kind, found) {
        (TypeKind::Set(at), FieldType::Set(inner))
        | (TypeKind::Map(at, _), FieldType::Map(inner, _)) => (inner, at.span),
        _ => return None,
    };
    let mismatch = Mismatch::Element { found: inner.to_string(), field: found.to_string() };
    schema.has_json(inner).then_some((mismatch, span))
}

/// Returns why a type cannot be a key; none if it can.
pub(super) fn unfit_key(schema: &Schema, found: &Type) -> Option<Mismatch> {
    let fits = |part: &Type| {
        matches!(
            part,
            Type::String
                | Type::Int
                | Type::Bool
                | Type::Bytes
                | Type::Time
                | Type::Date
                | Type::Decimal
                | Type::Enum(_)
                | Type::Ref(_)
        )
    };
    let Type::Struct(name) = found else {
        return (!fits(found)).then(|| Mismatch::Key { found: found.to_string() });
    };
    let declared = schema.structs.get(name)?;
    let (field, part) = declared.fields.iter().find(|(_, part)| !fits(part))?;
    Some(Mismatch::KeyPart {
        name: name.to_string(),
        field: field.to_string(),
        found: part.to_string(),
    })
}
