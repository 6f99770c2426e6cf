//! `opLog`: the versions of each item, folded from below.
//!
//! Each item has a base, which is its state at some snapshot, and the operations above it in
//! version order. A snapshot is closed under causality, and the order of versions extends
//! causality. So applying the operations of a larger snapshot to the state of a smaller one, in
//! that order, applies causes before effects.
//!
//! An item also caches the newest state that was read, so that reads do not replay operations.

mod cut;
mod derived;
mod item;
mod pending;
mod settle;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::ops::Bound;
use std::sync::Arc;

use crate::flaw::{Flaw, Planted};
use crate::key::Key;
use crate::limits::{FOLD_OPERATIONS, FOLDS_PER_TICK_MAX};
use crate::timestamp::{DcId, Timestamp};
use crate::tx::Transaction;
use crate::types::{Mark, OpId, Recent, State};
use crate::vector::Vector;
use derived::Derived;
use item::{At, Entry, Item};
use pending::Pending;

/// Items by key.
type Items = HashMap<Key, Item, BuildHasherDefault<DefaultHasher>>;

/// All items of one partition.
#[derive(Clone, Debug, Default)]
pub struct OpLog {
    /// Never iterated to produce messages or records, since its order is arbitrary (though fixed).
    items: Items,
    /// The keys of `items`, in order.
    keys: BTreeSet<Key>,
    /// A key without an item has the initial state at this snapshot. It is the snapshot of the last
    /// state transfer, joined with those at which blank items were removed.
    floor: Vector,
    /// Items with operations to fold, each once, by their first operation.
    foldable: VecDeque<Entry>,
    /// Items that remember operation ids and have nothing left to fold, each once.
    remembering: VecDeque<Key>,
    /// All operations older than this, in microseconds since 1970, are here.
    horizon_us: u64,
    /// Items that have nothing left to fold and can be settled once the horizon has reached this
    /// time, each once.
    due: BTreeSet<(u64, Key)>,
    pending: Pending,
    bytes: usize,
    operation_count: usize,
    derived: Derived,
    planted: Planted,
}

/// The bytes of an item with its key, of the key's second copy, and of an operation in a list.
pub const ITEM_BYTES: usize = size_of::<(Key, Item)>();
pub const KEY_BYTES: usize = size_of::<Key>();
pub const ENTRY_BYTES: usize = size_of::<Entry>();

impl OpLog {
    /// Creates an empty log, with a planted mistake if there is one.
    pub fn new(planted: Planted) -> Self {
        Self { planted, ..Self::default() }
    }

    /// Adds the operations of a transaction. Operations that are already here, or folded, are
    /// skipped, so the call may be repeated.
    pub fn append(&mut self, transaction: &Arc<Transaction>) {
        let mut is_pending = false;
        for (index, update) in transaction.updates.iter().enumerate() {
            let entry = Entry { transaction: transaction.clone(), index: index as u32 };
            let item = match self.items.get_mut(&update.key) {
                Some(item) => item,
                None => {
                    let item = Item::new(&update.key, self.floor, self.horizon_us);
                    self.keys.insert(update.key.clone());
                    self.items.entry(update.key.clone()).or_insert(item)
                }
            };
            if item.base.snapshot.covers(&transaction.commit_vec) {
                continue;
            }
            let version = entry.version();
            // Usually it is the last.
            let place = match item.entries.last() {
                Some(last) if last.version() >= version => {
                    match item.entries.binary_search_by_key(&version, Entry::version) {
                        Ok(_) => continue,
                        Err(place) => place,
                    }
                }
                _ => item.entries.len(),
            };
            self.bytes += entry.weight();
            self.operation_count += 1;
            if !item.is_queued {
                item.is_queued = true;
                self.foldable.push_back(entry.clone());
            }
            item.entries.insert(place, entry);
            item.cached_count = item.cached_count.min(place);
            is_pending = true;
        }
        if is_pending {
            self.pending.insert(transaction);
            self.renew(transaction.updates.iter().map(|update| &update.key));
        }
    }

    /// Returns the largest snapshot within this one that contains all that its entries reach.
    pub fn closed(&self, snapshot: Vector) -> Vector {
        self.pending.closed(snapshot)
    }

