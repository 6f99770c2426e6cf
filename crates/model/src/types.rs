//! Types: the data declarations of a program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::date::Date;
use crate::decimal::Decimal;
use crate::document::Document;
use crate::time::Time;
use crate::value::{Float, Name, Ref, Value};

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `float`.
    Float,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `time`.
    Time,
    /// `date`.
    Date,
    /// `decimal`.
    Decimal,
    /// `json`.
    Json,
    /// An enumeration. Its values are strings: the labels.
    Enum(Arc<EnumType>),
    /// A struct, by name.
    Struct(Name),
    /// `ref O`, by the object's name.
    Ref(Name),
    /// `option<T>`.
    Option(Arc<Type>),
    /// `list<T>`.
    List(Arc<Type>),
    /// `rushed<T>`: an answer with its level, or none in time. Only a variable or a result has it.
    Rushed(Arc<Type>),
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Float => f.write_str("float"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Time => f.write_str("time"),
            Self::Date => f.write_str("date"),
            Self::Decimal => f.write_str("decimal"),
            Self::Json => f.write_str("json"),
            Self::Enum(declared) => f.write_str(&declared.name),
            Self::Struct(name) => f.write_str(name),
            Self::Ref(name) => write!(f, "ref {name}"),
            Self::Option(inner) => write!(f, "option<{inner}>"),
            Self::List(inner) => write!(f, "list<{inner}>"),
            Self::Rushed(inner) => write!(f, "rushed<{inner}>"),
        }
    }
}

/// The type of an object's field: a register, or replicated state with operations that merge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// A value, written as a whole.
    Register(Type),
    /// `counter`.
    Counter,
    /// `set<T>`.
    Set(Type),
    /// `map<K, V>`.
    Map(Type, Type),
    /// `log<T>`.
    Log(Type),
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(inner) => write!(f, "{inner}"),
            Self::Counter => f.write_str("counter"),
            Self::Set(inner) => write!(f, "set<{inner}>"),
            Self::Map(key, value) => write!(f, "map<{key}, {value}>"),
            Self::Log(inner) => write!(f, "log<{inner}>"),
        }
    }
}

/// The kind of a field, without the types of its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A register.
    Register,
    /// A counter.
    Counter,
    /// A set.
    Set,
    /// A map.
    Map,
    /// A log.
    Log,
}

impl Shape {
    /// The shape of a field of this type.
    pub fn of(field_type: &FieldType) -> Self {
        match field_type {
            FieldType::Register(_) => Self::Register,
            FieldType::Counter => Self::Counter,
            FieldType::Set(_) => Self::Set,
            FieldType::Map(..) => Self::Map,
            FieldType::Log(_) => Self::Log,
        }
    }

    /// The shape of a field whose type shows as `text`.
    pub fn parse(text: &str) -> Self {
        match text {
            "counter" => Self::Counter,
            _ if text.starts_with("set<") => Self::Set,
            _ if text.starts_with("map<") => Self::Map,
            _ if text.starts_with("log<") => Self::Log,
            _ => Self::Register,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Register => "a register",
            Self::Counter => "a counter",
            Self::Set => "a set",
            Self::Map => "a map",
            Self::Log => "a log",
        })
    }
}

/// A struct and its fields, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructType {
    /// The struct's name.
    pub name: Name,
    /// Names and types of the fields.
    pub fields: Vec<(Name, Type)>,
}

/// An enumeration and its values, in order.
///
/// # Examples
///
/// ```
/// use mingle_model::{EnumType, EnumValue};
///
/// let value = |name: &str, label: &str| EnumValue { name: name.into(), label: label.into() };
/// let rating = EnumType { name: "Rating".into(), values: vec![value("g", "G"), value("nc_17", "NC-17")] };
/// assert!(rating.has("NC-17") && !rating.has("nc_17"));
/// assert_eq!(rating.labels(), r#""G", "NC-17""#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EnumType {
    /// Its name.
    pub name: Name,
    /// Its values; at least one in a checked program.
    pub values: Vec<EnumValue>,
}

/// A value of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EnumValue {
    /// Its name in programs.
    pub name: Name,
    /// Its text in stores, in JSON and at clients.
    pub label: Name,
}

impl EnumType {
    /// True if a value has this label.
    pub fn has(&self, label: &str) -> bool {
        self.values.iter().any(|value| &*value.label == label)
    }

    /// Returns the default: the first value.
    pub fn first(&self) -> Value {
        self.values
            .first()
            .map_or_else(|| Value::from(""), |first| Value::String(first.label.clone()))
    }

    /// Returns the labels as a message lists them, at most 20 of them.
    pub fn labels(&self) -> String {
        let shown: Vec<String> = self
            .values
            .iter()
            .take(LISTED_MAX)
            .map(|value| format!("{:?}", &*value.label))
            .collect();
        let more = if self.values.len() > LISTED_MAX { ", …" } else { "" };
        shown.join(", ") + more
    }
}

/// The maximum number of labels in a message.
const LISTED_MAX: usize = 20;

