//! The opaque value `json`, and JSON as it is read: without loss.
//!
//! The `Value` of `serde_json` keeps a number as an `f64`, so `12345678901234567890` becomes another number. A
//! [`Tree`] keeps the text of each number. A [`Document`] is a tree in its canonical form, so two documents
//! are equal if their texts are.
//!
//! The canonical form has no white space; the members of an object in the order of the bytes of their names, without
//! repeated ones; numbers in plain decimal notation, without an exponent, without zeros at either end and without a
//! sign for zero; texts with as few escapes as JSON allows.

mod number;
mod parse;
mod tree;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

use crate::limits::{JSON_DEPTH_MAX, STRING_BYTES_MAX};
pub(crate) use number::to_serde as number_to_serde;
pub use parse::TreeError;
pub use tree::Tree;
pub(crate) use tree::write_text;

/// Any JSON document, in its canonical form. Documents are equal if they have the same structure and equal
/// texts and numbers; `1.50` equals `1.5` and `15e-1`. They are compared by their texts, an order without meaning.
///
/// # Examples
///
/// ```
/// use mingle_model::Document;
///
/// let document = Document::parse(r#"{ "b": [1.50, 1e2], "a": "\u00e9" }"#).unwrap();
/// assert_eq!(document.as_str(), r#"{"a":"é","b":[1.5,100]}"#);
/// assert!(Document::parse(r#""a\u0000b""#).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Document(Arc<str>);

impl Document {
    /// Reads a document from JSON text.
    ///
    /// # Errors
    ///
    /// A text that is not JSON; a repeated member; U+0000 in a text; a number of more than 400 digits before the point
    /// or after it; lists and objects that stand in each other more than 100 deep; a canonical form of more than 16 MiB.
    pub fn parse(text: &str) -> Result<Self, String> {
        let tree = Tree::parse(text.as_bytes()).map_err(|error| error.to_string())?;
        Self::of(&tree)
    }

    /// The document of a tree.
    ///
    /// # Errors
    ///
    /// A violated bound, as for [`Document::parse`].
    pub fn of(tree: &Tree) -> Result<Self, String> {
        let mut text = String::new();
        write(tree, 0, &mut text)?;
        Ok(Self(text.into()))
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The document as a tree of `serde_json`, which keeps integers of 64 bits exactly and rounds other numbers to the
    /// nearest `f64`; a number beyond the range of an `f64` becomes a text with its digits.
    ///
    /// # Panics
    ///
    /// Never: the canonical text is JSON.
    pub fn to_serde(&self) -> Json {
        self.tree().to_serde()
    }

    /// The document as a tree.
    ///
    /// # Panics
    ///
    /// Never: the canonical text is JSON.
    pub fn tree(&self) -> Tree {
        Tree::parse(self.0.as_bytes()).expect("a canonical text is JSON")
    }
}

/// The document `null`.
impl Default for Document {
    fn default() -> Self {
        Self("null".into())
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Document {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

impl TryFrom<&Json> for Document {
    type Error = String;

    fn try_from(json: &Json) -> Result<Self, String> {
        Self::of(&Tree::from(json))
    }
}

/// Reads a text from an untrusted sender: it need not be canonical.
impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

/// Appends the canonical form of a tree that stands in `depth` others.
fn write(tree: &Tree, depth: usize, text: &mut String) -> Result<(), String> {
    match tree {
        Tree::List(_) | Tree::Object(_) if depth == JSON_DEPTH_MAX => {
            return Err(format!("a json value nests at most {JSON_DEPTH_MAX} deep"));
        }
        Tree::Null => text.push_str("null"),
        Tree::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Tree::Number(number) => number::write(number, text)?,
        Tree::String(value) => write_checked(value, text)?,
        Tree::List(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, depth + 1, text)?;
            }
            text.push(']');
        }
        Tree::Object(members) => {
            let mut members: Vec<&(String, Tree)> = members.iter().collect();
            members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            text.push('{');
            for (index, (name, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_checked(name, text)?;
                text.push(':');
                write(value, depth + 1, text)?;
            }
            text.push('}');
        }
    }
    if text.len() > STRING_BYTES_MAX {
        return Err(format!(
            "a json value has at most {STRING_BYTES_MAX} bytes in its canonical form"
        ));
    }
    Ok(())
}

fn write_checked(value: &str, text: &mut String) -> Result<(), String> {
    if value.contains('\0') {
        return Err("a text in a json value holds no U+0000".into());
    }
    write_text(value, text);
    Ok(())
}