    /// Returns the state of `key` at `snapshot` (1:22-24). All its transactions must be here.
    ///
    /// # Errors
    ///
    /// The oldest snapshot at which the key can be read, if `snapshot` does not cover it.
    pub fn read(&mut self, key: &Key, snapshot: &Vector) -> Result<Arc<State>, Vector> {
        let Some(item) = self.items.get_mut(key) else { return self.peek(key, snapshot) };
        if !snapshot.covers(&item.cached.snapshot) {
            return self.peek(key, snapshot);
        }
        if item.cached_count == item.entries.len() {
            return Ok(item.cached.state.clone());
        }
        let state = item.advance(&item.cached, item.cached_count, snapshot);
        item.keep(At { snapshot: *snapshot, state: state.clone() });
        Ok(state)
    }

    /// Like [`read`](Self::read), but does not cache the state.
    pub fn peek(&self, key: &Key, snapshot: &Vector) -> Result<Arc<State>, Vector> {
        let Some(item) = self.items.get(key) else {
            let is_readable = snapshot.covers(&self.floor);
            return if is_readable { Ok(self.absent(key)) } else { Err(self.floor) };
        };
        if !snapshot.covers(&item.base.snapshot) && !self.planted.is(Flaw::TooOldFromBase) {
            return Err(item.base.snapshot);
        }
        Ok(item.advance(&item.base, 0, snapshot))
    }

    /// Returns the state of a key without an item.
    fn absent(&self, key: &Key) -> Arc<State> {
        Arc::new(State::absent(key.kind, self.horizon_us))
    }

