//! Objects in keys of other applications.

use std::collections::BTreeMap;
use std::fmt;

use mingle_model::{FieldType, ObjectType, Type};
use serde::Deserialize;

use crate::layout::Shape;
use crate::request::{Word, words};

/// The places of a kind's fields.
///
/// `{…}` in a key stands for the object's key, by its name in the program, once.
///
/// # Examples
///
/// ```
/// use mingle_store_redis::{FieldMapping, KeyType, ObjectMapping};
///
/// let mut user = ObjectMapping::at("user:{name}");
/// user.columns.insert("mail".into(), "email".into());
/// let inbox = FieldMapping { key: "inbox:{name}".into(), key_type: KeyType::List };
/// user.fields.insert("inbox".into(), inbox);
///
/// let written = r#"{
///     "key": "user:{name}",
///     "columns": { "mail": "email" },
///     "fields": { "inbox": { "key": "inbox:{name}", "type": "list" } }
/// }"#;
/// assert_eq!(serde_json::from_str::<ObjectMapping>(written).unwrap(), user);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectMapping {
    /// The hash that has the registers and counters, such as `user:{name}`.
    pub key: Option<String>,
    /// The columns of fields in that hash; a field that is not listed has its own name there.
    #[serde(default)]
    pub columns: BTreeMap<String, String>,
    /// Fields that have keys of their own.
    #[serde(default)]
    pub fields: BTreeMap<String, FieldMapping>,
    /// A column of the hash that holds the object's key. An object that is created without any
    /// field needs it, because the server keeps no empty hash.
    pub marker: Option<String>,
}

impl ObjectMapping {
    /// Returns a mapping with all registers and counters in the hash at this key.
    pub fn at(key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..Self::default() }
    }
}

/// The place of one field.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldMapping {
    /// The key, such as `inbox:{name}`.
    pub key: String,
    /// Its type at the server; `type` in the binding.
    #[serde(rename = "type")]
    pub key_type: KeyType,
}

/// A type of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyType {
    /// `string`: a register or a counter.
    String,
    /// `hash`: a map.
    Hash,
    /// `set`: a set.
    Set,
    /// `list`: a log, the oldest line first.
    List,
}

impl KeyType {
    /// Returns its name at the server and in the binding.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Hash => "hash",
            Self::Set => "set",
            Self::List => "list",
        }
    }

    fn fits(self, field_type: &FieldType) -> bool {
        matches!(
            (self, Shape::of(field_type)),
            (Self::String, Shape::Register | Shape::Counter)
                | (Self::Hash, Shape::Map)
                | (Self::Set, Shape::Set)
                | (Self::List, Shape::Log)
        )
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A mapping that fits its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    hash: Option<Pattern>,
    marker: Option<String>,
    /// The place of each field.
    places: Vec<Place>,
}

/// A key with the object's key in the middle.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    before: String,
    after: String,
    /// The characters that keys of the object can have; none if they can have any.
    alphabet: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// In the hash, under this name.
    Column(String),
    Key(Pattern, KeyType),
}

/// Returns the characters that keys of a type can have as they are kept; none if they can have any.
fn alphabet(key_type: &Type) -> Option<&'static str> {
    match key_type {
        Type::Int => Some("-0123456789"),
        Type::Decimal => Some("-.0123456789"),
        _ => None,
    }
}

/// True if some key could match both patterns, each given by the texts before and after the object's key and by the
/// key's type. A binding refuses two such patterns.
///
/// # Examples
///
/// ```
/// use mingle_model::Type;
/// use mingle_store_redis::mapping::can_meet;
///
/// let user = |of: &Type| can_meet(("user:", "", of), ("user:", ":mail", of));
/// assert!(user(&Type::String), "`user:7:mail` could be the user `7:mail`");
/// assert!(!user(&Type::Int), "which is no number");
/// ```
pub fn can_meet(one: (&str, &str, &Type), other: (&str, &str, &Type)) -> bool {
    let pattern = |(before, after, of): (&str, &str, &Type)| Pattern {
        before: before.into(),
        after: after.into(),
        alphabet: alphabet(of),
    };
    pattern(one).meets(&pattern(other))
}

