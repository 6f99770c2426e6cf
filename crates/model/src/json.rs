//! The one JSON form of values: `int` as a number, beyond 2^53 as a string; `bytes` in base64;
//! `time` as RFC 3339; `date` and `decimal` as their texts; a `ref` as its key; an `option` as null or the value, nested ones as
//! `{"some": …}`; maps with string keys as objects, with others as pairs.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Number, Value as Json};

use crate::date::Date;
use crate::decimal::Decimal;
use crate::limits::{JSON_DEPTH_MAX, JSON_NUMBER_MAX, LIST_ITEMS_MAX, STRING_BYTES_MAX};
use crate::time::Time;
use crate::types::{Schema, Type};
use crate::value::{Float, Ref, Value};

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

/// The JSON form of `value`, which must be one of `value_type`.
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
            if matches!(**inner, Type::Option(_)) {
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
    let mut reader = Reader { schema, path: Vec::new() };
    reader
        .read(json, value_type)
        .map_err(|message| JsonError { path: reader.path.concat(), message })
}

struct Reader<'a> {
    schema: &'a Schema,
    /// Steps from the top; left as they are when an error unwinds, so that they name the place.
    path: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self, json: &Json, value_type: &Type) -> Result<Value, String> {
        if self.path.len() > JSON_DEPTH_MAX {
            return Err(format!("nested deeper than {JSON_DEPTH_MAX}"));
        }
        match value_type {
            Type::Bool => match json {
                Json::Bool(value) => Ok(Value::Bool(*value)),
                _ => Err(expected("a bool", json)),
            },
            Type::Int => read_int(json).map(Value::Int).ok_or_else(|| expected("an int", json)),
            Type::Float => read_float(json).ok_or_else(|| expected("a float", json)),
            Type::String => match json {
                Json::String(text) => read_string(text),
                _ => Err(expected("a string", json)),
            },
            Type::Enum(declared) => match json {
                Json::String(label) if declared.has(label) => Ok(Value::from(&**label)),
                _ => Err(expected(&format!("one of {}", declared.labels()), json)),
            },
            Type::Bytes => match json {
                Json::String(text) => read_bytes(text),
                _ => Err(expected("bytes in base64", json)),
            },
            Type::Time => match json {
                Json::String(text) => Time::parse(text).map(Value::Time),
                _ => read_int(json)
                    .and_then(|ms| ms.checked_mul(1_000))
                    .map(|micros| Value::Time(Time::from_micros(micros)))
                    .ok_or_else(|| expected("a time as in RFC 3339", json)),
            },
            Type::Date => match json {
                Json::String(text) => Date::parse(text).map(Value::Date),
                _ => Err(expected("a date such as \"2026-01-31\"", json)),
            },
            Type::Decimal => read_decimal(json),
            Type::Ref(name) => {
                let declared = self
                    .schema
                    .objects
                    .get(name)
                    .ok_or_else(|| format!("no object is called {name}"))?
                    .clone();
                let key = self.read(json, &declared.key_type)?;
                Ok(Value::Ref(Ref::new(declared.name.clone(), key)))
            }
            Type::Option(inner) => self.read_option(json, inner),
            Type::List(inner) => self.read_list(json, inner),
            Type::Struct(name) => self.read_struct(json, name),
            Type::Rushed(inner) => self.read_answer(json, inner),
        }
    }

    fn read_answer(&mut self, json: &Json, inner: &Type) -> Result<Value, String> {
        let wanted = || expected("{\"level\": …, \"value\": …} or {\"level\": \"late\"}", json);
        let Json::Object(fields) = json else { return Err(wanted()) };
        match (fields.get("level"), fields.get("value"), fields.len()) {
            (Some(Json::String(level)), None, 1) if level == Value::LATE => Ok(Value::late()),
            (Some(Json::String(level)), Some(value), 2) if level != Value::LATE => {
                self.path.push(".value".into());
                let value = self.read(value, inner)?;
                self.path.pop();
                Ok(Value::answer(level, value))
            }
            _ => Err(wanted()),
        }
    }

    fn read_option(&mut self, json: &Json, inner: &Type) -> Result<Value, String> {
        if json.is_null() {
            return Ok(Value::NONE);
        }
        if !matches!(inner, Type::Option(_)) {
            return Ok(Value::some(self.read(json, inner)?));
        }
        match json {
            Json::Object(fields) if fields.len() == 1 && fields.contains_key("some") => {
                self.path.push(".some".into());
                let value = self.read(&fields["some"], inner)?;
                self.path.pop();
                Ok(Value::some(value))
            }
            _ => Err(expected("null or {\"some\": …}", json)),
        }
    }

    fn read_list(&mut self, json: &Json, inner: &Type) -> Result<Value, String> {
        let Json::Array(items) = json else {
            return Err(expected(&format!("a list of {inner}"), json));
        };
        if items.len() > LIST_ITEMS_MAX {
            return Err(format!(
                "a list holds at most {LIST_ITEMS_MAX} items, found {}",
                items.len()
            ));
        }
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            self.path.push(format!("[{index}]"));
            values.push(self.read(item, inner)?);
            self.path.pop();
        }
        Ok(Value::List(values.into()))
    }

    fn read_struct(&mut self, json: &Json, name: &str) -> Result<Value, String> {
        let declared = self
            .schema
            .structs
            .get(name)
            .ok_or_else(|| format!("no struct is called {name}"))?
            .clone();
        let Json::Object(fields) = json else {
            return Err(expected(&format!("an object with the fields of {name}"), json));
        };
        if let Some(unknown) =
            fields.keys().find(|key| !declared.fields.iter().any(|(known, _)| **known == ***key))
        {
            return Err(format!("{name} has no field {unknown:?}"));
        }
        let mut values = Vec::with_capacity(declared.fields.len());
        for (field, inner) in &declared.fields {
            self.path.push(format!(".{field}"));
            let value = match fields.get(&**field) {
                Some(value) => self.read(value, inner)?,
                None if matches!(inner, Type::Option(_)) => Value::NONE,
                None => return Err(format!("{name} needs the field {field:?}")),
            };
            values.push(value);
            self.path.pop();
        }
        Ok(Value::Struct(Arc::from(values)))
    }
}

