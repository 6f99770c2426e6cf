//! Conversions between values of the language and values of Rust.

use std::sync::Arc;

use mingle_model::{Date, Decimal, Document, Float, Ref, Time, Value};

/// A type that can be an argument.
pub trait ToValue {
    /// The value.
    fn to_value(&self) -> Value;
}

/// A type to which a result can be converted.
pub trait FromValue: Sized {
    /// Reads a value; none if it is of another type.
    fn from_value(value: &Value) -> Option<Self>;
}

/// An answer with the level that it has, or none in time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rushed<T> {
    /// Every write that was acknowledged before is in it.
    Linearizable(T),
    /// As of one moment.
    Snapshot(T),
    /// With all that it depends on.
    Causal(T),
    /// As of some replica.
    Eventual(T),
    /// Of a level that the program declares.
    Declared(String, T),
    /// No answer came in time.
    Late,
}

impl<T> Rushed<T> {
    /// The value; none if the answer is late.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Linearizable(value)
            | Self::Snapshot(value)
            | Self::Causal(value)
            | Self::Eventual(value)
            | Self::Declared(_, value) => Some(value),
            Self::Late => None,
        }
    }
}

impl<T: FromValue> FromValue for Rushed<T> {
    fn from_value(value: &Value) -> Option<Self> {
        let (level, answered) = value.as_answer()?;
        let Some(answered) = answered else { return Some(Self::Late) };
        let answered = T::from_value(answered)?;
        Some(match level {
            "linearizable" => Self::Linearizable(answered),
            "snapshot" => Self::Snapshot(answered),
            "causal" => Self::Causal(answered),
            "eventual" => Self::Eventual(answered),
            declared => Self::Declared(declared.to_owned(), answered),
        })
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value {
        (**self).to_value()
    }
}

impl<T: ToValue> ToValue for Box<T> {
    fn to_value(&self) -> Value {
        (**self).to_value()
    }
}

impl<T: FromValue> FromValue for Box<T> {
    fn from_value(value: &Value) -> Option<Self> {
        T::from_value(value).map(Self::new)
    }
}

impl ToValue for bool {
    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        value.as_bool()
    }
}

impl ToValue for i64 {
    fn to_value(&self) -> Value {
        Value::Int(*self)
    }
}

impl FromValue for i64 {
    fn from_value(value: &Value) -> Option<Self> {
        value.as_int()
    }
}

impl ToValue for f64 {
    fn to_value(&self) -> Value {
        Value::Float(Float(*self))
    }
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Float(Float(value)) => Some(*value),
            _ => None,
        }
    }
}

impl ToValue for Time {
    fn to_value(&self) -> Value {
        Value::Time(*self)
    }
}

impl FromValue for Time {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Time(value) => Some(*value),
            _ => None,
        }
    }
}

impl ToValue for Date {
    fn to_value(&self) -> Value {
        Value::Date(*self)
    }
}

impl FromValue for Date {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Date(value) => Some(*value),
            _ => None,
        }
    }
}

impl ToValue for Decimal {
    fn to_value(&self) -> Value {
        Value::Decimal(*self)
    }
}

impl FromValue for Decimal {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Decimal(value) => Some(*value),
            _ => None,
        }
    }
}

impl ToValue for Document {
    fn to_value(&self) -> Value {
        Value::Json(self.clone())
    }
}

impl FromValue for Document {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Json(document) => Some(document.clone()),
            _ => None,
        }
    }
}

impl ToValue for str {
    fn to_value(&self) -> Value {
        Value::from(self)
    }
}

impl ToValue for String {
    fn to_value(&self) -> Value {
        self.as_str().to_value()
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl ToValue for [u8] {
    fn to_value(&self) -> Value {
        Value::Bytes(self.into())
    }
}

impl ToValue for Vec<u8> {
    fn to_value(&self) -> Value {
        self.as_slice().to_value()
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Some(bytes.to_vec()),
            _ => None,
        }
    }
}

impl<T: ToValue> ToValue for [T] {
    fn to_value(&self) -> Value {
        Value::list(self.iter().map(T::to_value))
    }
}

impl<T: ToValue> ToValue for Vec<T> {
    fn to_value(&self) -> Value {
        self.as_slice().to_value()
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(value: &Value) -> Option<Self> {
        value.as_list()?.iter().map(T::from_value).collect()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value {
        Value::Option(self.as_ref().map(|value| Arc::new(value.to_value())))
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Option(None) => Some(None),
            Value::Option(Some(value)) => T::from_value(value).map(Some),
            _ => None,
        }
    }
}

/// The handle of the object of a kind with this key.
pub fn handle(kind: &str, key: &impl ToValue) -> Value {
    Value::Ref(Ref::new(kind, key.to_value()))
}

/// The key of an object of this kind; none if the value is no such handle.
pub fn key_of<K: FromValue>(kind: &str, value: &Value) -> Option<K> {
    let object = value.as_ref_value().filter(|object| **object.kind() == *kind)?;
    K::from_value(object.key())
}

/// Creates a struct value with these fields, in the order of its declaration.
pub fn record<const N: usize>(fields: [Value; N]) -> Value {
    Value::Struct(Arc::new(fields))
}

/// The fields of a struct; none if the value is no struct with `N` fields.
pub fn fields_of<const N: usize>(value: &Value) -> Option<&[Value; N]> {
    match value {
        Value::Struct(fields) => fields.as_array(),
        _ => None,
    }
}
