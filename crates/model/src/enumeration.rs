//! Enumerations: named types with a list of values.
//!
//! A value of an enumeration is its label, a [`Value::String`](crate::Value::String). Stores see only labels:
//! [`Schema::stored`](crate::Schema::stored) replaces each enumeration by `string`. So stored data does not depend on the
//! order or the number of the declared values, a value that is added is a compatible change, and a label that
//! the program does not declare is found by the reader of that value alone.

use std::fmt;
use std::sync::Arc;

use crate::types::{EnumType, FieldType, ObjectType, Schema, Type};
use crate::value::{Name, Value};

/// A label of no declared value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeclared {
    /// The label.
    pub label: Name,
    /// The enumeration.
    pub of: Arc<EnumType>,
}

impl fmt::Display for Undeclared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.label.chars().take(100).collect();
        write!(f, "{shown:?} is no value of {}, which has {}", self.of.name, self.of.labels())
    }
}

impl Type {
    /// Returns the type as stores see it: `string` in place of each enumeration.
    #[must_use]
    pub fn stored(&self) -> Self {
        match self {
            Self::Enum(_) => Self::String,
            Self::Option(inner) => Self::Option(Arc::new(inner.stored())),
            Self::List(inner) => Self::List(Arc::new(inner.stored())),
            Self::Rushed(inner) => Self::Rushed(Arc::new(inner.stored())),
            other => other.clone(),
        }
    }

    /// Returns the enumeration in this type, outside structs and refs.
    pub fn enumeration(&self) -> Option<&Arc<EnumType>> {
        match self {
            Self::Enum(declared) => Some(declared),
            Self::Option(inner) | Self::List(inner) | Self::Rushed(inner) => inner.enumeration(),
            _ => None,
        }
    }
}

impl FieldType {
    /// Returns the type as stores see it: `string` in place of each enumeration.
    #[must_use]
    pub fn stored(&self) -> Self {
        match self {
            Self::Register(inner) => Self::Register(inner.stored()),
            Self::Counter => Self::Counter,
            Self::Set(inner) => Self::Set(inner.stored()),
            Self::Map(key, value) => Self::Map(key.stored(), value.stored()),
            Self::Log(inner) => Self::Log(inner.stored()),
        }
    }

    /// Returns the enumerations in this type, outside structs and refs.
    fn enumerations(&self) -> Vec<&Arc<EnumType>> {
        let inner: Vec<&Type> = match self {
            Self::Counter => Vec::new(),
            Self::Register(inner) | Self::Set(inner) | Self::Log(inner) => vec![inner],
            Self::Map(key, value) => vec![key, value],
        };
        inner.into_iter().filter_map(Type::enumeration).collect()
    }
}

impl Schema {
    /// Returns the declarations as stores see them: `string` in place of each enumeration.
    ///
    /// [`Schema::enums`] of the result has the enumerations of keys and fields, so that a store that knows
    /// the values of its columns can compare them.
    #[must_use]
    pub fn stored(&self) -> Self {
        let mut stored = Self::default();
        for (name, declared) in &self.structs {
            let mut erased = (**declared).clone();
            for (_, inner) in &mut erased.fields {
                *inner = inner.stored();
            }
            stored.structs.insert(name.clone(), Arc::new(erased));
        }
        for (name, declared) in &self.objects {
            let key = declared.key_type.enumeration().map(|of| (&declared.key_name, of));
            let fields = declared.fields.iter().flat_map(|field| {
                field.field_type.enumerations().into_iter().map(|of| (&field.name, of))
            });
            let found = key.into_iter().chain(fields);
            stored
                .enums
                .extend(found.map(|(member, of)| (name.clone(), member.clone(), Arc::clone(of))));
            stored.objects.insert(name.clone(), Arc::new(declared.stored()));
        }
        stored
    }