/// Checks a string against the bounds of the language.
///
/// # Errors
///
/// When it holds U+0000 or more than 16 MiB.
pub fn read_string(text: &str) -> Result<Value, String> {
    if text.contains('\0') {
        return Err("a string holds no U+0000".into());
    }
    if text.len() > STRING_BYTES_MAX {
        return Err(format!(
            "a string holds at most {STRING_BYTES_MAX} bytes, found {}",
            text.len()
        ));
    }
    Ok(Value::from(text))
}

fn read_bytes(text: &str) -> Result<Value, String> {
    let bytes =
        BASE64.decode(text).map_err(|error| format!("expected bytes in base64: {error}"))?;
    if bytes.len() > STRING_BYTES_MAX {
        return Err(format!("bytes hold at most {STRING_BYTES_MAX} bytes, found {}", bytes.len()));
    }
    Ok(Value::Bytes(bytes.into()))
}

fn read_int(json: &Json) -> Option<i64> {
    match json {
        Json::Number(number) => number.as_i64(),
        Json::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// A number of JSON counts only if it is whole: readers of JSON take others for floats.
fn read_decimal(json: &Json) -> Result<Value, String> {
    match json {
        Json::String(text) => Decimal::parse(text).map(Value::Decimal),
        Json::Number(number) if number.is_i64() => {
            Ok(Value::Decimal(Decimal::from(number.as_i64().unwrap_or_default())))
        }
        _ => Err(expected("a decimal such as \"-19.90\"", json)),
    }
}

fn read_float(json: &Json) -> Option<Value> {
    let float = match json {
        Json::Number(number) => number.as_f64()?,
        Json::String(text) => match &**text {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            _ => return None,
        },
        _ => return None,
    };
    Some(Value::from(float))
}

fn expected(what: &str, found: &Json) -> String {
    let mut shown = found.to_string();
    if shown.chars().count() > 40 {
        shown = shown.chars().take(40).chain(['…']).collect();
    }
    format!("expected {what}, found {shown}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