impl Pattern {
    fn parse(text: &str, (key_name, key_type): (&str, &Type)) -> Result<Self, String> {
        let expected = || format!("expected a key with {{{key_name}}} in it once, found `{text}`");
        let (before, after) = text.split_once(&format!("{{{key_name}}}")).ok_or_else(expected)?;
        if [before, after].iter().any(|part| part.contains('{') || part.contains('}')) {
            return Err(expected());
        }
        if before.is_empty() {
            return Err(format!(
                "`{text}` begins with the object's key, so it could be any key: expected a prefix"
            ));
        }
        Ok(Self { before: before.into(), after: after.into(), alphabet: alphabet(key_type) })
    }

    fn fill(&self, key: &[u8]) -> Word {
        [self.before.as_bytes(), key, self.after.as_bytes()].concat()
    }

    /// True if one key could match both patterns.
    fn meets(&self, other: &Self) -> bool {
        let either = |a: &str, b: &str| a.starts_with(b) || b.starts_with(a);
        let ends = |a: &str, b: &str| a.ends_with(b) || b.ends_with(a);
        either(&self.before, &other.before)
            && ends(&self.after, &other.after)
            && !self.excludes(other)
            && !other.excludes(self)
    }

    /// True if the other pattern is longer on both sides, and has characters there that no key of this one's objects
    /// has.
    fn excludes(&self, other: &Self) -> bool {
        let Some(alphabet) = self.alphabet else { return false };
        let more =
            other.before.strip_prefix(&self.before).zip(other.after.strip_suffix(&self.after));
        let is_odd = |text: &str| text.chars().any(|c| !alphabet.contains(c));
        more.is_some_and(|(before, after)| is_odd(before) || is_odd(after))
    }

    fn shown(&self) -> String {
        format!("{}{{…}}{}", self.before, self.after)
    }
}

impl Mapped {
    /// Checks a mapping against its kind; `prefix` is the prefix of Mingle's own keys.
    ///
    /// # Errors
    ///
    /// The part that does not fit.
    pub fn new(mapping: &ObjectMapping, object: &ObjectType, prefix: &str) -> Result<Self, String> {
        let parse = |text: &str| {
            let pattern = Pattern::parse(text, (&object.key_name, &object.key_type))?;
            let (own, other) = (prefix, &pattern.before);
            if own.starts_with(other.as_str()) || other.starts_with(own) {
                return Err(format!(
                    "`{text}` could be one of our own keys, which begin with {own}"
                ));
            }
            Ok(pattern)
        };
        for name in mapping.columns.keys().chain(mapping.fields.keys()) {
            if object.field_index(name).is_none() {
                return Err(format!("it has no field {name}"));
            }
        }
        let hash = mapping.key.as_deref().map(parse).transpose()?;
        let mut places = Vec::with_capacity(object.fields.len());
        for field in &object.fields {
            let name = &*field.name;
            let is_scalar =
                matches!(Shape::of(&field.field_type), Shape::Register | Shape::Counter);
            let place = match (mapping.fields.get(name), mapping.columns.get(name)) {
                (Some(_), Some(_)) => {
                    return Err(format!("field {name} is both in `columns` and in `fields`"));
                }
                (Some(own), None) if !own.key_type.fits(&field.field_type) => {
                    let (of, kept) = (&field.field_type, own.key_type);
                    return Err(format!("field {name} is a {of}, which is not kept as a {kept}"));
                }
                (Some(own), None) => Place::Key(parse(&own.key)?, own.key_type),
                (None, column) if is_scalar && hash.is_some() => {
                    Place::Column(column.map_or(name, String::as_str).to_owned())
                }
                (None, _) => return Err(format!("field {name} is not mapped to any key")),
            };
            places.push(place);
        }
        let mapped = Self { hash, marker: mapping.marker.clone(), places };
        mapped.check_apart()?;
        Ok(mapped)
    }

