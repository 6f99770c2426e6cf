//! The meaning of the data types, defined independently: from the operations that a snapshot holds.
//!
//! This definition applies no operations in sequence, and keeps no state. Some of the visible
//! operations on an item *stand*, and they determine its value:
//!
//! - An operation *observes* another if its transaction's snapshot held it, or if it comes later in
//!   the same transaction.
//! - It stands unless a visible operation that removes it observes it: a write removes earlier
//!   writes, a removal insertions of its value, a reset additions, and so on.
//! - Among operations with one id, those that observe another run of it have no effect. The others
//!   are runs of one operation, which stands where its lowest visible version does; an operation
//!   that observes one of the runs observes the operation.
//!
//! The visible operations are closed under causality, so the operations that an operation observes
//! do not depend on the reader. They are computed once for each item.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mingle_model::{TransactionId, Value};

use super::any::{self, Element, ItemOp, Seen};
use super::history::{Commit, Content, ItemKind, Op, OpId};
use super::vector::{Vector, time_us};
use crate::limits::OPEN_SUMS_MAX;

/// An operation of a committed transaction on an item.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'r> {
    /// Its transaction, by number.
    pub transaction: usize,
    /// The id of its transaction.
    pub by: TransactionId,
    /// Its place among the operations of its transaction.
    pub index: usize,
    /// The commit of its transaction.
    pub commit: Commit,
    /// The operation itself.
    pub op: &'r Op,
    /// Its id, if it has one.
    pub id: Option<&'r OpId>,
}

impl Entry<'_> {
    fn name(&self) -> Element {
        Element { transaction: self.by, index: self.index }
    }

    /// True if it removes the other operation, if it observes it.
    fn takes(&self, other: &Self) -> bool {
        match (self.op, other.op) {
            (Op::Item(op), Op::Item(earlier)) => op.takes(earlier, &other.name()),
            (op, earlier) => takes(op, earlier),
        }
    }

    fn observes(&self, other: &Self) -> bool {
        if self.transaction == other.transaction {
            other.index < self.index
        } else {
            self.commit.snap_vec.covers(&other.commit.commit_vec)
        }
    }
}

/// An operation of a transaction that still runs, on top of its snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Own<'r> {
    /// Its transaction and its place there.
    pub name: Element,
    /// The operation itself.
    pub op: &'r Op,
    /// Its id, if it has one.
    pub id: Option<&'r OpId>,
}

/// A reader of an item, apart from the operations of others that it sees.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader<'a> {
    /// The operations of its own transaction on the item.
    pub own: &'a [Own<'a>],
    /// The time of its snapshot's entry of its own data center, in microseconds.
    pub entry_us: u64,
}

/// All operations on one item, with those that remove them.
#[derive(Clone, Debug)]
pub struct Operations<'r> {
    kind: ItemKind,
    /// In the order of versions.
    entries: Vec<Entry<'r>>,
    /// For each: the operations that remove it, none of which observes another.
    takers: Vec<Vec<usize>>,
    /// For each: true if it observes another run of its id, so that it has no effect.
    is_void: Vec<bool>,
    /// For each addition to a sum whose id has several runs that do not observe each other: those
    /// runs. They are a departure of the store, see [`Shown::open`].
    runs: Vec<Vec<usize>>,
    /// For each: the join of the commit vectors up to it.
    joined: Vec<Vector>,
    /// For each operation on an item of any type: true if it says when the item expires.
    is_fact: Vec<bool>,
}

/// The content of an item, with the parts that are not determined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The content.
    pub content: Content,
    /// The counter (`None`), or the keys of a map's counters, with undetermined sums: resets that
    /// did not see each other removed different runs of one addition, which the store may remove
    /// twice. Each such addition has its amount and the greatest number of extra removals.
    pub open: BTreeMap<Option<Value>, Vec<(i64, usize)>>,
    /// Keys of a map whose counters have nothing left, and may be shown with 0: the operation that
    /// removed an addition had seen some of its runs and not all.
    pub hollow: BTreeSet<Value>,
}

impl Shown {
    /// True if an item may be found with this content.
    pub fn allows(&self, found: &Content) -> bool {
        if self.content == *found {
            return true;
        }
        match (&self.content, found) {
            (Content::Counter(sum), Content::Counter(found)) => self.may_be(None, *sum, *found),
            (
                Content::Map { entries, counts },
                Content::Map { entries: found_entries, counts: found_counts },
            ) => entries == found_entries && self.allow_counts(counts, found_counts),
            _ => false,
        }
    }

