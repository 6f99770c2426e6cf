//! Stores that share one engine, and the items of each.
//!
//! The data centers of a store can have other stores too: these share the replicas, and therefore
//! clocks, snapshots and certification. So one transaction can run over several of them. The names
//! of a store's items begin with the store's name, except for the engine's first store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use mingle_geo::certify::Touch;
use mingle_geo::{Key, Update};
use mingle_model::Name;
use mingle_store::EngineId;

use super::store::Shared;

/// No section's name begins with this byte.
const MARK: u8 = 1;

/// The prefix of the names of a store's items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Space(Arc<[u8]>);

impl Space {
    /// Returns the space of the engine's first store.
    pub fn first() -> Self {
        Self::default()
    }

    /// Returns the space of a store that was added.
    pub fn of(store: &Name) -> Self {
        let mut mark = vec![MARK];
        mark.extend(store.as_bytes());
        mark.push(0);
        Self(mark.into())
    }

    /// Returns the prefix of the names of its items.
    pub fn prefix(&self) -> &[u8] {
        &self.0
    }

    /// Returns the engine's key of an item of this store.
    pub fn key(&self, key: Key) -> Key {
        if self.0.is_empty() {
            return key;
        }
        Key::new(key.kind, [&self.0, &*key.name].concat())
    }

    /// Returns this store's key of an item of the engine.
    pub fn own(&self, key: Key) -> Key {
        if self.0.is_empty() {
            return key;
        }
        Key::new(key.kind, key.name.strip_prefix(&*self.0).unwrap_or(&key.name))
    }

    /// Maps the keys of updates to the engine's keys.
    pub fn updates(&self, mut updates: Vec<Update>) -> Vec<Update> {
        if !self.0.is_empty() {
            for update in &mut updates {
                update.key = self.key(update.key.clone());
            }
        }
        updates
    }

    /// Maps the keys of touches to the engine's keys.
    pub fn touches(&self, touches: Vec<Touch>) -> Vec<Touch> {
        touches.into_iter().map(|touch| Touch { key: self.key(touch.key), ..touch }).collect()
    }
}

/// The state that the stores of one engine share besides its replicas.
pub struct Engine {
    id: EngineId,
    is_shared: AtomicBool,
    members: Mutex<Vec<Weak<Shared>>>,
    /// Number of conflicts, by transaction name.
    conflicts: Mutex<BTreeMap<Name, u64>>,
}

impl Engine {
    /// Creates an engine without stores.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = EngineId(NEXT.fetch_add(1, Ordering::Relaxed));
        let (members, conflicts) = (Mutex::default(), Mutex::default());
        Self { id, is_shared: AtomicBool::new(false), members, conflicts }
    }

    /// Returns the id, unique in this process.
    pub fn id(&self) -> EngineId {
        self.id
    }

    /// True if several stores share it.
    pub fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Acquire)
    }

    /// Adds a store.
    pub fn add(&self, member: &Arc<Shared>) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.push(Arc::downgrade(member));
        self.is_shared.store(members.len() > 1, Ordering::Release);
    }

    /// Counts a conflict of a transaction of this name.
    pub fn note_conflict(&self, transaction: &Name) {
        let mut conflicts = self.conflicts.lock().unwrap_or_else(PoisonError::into_inner);
        *conflicts.entry(transaction.clone()).or_default() += 1;
    }

    /// Returns the number of conflicts of transactions of this name.
    pub fn conflicts_of(&self, transaction: &str) -> u64 {
        let conflicts = self.conflicts.lock().unwrap_or_else(PoisonError::into_inner);
        conflicts.get(transaction).copied().unwrap_or(0)
    }

    /// Returns all its stores, the first one first.
    pub fn members(&self) -> Vec<Arc<Shared>> {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the store of this name, if it is in this engine.
    pub fn member(&self, store: &str) -> Option<Arc<Shared>> {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.iter().filter_map(Weak::upgrade).find(|member| *member.core.store == *store)
    }
}

#[cfg(test)]
mod tests {
    use mingle_geo::Kind;

    use super::*;

    #[test]
    fn items_of_several_stores_are_apart_and_come_back() {
        let (first, feed, feeds) =
            (Space::first(), Space::of(&"feed".into()), Space::of(&"feeds".into()));
        let key = Key::new(Kind::Set, b"w{abc}".as_slice());
        let all: Vec<Key> =
            [&first, &feed, &feeds].iter().map(|space| space.key(key.clone())).collect();
        assert_eq!(all[0], key);
        for (space, found) in [first, feed, feeds].iter().zip(&all) {
            assert_eq!(space.own(found.clone()), key);
            assert_eq!(found.partition(64), key.partition(64), "{found:?}");
            assert_eq!(all.iter().filter(|other| *other == found).count(), 1);
        }
    }
}