    /// Checks that no two fields share the same place.
    fn check_apart(&self) -> Result<(), String> {
        let mut columns: Vec<&str> = self.columns().collect();
        columns.extend(self.marker.as_deref());
        columns.sort_unstable();
        if let Some([column, _]) = columns.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two fields are kept as {column}"));
        }
        if self.marker.is_some() && self.hash.is_none() {
            return Err("a marker needs the `key` of a hash".into());
        }
        self.check_patterns(self)
    }

    /// Checks that keys of the two kinds always differ, unless the two patterns are the same.
    ///
    /// # Errors
    ///
    /// The keys that could be equal.
    pub fn check_patterns(&self, other: &Self) -> Result<(), String> {
        for (index, (one, _)) in self.patterns().enumerate() {
            for (place, (two, _)) in other.patterns().enumerate() {
                let is_same = std::ptr::eq(self, other) && index == place;
                if !is_same && one.meets(two) {
                    let (one, two) = (one.shown(), two.shown());
                    return Err(format!("keys `{one}` and `{two}` could be the same"));
                }
            }
        }
        Ok(())
    }

    fn columns(&self) -> impl Iterator<Item = &str> {
        self.places.iter().filter_map(|place| match place {
            Place::Column(name) => Some(name.as_str()),
            Place::Key(..) => None,
        })
    }

    fn patterns(&self) -> impl Iterator<Item = (&Pattern, KeyType)> {
        let hash = self.hash.iter().map(|pattern| (pattern, KeyType::Hash));
        hash.chain(self.places.iter().filter_map(|place| match place {
            Place::Column(_) => None,
            Place::Key(pattern, of) => Some((pattern, *of)),
        }))
    }

    fn keys(&self, key: &[u8]) -> Vec<Word> {
        self.patterns().map(|(pattern, _)| pattern.fill(key)).collect()
    }

    /// Returns the key, its type, and the name within it if it is a hash of columns.
    fn place(&self, key: &[u8], field: usize) -> (Word, KeyType, Option<&str>) {
        match &self.places[field] {
            Place::Column(name) => {
                let hash = self.hash.as_ref().expect("columns are in a hash: it was checked");
                (hash.fill(key), KeyType::Hash, Some(name))
            }
            Place::Key(pattern, of) => (pattern.fill(key), *of, None),
        }
    }

    /// Returns the question if an object has any key.
    pub fn exists(&self, key: &[u8]) -> Vec<Word> {
        [words!["q", "", "any", "EXISTS"], self.keys(key)].concat()
    }

    /// Returns the question by a command about a field, or about one element or entry of it.
    pub fn question(
        &self,
        key: &[u8],
        field: usize,
        command: &[Word],
        unit: Option<Word>,
    ) -> Vec<Word> {
        let (at, of, column) = self.place(key, field);
        let order = match &*command[0] {
            b"SMEMBERS" => "set",
            b"HGETALL" => "pairs",
            _ => "",
        };
        let head = words!["q", of.name(), order];
        let rest = match (column, of) {
            (Some(column), _) => words!["HGET", at, column],
            (None, KeyType::String) => words!["GET", at],
            (None, _) => {
                let mut rest = vec![command[0].clone(), at];
                rest.extend(command[1..].iter().cloned().chain(unit));
                rest
            }
        };
        [head, rest].concat()
    }

    /// Returns the words that set a register.
    pub fn assign(&self, key: &[u8], field: usize, value: Word) -> Vec<Word> {
        let (at, of, column) = self.place(key, field);
        match column {
            Some(column) => words!["m", of.name(), "HSET", at, column, value],
            None => words!["m", of.name(), "SET", at, value, "KEEPTTL"],
        }
    }

    /// Returns the words that add to a counter.
    pub fn add(&self, key: &[u8], field: usize, amount: i128) -> Vec<Word> {
        let (at, of, column) = self.place(key, field);
        let mut op = words!["M", of.name(), at, amount.to_string()];
        op.extend(column.map(Into::into));
        op
    }

    /// Returns the words that change a collection by a command.
    pub fn change(&self, key: &[u8], field: usize, command: &str, rest: &[Word]) -> Vec<Word> {
        let (at, of, _) = self.place(key, field);
        [words!["m", of.name(), command, at], rest.to_vec()].concat()
    }

    /// Returns the words that create an object; none if only a field can do that.
    pub fn create(&self, key: &[u8]) -> Option<Vec<Word>> {
        let (hash, marker) = (self.hash.as_ref()?, self.marker.as_deref()?);
        Some(words!["m", "hash", "HSETNX", hash.fill(key), marker, key])
    }

    /// Returns the words that fail unless an object exists.
    pub fn must_exist(&self, key: &[u8]) -> Vec<Word> {
        [words!["E"], self.keys(key)].concat()
    }

    /// Returns the words that remove all keys of an object.
    pub fn delete(&self, key: &[u8]) -> Vec<Vec<Word>> {
        self.keys(key).into_iter().map(|key| words!["m", "", "DEL", key]).collect()
    }

    /// Returns the mapping as text, which changes with its meaning.
    pub fn text(&self) -> String {
        let place = |place: &Place| match place {
            Place::Column(name) => name.clone(),
            Place::Key(pattern, of) => format!("{of} {}", pattern.shown()),
        };
        let places: Vec<String> = self.places.iter().map(place).collect();
        let hash = self.hash.as_ref().map_or("none".to_owned(), Pattern::shown);
        format!("hash {hash}: {}", places.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All keys of objects with the numbers up to 30, and with texts of up to three of these characters.
    fn keys(of: &Type) -> Vec<String> {
        if *of == Type::Int {
            return (-3..30).map(|number: i64| number.to_string()).collect();
        }
        let mut all = vec![String::new()];
        for _ in 0..3 {
            let longer =
                all.iter().flat_map(|key| [":", "1", "a"].map(|more| format!("{key}{more}")));
            all = [String::new()].into_iter().chain(longer).collect();
        }
        all
    }

    #[test]
    fn patterns_that_can_share_a_key_meet() {
        let texts = ["", ":", "1", ":a", "a:", ":1:", "1:"];
        let types = [Type::Int, Type::String];
        let mut patterns = Vec::new();
        for (before, after) in texts.iter().flat_map(|one| texts.map(|other| (*one, other))) {
            patterns.extend(types.iter().map(|of| (format!("u{before}"), after, of)));
        }
        let filled = |(before, after, of): &(String, &str, &Type)| -> Vec<String> {
            keys(of).iter().map(|key| format!("{before}{key}{after}")).collect()
        };
        let (mut shared, mut apart) = (0, 0);
        for one in &patterns {
            let own = filled(one);
            for other in &patterns {
                let meets = can_meet((&one.0, one.1, one.2), (&other.0, other.1, other.2));
                let is_shared = filled(other).iter().any(|key| own.contains(key));
                assert!(meets || !is_shared, "{one:?} and {other:?}");
                shared += usize::from(is_shared);
                apart += usize::from(!meets);
            }
        }
        assert!(shared > 1_000 && apart > 1_000, "{shared} shared, {apart} apart");
    }

    #[test]
    fn a_number_has_no_further_part() {
        let numbers = ("user:", "", &Type::Int);
        for (before, after) in [("user:", ":friends"), ("user:by-name:", ""), ("user:last:", ":x")]
        {
            assert!(!can_meet(numbers, (before, after, &Type::String)), "{before}{after}");
            let texts = ("user:", "", &Type::String);
            assert!(can_meet(texts, (before, after, &Type::Int)), "{before}{after}");
        }
        assert!(can_meet(numbers, ("user:1", "", &Type::Int)));
        assert!(can_meet(("user:", ":a", &Type::Int), ("user:5:", "", &Type::String)));
    }
}
