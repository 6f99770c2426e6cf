//! The meaning of the data types, said once more: from the operations that a snapshot holds.
//!
//! Nothing is applied in any order, and there is no state. Of the operations on an item that are
//! visible, some *stand*, and the value is what stands:
//!
//! - An operation *observes* another if its transaction's snapshot held it, or if it comes later in
//!   the same transaction.
//! - It stands unless a visible operation that takes it away observes it: a write takes away earlier
//!   writes, a removal insertions of its value, a reset additions, and so on.
//! - Of operations with one id, those that observe another run of it do nothing. The others are runs
//!   of one operation, which stands where its lowest visible version does; who observes one of the
//!   runs observes the operation.
//!
//! What is visible is closed under causality, so what an operation observes does not depend on who
//! looks. It is found once for each item.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mingle_model::Value;

use super::history::{Commit, Content, ItemKind, Op, OpId};
use super::vector::Vector;
use crate::limits::OPEN_SUMS_MAX;

/// An operation of a committed transaction on an item.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'r> {
    /// Its transaction, by number.
    pub transaction: usize,
    /// Its place among the operations of its transaction.
    pub index: usize,
    /// The commit of its transaction.
    pub commit: Commit,
    /// What it does.
    pub op: &'r Op,
    /// Its name, if it has one.
    pub id: Option<&'r OpId>,
}

impl Entry<'_> {
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
    /// What it does.
    pub op: &'r Op,
    /// Its name, if it has one.
    pub id: Option<&'r OpId>,
}

/// All operations on one item, with what takes them away.
#[derive(Clone, Debug)]
pub struct Operations<'r> {
    kind: ItemKind,
    /// In the order of versions.
    entries: Vec<Entry<'r>>,
    /// Of each: the operations that take it away, none of which observes another.
    takers: Vec<Vec<usize>>,
    /// Of each: whether it observes another run of its id, so that it does nothing.
    is_void: Vec<bool>,
    /// Of each that adds to a sum, under an id with several runs that do not observe each other:
    /// those runs. They are a departure of the store, see [`Shown::open`].
    runs: Vec<Vec<usize>>,
    /// Of each: the join of the commit vectors up to it.
    joined: Vec<Vector>,
}

/// What an item shows, and what of it cannot be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What it holds.
    pub content: Content,
    /// The counter, or the keys of a map's counters, whose sums are open: resets that did not see
    /// each other took away different runs of one addition, which the store may take away twice. With
    /// each such addition, and how often at most it may be taken away more than once.
    pub open: BTreeMap<Option<Value>, Vec<(i64, usize)>>,
    /// Keys of a map whose counters have nothing left, and may be shown with 0: an addition was taken
    /// away by who had seen some of its runs and not all.
    pub hollow: BTreeSet<Value>,
}

impl Shown {
    /// Whether an item may be found to hold this.
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

    /// The same of the counters of a map.
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

    /// Whether a sum may be found instead of the one that is expected.
    fn may_be(&self, part: Option<&Value>, expected: i128, found: i128) -> bool {
        let open = self.open.get(&part.cloned()).map_or(&[][..], Vec::as_slice);
        is_less_by(expected - found, open)
    }
}

/// Whether a difference is made of these amounts, each at most so often.
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
    /// The operations on an item.
    pub fn new(kind: ItemKind, mut entries: Vec<Entry<'r>>) -> Self {
        entries.sort_by_key(|entry| (entry.commit.version(), entry.transaction, entry.index));
        let (is_void, runs) = runs(&entries);
        let mut join = Vector::ZERO;
        let joined = entries.iter().map(|entry| {
            join.join(&entry.commit.commit_vec);
            join
        });
        let joined = joined.collect();
        let takers = takers(&entries, &is_void);
        Self { kind, entries, takers, is_void, runs, joined }
    }

    /// All of them, in the order of versions.
    pub fn entries(&self) -> &[Entry<'r>] {
        &self.entries
    }

    /// What the item shows at a snapshot, with the operations of a running transaction on top.
    pub fn at(&self, snapshot: &Vector, own: &[Own<'_>]) -> Shown {
        // All before this are visible, whoever they are of.
        let held = self.joined.partition_point(|joined| snapshot.covers(joined));
        let is_visible =
            |index: usize| index < held || snapshot.covers(&self.entries[index].commit.commit_vec);
        self.show(is_visible, own)
    }

    /// What the item shows where these operations are visible, which must be closed under
    /// causality.
    pub fn show(&self, is_visible: impl Fn(usize) -> bool, own: &[Own<'_>]) -> Shown {
        let mut ran: BTreeSet<&OpId> = BTreeSet::new();
        let mut standing: Vec<&Op> = Vec::new();
        let (mut open, mut hollow) = (BTreeMap::<_, Vec<_>>::new(), BTreeSet::new());
        for (index, entry) in self.entries.iter().enumerate() {
            if !is_visible(index) {
                continue;
            }
            if let Some(id) = entry.id {
                // In the order of versions, so the first is the lowest.
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
        for Own { op, id } in own {
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

    /// How many different runs of an addition the resets that are visible saw first.
    fn conflicting_resets(&self, index: usize, is_visible: &impl Fn(usize) -> bool) -> usize {
        let entry = &self.entries[index];
        let takers = (0..self.entries.len()).filter(|taker| {
            !self.is_void[*taker] && is_visible(*taker) && takes(self.entries[*taker].op, entry.op)
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

/// Which operations observe another run of their id; and of those that add to a sum, the runs of
/// their ids that do not, if they are several.
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

/// Of each operation, those that take it away.
///
/// One that observes another of them is left out, since where it is visible so is the other.
fn takers(entries: &[Entry<'_>], is_void: &[bool]) -> Vec<Vec<usize>> {
    // What all from here on had seen. The search for takers ends where that holds one of them.
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
            if takes(taker.op, entry.op)
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

/// Whether it takes anything away.
fn is_taker(op: &Op) -> bool {
    !matches!(op, Op::Add(_) | Op::Insert(_) | Op::Increment(..) | Op::Append(_))
}

/// Whether `op`, which observes `other`, takes it away.
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

/// Whether it adds something that stands.
fn is_placed(op: &Op) -> bool {
    matches!(
        op,
        Op::Write(_) | Op::Add(_) | Op::Insert(_) | Op::Put(..) | Op::Increment(..) | Op::Append(_)
    )
}

/// Which sum an addition counts in: the item's, or that of a map's key.
fn part(op: &Op) -> Option<Value> {
    match op {
        Op::Increment(key, _) => Some(key.clone()),
        _ => None,
    }
}

/// The value of what stands, which is in the order of versions.
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