    /// Returns the first label in a value of the type that no value of its enumeration has.
    pub fn undeclared(&self, value: &Value, value_type: &Type) -> Option<Undeclared> {
        match (value, value_type) {
            (Value::String(label), Type::Enum(of)) => {
                (!of.has(label)).then(|| Undeclared { label: label.clone(), of: Arc::clone(of) })
            }
            (Value::Option(Some(inner)), Type::Option(inner_type)) => {
                self.undeclared(inner, inner_type)
            }
            (Value::List(items), Type::List(inner)) => {
                items.iter().find_map(|item| self.undeclared(item, inner))
            }
            (Value::Struct(values), Type::Struct(name)) => {
                let fields = &self.structs.get(name)?.fields;
                let mut pairs = fields.iter().zip(values.iter());
                pairs.find_map(|((_, inner), value)| self.undeclared(value, inner))
            }
            (Value::Ref(object), Type::Ref(name)) => {
                self.undeclared(object.key(), &self.objects.get(name)?.key_type)
            }
            _ => None,
        }
    }
}

impl ObjectType {
    fn stored(&self) -> Self {
        let mut stored = self.clone();
        stored.key_type = stored.key_type.stored();
        for field in &mut stored.fields {
            field.field_type = field.field_type.stored();
        }
        stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EnumValue, Field, json};

    fn status() -> Type {
        let value = |name: &str, label: &str| EnumValue { name: name.into(), label: label.into() };
        let values = vec![value("open", "open"), value("odd", "\"\\\u{1}é😀")];
        Type::Enum(Arc::new(EnumType { name: "Status".into(), values }))
    }

    #[test]
    fn a_value_is_its_label_in_json() {
        let schema = Schema::default();
        for label in ["open", "\"\\\u{1}é😀"] {
            let written = json::to_json(&schema, &Value::from(label), &status());
            assert_eq!(written, serde_json::Value::from(label));
            assert_eq!(json::from_json(&schema, &written, &status()), Ok(Value::from(label)));
        }
        for wrong in [serde_json::json!("odd"), serde_json::json!(""), serde_json::json!(0)] {
            let error = json::from_json(&schema, &wrong, &status()).expect_err("no label");
            assert!(error.message.starts_with("expected one of \"open\", "), "{error}");
        }
    }

    #[test]
    fn stores_see_texts_and_a_label_is_found_wherever_it_stands() {
        let mut schema = Schema::default();
        let list = Type::List(Arc::new(Type::Option(Arc::new(status()))));
        let pair = crate::StructType {
            name: "Pair".into(),
            fields: vec![("n".into(), Type::Int), ("all".into(), list.clone())],
        };
        schema.structs.insert("Pair".into(), Arc::new(pair));
        let object = ObjectType {
            name: "O".into(),
            store: "s".into(),
            key_name: "k".into(),
            key_type: status(),
            fields: vec![Field {
                name: "by".into(),
                field_type: FieldType::Map(Type::Ref("O".into()), Type::Struct("Pair".into())),
                default: Value::Bool(false),
            }],
        };
        schema.objects.insert("O".into(), Arc::new(object));
        let stored = schema.stored();
        assert_eq!(stored.objects["O"].key_type, Type::String);
        assert_eq!(stored.structs["Pair"].fields[1].1.to_string(), "list<option<string>>");
        assert_eq!(stored.enums.len(), 1, "the key's");

        let of = |label: &str| Value::list([Value::NONE, Value::some(Value::from(label))]);
        let pair = |label: &str| Value::Struct(Arc::new([Value::Int(1), of(label)]));
        let object = |label: &str| Value::Ref(crate::Ref::new("O", Value::from(label)));
        let types = [list, Type::Struct("Pair".into()), Type::Ref("O".into())];
        for (at, value_type) in types.iter().enumerate() {
            let value = |label: &str| [of(label), pair(label), object(label)][at].clone();
            assert_eq!(schema.undeclared(&value("open"), value_type), None);
            let found = schema.undeclared(&value("gone"), value_type).expect("no value");
            assert_eq!(&*found.label, "gone");
            assert!(stored.conforms(&value("gone"), &value_type.stored()));
            assert!(!schema.conforms(&value("gone"), value_type));
        }
    }
}