    /// Returns the unfolded operations on `key` whose timestamps are at most the origin's entry of
    /// `snapshot`. Not all of them need be in the snapshot.
    pub fn recent<'a>(&'a self, key: &Key, snapshot: &Vector) -> Vec<Recent<'a>> {
        let entries = self.items.get(key).map_or(&[][..], |item| &item.entries);
        let reached = entries.iter().filter(|entry| {
            let transaction = &entry.transaction;
            transaction.timestamp() <= snapshot[transaction.origin]
        });
        let recent = reached.map(|entry| Recent {
            version: entry.version(),
            op: &entry.transaction.updates[entry.index as usize].op,
            id: entry.id(),
            is_held: snapshot.covers(&entry.transaction.commit_vec),
        });
        recent.collect()
    }

    /// Folds a bounded number of items up to `snapshot`; returns the number that had operations.
    ///
    /// The queue is roughly in the order in which items can be folded. The first item whose
    /// operation is not in `snapshot` moves to the end, so that it does not block the others; the
    /// second such item ends the search.
    pub fn fold_some(
        &mut self,
        snapshot: &Vector,
        is_past: impl Fn(&OpId, &[Mark]) -> bool,
    ) -> u64 {
        self.pending.settle(snapshot);
        let (mut count, mut has_missed) = (0, false);
        for _ in 0..self.foldable.len().min(FOLDS_PER_TICK_MAX) {
            let Some(first) = self.foldable.front() else { break };
            if !first.is_in(snapshot) {
                if has_missed {
                    break;
                }
                has_missed = true;
                self.foldable.rotate_left(1);
                continue;
            }
            let Some(first) = self.foldable.pop_front() else { break };
            count += u64::from(self.fold(first.key(), snapshot, &is_past) > 0);
            if let Some(item) = self.items.get_mut(first.key()) {
                item.is_queued = !item.entries.is_empty();
                self.foldable.extend(item.entries.first().cloned());
                self.settle(first.key());
            }
        }
        self.forget_some(snapshot, &is_past);
        self.settle_some(snapshot);
        count
    }

    /// Folds one item up to `snapshot` if its log is long.
    pub fn fold_if_long(
        &mut self,
        key: &Key,
        snapshot: &Vector,
        is_past: impl Fn(&OpId, &[Mark]) -> bool,
    ) {
        if self.items.get(key).is_some_and(|item| item.entries.len() > FOLD_OPERATIONS) {
            self.fold(key, snapshot, &is_past);
        }
    }

    fn fold(
        &mut self,
        key: &Key,
        snapshot: &Vector,
        is_past: &impl Fn(&OpId, &[Mark]) -> bool,
    ) -> usize {
        let Some(item) = self.items.get_mut(key) else { return 0 };
        let before = item.entries.len();
        let freed = item.fold(snapshot, self.horizon_us, is_past);
        self.bytes -= freed;
        self.operation_count -= before - item.entries.len();
        if freed > 0 {
            self.renew(std::iter::once(key));
        }
        freed
    }

    /// Returns the approximate bytes of operations that are not folded.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of operations that are not folded.
    pub fn operation_count(&self) -> usize {
        self.operation_count
    }

    /// Returns the keys of all items, or only those after `after`.
    pub fn keys(&self, after: Option<&Key>) -> impl Iterator<Item = &Key> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.keys.range((from, Bound::Unbounded))
    }

    /// Returns the keys of all items from `first` on.
    pub fn keys_from<'a>(&'a self, first: &Key) -> impl Iterator<Item = &'a Key> {
        self.keys.range(first..)
    }

    /// Returns all transactions with operations here that `snapshot` does not cover.
    pub fn above(&self, snapshot: &Vector) -> BTreeMap<(DcId, Timestamp), Arc<Transaction>> {
        let above =
            self.pending.iter().filter(|transaction| !snapshot.covers(&transaction.commit_vec));
        let named = above.map(|transaction| {
            ((transaction.origin, transaction.timestamp()), transaction.clone())
        });
        named.collect()
    }

    /// Replaces the contents by the states at a snapshot, which must cover everything folded here.
    /// Operations above the snapshot stay.
    pub fn install(&mut self, at: Vector, states: impl IntoIterator<Item = (Key, Arc<State>)>) {
        let horizon_us = self.horizon_us;
        let planted = self.planted;
        let doubled = planted.is(Flaw::TransferDoubles).then_some(self.floor);
        let snapshot = doubled.unwrap_or(at);
        let mut kept = self.above(&snapshot);
        if planted.is(Flaw::TransferLoses) {
            kept.clear();
        }
        let items = states.into_iter().map(|(key, state)| (key, Item::at(At { snapshot, state })));
        let mut items: Items = items.collect();
        let keys: BTreeSet<Key> = items.keys().cloned().collect();
        let (mut remembering, mut due) = (VecDeque::new(), BTreeSet::new());
        for key in &keys {
            let Some(item) = items.get_mut(key) else { continue };
            if item.base.state.remembers_ids() {
                item.is_remembering = true;
                remembering.push_back(key.clone());
            }
            item.due_us = item.base.state.due_us();
            due.extend(item.due_us.map(|due_us| (due_us, key.clone())));
        }
        let (floor, mut derived) = (snapshot, std::mem::take(&mut self.derived));
        derived.rebuild(keys.iter(), &items);
        let none = Self::default();
        *self = Self { items, keys, floor, remembering, horizon_us, due, derived, planted, ..none };
        for transaction in kept.values() {
            self.append(transaction);
        }
    }
}

#[cfg(test)]
mod tests {
    use mingle_model::{Origin, TransactionId, Value};

    use super::*;
    use crate::types::{Kind, Op, Update};

    fn vector(entries: [u64; 2]) -> Vector {
        Vector::ZERO.with(DcId(0), Timestamp(entries[0])).with(DcId(1), Timestamp(entries[1]))
    }

    fn write(key: &Key, origin: u8, commit: [u64; 2], value: i64) -> Arc<Transaction> {
        Arc::new(Transaction {
            id: TransactionId { origin: Origin(origin.into()), sequence: commit[0] },
            begun_us: 0,
            origin: DcId(origin),
            commit_vec: vector(commit),
            snapshot_own: Timestamp::ZERO,
            updates: vec![Update { key: key.clone(), op: Op::Write(Value::Int(value)), id: None }],
        })
    }

    fn value(log: &mut OpLog, key: &Key, snapshot: [u64; 2]) -> Option<Value> {
        let state = log.read(key, &vector(snapshot)).expect("readable");
        state.as_register().expect("a register").value().cloned()
    }

