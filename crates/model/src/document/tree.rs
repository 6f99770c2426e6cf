//! JSON as a tree, with numbers as texts.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value as Json};

/// Parsed JSON. A number is kept as the text that stands for it, so none is rounded.
///
/// # Examples
///
/// ```
/// use mingle_model::Tree;
///
/// let tree = Tree::parse(br#"{"b": 12345678901234567890.10, "a": []}"#).unwrap();
/// assert_eq!(tree.to_string(), r#"{"b":12345678901234567890.10,"a":[]}"#);
/// assert_eq!(tree.member("a"), Some(&Tree::List(Vec::new())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is written.
    Number(Box<str>),
    /// A text.
    String(String),
    /// A list.
    List(Vec<Tree>),
    /// The members of an object, in the order of the text.
    Object(Vec<(String, Tree)>),
}

impl Tree {
    /// This tree as one of `serde_json`, which rounds numbers: see
    /// [`Document::to_serde`](super::Document::to_serde).
    pub fn to_serde(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Number(number) => super::number_to_serde(number),
            Self::String(text) => Json::String(text.clone()),
            Self::List(items) => Json::Array(items.iter().map(Self::to_serde).collect()),
            Self::Object(members) => {
                let members = members.iter().map(|(name, value)| (name.clone(), value.to_serde()));
                Json::Object(members.collect::<Map<String, Json>>())
            }
        }
    }

    /// The member of an object with this name, if there is one.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// True for an object whose only member is `some`.
    pub(crate) fn is_some(&self) -> bool {
        matches!(self, Self::Object(members) if matches!(&**members, [(name, _)] if name == "some"))
    }

    /// Appends the tree: on one line, or with each item on a line of its own behind `indent` blanks.
    fn write(&self, indent: Option<usize>, text: &mut String) {
        let inner = indent.map(|blanks| blanks + 2);
        let line = |blanks: Option<usize>, text: &mut String| {
            if let Some(blanks) = blanks {
                text.push('\n');
                text.extend((0..blanks).map(|_| ' '));
            }
        };
        match self {
            Self::Null => text.push_str("null"),
            Self::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            Self::Number(number) => text.push_str(number),
            Self::String(value) => write_text(value, text),
            Self::List(items) if items.is_empty() => text.push_str("[]"),
            Self::Object(members) if members.is_empty() => text.push_str("{}"),
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    text.push(if index == 0 { '[' } else { ',' });
                    line(inner, text);
                    item.write(inner, text);
                }
                line(indent, text);
                text.push(']');
            }
            Self::Object(members) => {
                for (index, (name, value)) in members.iter().enumerate() {
                    text.push(if index == 0 { '{' } else { ',' });
                    line(inner, text);
                    write_text(name, text);
                    text.push_str(if indent.is_some() { ": " } else { ":" });
                    value.write(inner, text);
                }
                line(indent, text);
                text.push('}');
            }
        }
    }
}

impl From<&Json> for Tree {
    fn from(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => Self::Number(number.to_string().into()),
            Json::String(text) => Self::String(text.clone()),
            Json::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Json::Object(members) => Self::Object(
                members.iter().map(|(name, value)| (name.clone(), value.into())).collect(),
            ),
        }
    }
}

/// Writes JSON without white space; with `{:#}` on several lines.
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(f.alternate().then_some(0), &mut text);
        f.write_str(&text)
    }
}

/// Appends a text in quotes, with as few escapes as JSON allows: for `"`, `\` and the characters below U+0020.
pub(crate) fn write_text(value: &str, text: &mut String) {
    text.push('"');
    let mut written = 0;
    for (at, byte) in value.bytes().enumerate() {
        let short = match byte {
            b'"' => '"',
            b'\\' => '\\',
            8 => 'b',
            12 => 'f',
            b'\n' => 'n',
            b'\r' => 'r',
            b'\t' => 't',
            0..32 => 'u',
            _ => continue,
        };
        text.push_str(&value[written..at]);
        text.push('\\');
        text.push(short);
        if short == 'u' {
            write!(text, "{byte:04x}").expect("a string takes any text");
        }
        written = at + 1;
    }
    text.push_str(&value[written..]);
    text.push('"');
}
