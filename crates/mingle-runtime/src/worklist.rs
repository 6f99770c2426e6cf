//! What a transaction or session has to wait for before it visits a store.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Name, RowKind, Stamp, TransactionId, WitnessRow};
use serde::{Deserialize, Serialize};

/// A transaction that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Awaited {
    /// The store that holds its intent, or will.
    pub intent: Name,
    /// Whether it is waited for because it read, not because it wrote.
    pub is_reader: bool,
}

/// For each store, the transactions whose commit witness must be visible there (MixT §5.4, the
/// witness worklist), and what its replica must have seen (the technical report's tracking set,
/// §4.2). Worklists only grow by joining, so two of them can be joined in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worklist {
    waits: BTreeMap<Name, BTreeMap<TransactionId, Awaited>>,
    seen: BTreeMap<Name, Stamp>,
}

impl Worklist {
    /// Whether there is nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty() && self.seen.is_empty()
    }

    /// Whether it names no transaction.
    pub fn waits_for_nobody(&self) -> bool {
        self.waits.values().all(BTreeMap::is_empty)
    }

    /// How many transactions it names, at each store anew.
    pub fn len(&self) -> usize {
        self.waits.values().map(BTreeMap::len).sum()
    }

    /// Takes up what a witness row asks for. One of kind [`RowKind::Read`] concerns those who
    /// write in isolation.
    pub fn meet(&mut self, row: &WitnessRow) {
        let is_reader = row.kind == RowKind::Read;
        for store in &row.stores {
            let awaited = Awaited { intent: row.intent.clone(), is_reader };
            self.wait_at(store, row.id, awaited);
        }
        for (store, stamp) in &row.seen {
            self.saw(store, stamp);
        }
    }

    /// Waits at `store` for a transaction.
    pub fn wait_at(&mut self, store: &Name, id: TransactionId, awaited: Awaited) {
        self.waits.entry(store.clone()).or_default().insert(id, awaited);
    }

    /// Depends on what was seen at `store`.
    pub fn saw(&mut self, store: &Name, stamp: &Stamp) {
        if !stamp.is_empty() {
            self.seen.entry(store.clone()).or_default().join(stamp);
        }
    }

    /// Adds all that `other` waits for.
    pub fn join(&mut self, other: &Self) {
        for (store, waits) in &other.waits {
            let mine = self.waits.entry(store.clone()).or_default();
            mine.extend(waits.iter().map(|(id, awaited)| (*id, awaited.clone())));
        }
        for (store, stamp) in &other.seen {
            self.saw(store, stamp);
        }
    }

    /// The transactions to wait for at `store`.
    pub fn waits_at(&self, store: &str) -> impl Iterator<Item = (TransactionId, &Awaited)> {
        let waits = self.waits.get(store).into_iter().flatten();
        waits.map(|(id, awaited)| (*id, awaited))
    }

    /// What a replica of `store` must have seen.
    pub fn seen_at(&self, store: &str) -> Stamp {
        self.seen.get(store).cloned().unwrap_or_default()
    }

    /// Stores at which something must have been seen.
    pub fn seen(&self) -> impl Iterator<Item = (&Name, &Stamp)> {
        self.seen.iter()
    }

    /// A transaction's commit witness is visible at `store`. Gives what it was waited for as, if it
    /// was.
    pub fn is_over(&mut self, store: &str, id: TransactionId) -> Option<Awaited> {
        let waits = self.waits.get_mut(store)?;
        let awaited = waits.remove(&id);
        if waits.is_empty() {
            self.waits.remove(store);
        }
        awaited
    }

    /// Every replica of `store` has seen this much.
    pub fn is_everywhere(&mut self, store: &str, everywhere: &Stamp) {
        // What was seen of a replica that is gone may be gone with it: that is found out where it is
        // needed, and nobody forgets it unasked.
        let is_there = |seen: &Stamp| {
            let mut names = seen.iter().map(|(name, _)| name);
            everywhere.covers(seen) && names.all(|name| everywhere.of(name) < Stamp::ENDED)
        };
        if self.seen.get(store).is_some_and(is_there) {
            self.seen.remove(store);
        }
    }

    /// Depends on no more of `store` than `visible`; whether it did before.
    pub fn cut(&mut self, store: &str, visible: &Stamp) -> bool {
        let Some(seen) = self.seen.get_mut(store).filter(|seen| !visible.covers(seen)) else {
            return false;
        };
        seen.meet(visible);
        true
    }

    /// By transaction that wrote, the stores to wait at for it, and where its intent is; without
    /// the stores in `except`.
    pub fn passed_on(&self, except: &BTreeSet<Name>) -> BTreeMap<TransactionId, (Name, Vec<Name>)> {
        let mut passed: BTreeMap<TransactionId, (Name, Vec<Name>)> = BTreeMap::new();
        for (store, waits) in self.waits.iter().filter(|(store, _)| !except.contains(*store)) {
            for (id, awaited) in waits.iter().filter(|(_, awaited)| !awaited.is_reader) {
                let entry =
                    passed.entry(*id).or_insert_with(|| (awaited.intent.clone(), Vec::new()));
                entry.1.push(store.clone());
            }
        }
        passed
    }

    pub(crate) fn forget_seen(&mut self) {
        self.seen.clear();
    }

    /// Drops those that are waited for because they read: a session need not keep them.
    pub fn without_readers(mut self) -> Self {
        for waits in self.waits.values_mut() {
            waits.retain(|_, awaited| !awaited.is_reader);
        }
        self.waits.retain(|_, waits| !waits.is_empty());
        self
    }

    /// Stores at which a transaction is waited for.
    pub fn stores(&self) -> impl Iterator<Item = &Name> {
        self.waits.keys()
    }
}
