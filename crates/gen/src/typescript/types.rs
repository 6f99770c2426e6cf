//! Types of a program as types of TypeScript, and their JSON codecs.

use std::collections::BTreeSet;

use mingle_model::{FieldType, Type};

use super::Context;

impl Context<'_> {
    /// Returns the type of a value that is received, or that is in a struct.
    pub(super) fn received(&self, value_type: &Type) -> String {
        match value_type {
            Type::Bool => "boolean".to_owned(),
            Type::Int => "bigint".to_owned(),
            Type::Float => "number".to_owned(),
            Type::String => "string".to_owned(),
            Type::Bytes => "Uint8Array".to_owned(),
            Type::Time => "Date".to_owned(),
            Type::Date | Type::Decimal => "string".to_owned(),
            Type::Json => "Json".to_owned(),
            Type::Enum(declared) => self.types.of(&declared.name).to_owned(),
            Type::Struct(name) | Type::Ref(name) => self.types.of(name).to_owned(),
            Type::Option(inner) => optional(inner, &self.received(inner)),
            Type::List(inner) => list(&self.received(inner)),
            Type::Rushed(inner) => format!("Rushed<{}>", self.received(inner)),
        }
    }

    /// Returns the type of a parameter: it accepts more than its codec needs.
    pub(super) fn taken(&self, value_type: &Type) -> String {
        match value_type {
            Type::Int => "number | bigint".to_owned(),
            Type::Option(inner) => optional(inner, &self.taken(inner)),
            Type::List(inner) => format!("readonly {}", list(&self.taken(inner))),
            Type::Struct(_) if self.has_int(value_type) => {
                format!("Input<{}>", self.received(value_type))
            }
            other => self.received(other),
        }
    }

    /// True if values of a type hold integers, which are also accepted as numbers. Integers in the
    /// keys of refs are ignored: a handle holds its key in the received form.
    pub(super) fn has_int(&self, value_type: &Type) -> bool {
        let (mut seen, mut next) = (BTreeSet::new(), vec![value_type]);
        while let Some(one) = next.pop() {
            match one {
                Type::Int => return true,
                Type::Option(inner) | Type::List(inner) | Type::Rushed(inner) => next.push(inner),
                Type::Struct(name) if seen.insert(name) => {
                    let fields = &self.declared.program.schema().structs[name].fields;
                    next.extend(fields.iter().map(|(_, field)| field));
                }
                _ => {}
            }
        }
        false
    }

    /// Returns the codec that writes and reads values of a type as JSON.
    pub(super) fn codec(&self, value_type: &Type) -> String {
        match value_type {
            Type::Bool => "$bool".to_owned(),
            Type::Int => "$int".to_owned(),
            Type::Float => "$float".to_owned(),
            Type::String => "$string".to_owned(),
            Type::Bytes => "$bytes".to_owned(),
            Type::Time => "$time".to_owned(),
            Type::Date => "$day".to_owned(),
            Type::Decimal => "$decimal".to_owned(),
            Type::Json => "$json".to_owned(),
            Type::Enum(declared) => format!("$${}", self.types.of(&declared.name)),
            Type::Struct(name) | Type::Ref(name) => format!("$${}", self.types.of(name)),
            Type::Option(inner) if matches!(**inner, Type::Option(_)) => {
                format!("$option($some({}))", self.codec(inner))
            }
            Type::Option(inner) if matches!(**inner, Type::Json) => "$option($someJson)".to_owned(),
            Type::Option(inner) => format!("$option({})", self.codec(inner)),
            Type::List(inner) => format!("$list({})", self.codec(inner)),
            Type::Rushed(inner) => format!("$rushed({})", self.codec(inner)),
        }
    }

    /// Returns the type of an object's field, and its decoder.
    pub(super) fn field(&self, field_type: &FieldType) -> (String, String) {
        match field_type {
            FieldType::Register(inner) => (self.received(inner), self.codec(inner)),
            FieldType::Counter => ("bigint".to_owned(), "$int".to_owned()),
            FieldType::Set(inner) | FieldType::Log(inner) => {
                (list(&self.received(inner)), format!("$list({})", self.codec(inner)))
            }
            FieldType::Map(Type::String, value) => (
                format!("Map<string, {}>", self.received(value)),
                format!("$named({})", self.codec(value)),
            ),
            FieldType::Map(key, value) => {
                let (key_type, value_type) = (self.received(key), self.received(value));
                let codecs = format!("{}, {}", self.codec(key), self.codec(value));
                // A map finds objects by identity.
                if matches!(key, Type::Bool | Type::Int | Type::Float | Type::Enum(_)) {
                    (format!("Map<{key_type}, {value_type}>"), format!("$map({codecs})"))
                } else {
                    (format!("[{key_type}, {value_type}][]"), format!("$pairs({codecs})"))
                }
            }
        }
    }
}

fn optional(inner: &Type, shown: &str) -> String {
    if matches!(inner, Type::Option(_) | Type::Json) {
        format!("Some<{shown}> | null")
    } else {
        format!("{shown} | null")
    }
}

fn list(inner: &str) -> String {
    if inner.contains(' ') { format!("({inner})[]") } else { format!("{inner}[]") }
}
