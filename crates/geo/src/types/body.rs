//! The content of a state, by its type, and its form as bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::item::{Item, Once};
use super::{Counter, Log, Map, OpId, Register, Set};

/// The content of a data item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Register(Register),
    Counter(Counter),
    Set(Set),
    Map(Map),
    Log(Log),
    Item(Box<Item>),
}

impl Body {
    /// Returns the operation ids of all values. Amounts added to counters have no value of their own.
    pub fn standing_ids(&self) -> Box<dyn Iterator<Item = &OpId> + '_> {
        match self {
            Self::Register(register) => Box::new(register.ids()),
            Self::Counter(_) => Box::new(std::iter::empty()),
            Self::Set(set) => Box::new(set.ids()),
            Self::Map(map) => Box::new(map.ids()),
            Self::Log(log) => Box::new(log.ids()),
            Self::Item(item) => Box::new(item.ids()),
        }
    }
}

/// The form that is written. An item without operation ids has the form that it had before there were
/// any.
#[derive(Serialize)]
#[serde(rename = "Body")]
enum Written<'a> {
    Register(&'a Register),
    Counter(&'a Counter),
    Set(&'a Set),
    Map(&'a Map),
    Log(&'a Log),
    Item(&'a Item),
    ItemOnce(&'a Item, Once),
}

/// The form that is read.
#[derive(Deserialize)]
#[serde(rename = "Body")]
enum Found {
    Register(Register),
    Counter(Counter),
    Set(Set),
    Map(Map),
    Log(Log),
    Item(Box<Item>),
    ItemOnce(Box<Item>, Once),
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = match self {
            Self::Register(register) => Written::Register(register),
            Self::Counter(counter) => Written::Counter(counter),
            Self::Set(set) => Written::Set(set),
            Self::Map(map) => Written::Map(map),
            Self::Log(log) => Written::Log(log),
            Self::Item(item) => match Once::of(item) {
                Some(once) => Written::ItemOnce(item, once),
                None => Written::Item(item),
            },
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Found::deserialize(deserializer)? {
            Found::Register(register) => Self::Register(register),
            Found::Counter(counter) => Self::Counter(counter),
            Found::Set(set) => Self::Set(set),
            Found::Map(map) => Self::Map(map),
            Found::Log(log) => Self::Log(log),
            Found::Item(item) => Self::Item(item),
            Found::ItemOnce(mut item, once) => {
                once.put_into(&mut item);
                Self::Item(item)
            }
        })
    }
}