    /// True if the counters of a map may be found with these sums.
    fn allow_counts(&self, expected: &[(Value, i128)], found: &[(Value, i128)]) -> bool {
        let expected: BTreeMap<&Value, i128> =
            expected.iter().map(|(key, sum)| (key, *sum)).collect();
        let found: BTreeMap<&Value, i128> = found.iter().map(|(key, sum)| (key, *sum)).collect();
        let keys: BTreeSet<&Value> = expected.keys().chain(found.keys()).copied().collect();
        keys.into_iter().all(|key| match (expected.get(key), found.get(key)) {
            (Some(sum), Some(found)) => self.may_be(Some(key), *sum, *found),
            (None, Some(0)) => self.hollow.contains(key),
            (None, Some(found)) => self.may_be(Some(key), 0, *found),
            (Some(sum), None) => {
                self.open.contains_key(&Some(key.clone())) && self.may_be(Some(key), *sum, 0)
            }
            (None, None) => true,
        })
    }

    /// True if a sum may be found instead of the expected one.
    fn may_be(&self, part: Option<&Value>, expected: i128, found: i128) -> bool {
        let open = self.open.get(&part.cloned()).map_or(&[][..], Vec::as_slice);
        is_less_by(expected - found, open)
    }
}

/// True if a difference is a sum of these amounts, each at most as often as its count.
fn is_less_by(difference: i128, amounts: &[(i64, usize)]) -> bool {
    let mut sums = BTreeSet::from([0]);
    for (amount, count_max) in amounts {
        let more = sums.iter().flat_map(|sum| {
            (0..=*count_max).map(move |count| sum + i128::from(*amount) * count as i128)
        });
        sums = more.take(OPEN_SUMS_MAX).collect();
    }
    sums.contains(&difference)
}

impl<'r> Operations<'r> {
    /// Creates the operations on an item.
    pub fn new(kind: ItemKind, mut entries: Vec<Entry<'r>>) -> Self {
        entries.sort_by_key(|entry| (entry.commit.version(), entry.transaction, entry.index));
        let (is_void, runs) = runs(&entries);
        let mut join = Vector::ZERO;
        let joined = entries.iter().map(|entry| {
            join.join(&entry.commit.commit_vec);
            join
        });
        let joined = joined.collect();
        let (takers, is_fact) = (takers(&entries, &is_void), facts(&entries, &is_void));
        Self { kind, entries, takers, is_void, runs, joined, is_fact }
    }

    /// Returns all of them, in the order of versions.
    pub fn entries(&self) -> &[Entry<'r>] {
        &self.entries
    }

    /// Returns the item's content at a snapshot, with the operations of a running transaction on
    /// top.
    pub fn at(&self, snapshot: &Vector, reader: &Reader<'_>) -> Shown {
        // All operations before this index are visible.
        let held = self.joined.partition_point(|joined| snapshot.covers(joined));
        let is_visible =
            |index: usize| index < held || snapshot.covers(&self.entries[index].commit.commit_vec);
        self.show(is_visible, reader)
    }

    /// Returns the item's content if these operations are visible; the set must be closed under
    /// causality.
    pub fn show(&self, is_visible: impl Fn(usize) -> bool, reader: &Reader<'_>) -> Shown {
        if self.kind == ItemKind::Item {
            let content = self.show_item(is_visible, reader);
            return Shown { content, open: BTreeMap::new(), hollow: BTreeSet::new() };
        }
        let mut ran: BTreeSet<&OpId> = BTreeSet::new();
        let mut standing: Vec<&Op> = Vec::new();
        let (mut open, mut hollow) = (BTreeMap::<_, Vec<_>>::new(), BTreeSet::new());
        for (index, entry) in self.entries.iter().enumerate() {
            if !is_visible(index) {
                continue;
            }
            if let Some(id) = entry.id {
                // Entries are in the order of versions, so the first run is the lowest.
                if !ran.insert(id) {
                    continue;
                }
            }
            let is_taken = self.takers[index].iter().any(|taker| is_visible(*taker));
            if !self.runs[index].is_empty() {
                let count = self.conflicting_resets(index, &is_visible);
                if let (true, Op::Add(amount) | Op::Increment(_, amount)) = (count > 1, entry.op) {
                    open.entry(part(entry.op)).or_default().push((*amount, count - 1));
                }
                hollow.extend(part(entry.op).filter(|_| is_taken));
            }
            if !is_taken && is_placed(entry.op) {
                standing.push(entry.op);
            }
        }
        for Own { op, id, .. } in reader.own {
            if id.is_none_or(|id| ran.insert(id)) {
                standing.retain(|other| !takes(op, other));
                if is_placed(op) {
                    standing.push(op);
                }
            }
        }
        let content = content(self.kind, &standing);
        if let Content::Map { counts, .. } = &content {
            hollow.retain(|key| counts.iter().all(|(shown, _)| shown != key));
        }
        Shown { content, open, hollow }
    }

