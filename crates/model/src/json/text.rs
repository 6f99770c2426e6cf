//! Values as JSON text, without a tree in between, which would round the numbers of a `json`.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Number;

use super::is_wrapped;
use crate::document::write_text;
use crate::limits::JSON_NUMBER_MAX;
use crate::types::{Schema, Type};
use crate::value::{Float, Value};

/// The JSON form of `value`, which must be one of `value_type`, as text.
///
/// # Panics
///
/// When the value is not of that type.
///
/// # Examples
///
/// ```
/// use mingle_model::{Schema, Type, Value, json};
///
/// let list = Value::list([Value::Int(1), Value::Int(2)]);
/// assert_eq!(json::to_text(&Schema::default(), &list, &Type::List(Type::Int.into())), "[1,2]");
/// ```
pub fn to_text(schema: &Schema, value: &Value, value_type: &Type) -> String {
    let mut text = String::new();
    write(schema, value, value_type, &mut text);
    text
}

/// Appends the JSON form of `value`, which must be one of `value_type`.
///
/// # Panics
///
/// When the value is not of that type.
///
/// # Examples
///
/// ```
/// use mingle_model::{Schema, Type, Value, json};
///
/// let mut text = String::from("{\"result\":");
/// json::write(&Schema::default(), &Value::from("a"), &Type::String, &mut text);
/// assert_eq!(text, "{\"result\":\"a\"");
/// ```
pub fn write(schema: &Schema, value: &Value, value_type: &Type, text: &mut String) {
    match (value, value_type) {
        (Value::Bool(value), _) => text.push_str(if *value { "true" } else { "false" }),
        (Value::Int(value), _) => write_int(*value, text),
        (Value::Float(value), _) => write_float(*value, text),
        (Value::String(value), _) => write_text(value, text),
        (Value::Bytes(value), _) => write_text(&BASE64.encode(value), text),
        (Value::Time(value), _) => write_text(&value.to_string(), text),
        (Value::Date(value), _) => write_text(&value.to_string(), text),
        (Value::Decimal(value), _) => write_text(&value.to_string(), text),
        (Value::Json(document), _) => text.push_str(document.as_str()),
        (Value::Struct(values), Type::Struct(name)) => {
            let fields = schema.structs[name].fields.iter().zip(values.iter());
            write_all(text, ["{", "}"], fields, |((name, inner), value), text| {
                write_text(name, text);
                text.push(':');
                write(schema, value, inner, text);
            });
        }
        (Value::Option(None), _) => text.push_str("null"),
        (Value::Option(Some(value)), Type::Option(inner)) if is_wrapped(value, inner) => {
            text.push_str("{\"some\":");
            write(schema, value, inner, text);
            text.push('}');
        }
        (Value::Option(Some(value)), Type::Option(inner)) => write(schema, value, inner, text),
        (Value::List(items), Type::List(inner)) => {
            write_all(text, ["[", "]"], &**items, |item, text| write(schema, item, inner, text));
        }
        (Value::Ref(object), Type::Ref(name)) => {
            write(schema, object.key(), &schema.objects[name].key_type, text);
        }
        (_, Type::Rushed(inner)) if value.as_answer().is_some() => {
            let (level, answered) = value.as_answer().unwrap_or_default();
            text.push_str("{\"level\":");
            write_text(level, text);
            if let Some(value) = answered {
                text.push_str(",\"value\":");
                write(schema, value, inner, text);
            }
            text.push('}');
        }
        _ => panic!("{value} is not of type {value_type}"),
    }
}

/// The JSON form of a map's entries as text: an object where the keys are strings, else pairs.
///
/// # Panics
///
/// When a key or a value is not of its type.
///
/// # Examples
///
/// ```
/// use mingle_model::{Schema, Type, Value, json};
///
/// let entries = [(Value::from("a"), Value::Int(1))];
/// let text = json::entries_to_text(&Schema::default(), &entries, &Type::String, &Type::Int);
/// assert_eq!(text, "{\"a\":1}");
/// ```
pub fn entries_to_text(
    schema: &Schema,
    entries: &[(Value, Value)],
    key: &Type,
    value: &Type,
) -> String {
    let mut text = String::new();
    let (ends, between, after) = match key {
        Type::String => (["{", "}"], ':', ""),
        _ => (["[", "]"], ',', "]"),
    };
    write_all(&mut text, ends, entries, |(k, v), text| {
        text.push_str(if after.is_empty() { "" } else { "[" });
        write(schema, k, key, text);
        text.push(between);
        write(schema, v, value, text);
        text.push_str(after);
    });
    text
}

fn write_all<T>(
    text: &mut String,
    [open, close]: [&str; 2],
    items: impl IntoIterator<Item = T>,
    each: impl Fn(T, &mut String),
) {
    text.push_str(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        each(item, text);
    }
    text.push_str(close);
}

fn write_int(value: i64, text: &mut String) {
    let quote = if value.unsigned_abs() <= JSON_NUMBER_MAX.unsigned_abs() { "" } else { "\"" };
    write!(text, "{quote}{value}{quote}").expect("a string takes any text");
}

fn write_float(value: Float, text: &mut String) {
    let number = Number::from_f64(value.0).map(|number| number.to_string());
    text.push_str(match &number {
        Some(number) => number,
        None if value.0.is_nan() => "\"NaN\"",
        None if value.0 > 0.0 => "\"Infinity\"",
        None => "\"-Infinity\"",
    });
}
