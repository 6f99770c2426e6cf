//! Types of a program as types of Python, and their JSON codecs.

use mingle_model::{FieldType, Type};

use super::Context;
use super::names::CODEC;

impl Context<'_> {
    /// Returns the type of a value that is received, or that is in a struct.
    pub(super) fn received(&self, value_type: &Type) -> String {
        match value_type {
            Type::Bool => "bool".to_owned(),
            Type::Int => "int".to_owned(),
            Type::Float => "float".to_owned(),
            Type::String => "str".to_owned(),
            Type::Bytes => "bytes".to_owned(),
            Type::Time => "datetime".to_owned(),
            Type::Date => "_Date".to_owned(),
            Type::Decimal => "_Decimal".to_owned(),
            Type::Json => "Any".to_owned(),
            Type::Enum(declared) => self.types.of(&declared.name).to_owned(),
            Type::Struct(name) | Type::Ref(name) => self.types.of(name).to_owned(),
            Type::Option(inner) => optional(inner, &self.received(inner)),
            Type::List(inner) => format!("list[{}]", self.received(inner)),
            Type::Rushed(inner) => format!("Rushed[{}]", self.received(inner)),
        }
    }

    /// Returns the type of a parameter: it accepts more than its codec needs.
    pub(super) fn taken(&self, value_type: &Type) -> String {
        match value_type {
            Type::Option(inner) => optional(inner, &self.taken(inner)),
            Type::List(inner) => format!("Sequence[{}]", self.taken(inner)),
            other => self.received(other),
        }
    }

    /// Returns the codec that writes and reads values of a type as JSON.
    pub(super) fn codec(&self, value_type: &Type) -> String {
        match value_type {
            Type::Bool => "_bool".to_owned(),
            Type::Int => "_int".to_owned(),
            Type::Float => "_float".to_owned(),
            Type::String => "_str".to_owned(),
            Type::Bytes => "_bytes".to_owned(),
            Type::Time => "_time".to_owned(),
            Type::Date => "_date".to_owned(),
            Type::Decimal => "_decimal".to_owned(),
            Type::Json => "_json".to_owned(),
            Type::Enum(declared) => format!("{CODEC}{}", self.types.of(&declared.name)),
            Type::Struct(name) | Type::Ref(name) => format!("{CODEC}{}", self.types.of(name)),
            Type::Option(inner) if matches!(**inner, Type::Option(_)) => {
                format!("_option(_some({}))", self.codec(inner))
            }
            Type::Option(inner) if matches!(**inner, Type::Json) => {
                "_option(_some_json)".to_owned()
            }
            Type::Option(inner) => format!("_option({})", self.codec(inner)),
            Type::List(inner) => format!("_list({})", self.codec(inner)),
            Type::Rushed(inner) => format!("_rushed({})", self.codec(inner)),
        }
    }

    /// Returns the type of an object's field, and its decoder.
    pub(super) fn field(&self, field_type: &FieldType) -> (String, String) {
        match field_type {
            FieldType::Register(inner) => (self.received(inner), self.codec(inner)),
            FieldType::Counter => ("int".to_owned(), "_int".to_owned()),
            FieldType::Set(inner) | FieldType::Log(inner) => {
                (format!("list[{}]", self.received(inner)), format!("_list({})", self.codec(inner)))
            }
            FieldType::Map(Type::String, value) => (
                format!("dict[str, {}]", self.received(value)),
                format!("_named({})", self.codec(value)),
            ),
            FieldType::Map(key, value) => {
                let types = format!("{}, {}", self.received(key), self.received(value));
                let codecs = format!("{}, {}", self.codec(key), self.codec(value));
                if self.is_hashed(key) {
                    (format!("dict[{types}]"), format!("_map({codecs})"))
                } else {
                    (format!("list[tuple[{types}]]"), format!("_pairs({codecs})"))
                }
            }
        }
    }

    /// True if a dictionary accepts values of a type as keys, and finds each of them. Lists are not
    /// accepted, and a NaN is not equal to itself. The recursion ends because a struct in a list
    /// stops it.
    fn is_hashed(&self, value_type: &Type) -> bool {
        match value_type {
            Type::Float | Type::List(_) | Type::Json => false,
            Type::Option(inner) => self.is_hashed(inner),
            // A struct that holds itself does so in an option.
            Type::Struct(name) => {
                let fields = &self.declared.program.schema().structs[name].fields;
                fields.iter().all(|(_, field)| {
                    !matches!(field, Type::Option(_) | Type::Struct(_)) && self.is_hashed(field)
                })
            }
            _ => true,
        }
    }
}

fn optional(inner: &Type, shown: &str) -> String {
    if matches!(inner, Type::Option(_) | Type::Json) {
        format!("Some[{shown}] | None")
    } else {
        format!("{shown} | None")
    }
}