    /// Does the same for an item of any type.
    fn show_item(&self, is_visible: impl Fn(usize) -> bool, reader: &Reader<'_>) -> Content {
        let mut ran: BTreeSet<&OpId> = BTreeSet::new();
        let mut seen: Vec<Seen<'_>> = Vec::new();
        for (index, entry) in
            self.entries.iter().enumerate().filter(|(index, _)| is_visible(*index))
        {
            if let Op::Item(op) = entry.op {
                // The lowest visible run counts; of the others, only the time matters.
                let is_repeat = entry.id.is_some_and(|id| !ran.insert(id));
                let is_taken =
                    is_repeat || self.takers[index].iter().any(|taker| is_visible(*taker));
                let time_us = time_us(entry.commit.timestamp());
                let is_fact = self.is_fact[index] && !is_repeat;
                seen.push(Seen { op, name: entry.name(), time_us, is_taken, is_fact });
            }
        }
        for Own { op, name, id } in reader.own {
            if id.is_some_and(|id| !ran.insert(id)) {
                continue;
            }
            if let Op::Item(op) = op {
                for earlier in &mut seen {
                    earlier.is_taken |= op.takes(earlier.op, &earlier.name);
                }
                let is_fact = op.clears() || matches!(op, ItemOp::Expire(_));
                let (name, time_us) = (*name, u64::MAX);
                seen.push(Seen { op, name, time_us, is_taken: false, is_fact });
            }
        }
        any::content(&seen, reader.entry_us)
    }

    /// Returns the number of different runs of an addition that visible resets saw first.
    fn conflicting_resets(&self, index: usize, is_visible: &impl Fn(usize) -> bool) -> usize {
        let entry = &self.entries[index];
        let takers = (0..self.entries.len()).filter(|taker| {
            !self.is_void[*taker] && is_visible(*taker) && self.entries[*taker].takes(entry)
        });
        let lowest: BTreeSet<usize> = takers
            .filter_map(|taker| {
                let taker = &self.entries[taker];
                self.runs[index].iter().copied().find(|run| taker.observes(&self.entries[*run]))
            })
            .collect();
        lowest.len()
    }
}

