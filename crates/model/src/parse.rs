//! JSON text whose objects have no repeated members.
//!
//! RFC 8259 leaves the meaning of a repeated member open: readers take the first, the last, or
//! both. If two programs read the same text differently, the check by the first one can be
//! bypassed, so such a text is an error here.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value as Json};

/// Reads a JSON text.
///
/// # Errors
///
/// If the text is not JSON, or an object in it has two members of one name.
///
/// # Examples
///
/// ```
/// use mingle_model::parse_json;
///
/// assert!(parse_json(br#"{"a": [1, {"a": 2}]}"#).is_ok());
/// let error = parse_json(br#"[{"a": 1, "a": 1}]"#).unwrap_err();
/// assert!(error.to_string().starts_with("the member `a` is there twice"), "{error}");
/// ```
pub fn parse_json(text: &[u8]) -> serde_json::Result<Json> {
    serde_json::from_slice::<Strict>(text).map(|Strict(value)| value)
}

/// The longest member name that an error shows whole, in characters.
const SHOWN_CHARS_MAX: usize = 40;

struct Strict(Json);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        StrictVisitor.deserialize(deserializer).map(Self)
    }
}

struct StrictVisitor;

impl<'de> DeserializeSeed<'de> for StrictVisitor {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::String(value))
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(StrictVisitor)? {
            values.push(value);
        }
        Ok(Json::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!(
                    "the member `{}` is there twice",
                    cut(&name)
                )));
            }
            let value = members.next_value_seed(StrictVisitor)?;
            object.insert(name, value);
        }
        Ok(Json::Object(object))
    }
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_repeated_members_reads_as_usual() {
        let texts = [
            "null",
            " true ",
            "-1",
            "18446744073709551615",
            "1.5e300",
            "1.0",
            "-0.0",
            "\"a\\u00e9\\n\"",
            "[]",
            "{}",
            r#"{"b":[1,{"a":null}],"a":{"b":"x"},"":0}"#,
        ];
        for text in texts {
            let usual: Json = serde_json::from_str(text).expect("JSON");
            assert_eq!(
                parse_json(text.as_bytes()).expect("JSON").to_string(),
                usual.to_string(),
                "{text}"
            );
        }
        for text in ["", "{", "1 2", "{\"a\"}", "[1,]", "nul"] {
            assert!(parse_json(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_repeated_member_is_an_error_at_any_depth() {
        // The third writes one of the names with an escape.
        let texts = [r#"{"a":1,"a":1}"#, r#"[{"x":{"a":1,"b":2,"a":3}}]"#, r#"{"a":1,"\u0061":2}"#];
        for text in texts {
            let error = parse_json(text.as_bytes()).expect_err(text).to_string();
            assert!(error.starts_with("the member `a` is there twice at line 1"), "{error}");
        }
    }

    #[test]
    fn what_stands_too_deep_is_an_error() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(parse_json(deep.as_bytes()).is_err());
    }
}
