//! Forms of values that a column keeps in another way than the program: texts that the database takes for equal,
//! `real`, and arrays.
//!
//! # Texts that the database takes for equal
//!
//! To PostgreSQL `'BO'` and `'BO   '` are one `character(5)`, and `'Ana'` and `'ana'` are one `citext`. To the runtime the
//! refs `Member["Ana"]` and `Member["ana"]` are two: each has its own locks, witnesses, own writes and cached values, at
//! this store and at all others. If both named one row, a transaction would not see its own write, and two
//! transactions could miss each other. So of all spellings that the database takes for equal, exactly one is accepted:
//!
//! - `character(n)`: the one without blanks at its end, which is the one that a cast to `text` gives.
//! - `citext`: the one that PostgreSQL's `lower` leaves as it is. `citext` compares `lower(a) = lower(b)`, byte by byte, in
//!   the database's collation. If `lower` leaves both `a` and `b` as they are, they are equal only if they are the same
//!   text. This holds for any function in place of `lower`.
//!
//! Every read and write passes the key of its object, its element, entry or ref through
//! [`Column::param`](super::column::Column::param) before any statement is sent. That refuses all other spellings, so a transaction
//! that uses a second spelling fails, and two refs that are both used are two rows. Values that come from the
//! database (elements, entries, refs) are read in the accepted spelling.
//!
//! `lower` depends on the collation, so [`is_folded`] is stricter than all of them: it accepts a text if Unicode has no
//! small letter for any of its characters. [`check_folding`] asks the server at the start for the characters
//! that its `lower` changes. If there is one that `is_folded` would accept, as Unicode had a new letter since,
//! the mapping is refused.
//!
//! A column whose collation is not deterministic takes still other texts for equal. It can hold registers, but no keys,
//! elements, entries or refs.

use mingle_model::{Type, Value};
use tokio_postgres::Client;

use crate::error::message;

/// True if no collation has another small spelling for the text.
pub(crate) fn is_folded(text: &str) -> bool {
    text.chars().all(|c| {
        let mut small = c.to_lowercase();
        small.next() == Some(c) && small.next().is_none()
    })
}

/// Selects the characters that the server changes to small letters. No letter beyond U+1FFFF has a small form.
const LOWERED: &str = "\
SELECT string_agg(chr(n), '') FROM generate_series(1, 131071) AS n \
WHERE n NOT BETWEEN 55296 AND 57343 AND lower(chr(n) COLLATE \"default\") <> chr(n)";

/// Checks that keys of type `citext` can be compared here as the server compares them.
///
/// # Errors
///
/// The reason why they cannot.
pub(crate) async fn check_folding(client: &Client) -> Result<(), String> {
    let failed = |error: tokio_postgres::Error| message(&error);
    let encoding = "SELECT pg_encoding_to_char(encoding)::text FROM pg_database WHERE datname = current_database()";
    let encoding: String = client.query_one(encoding, &[]).await.map_err(failed)?.get(0);
    if encoding != "UTF8" {
        return Err(format!(
            "a key of type citext needs a database in UTF8, and this one is in {encoding}"
        ));
    }
    let lowered: Option<String> = client.query_one(LOWERED, &[]).await.map_err(failed)?.get(0);
    match lowered.unwrap_or_default().chars().find(|c| is_folded(&c.to_string())) {
        None => Ok(()),
        Some(unknown) => Err(format!(
            "a key of type citext needs a collation with the small letters of Unicode, and that of this database \
             has one for U+{:04X}",
            u32::from(unknown)
        )),
    }
}

/// Returns the number whose shortest text is that of a `real`, which the server widened.
pub(crate) fn of_real(widened: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, reason = "it was a `real`")]
    let real = widened as f32;
    real.to_string().parse().unwrap_or(widened)
}

/// True if a `real` gives the number back.
pub(crate) fn real_holds(number: f64) -> bool {
    number.is_nan() || of_real(number).to_bits() == number.to_bits()
}

/// Returns the text of an array of scalars; none if an item is no `bool`, `int`, `float` or `string`.
pub(crate) fn array_text(items: &[Value]) -> Option<String> {
    let mut text = String::from("{");
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        match item {
            Value::Bool(item) => text += &item.to_string(),
            Value::Int(item) => text += &item.to_string(),
            Value::Float(item) => text += &item.0.to_string(),
            Value::String(item) => {
                text.push('"');
                for c in item.chars() {
                    if matches!(c, '"' | '\\') {
                        text.push('\\');
                    }
                    text.push(c);
                }
                text.push('"');
            }
            _ => return None,
        }
    }
    text.push('}');
    Some(text)
}

/// Returns the list in an array, which the server has sent as JSON of texts.
///
/// # Errors
///
/// The content that no list holds: a null, or a second dimension.
pub(crate) fn array_value(raw: &[u8], items: &Type) -> Result<Value, String> {
    let parsed: Vec<Option<serde_json::Value>> =
        serde_json::from_slice(raw).map_err(|error| error.to_string())?;
    let item = |found: Option<serde_json::Value>| {
        let text = match found {
            Some(serde_json::Value::String(text)) => text,
            Some(_) => return Err("its array has several dimensions".to_owned()),
            None => return Err("its array has a null".to_owned()),
        };
        let value = match items {
            Type::Bool => text.parse().ok().map(Value::Bool),
            Type::Int => text.parse().ok().map(Value::Int),
            Type::Float => text.parse::<f64>().ok().map(Value::from),
            Type::String => Some(Value::from(text.as_str())),
            _ => None,
        };
        value.ok_or_else(|| format!("its array has {text:?}"))
    };
    let items: Result<Vec<Value>, String> = parsed.into_iter().map(item).collect();
    items.map(Value::list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_is_folded() {
        for (text, expected) in [
            ("", true),
            ("ana@example.org", true),
            ("straße 7, ñ, ς, ı", true),
            ("Ana", false),
            ("É", false),
            ("İ", false),
            ("Σ", false),
            ("ǅ", false),
            ("\u{10400}", false),
        ] {
            assert_eq!(is_folded(text), expected, "{text}");
        }
    }

    #[test]
    fn a_real_is_the_number_with_its_text() {
        assert_eq!(of_real(f64::from(21.05_f32)).to_string(), "21.05");
        for number in [21.05, 0.0, -1.5e-45_f64, f64::from(f32::MAX), f64::INFINITY, f64::NAN] {
            let held = of_real(number);
            assert!(real_holds(held), "{number}");
        }
        for number in [1e300, 21.050_000_001, 1e-60, f64::from(1.1_f32)] {
            assert!(!real_holds(number), "{number}");
        }
    }

    #[test]
    fn texts_in_arrays_are_quoted() {
        let items = ["", "a\"b", "\\", "{,}", "NULL", " x "].map(Value::from);
        let text = array_text(&items).expect("texts");
        assert_eq!(text, r#"{"","a\"b","\\","{,}","NULL"," x "}"#);
        assert_eq!(array_text(&[Value::list([])]), None);
        let read = |raw: &str| array_value(raw.as_bytes(), &Type::Int);
        assert_eq!(read(r#"["1","-2"]"#), Ok(Value::list([Value::Int(1), Value::Int(-2)])));
        assert_eq!(read(r#"["1",null]"#), Err("its array has a null".into()));
        assert_eq!(read(r#"[["1"]]"#), Err("its array has several dimensions".into()));
    }
}
