//! The set of transactions and stamps that a transaction or session waits for at its stores.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use mingle_model::{Name, RowKind, Stamp, TransactionId, WitnessRow};
use serde::{Deserialize, Serialize};

/// A transaction that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Awaited {
    /// The store that holds its intent, or will.
    pub intent: Name,
    /// True if it is waited for because it read, not because it wrote.
    pub is_reader: bool,
}

impl Awaited {
    /// Joins other knowledge of the same transaction. "Wrote" wins over "only read": sessions, and
    /// rows that are passed on, wait for writers but not for readers.
    fn join(&mut self, other: &Self) {
        let order = |awaited: &Self| (awaited.is_reader, awaited.intent.clone());
        if order(other) < order(self) {
            self.clone_from(other);
        }
    }
}

/// For each store, the transactions whose commit witness must be visible there (MixT §5.4, the
/// witness wait set), and the stamp that its replica must have seen (the technical report's
/// tracking set, §4.2). Worklists only grow by joining. Joining is commutative, associative and
/// idempotent, so the order and the number of meetings do not change the set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSet {
    waits: BTreeMap<Name, BTreeMap<TransactionId, Awaited>>,
    seen: BTreeMap<Name, Stamp>,
}

impl WaitSet {
    /// True if there is nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty() && self.seen.is_empty()
    }

    /// True if it names no transaction.
    pub fn waits_for_nobody(&self) -> bool {
        self.waits.values().all(BTreeMap::is_empty)
    }

    /// Returns the number of transactions, counted once for each store.
    pub fn len(&self) -> usize {
        self.waits.values().map(BTreeMap::len).sum()
    }

    /// Adds the waits that a witness row asks for. A row of kind [`RowKind::Read`] concerns
    /// transactions that write in isolation.
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
        match self.waits.entry(store.clone()).or_default().entry(id) {
            Entry::Vacant(vacant) => {
                vacant.insert(awaited);
            }
            Entry::Occupied(mut known) => known.get_mut().join(&awaited),
        }
    }

    /// Depends on the stamp that was seen at `store`.
    pub fn saw(&mut self, store: &Name, stamp: &Stamp) {
        if !stamp.is_empty() {
            self.seen.entry(store.clone()).or_default().join(stamp);
        }
    }

    /// Adds all waits of `other`.
    pub fn join(&mut self, other: &Self) {
        for (store, waits) in &other.waits {
            for (id, awaited) in waits {
                self.wait_at(store, *id, awaited.clone());
            }
        }
        for (store, stamp) in &other.seen {
            self.saw(store, stamp);
        }
    }

    /// Returns the transactions to wait for at `store`.
    pub fn waits_at(&self, store: &str) -> impl Iterator<Item = (TransactionId, &Awaited)> {
        let waits = self.waits.get(store).into_iter().flatten();
        waits.map(|(id, awaited)| (*id, awaited))
    }

    /// Returns the stamp that a replica of `store` must have seen.
    pub fn seen_at(&self, store: &str) -> Stamp {
        self.seen.get(store).cloned().unwrap_or_default()
    }

    /// Returns the stores with the stamps that must have been seen there.
    pub fn seen(&self) -> impl Iterator<Item = (&Name, &Stamp)> {
        self.seen.iter()
    }

    /// Removes a transaction whose commit witness is visible at `store`. Returns its entry, if it
    /// was waited for.
    pub fn is_over(&mut self, store: &str, id: TransactionId) -> Option<Awaited> {
        let waits = self.waits.get_mut(store)?;
        let awaited = waits.remove(&id);
        if waits.is_empty() {
            self.waits.remove(store);
        }
        awaited
    }

    /// Drops the dependency on `store` if every replica there has seen it.
    pub fn is_everywhere(&mut self, store: &str, everywhere: &Stamp) {
        // The writes seen at a replica that is gone may be gone with it. This is detected where
        // they are needed, and no dependency is dropped unasked.
        let is_there = |seen: &Stamp| {
            let mut names = seen.iter().map(|(name, _)| name);
            everywhere.covers(seen) && names.all(|name| everywhere.of(name) < Stamp::ENDED)
        };
        if self.seen.get(store).is_some_and(is_there) {
            self.seen.remove(store);
        }
    }

    /// Cuts the dependency on `store` down to `visible`; true if it was larger.
    pub fn cut(&mut self, store: &str, visible: &Stamp) -> bool {
        let Some(seen) = self.seen.get_mut(store).filter(|seen| !visible.covers(seen)) else {
            return false;
        };
        seen.meet(visible);
        true
    }

    /// Returns, for each transaction that wrote, its intent's store and the stores to wait at.
    pub fn passed_on(&self) -> BTreeMap<TransactionId, (Name, Vec<Name>)> {
        let mut passed: BTreeMap<TransactionId, (Name, Vec<Name>)> = BTreeMap::new();
        for (store, waits) in &self.waits {
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

    /// Drops the transactions that only read: a session need not keep them.
    pub fn without_readers(mut self) -> Self {
        for waits in self.waits.values_mut() {
            waits.retain(|_, awaited| !awaited.is_reader);
        }
        self.waits.retain(|_, waits| !waits.is_empty());
        self
    }

    /// Returns the stores at which a transaction is waited for.
    pub fn stores(&self) -> impl Iterator<Item = &Name> {
        self.waits.keys()
    }
}

#[cfg(test)]
mod tests {
    use mingle_lang::generate::Random;
    use mingle_model::Origin;

    use super::*;

    const STORES: [&str; 3] = ["bank", "feed", "logs"];

    fn some_store(random: &mut Random) -> Name {
        Name::from(*random.pick(&STORES))
    }

    fn row(random: &mut Random) -> WitnessRow {
        let kind = if random.one_in(2) { RowKind::Read } else { RowKind::Write };
        let seen = (0..random.below(3)).map(|_| {
            let replica = Name::from(*random.pick(&["r1", "r2"]));
            (some_store(random), Stamp::from_iter([(replica, random.below(4) as u64)]))
        });
        let seen = seen.collect();
        WitnessRow {
            object: None,
            id: TransactionId { origin: Origin(1), sequence: random.below(3) as u64 },
            kind,
            intent: some_store(random),
            stores: (0..=random.below(2)).map(|_| some_store(random)).collect(),
            seen,
        }
    }

    fn met<'a>(rows: impl IntoIterator<Item = &'a WitnessRow>) -> WaitSet {
        let mut wait_set = WaitSet::default();
        rows.into_iter().for_each(|row| wait_set.meet(row));
        wait_set
    }

    fn joined(one: &WaitSet, other: &WaitSet) -> WaitSet {
        let mut joined = one.clone();
        joined.join(other);
        joined
    }

    #[test]
    fn joining_is_commutative_associative_and_idempotent() {
        for seed in 0..5_000 {
            let mut random = Random::new(seed);
            let rows: Vec<WitnessRow> = (0..6).map(|_| row(&mut random)).collect();
            let (a, b, c) = (met(&rows[..2]), met(&rows[2..4]), met(&rows[4..]));
            assert_eq!(joined(&a, &b), joined(&b, &a), "seed {seed}: {rows:?}");
            let left = joined(&joined(&a, &b), &c);
            assert_eq!(left, joined(&a, &joined(&b, &c)), "seed {seed}: {rows:?}");
            assert_eq!(joined(&left, &left), left, "seed {seed}: {rows:?}");
            // The order of the rows, and meeting them again, make no difference.
            assert_eq!(met(rows.iter().rev()), left, "seed {seed}: {rows:?}");
            assert_eq!(met(rows.iter().chain(&rows)), left, "seed {seed}: {rows:?}");
        }
    }

    #[test]
    fn who_wrote_is_waited_for_although_it_read_too() {
        let id = TransactionId { origin: Origin(1), sequence: 1 };
        let row = |kind| WitnessRow {
            object: None,
            id,
            kind,
            intent: "bank".into(),
            stores: vec!["logs".into()],
            seen: Vec::new(),
        };
        for kinds in [[RowKind::Write, RowKind::Read], [RowKind::Read, RowKind::Write]] {
            let rows = kinds.map(row);
            let wait_set = met(&rows);
            assert_eq!(wait_set.passed_on().len(), 1, "{kinds:?}");
            assert_eq!(wait_set.without_readers().len(), 1, "{kinds:?}");
        }
    }
}
