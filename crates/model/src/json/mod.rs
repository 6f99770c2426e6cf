//! The one JSON form of values: `int` as a number, beyond 2^53 as a string; `bytes` in base64;
//! `time` as RFC 3339; `date` and `decimal` as their texts; a `json` as the document itself;
//! a `ref` as its key; an `option` as null or the value, nested ones as `{"some": …}`, and so an `option<json>` whose document
//! is null or itself of this form; maps with string keys as objects, with others as pairs.

mod read;
mod text;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Number, Value as Json};

use crate::document::Tree;
use crate::limits::JSON_NUMBER_MAX;
use crate::types::{Schema, Type};
use crate::value::{Float, Value};
pub use read::{from_tree, read_string};
pub use text::{entries_to_text, to_text, write};

/// An error for JSON that is not a value of the expected type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The path in the JSON, such as `.items[3]`; empty at the top.
    pub path: String,
    /// The expected and the found JSON.
    pub message: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "at {}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for JsonError {}

/// The JSON form of `value`, which must be one of `value_type`. In a `json` numbers are rounded as
/// [`Document::to_serde`](crate::Document::to_serde) says; [`to_text`] loses nothing.
///
/// # Panics
///
/// When the value is not of that type.
pub fn to_json(schema: &Schema, value: &Value, value_type: &Type) -> Json {
    match (value, value_type) {
        (Value::Bool(value), _) => Json::Bool(*value),
        (Value::Int(value), _) => int_to_json(*value),
        (Value::Float(value), _) => float_to_json(*value),
        (Value::String(value), _) => Json::String(value.to_string()),
        (Value::Bytes(value), _) => Json::String(BASE64.encode(value)),
        (Value::Time(value), _) => Json::String(value.to_string()),
        (Value::Date(value), _) => Json::String(value.to_string()),
        (Value::Decimal(value), _) => Json::String(value.to_string()),
        (Value::Json(document), _) => document.to_serde(),
        (Value::Struct(values), Type::Struct(name)) => {
            let declared = &schema.structs[name];
            let fields = declared.fields.iter().zip(values.iter());
            Json::Object(
                fields
                    .map(|((name, inner), value)| (name.to_string(), to_json(schema, value, inner)))
                    .collect(),
            )
        }
        (Value::Option(None), _) => Json::Null,
        (Value::Option(Some(value)), Type::Option(inner)) => {
            let json = to_json(schema, value, inner);
            if is_wrapped(value, inner) {
                Json::Object(Map::from_iter([("some".to_owned(), json)]))
            } else {
                json
            }
        }
        (Value::List(items), Type::List(inner)) => {
            Json::Array(items.iter().map(|item| to_json(schema, item, inner)).collect())
        }
        (Value::Ref(object), Type::Ref(name)) => {
            to_json(schema, object.key(), &schema.objects[name].key_type)
        }
        (_, Type::Rushed(inner)) if value.as_answer().is_some() => {
            let (level, answered) = value.as_answer().unwrap_or_default();
            let level = ("level".to_owned(), Json::String(level.to_owned()));
            let answered =
                answered.map(|value| ("value".to_owned(), to_json(schema, value, inner)));
            Json::Object(std::iter::once(level).chain(answered).collect())
        }
        _ => panic!("{value} is not of type {value_type}"),
    }
}

/// The JSON form of a map's entries: an object where the keys are strings, else pairs.
pub fn entries_to_json(
    schema: &Schema,
    entries: &[(Value, Value)],
    key: &Type,
    value: &Type,
) -> Json {
    if matches!(key, Type::String) {
        let pairs = entries.iter().map(|(k, v)| {
            let name = k.as_str().expect("a key of type string").to_owned();
            (name, to_json(schema, v, value))
        });
        return Json::Object(pairs.collect());
    }
    let pairs = entries
        .iter()
        .map(|(k, v)| Json::Array(vec![to_json(schema, k, key), to_json(schema, v, value)]));
    Json::Array(pairs.collect())
}

/// True if a value stands as `{"some": …}` in an `option` of its type: as itself it could be taken for none, or for
/// another value.
fn is_wrapped(value: &Value, value_type: &Type) -> bool {
    match value {
        Value::Json(document) => {
            let text = document.as_str();
            text == "null" || text.starts_with("{\"some\":") && document.tree().is_some()
        }
        _ => matches!(value_type, Type::Option(_)),
    }
}

/// The JSON form of an integer.
pub fn int_to_json(value: i64) -> Json {
    if value.unsigned_abs() <= JSON_NUMBER_MAX.unsigned_abs() {
        Json::Number(value.into())
    } else {
        Json::String(value.to_string())
    }
}

