//! From reads to the items that answer them.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_geo::{Key, State};
use mingle_model::Ref;
use mingle_store::{Address, Read};

use super::name::{self, Thing};
use crate::layout::{Layout, Shape};

/// Items to be read together, each once.
#[derive(Clone, Default)]
pub struct Fetch {
    keys: Vec<Key>,
    places: BTreeMap<Key, usize>,
}

impl Fetch {
    /// Reads an item too.
    pub fn add(&mut self, key: Key) {
        let place = self.keys.len();
        self.places.entry(key.clone()).or_insert_with(|| {
            self.keys.push(key);
            place
        });
    }

    /// Returns all keys.
    pub fn keys(&self) -> Vec<Key> {
        self.keys.clone()
    }

    /// Combines the keys with the states read for them.
    pub fn found(self, states: Vec<Arc<State>>) -> Found {
        Found { places: self.places, states }
    }
}

/// Items that were read.
pub struct Found {
    places: BTreeMap<Key, usize>,
    states: Vec<Arc<State>>,
}

impl Found {
    /// Returns the state of an item that was fetched.
    pub fn get(&self, key: &Key) -> &State {
        &self.states[self.places[key]]
    }
}

/// Returns the item that a read needs; none for queries and scans.
///
/// # Errors
///
/// When the read does not fit the objects of this store.
pub fn item(layout: &Layout, read: &Read) -> Result<Option<Key>, String> {
    let field = |address: &Address, shape: Shape| {
        let id = layout.field(address, &[shape])?.id;
        Ok::<_, String>(Some(Thing::of(layout, Some(&address.object))?.field(id, shape)))
    };
    match read {
        Read::Exists(object) => Ok(Some(Thing::of(layout, Some(object))?.presence())),
        Read::Register(address) => field(address, Shape::Register),
        Read::Counter(address) => field(address, Shape::Counter),
        Read::Contains(address, _) | Read::SetSize(address) | Read::Elements(address) => {
            field(address, Shape::Set)
        }
        Read::Entry(address, _)
        | Read::MapSize(address)
        | Read::Entries(address)
        | Read::MapSlice { address, .. } => field(address, Shape::Map),
        Read::LogSize(address) | Read::LogLast(address, _) | Read::LogSlice { address, .. } => {
            field(address, Shape::Log)
        }
        Read::Record(key) => Ok(Some(name::record(key))),
        Read::Query { .. } | Read::Records { .. } | Read::Witnesses { .. } => Ok(None),
    }
}

/// Returns the item that holds the witness rows of an object, or of the whole store.
///
/// # Errors
///
/// When no such kind lives here.
pub fn rows(layout: &Layout, object: Option<&Ref>) -> Result<Key, String> {
    Ok(Thing::of(layout, object)?.rows())
}