    #[test]
    fn older_snapshots_read_older_versions_and_too_old_ones_nothing() {
        let key = Key::new(Kind::Register, "k");
        let mut log = OpLog::default();
        for at in 1..=200 {
            log.append(&write(&key, 0, [at, 0], at as i64));
        }
        assert_eq!(value(&mut log, &key, [200, 0]), Some(Value::Int(200)));
        // A list cut at a fixed length would return the initial value here.
        assert_eq!(value(&mut log, &key, [3, 0]), Some(Value::Int(3)));
        log.fold_some(&vector([100, 0]), |_, _| false);
        assert_eq!(value(&mut log, &key, [100, 0]), Some(Value::Int(100)));
        assert_eq!(value(&mut log, &key, [150, 0]), Some(Value::Int(150)));
        assert_eq!(log.read(&key, &vector([99, 9])), Err(vector([100, 0])));
        assert_eq!(log.operation_count(), 100);
    }

    #[test]
    fn the_order_of_arrival_does_not_matter_and_repeats_neither() {
        let key = Key::new(Kind::Register, "k");
        let (early, late) = (write(&key, 1, [0, 5], 1), write(&key, 0, [6, 5], 2));
        for order in [[&early, &late], [&late, &early]] {
            let mut log = OpLog::default();
            for transaction in order.into_iter().chain([&early, &late]) {
                log.append(transaction);
            }
            assert_eq!(log.operation_count(), 2);
            assert_eq!(value(&mut log, &key, [6, 5]), Some(Value::Int(2)));
            assert_eq!(value(&mut log, &key, [0, 5]), Some(Value::Int(1)));
        }
    }

    #[test]
    fn a_state_that_is_installed_keeps_what_is_above_it() {
        let key = Key::new(Kind::Register, "k");
        let mut log = OpLog::default();
        for transaction in [write(&key, 0, [3, 0], 1), write(&key, 0, [6, 0], 2)] {
            log.append(&transaction);
        }
        let state = log.read(&key, &vector([3, 0])).expect("readable");
        log.install(vector([3, 9]), [(key.clone(), state)]);
        assert_eq!(log.operation_count(), 1);
        assert_eq!(value(&mut log, &key, [5, 9]), Some(Value::Int(1)));
        assert_eq!(value(&mut log, &key, [6, 9]), Some(Value::Int(2)));
        // An item missing from a transfer did not exist at its snapshot; before, it is unknown.
        let other = Key::new(Kind::Register, "other");
        assert_eq!(value(&mut log, &other, [3, 9]), None);
        assert_eq!(log.read(&other, &vector([3, 8])), Err(vector([3, 9])));
    }

    #[test]
    fn an_item_in_which_nothing_stands_is_left_out_once_it_is_folded() {
        let key = Key::new(Kind::Register, "k");
        let mut log = OpLog::default();
        log.append(&write(&key, 0, [1, 0], 1));
        let mut erased = (*write(&key, 0, [2, 0], 0)).clone();
        erased.snapshot_own = Timestamp(1);
        erased.updates[0].op = Op::Erase;
        log.append(&Arc::new(erased));
        log.fold_some(&vector([1, 0]), |_, _| false);
        assert_eq!(value(&mut log, &key, [1, 0]), Some(Value::Int(1)));
        log.fold_some(&vector([2, 0]), |_, _| false);
        assert_eq!(log.keys(None).count(), 0);
        assert_eq!(value(&mut log, &key, [2, 0]), None);
        assert_eq!(log.read(&key, &vector([1, 0])), Err(vector([2, 0])));
        log.append(&write(&key, 0, [3, 0], 3));
        assert_eq!(value(&mut log, &key, [2, 0]), None);
        assert_eq!(value(&mut log, &key, [3, 0]), Some(Value::Int(3)));
    }

    #[test]
    fn bytes_are_those_of_what_is_not_folded() {
        let key = Key::new(Kind::Register, "k");
        let mut log = OpLog::default();
        log.append(&write(&key, 0, [1, 0], 1));
        assert!(log.bytes() > 0);
        log.fold_some(&vector([1, 0]), |_, _| false);
        assert_eq!(log.bytes(), 0);
        // It is already folded.
        log.append(&write(&key, 0, [1, 0], 1));
        assert_eq!(log.operation_count(), 0);
    }
}
