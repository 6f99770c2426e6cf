//! Removals that arrived before the dots they remove.

use super::context::Context;
use super::update::{Dot, Update};
use crate::encoding::key;
use crate::encoding::wire::{Reader, Writer};
use crate::storage::overlay::Draft;
use crate::storage::{Bytes, StorageError};

/// The dots that one update has to remove at a replica once they arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Early {
    /// The updates that the update's replica had seen.
    context: Context,
    /// Prefixes under which everything that `context` covers is removed.
    scopes: Vec<Vec<u8>>,
    /// Single writes of units to remove.
    dots: Vec<(Dot, Vec<u8>)>,
}

/// All early removals at a replica.
pub struct EarlyRemovals {
    rows: Vec<(Bytes, Early)>,
}

impl EarlyRemovals {
    /// Loads the early removals at the replica of this index.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn load(draft: &Draft<'_>, replica: u8) -> Result<Self, StorageError> {
        let rows = draft.rows(&key::early(replica))?;
        let decode = |(key, row): (Bytes, Bytes)| (key, Early::decode(&row));
        Ok(Self { rows: rows.into_iter().map(decode).collect() })
    }

    /// True if the write of update `dot` at `key` was removed before it arrived.
    pub fn remove(&self, dot: Dot, key: &[u8]) -> bool {
        self.rows.iter().any(|(_, early)| {
            let is_in_scope = || early.scopes.iter().any(|scope| key.starts_with(scope));
            early.dots.iter().any(|(d, k)| *d == dot && k == key)
                || (early.context.contains(dot.origin, dot.sequence) && is_in_scope())
        })
    }

    /// Stores the removals that `update` has to make later, and forgets those that are complete.
    /// `seen` has all updates the replica has seen, `update` included.
    pub fn settle(mut self, draft: &mut Draft<'_>, replica: u8, update: &Update, seen: &Context) {
        let early = Early::of(update, seen);
        if !early.is_over(seen) {
            let mut writer = Writer(key::early(replica));
            update.dot.encode(&mut writer);
            draft.put(writer.0, early.encode());
        }
        for (key, early) in self.rows.drain(..) {
            if early.is_over(seen) {
                draft.remove(key);
            }
        }
    }
}

impl Early {
    fn of(update: &Update, seen: &Context) -> Self {
        let units = update.units.iter();
        let dots = units.flat_map(|unit| unit.removed.iter().map(|dot| (*dot, unit.key.clone())));
        Self {
            context: update.context.clone(),
            scopes: update.scopes.iter().map(|s| s.prefix.clone()).collect(),
            dots: dots.filter(|(dot, _)| !seen.contains(dot.origin, dot.sequence)).collect(),
        }
    }

    /// True if everything that it removes has arrived.
    fn is_over(&self, seen: &Context) -> bool {
        let mut dots = self.dots.iter();
        dots.all(|(dot, _)| seen.contains(dot.origin, dot.sequence))
            && (self.scopes.is_empty() || seen.covers(&self.context))
    }

    fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.context.encode(&mut writer);
        writer.count(self.scopes.len());
        for scope in &self.scopes {
            writer.bytes(scope);
        }
        writer.count(self.dots.len());
        for (dot, key) in &self.dots {
            dot.encode(&mut writer);
            writer.bytes(key);
        }
        writer.0
    }

    fn decode(row: &[u8]) -> Self {
        let mut reader = Reader(row);
        Self {
            context: Context::decode(&mut reader),
            scopes: (0..reader.count()).map(|_| reader.bytes().to_vec()).collect(),
            dots: (0..reader.count())
                .map(|_| (Dot::decode(&mut reader), reader.bytes().to_vec()))
                .collect(),
        }
    }
}
