//! Types of a program as types of Go, and their JSON codecs.

use mingle_model::{FieldType, Type};

use super::Context;

/// The beginning of the names of codecs.
pub(super) const CODEC: &str = "codecOf";

impl Context<'_> {
    /// Returns the type of a value.
    pub(super) fn shown(&self, value_type: &Type) -> String {
        match value_type {
            Type::Bool => "bool".to_owned(),
            Type::Int => "int64".to_owned(),
            Type::Float => "float64".to_owned(),
            Type::String => "string".to_owned(),
            Type::Bytes => "[]byte".to_owned(),
            Type::Time => "time.Time".to_owned(),
            Type::Date => "Date".to_owned(),
            Type::Decimal => "Decimal".to_owned(),
            Type::Json => "JSON".to_owned(),
            Type::Enum(declared) => self.types.of(&declared.name).to_owned(),
            Type::Struct(name) | Type::Ref(name) => self.types.of(name).to_owned(),
            Type::Option(inner) => format!("*{}", self.shown(inner)),
            Type::List(inner) => format!("[]{}", self.shown(inner)),
            Type::Rushed(inner) => format!("Rushed[{}]", self.shown(inner)),
        }
    }

    /// Returns the codec that writes and reads values of a type as JSON.
    pub(super) fn codec(&self, value_type: &Type) -> String {
        let simple = |name| format!("{}{{}}", self.wire(name));
        let around = |name, inner: &Type| format!("{}({})", self.wire(name), self.codec(inner));
        match value_type {
            Type::Bool => simple("Bool"),
            Type::Int => simple("Int"),
            Type::Float => simple("Float"),
            Type::String => simple("String"),
            Type::Bytes => simple("Bytes"),
            Type::Time => simple("Time"),
            Type::Date => simple("Date"),
            Type::Decimal => simple("Decimal"),
            Type::Json => simple("JSON"),
            Type::Enum(declared) => format!("{CODEC}{}", self.types.of(&declared.name)),
            Type::Struct(name) | Type::Ref(name) => format!("{CODEC}{}{{}}", self.types.of(name)),
            Type::Option(inner) if matches!(**inner, Type::Option(_)) => {
                format!("{}({})", self.wire("Option"), around("Some", inner))
            }
            Type::Option(inner) if matches!(**inner, Type::Json) => {
                format!("{}({})", self.wire("Option"), simple("SomeJSON"))
            }
            Type::Option(inner) => around("Option", inner),
            Type::List(inner) => around("List", inner),
            Type::Rushed(inner) => around("Rushed", inner),
        }
    }

    /// Returns the type of an object's field, and its decoder.
    pub(super) fn field(&self, field_type: &FieldType) -> (String, String) {
        match field_type {
            FieldType::Register(inner) => (self.shown(inner), self.codec(inner)),
            FieldType::Counter => (self.shown(&Type::Int), self.codec(&Type::Int)),
            FieldType::Set(inner) | FieldType::Log(inner) => {
                let list = Type::List(inner.clone().into());
                (self.shown(&list), self.codec(&list))
            }
            FieldType::Map(Type::String, value) => {
                let codec = format!("{}({})", self.wire("Named"), self.codec(value));
                (format!("map[string]{}", self.shown(value)), codec)
            }
            FieldType::Map(key, value) => {
                let (key_type, value_type) = (self.shown(key), self.shown(value));
                let codecs = format!("{}, {}", self.codec(key), self.codec(value));
                if self.is_found(key) {
                    let codec = format!("{}({codecs})", self.wire("Map"));
                    (format!("map[{key_type}]{value_type}"), codec)
                } else {
                    let codec = format!("{}({codecs})", self.wire("Entries"));
                    (format!("[]Entry[{key_type}, {value_type}]"), codec)
                }
            }
        }
    }

    /// True if a map of Go accepts values of a type as keys, and finds each of them by its value: two
    /// equal times may have different representations, and pointers are compared by identity. The recursion
    /// ends since a struct that holds itself does so in an option or a list.
    fn is_found(&self, value_type: &Type) -> bool {
        match value_type {
            Type::Bool | Type::Int | Type::String | Type::Date | Type::Enum(_) => true,
            Type::Ref(name) => {
                self.is_found(&self.declared.program.schema().objects[name].key_type)
            }
            Type::Struct(name) => {
                let fields = &self.declared.program.schema().structs[name].fields;
                fields.iter().all(|(_, field)| self.is_found(field))
            }
            _ => false,
        }
    }
}