/// One field of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name.
    pub name: Name,
    /// Its type.
    pub field_type: FieldType,
    /// The value of a register before its first write; for collections the empty one, unused.
    pub default: Value,
}

/// One kind of object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectType {
    /// The kind's name.
    pub name: Name,
    /// The store in which it lives.
    pub store: Name,
    /// Name of the key.
    pub key_name: Name,
    /// Type of the key.
    pub key_type: Type,
    /// The fields beside the key, in order.
    pub fields: Vec<Field>,
}

impl ObjectType {
    /// Returns the index of the field called `name`.
    pub fn field_index(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| &*field.name == name)
    }
}

/// All data declarations of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// Structs by name.
    pub structs: BTreeMap<Name, Arc<StructType>>,
    /// Objects by name.
    pub objects: BTreeMap<Name, Arc<ObjectType>>,
    /// In a [stored](Schema::stored) schema, the enumerations of keys and fields, by object and by key or field.
    pub enums: Vec<(Name, Name, Arc<EnumType>)>,
}

impl Schema {
    /// True if a value of the type is a `json`, or holds one.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_model::{Schema, Type};
    ///
    /// assert!(Schema::default().has_json(&Type::List(Type::Json.into())));
    /// assert!(!Schema::default().has_json(&Type::String));
    /// ```
    pub fn has_json(&self, value_type: &Type) -> bool {
        let (mut open, mut seen) = (vec![value_type], BTreeSet::new());
        while let Some(found) = open.pop() {
            match found {
                Type::Json => return true,
                Type::Option(inner) | Type::List(inner) | Type::Rushed(inner) => open.push(inner),
                Type::Struct(name) if seen.insert(name) => {
                    let fields = self.structs.get(name).into_iter().flat_map(|of| &of.fields);
                    open.extend(fields.map(|(_, inner)| inner));
                }
                _ => {}
            }
        }
        false
    }

    /// Returns the default of a type: the value of a register before its first write, if the
    /// program declares no other.
    ///
    /// # Panics
    ///
    /// When `value_type` names a type that this schema lacks, or contains itself by value; checked
    /// programs do neither.
    pub fn default_of(&self, value_type: &Type) -> Value {
        match value_type {
            Type::Bool => Value::Bool(false),
            Type::Int => Value::Int(0),
            Type::Float => Value::Float(Float(0.0)),
            Type::String => Value::from(""),
            Type::Bytes => Value::Bytes(Arc::new([])),
            Type::Time => Value::Time(Time::default()),
            Type::Date => Value::Date(Date::default()),
            Type::Decimal => Value::Decimal(Decimal::default()),
            Type::Json => Value::Json(Document::default()),
            Type::Enum(declared) => declared.first(),
            Type::Struct(name) => {
                let declared = &self.structs[name];
                Value::Struct(
                    declared.fields.iter().map(|(_, inner)| self.default_of(inner)).collect(),
                )
            }
            Type::Ref(name) => {
                let declared = &self.objects[name];
                Value::Ref(Ref::new(declared.name.clone(), self.default_of(&declared.key_type)))
            }
            Type::Option(_) => Value::NONE,
            Type::List(_) => Value::List(Arc::new([])),
            Type::Rushed(_) => Value::late(),
        }
    }

    /// True if `value` is one of `value_type`, including all nested values.
    pub fn conforms(&self, value: &Value, value_type: &Type) -> bool {
        match (value, value_type) {
            (Value::Bool(_), Type::Bool)
            | (Value::Int(_), Type::Int)
            | (Value::Float(_), Type::Float)
            | (Value::String(_), Type::String)
            | (Value::Bytes(_), Type::Bytes)
            | (Value::Time(_), Type::Time)
            | (Value::Date(_), Type::Date)
            | (Value::Decimal(_), Type::Decimal)
            | (Value::Json(_), Type::Json)
            | (Value::Option(None), Type::Option(_)) => true,
            (Value::String(label), Type::Enum(declared)) => declared.has(label),
            (Value::Option(Some(inner)), Type::Option(inner_type)) => {
                self.conforms(inner, inner_type)
            }
            (Value::List(items), Type::List(inner_type)) => {
                items.iter().all(|item| self.conforms(item, inner_type))
            }
            (Value::Struct(values), Type::Struct(name)) => {
                self.structs.get(name).is_some_and(|declared| {
                    declared.fields.len() == values.len()
                        && declared
                            .fields
                            .iter()
                            .zip(values.iter())
                            .all(|((_, inner_type), inner)| self.conforms(inner, inner_type))
                })
            }
            (_, Type::Rushed(inner)) => value.as_answer().is_some_and(|(_, answered)| {
                answered.is_none_or(|answered| self.conforms(answered, inner))
            }),
            (Value::Ref(object), Type::Ref(name)) => {
                object.kind() == name
                    && self
                        .objects
                        .get(name)
                        .is_some_and(|declared| self.conforms(object.key(), &declared.key_type))
            }
            _ => false,
        }
    }
}
