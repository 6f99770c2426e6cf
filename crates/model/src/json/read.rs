//! Reads values from JSON, with the place of the first mistake.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::JsonError;
use crate::date::Date;
use crate::decimal::Decimal;
use crate::document::{Document, Tree};
use crate::limits::{JSON_DEPTH_MAX, LIST_ITEMS_MAX, STRING_BYTES_MAX};
use crate::time::Time;
use crate::types::{Schema, Type};
use crate::value::{Ref, Value};

/// Reads a value of `value_type` from its JSON form, without loss.
///
/// # Errors
///
/// The first place where the JSON departs from the type, with the expected and the found JSON.
///
/// # Examples
///
/// ```
/// use mingle_model::{Schema, Tree, Type, Value, json};
///
/// let tree = Tree::parse(b"7").unwrap();
/// assert_eq!(json::from_tree(&Schema::default(), &tree, &Type::Int), Ok(Value::Int(7)));
/// ```
pub fn from_tree(schema: &Schema, tree: &Tree, value_type: &Type) -> Result<Value, JsonError> {
    let mut reader = Reader { schema, path: Vec::new() };
    reader
        .read(tree, value_type)
        .map_err(|message| JsonError { path: reader.path.concat(), message })
}

struct Reader<'a> {
    schema: &'a Schema,
    /// Steps from the top; left as they are when an error unwinds, so that they name the place.
    path: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self, json: &Tree, value_type: &Type) -> Result<Value, String> {
        if self.path.len() > JSON_DEPTH_MAX {
            return Err(format!("nested deeper than {JSON_DEPTH_MAX}"));
        }
        match value_type {
            Type::Bool => match json {
                Tree::Bool(value) => Ok(Value::Bool(*value)),
                _ => Err(expected("a bool", json)),
            },
            Type::Int => read_int(json).map(Value::Int).ok_or_else(|| expected("an int", json)),
            Type::Float => read_float(json).ok_or_else(|| expected("a float", json)),
            Type::String => match json {
                Tree::String(text) => read_string(text),
                _ => Err(expected("a string", json)),
            },
            Type::Enum(declared) => match json {
                Tree::String(label) if declared.has(label) => Ok(Value::from(&**label)),
                _ => Err(expected(&format!("one of {}", declared.labels()), json)),
            },
            Type::Bytes => match json {
                Tree::String(text) => read_bytes(text),
                _ => Err(expected("bytes in base64", json)),
            },
            Type::Time => match json {
                Tree::String(text) => Time::parse(text).map(Value::Time),
                _ => read_int(json)
                    .and_then(|ms| ms.checked_mul(1_000))
                    .map(|micros| Value::Time(Time::from_micros(micros)))
                    .ok_or_else(|| expected("a time as in RFC 3339", json)),
            },
            Type::Date => match json {
                Tree::String(text) => Date::parse(text).map(Value::Date),
                _ => Err(expected("a date such as \"2026-01-31\"", json)),
            },
            Type::Decimal => read_decimal(json),
            Type::Json => Document::of(json).map(Value::Json),
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

    fn read_answer(&mut self, json: &Tree, inner: &Type) -> Result<Value, String> {
        let wanted = || expected("{\"level\": …, \"value\": …} or {\"level\": \"late\"}", json);
        let Tree::Object(members) = json else { return Err(wanted()) };
        match (json.member("level"), json.member("value"), members.len()) {
            (Some(Tree::String(level)), None, 1) if level == Value::LATE => Ok(Value::late()),
            (Some(Tree::String(level)), Some(value), 2) if level != Value::LATE => {
                self.path.push(".value".into());
                let value = self.read(value, inner)?;
                self.path.pop();
                Ok(Value::answer(level, value))
            }
            _ => Err(wanted()),
        }
    }

    fn read_option(&mut self, json: &Tree, inner: &Type) -> Result<Value, String> {
        if matches!(json, Tree::Null) {
            return Ok(Value::NONE);
        }
        let wrapped = json.member("some").filter(|_| json.is_some());
        match (inner, wrapped) {
            (Type::Option(_) | Type::Json, Some(wrapped)) => {
                self.path.push(".some".into());
                let value = self.read(wrapped, inner)?;
                self.path.pop();
                Ok(Value::some(value))
            }
            (Type::Option(_), None) => Err(expected("null or {\"some\": …}", json)),
            _ => Ok(Value::some(self.read(json, inner)?)),
        }
    }

    fn read_list(&mut self, json: &Tree, inner: &Type) -> Result<Value, String> {
        let Tree::List(items) = json else {
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

    fn read_struct(&mut self, json: &Tree, name: &str) -> Result<Value, String> {
        let declared = self
            .schema
            .structs
            .get(name)
            .ok_or_else(|| format!("no struct is called {name}"))?
            .clone();
        let Tree::Object(members) = json else {
            return Err(expected(&format!("an object with the fields of {name}"), json));
        };
        let given: BTreeMap<&str, &Tree> =
            members.iter().map(|(name, value)| (&**name, value)).collect();
        let is_declared = |key: &str| declared.fields.iter().any(|(known, _)| **known == *key);
        if let Some((unknown, _)) = members.iter().find(|(key, _)| !is_declared(key)) {
            return Err(format!("{name} has no field {unknown:?}"));
        }
        let mut values = Vec::with_capacity(declared.fields.len());
        for (field, inner) in &declared.fields {
            self.path.push(format!(".{field}"));
            let value = match given.get(&**field) {
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

fn read_int(json: &Tree) -> Option<i64> {
    match json {
        Tree::Number(number) => number.parse().ok(),
        Tree::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// A number of JSON counts only if it is whole: readers of JSON take others for floats.
fn read_decimal(json: &Tree) -> Result<Value, String> {
    let whole = match json {
        Tree::String(text) => return Decimal::parse(text).map(Value::Decimal),
        Tree::Number(number) => number.parse::<i64>().ok(),
        _ => None,
    };
    let whole = whole.ok_or_else(|| expected("a decimal such as \"-19.90\"", json))?;
    Ok(Value::Decimal(Decimal::from(whole)))
}

fn read_float(json: &Tree) -> Option<Value> {
    let float = match json {
        Tree::Number(number) => number.parse().ok().filter(|number: &f64| number.is_finite())?,
        Tree::String(text) => match &**text {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            _ => return None,
        },
        _ => return None,
    };
    Some(Value::from(float))
}

fn expected(what: &str, found: &Tree) -> String {
    let mut shown = found.to_string();
    if shown.chars().count() > 40 {
        shown = shown.chars().take(40).chain(['…']).collect();
    }
    format!("expected {what}, found {shown}")
}