/// Marks the operations that say when an item of any type expires. Those that are void say nothing.
fn facts(entries: &[Entry<'_>], is_void: &[bool]) -> Vec<bool> {
    let mut facts: Vec<(usize, u64, Option<u64>)> = Vec::new();
    let mut is_fact = vec![false; entries.len()];
    for (index, entry) in entries.iter().enumerate() {
        let Op::Item(op) = entry.op else { continue };
        is_fact[index] = if is_void[index] {
            false
        } else if op.clears() && entry.id.is_some() {
            true
        } else if op.clears() {
            // Of several runs of an operation, its transaction sees the lowest.
            let mut ran: BTreeSet<&OpId> = BTreeSet::new();
            let seen = facts.iter().filter(|(other, ..)| {
                let other = &entries[*other];
                other.transaction != entry.transaction
                    && entry.observes(other)
                    && other.id.is_none_or(|id| ran.insert(id))
            });
            let seen: Vec<_> =
                seen.map(|(_, time_us, deadline_us)| (*time_us, *deadline_us)).collect();
            any::has_deadline(&seen, time_us(entry.commit.snap_vec.highest()))
        } else {
            let rest = entries[index + 1..].iter();
            let mut rest = rest.take_while(|later| later.transaction == entry.transaction);
            let is_cleared = |later: &Entry<'_>| matches!(later.op, Op::Item(op) if op.clears());
            matches!(op, ItemOp::Expire(_)) && !rest.any(is_cleared)
        };
        if is_fact[index] {
            facts.push((index, time_us(entry.commit.timestamp()), op.deadline_us()));
        }
    }
    is_fact
}

/// Marks the operations that observe another run of their id; for additions to a sum, also returns
/// the runs of their ids that do not, if there are several.
fn runs(entries: &[Entry<'_>]) -> (Vec<bool>, Vec<Vec<usize>>) {
    let mut of_id: HashMap<&OpId, Vec<usize>> = HashMap::new();
    let mut is_void = vec![false; entries.len()];
    for (index, entry) in entries.iter().enumerate() {
        if let Some(id) = entry.id {
            let runs = of_id.entry(id).or_default();
            is_void[index] = runs.iter().any(|run| entry.observes(&entries[*run]));
            if !is_void[index] {
                runs.push(index);
            }
        }
    }
    let several = entries.iter().map(|entry| {
        let is_addition = matches!(entry.op, Op::Add(_) | Op::Increment(..));
        let runs = entry.id.filter(|_| is_addition).and_then(|id| of_id.get(id));
        runs.filter(|runs| runs.len() > 1).cloned().unwrap_or_default()
    });
    let several = several.collect();
    (is_void, several)
}

/// Returns for each operation those that remove it.
///
/// An operation that observes another of them is left out: where it is visible, the other is too.
fn takers(entries: &[Entry<'_>], is_void: &[bool]) -> Vec<Vec<usize>> {
    // The past shared by all operations from here on. The search for takers ends where it holds one
    // of them.
    let mut seen_by_all = vec![Vector::ZERO; entries.len() + 1];
    for (index, entry) in entries.iter().enumerate().rev() {
        let snap_vec = &entry.commit.snap_vec;
        seen_by_all[index] = if index + 1 == entries.len() {
            *snap_vec
        } else {
            snap_vec.meet(&seen_by_all[index + 1])
        };
    }
    let mut other_runs: HashMap<&OpId, Vec<usize>> = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        if let Some(id) = entry.id {
            other_runs.entry(id).or_default().push(index);
        }
    }
    let can_take = |index: &usize| !is_void[*index] && is_taker(entries[*index].op);
    let candidates: Vec<usize> = (0..entries.len()).filter(can_take).collect();
    let of_one = |(index, entry): (usize, &Entry<'_>)| {
        let own = [index];
        let runs = entry.id.and_then(|id| other_runs.get(id)).map_or(&own[..], Vec::as_slice);
        let mut takers: Vec<usize> = Vec::new();
        let first = candidates.partition_point(|candidate| *candidate <= runs[0]);
        for later in candidates[first..].iter().copied() {
            let taker = &entries[later];
            if takers
                .iter()
                .any(|known| seen_by_all[later].covers(&entries[*known].commit.commit_vec))
            {
                break;
            }
            // It may name another run of an element's push than the lowest.
            if runs.iter().any(|run| taker.takes(&entries[*run]))
                && runs.iter().any(|run| taker.observes(&entries[*run]))
                && !takers.iter().any(|known| taker.observes(&entries[*known]))
            {
                takers.push(later);
            }
        }
        takers
    };
    entries.iter().enumerate().map(of_one).collect()
}

/// True if it removes any operation.
fn is_taker(op: &Op) -> bool {
    if let Op::Item(op) = op {
        return op.is_taker();
    }
    !matches!(op, Op::Add(_) | Op::Insert(_) | Op::Increment(..) | Op::Append(_))
}

/// True if `op`, which observes `other`, removes it.
fn takes(op: &Op, other: &Op) -> bool {
    match (op, other) {
        (Op::Write(_) | Op::Erase, Op::Write(_))
        | (Op::Reset, Op::Add(_))
        | (Op::Clear, Op::Insert(_) | Op::Append(_))
        | (Op::Empty, Op::Put(..) | Op::Increment(..)) => true,
        (Op::Remove(value), Op::Insert(other)) => value == other,
        (Op::Put(key, _), Op::Put(other, _))
        | (Op::Delete(key), Op::Put(other, _) | Op::Increment(other, _)) => key == other,
        _ => false,
    }
}

/// True if it adds a value that stands.
fn is_placed(op: &Op) -> bool {
    matches!(
        op,
        Op::Write(_) | Op::Add(_) | Op::Insert(_) | Op::Put(..) | Op::Increment(..) | Op::Append(_)
    )
}

/// Returns the sum that an addition belongs to: none for the item's, the key for a map's.
fn part(op: &Op) -> Option<Value> {
    match op {
        Op::Increment(key, _) => Some(key.clone()),
        _ => None,
    }
}

/// Returns the value of the standing operations, which are in the order of versions.
fn content(kind: ItemKind, standing: &[&Op]) -> Content {
    let values = standing.iter().filter_map(|op| match op {
        Op::Write(value) | Op::Insert(value) | Op::Append(value) => Some(value.clone()),
        _ => None,
    });
    match kind {
        ItemKind::Register => Content::Register(values.collect()),
        ItemKind::Log => Content::Log(values.collect()),
        ItemKind::Set => {
            let distinct: BTreeSet<Value> = values.collect();
            Content::Set(distinct.into_iter().collect())
        }
        ItemKind::Counter => Content::Counter(
            standing
                .iter()
                .map(|op| if let Op::Add(amount) = op { i128::from(*amount) } else { 0 })
                .sum(),
        ),
        // See `Operations::show_item`.
        ItemKind::Item => Content::Item { body: None, deadline_us: None },
        ItemKind::Map => {
            let (mut entries, mut counts) = (BTreeMap::new(), BTreeMap::<Value, i128>::new());
            for op in standing {
                match op {
                    Op::Put(key, value) => {
                        entries.insert(key.clone(), value.clone());
                    }
                    Op::Increment(key, amount) => {
                        *counts.entry(key.clone()).or_default() += i128::from(*amount);
                    }
                    _ => {}
                }
            }
            let (entries, counts) = (entries.into_iter().collect(), counts.into_iter().collect());
            Content::Map { entries, counts }
        }
    }
}