fn float_to_json(value: Float) -> Json {
    match Number::from_f64(value.0) {
        Some(number) => Json::Number(number),
        None if value.0.is_nan() => Json::String("NaN".into()),
        None if value.0 > 0.0 => Json::String("Infinity".into()),
        None => Json::String("-Infinity".into()),
    }
}

/// Reads a value of `value_type` from its JSON form.
///
/// # Errors
///
/// The first place where the JSON departs from the type, with the expected and the found JSON.
///
/// # Examples
///
/// ```
/// use mingle_model::{Schema, Type, Value, json};
///
/// let list = Type::List(Type::Int.into());
/// let value = json::from_json(&Schema::default(), &serde_json::json!([1, "2"]), &list).unwrap();
/// assert_eq!(value, Value::list([Value::Int(1), Value::Int(2)]));
/// let error = json::from_json(&Schema::default(), &serde_json::json!([1, true]), &list).unwrap_err();
/// assert_eq!(error.to_string(), "at [1]: expected an int, found true");
/// ```
pub fn from_json(schema: &Schema, json: &Json, value_type: &Type) -> Result<Value, JsonError> {
    from_tree(schema, &Tree::from(json), value_type)
}

/// Reads a value of `value_type` from JSON text, without loss.
///
/// # Errors
///
/// As [`from_json`], and for a text that is not JSON or has a member twice.
///
/// # Examples
///
/// ```
/// use mingle_model::{Schema, Type, json};
///
/// let text = br#"{"b": 0.10, "a": 12345678901234567890123}"#;
/// let value = json::from_text(&Schema::default(), text, &Type::Json).unwrap();
/// let text = json::to_text(&Schema::default(), &value, &Type::Json);
/// assert_eq!(text, r#"{"a":12345678901234567890123,"b":0.1}"#);
/// ```
pub fn from_text(schema: &Schema, text: &[u8], value_type: &Type) -> Result<Value, JsonError> {
    let tree = Tree::parse(text)
        .map_err(|error| JsonError { path: String::new(), message: format!("no JSON: {error}") })?;
    from_tree(schema, &tree, value_type)
}

#[cfg(test)]
mod documents;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::date::Date;
    use crate::decimal::Decimal;
    use crate::time::Time;

    #[test]
    fn dates_are_texts() {
        let schema = Schema::default();
        for day in [Date::MIN, Date::default(), Date::MAX] {
            let json = to_json(&schema, &Value::Date(day), &Type::Date);
            assert_eq!(from_json(&schema, &json, &Type::Date), Ok(Value::Date(day)), "{json}");
        }
        let day = from_json(&schema, &Json::from("2026-01-31"), &Type::Date);
        assert_eq!(day, Ok(Value::Date(Date::from_days(20_484))));
        for wrong in [Json::from(20_484), Json::from("2026-02-30"), Json::Null] {
            let found = from_json(&schema, &wrong, &Type::Date);
            assert!(found.is_err_and(|error| error.message.contains("expected a date")), "{wrong}");
        }
    }

    #[test]
    fn decimals_are_texts_with_their_scale() {
        let schema = Schema::default();
        for text in ["0", "-19.90", "0.000", &"9".repeat(38)] {
            let json = Json::from(text);
            let read = from_json(&schema, &json, &Type::Decimal).expect("a decimal");
            assert_eq!(to_json(&schema, &read, &Type::Decimal), json);
        }
        let whole = from_json(&schema, &Json::from(-7), &Type::Decimal);
        assert_eq!(whole, Ok(Value::Decimal(Decimal::from(-7))));
        for wrong in [Json::from(0.1), Json::from("1e3"), Json::Null, Json::from("9".repeat(39))] {
            let found = from_json(&schema, &wrong, &Type::Decimal);
            assert!(found.is_err_and(|error| error.message.contains("decimal")), "{wrong}");
        }
    }

    #[test]
    fn times_beyond_the_years_of_rfc_3339_read_back() {
        let schema = Schema::default();
        for micros in [0, 1, 1 << 53, (1 << 53) + 1, -(1 << 53) - 1, i64::MAX, i64::MIN] {
            let time = Value::Time(Time::from_micros(micros));
            let json = to_json(&schema, &time, &Type::Time);
            assert_eq!(from_json(&schema, &json, &Type::Time), Ok(time), "{json}");
        }
        let number = from_json(&schema, &Json::from(1_500), &Type::Time);
        assert_eq!(number, Ok(Value::Time(Time::from_millis(1_500))), "a number is milliseconds");
        assert!(from_json(&schema, &Json::from(i64::MAX), &Type::Time).is_err());
        let small = from_json(&schema, &Json::String("20261120".into()), &Type::Time);
        assert!(small.is_err_and(|error| error.message.contains("RFC 3339")));
    }
}
