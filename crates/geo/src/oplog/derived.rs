//! The entries of indexes; see [`crate::derive`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use mingle_model::Value;

use super::item::Item;
use super::{Items, OpLog};
use crate::derive::{COMBINATIONS_MAX, Derive, ENTRIES_BYTES_MAX, Entries, Span};
use crate::key::Key;
use crate::types::{Op, Register};

/// The indexes of a partition.
#[derive(Clone, Debug, Default)]
pub struct Derived(Vec<Index>);

/// One index.
#[derive(Clone, Debug)]
struct Index {
    by: Arc<dyn Derive>,
    entries: BTreeSet<Arc<[u8]>>,
    loose: BTreeSet<Arc<[u8]>>,
    /// The entries of each owner that has some; none for a loose owner.
    owners: BTreeMap<Arc<[u8]>, Vec<Arc<[u8]>>>,
    #[cfg(test)]
    planted: Option<tests::Mistake>,
}

impl Derived {
    /// True if there is no index.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Derives the entries of the owners of these items anew.
    pub fn renew<'k>(&mut self, keys: impl Iterator<Item = &'k Key> + Clone, items: &Items) {
        for index in &mut self.0 {
            let owners: BTreeSet<&[u8]> =
                keys.clone().filter_map(|key| index.by.owner(key)).collect();
            for owner in owners {
                index.renew(owner, items);
            }
        }
    }

    /// Derives all entries anew.
    pub fn rebuild<'k>(&mut self, keys: impl Iterator<Item = &'k Key> + Clone, items: &Items) {
        for index in &mut self.0 {
            index.entries.clear();
            index.loose.clear();
            index.owners.clear();
        }
        self.renew(keys, items);
    }
}

impl Index {
    fn new(by: Arc<dyn Derive>) -> Self {
        Self {
            by,
            entries: BTreeSet::new(),
            loose: BTreeSet::new(),
            owners: BTreeMap::new(),
            #[cfg(test)]
            planted: None,
        }
    }

    fn renew(&mut self, owner: &[u8], items: &Items) {
        let keys = self.by.items(owner);
        let values: Vec<Vec<&Value>> =
            keys.iter().map(|key| items.get(key).map_or_else(Vec::new, possible)).collect();
        #[cfg(test)]
        let values = tests::spoil(self.planted, values);
        let count = values.iter().fold(1_usize, |count, of| count.saturating_mul(of.len()));
        let mut bytes = 0;
        let entries = (0..count.min(COMBINATIONS_MAX)).filter_map(|at| {
            let entry = (bytes <= ENTRIES_BYTES_MAX).then(|| self.entry(owner, &values, at))??;
            bytes += entry.len();
            Some(entry)
        });
        let mut new: BTreeSet<Arc<[u8]>> = entries.collect();
        let is_loose = count > COMBINATIONS_MAX || bytes > ENTRIES_BYTES_MAX;
        if is_loose {
            new.clear();
        }
        let (name, old) =
            self.owners.remove_entry(owner).unwrap_or_else(|| (owner.into(), Vec::new()));
        for gone in old.iter().filter(|entry| !new.contains(*entry)) {
            self.entries.remove(gone);
        }
        self.entries.extend(new.iter().cloned());
        if is_loose {
            self.loose.insert(name.clone());
        } else {
            self.loose.remove(owner);
        }
        if !new.is_empty() {
            self.owners.insert(name, new.into_iter().collect());
        }
    }

    /// Returns the entry of a combination of values, given by its number.
    fn entry(&self, owner: &[u8], values: &[Vec<&Value>], mut at: usize) -> Option<Arc<[u8]>> {
        let chosen = values.iter().map(|of| {
            let value = of[at % of.len()];
            at /= of.len();
            value
        });
        let chosen: Vec<&Value> = chosen.collect();
        self.by.entry(owner, &chosen).map(Into::into)
    }
}

/// Returns all values that a register shows at some snapshot that covers its base. A value of the base that
/// loses to another one shows only where an operation has taken the other one away.
fn possible(item: &Item) -> Vec<&Value> {
    let base = item.base.state.as_register();
    if item.entries.is_empty() {
        return base.and_then(Register::value).into_iter().collect();
    }
    let base = base.into_iter().flat_map(|register| register.siblings().map(|(_, value)| value));
    let mut values: Vec<&Value> = base.collect();
    for entry in &item.entries {
        if let Op::Write(value) = &entry.transaction.updates[entry.index as usize].op
            && !values.contains(&value)
        {
            values.push(value);
        }
    }
    values
}

impl OpLog {
    /// Keeps an index from now on, unless there is one of its name.
    pub fn derive(&mut self, by: &Arc<dyn Derive>) {
        if self.derived.0.iter().any(|index| index.by.name() == by.name()) {
            return;
        }
        let mut added = Derived(vec![Index::new(by.clone())]);
        added.renew(self.keys.iter(), &self.items);
        self.derived.0.append(&mut added.0);
    }

    /// Returns the entries of a part of an index; `None` if there is no such index.
    pub fn entries(&self, span: &Span) -> Option<Entries> {
        let index = self.derived.0.iter().find(|index| index.by.name() == span.index)?;
        let loose = index.loose.iter().cloned().collect();
        let is_empty = span.upper.as_ref().is_some_and(|upper| *upper <= span.lower);
        if is_empty {
            return Some(Entries { found: Vec::new(), loose });
        }
        let upper = span.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = index.entries.range::<[u8], _>((Bound::Included(&*span.lower), upper));
        let found = if span.is_reversed {
            range.rev().take(span.most).cloned().collect()
        } else {
            range.take(span.most).cloned().collect()
        };
        Some(Entries { found, loose })
    }

    /// Derives the entries of the owners of these items anew.
    pub(super) fn renew<'k>(&mut self, keys: impl Iterator<Item = &'k Key> + Clone) {
        if !self.derived.is_empty() {
            self.derived.renew(keys, &self.items);
        }
    }
}

#[cfg(test)]
mod tests;
