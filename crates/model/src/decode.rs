//! Decoding of values from bytes of untrusted senders.
//!
//! The decoder is recursive. A few bytes per nesting level would be enough to overflow the stack,
//! which ends the process, so the nesting depth is bounded.

use std::cell::Cell;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _};

use crate::date::Date;
use crate::decimal::Decimal;
use crate::document::Document;
use crate::limits::DECODED_DEPTH_MAX;
use crate::time::Time;
use crate::value::{Float, Ref, Value};

thread_local! {
    /// The number of nested values being decoded.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A nesting level of the decoder.
struct Level;

impl Level {
    fn enter() -> Option<Self> {
        DEPTH.with(|depth| {
            let inner = depth.get() + 1;
            (inner <= DECODED_DEPTH_MAX).then(|| {
                depth.set(inner);
                Self
            })
        })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

/// A value in its encoded form: the variants have the order of those of [`Value`].
#[derive(serde::Deserialize)]
#[serde(rename = "Value")]
enum Written {
    Bool(bool),
    Int(i64),
    Float(Float),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    Time(Time),
    Struct(Arc<[Value]>),
    Option(Option<Arc<Value>>),
    List(Arc<[Value]>),
    Ref(Ref),
    Date(Date),
    Decimal(Decimal),
    Json(Document),
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(_level) = Level::enter() else {
            let why = format!("values stand in each other at most {DECODED_DEPTH_MAX} deep");
            return Err(D::Error::custom(why));
        };
        Ok(match Written::deserialize(deserializer)? {
            Written::Bool(value) => Self::Bool(value),
            Written::Int(value) => Self::Int(value),
            Written::Float(value) => Self::Float(value),
            Written::String(value) => Self::String(value),
            Written::Bytes(value) => Self::Bytes(value),
            Written::Time(value) => Self::Time(value),
            Written::Struct(values) => Self::Struct(values),
            Written::Option(value) => Self::Option(value),
            Written::List(items) => Self::List(items),
            Written::Ref(object) => Self::Ref(object),
            Written::Date(value) => Self::Date(value),
            Written::Decimal(value) => Self::Decimal(value),
            Written::Json(value) => Self::Json(value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> serde_json::Value {
        let mut value = serde_json::json!({ "Int": 1 });
        for _ in 1..depth {
            value = serde_json::json!({ "Option": value });
        }
        value
    }

    #[test]
    fn what_stands_too_deep_is_refused_and_what_comes_after_is_read() {
        for _ in 0..2 {
            let deep = serde_json::from_value::<Value>(nested(DECODED_DEPTH_MAX));
            assert!(deep.is_ok(), "{deep:?}");
            let deeper = serde_json::from_value::<Value>(nested(DECODED_DEPTH_MAX + 1));
            assert!(deeper.expect_err("it is too deep").to_string().contains("at most 256"));
        }
    }

    #[test]
    fn values_of_every_kind_read_back() {
        let all = [
            Value::from(true),
            Value::from(-3),
            Value::from(1.5),
            Value::from("x"),
            Value::Bytes([1, 2].into()),
            Value::Time(Time::from_micros(7)),
            Value::Date(Date::from_days(-7)),
            Value::Decimal(Decimal::new(-150, 2).expect("three digits")),
            Value::Json(Document::parse("{\"a\": [1.50]}").expect("JSON")),
            Value::Struct([Value::from(1), Value::NONE].into()),
            Value::some(Value::list([Value::from("y")])),
            Value::from(Ref::new("User", Value::from("ana"))),
        ];
        for value in all {
            let written = serde_json::to_value(&value).expect("it is written");
            assert_eq!(serde_json::from_value::<Value>(written).expect("it is read"), value);
        }
    }
}
