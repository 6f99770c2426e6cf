//! Facts that a runtime has learned of its stores and that stay true.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use mingle_lang::Program;
use mingle_model::{Name, Origin, Ref, Stamp, TransactionId, WitnessRow};

use crate::api::settings::VISIBLE_MAX;
use crate::protocol::intent::ProgramHash;

/// Facts that stay true once learned.
#[derive(Default)]
pub(crate) struct VisibilityCache {
    /// Commit witnesses, or floors above them, that were visible at a replica of a store, each with
    /// its number in the order of learning.
    visible: HashMap<(usize, Option<Name>, TransactionId), u64>,
    /// The number of commit witnesses ever learned.
    visible_count: u64,
    /// Floors that were seen at a replica of a store: every witness below was there before.
    floors: HashMap<(usize, Option<Name>, Origin), u64>,
    /// The stamp that some replica of a store had seen when it had a transaction's effects there.
    seen_with: HashMap<(usize, TransactionId), Stamp>,
    /// The stamp that every replica of a store has seen, and the time of that question.
    everywhere: BTreeMap<usize, (Stamp, Duration)>,
    /// The time from which phases at a store may read ahead again.
    prefetches_from: BTreeMap<usize, Duration>,
    /// Programs that helpers needed.
    programs: HashMap<ProgramHash, Arc<Program>>,
    /// Stores that keep the text of a program.
    kept: HashSet<(usize, ProgramHash)>,
    /// Transactions that this runtime is finishing for others.
    helping: HashSet<TransactionId>,
    /// Witness rows of this runtime's own transactions that are not cleaned up, by store and
    /// object. The store need not report them to transactions of this runtime that overwrite the
    /// object.
    rows: HashMap<(usize, Option<Ref>), Vec<WitnessRow>>,
    rows_of: BTreeMap<TransactionId, Vec<(usize, Option<Ref>)>>,
    /// The number of these rows, by store.
    rows_at: BTreeMap<usize, usize>,
}

impl VisibilityCache {
    /// Creates the facts of a runtime that has this program.
    pub(crate) fn of(hash: ProgramHash, program: Arc<Program>) -> Self {
        Self { programs: HashMap::from([(hash, program)]), ..Self::default() }
    }

    pub(crate) fn is_visible(
        &self,
        store: usize,
        replica: Option<&Name>,
        id: TransactionId,
    ) -> bool {
        self.is_below_floor(store, replica, id)
            || self.visible.contains_key(&(store, replica.cloned(), id))
    }

    /// True if the floor of a transaction's origin at a replica is known to have passed it: that
    /// replica has this transaction, and all earlier ones of the origin.
    pub(crate) fn is_below_floor(
        &self,
        store: usize,
        replica: Option<&Name>,
        id: TransactionId,
    ) -> bool {
        let floor = self.floors.get(&(store, replica.cloned(), id.origin));
        floor.is_some_and(|floor| id.sequence <= *floor)
    }

    /// Takes note of a floor at a replica of a store.
    pub(crate) fn note_floor(
        &mut self,
        store: usize,
        replica: Option<&Name>,
        origin: Origin,
        floor: u64,
    ) {
        if self.floors.len() >= VISIBLE_MAX {
            self.floors.clear();
        }
        let known = self.floors.entry((store, replica.cloned(), origin)).or_default();
        *known = floor.max(*known);
    }

    /// Returns the stamp of some replica of a store that has a transaction's effects there.
    pub(crate) fn seen_with(&self, store: usize, id: TransactionId) -> Option<&Stamp> {
        self.seen_with.get(&(store, id))
    }

    /// Takes note that a replica with this stamp has a transaction's effects. The first stamp of
    /// several counts: it demands the least.
    pub(crate) fn note_seen_with(&mut self, store: usize, id: TransactionId, seen: &Stamp) {
        if self.seen_with.len() >= VISIBLE_MAX {
            self.seen_with.clear();
        }
        self.seen_with.entry((store, id)).or_insert_with(|| seen.clone());
    }

    /// True if the witness was among the first `count` witnesses learned.
    pub(crate) fn was_visible(
        &self,
        store: usize,
        replica: Option<&Name>,
        id: TransactionId,
        count: u64,
    ) -> bool {
        let learned = self.visible.get(&(store, replica.cloned(), id));
        learned.is_some_and(|learned| *learned < count)
    }

    /// Returns the number of commit witnesses ever seen.
    pub(crate) fn visible_count(&self) -> u64 {
        self.visible_count
    }

    pub(crate) fn note_visible(&mut self, store: usize, replica: Option<&Name>, id: TransactionId) {
        if self.visible.len() >= VISIBLE_MAX {
            self.visible.clear();
        }
        let place = (store, replica.cloned(), id);
        if let Entry::Vacant(vacant) = self.visible.entry(place) {
            vacant.insert(self.visible_count);
            self.visible_count += 1;
        }
    }

    /// Returns the stamp that every replica of a store was known to have seen.
    pub(crate) fn everywhere(&self, store: usize) -> Option<&(Stamp, Duration)> {
        self.everywhere.get(&store)
    }

    pub(crate) fn note_everywhere(&mut self, store: usize, stamp: Stamp, at: Duration) {
        // Answers may arrive in another order than the questions.
        let (known, asked) = self.everywhere.entry(store).or_default();
        known.join(&stamp);
        *asked = at.max(*asked);
    }

    /// Returns the time from which phases at a store may read ahead.
    pub(crate) fn prefetches_from(&self, store: usize) -> Duration {
        self.prefetches_from.get(&store).copied().unwrap_or_default()
    }

    pub(crate) fn note_prefetches_from(&mut self, store: usize, from: Duration) {
        let known = self.prefetches_from.entry(store).or_default();
        *known = from.max(*known);
    }

    /// Takes note that a transaction of this runtime has left a row at a store.
    pub(crate) fn note_row(&mut self, store: usize, row: &WitnessRow) {
        let place = (store, row.object.clone());
        *self.rows_at.entry(store).or_default() += 1;
        self.rows_of.entry(row.id).or_default().push(place.clone());
        self.rows.entry(place).or_default().push(row.clone());
    }

    /// Returns the rows that transactions of this runtime have left on an object.
    pub(crate) fn rows_on(&self, store: usize, object: Option<&Ref>) -> &[WitnessRow] {
        let place = (store, object.cloned());
        self.rows.get(&place).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the number of rows that transactions of this runtime have left and that are not removed, by
    /// store.
    pub(crate) fn rows_at(&self) -> &BTreeMap<usize, usize> {
        &self.rows_at
    }

    /// Drops the rows of these transactions, for which no other has to wait.
    pub(crate) fn drop_rows(&mut self, over: impl IntoIterator<Item = TransactionId>) {
        for id in over {
            for place in self.rows_of.remove(&id).unwrap_or_default() {
                if let Some(count) = self.rows_at.get_mut(&place.0) {
                    *count = count.saturating_sub(1);
                }
                if let Some(rows) = self.rows.get_mut(&place) {
                    rows.retain(|row| row.id != id);
                    if rows.is_empty() {
                        self.rows.remove(&place);
                    }
                }
            }
        }
    }

    /// Drops the rows of an origin, which other processes remove.
    pub(crate) fn drop_rows_of(&mut self, origin: Origin) {
        let id = |sequence| TransactionId { origin, sequence };
        let over: Vec<TransactionId> =
            self.rows_of.range(id(0)..=id(u64::MAX)).map(|(id, _)| *id).collect();
        self.drop_rows(over);
    }

    pub(crate) fn program(&self, hash: ProgramHash) -> Option<Arc<Program>> {
        self.programs.get(&hash).cloned()
    }

    pub(crate) fn note_program(&mut self, hash: ProgramHash, program: Arc<Program>) {
        self.programs.insert(hash, program);
    }

    pub(crate) fn is_kept(&self, store: usize, hash: ProgramHash) -> bool {
        self.kept.contains(&(store, hash))
    }

    pub(crate) fn note_kept(&mut self, store: usize, hash: ProgramHash) {
        self.kept.insert((store, hash));
    }

    /// Begins to help; false if this runtime is doing that already.
    pub(crate) fn begin_help(&mut self, id: TransactionId) -> bool {
        self.helping.insert(id)
    }

    pub(crate) fn end_help(&mut self, id: TransactionId) {
        self.helping.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_later_was_not_known_before() {
        let mut known = VisibilityCache::default();
        let id = |sequence| TransactionId { origin: Origin(1), sequence };
        known.note_visible(0, None, id(1));
        let count = known.visible_count();
        known.note_visible(0, None, id(2));
        known.note_visible(0, None, id(1));
        assert!(known.was_visible(0, None, id(1), count), "it was known before");
        assert!(!known.was_visible(0, None, id(2), count));
        assert!(known.is_visible(0, None, id(2)));
        assert!(!known.was_visible(1, None, id(1), count), "at another store");
        assert!(!known.was_visible(0, Some(&"r1".into()), id(1), count), "at another replica");
    }

    #[test]
    fn a_program_is_kept_where_that_was_noted_and_helped_are_those_that_are_helped() {
        let mut known = VisibilityCache::default();
        let (one, other) = (ProgramHash([1; 32]), ProgramHash([2; 32]));
        known.note_kept(3, one);
        assert!(known.is_kept(3, one));
        assert!(!known.is_kept(3, other) && !known.is_kept(4, one));
        let id = TransactionId { origin: Origin(1), sequence: 1 };
        assert!(known.begin_help(id), "it is not being helped");
        assert!(!known.begin_help(id), "it is");
        known.end_help(id);
        assert!(known.begin_help(id), "it is not any more");
    }

    #[test]
    fn rows_are_counted_by_store_until_they_are_dropped() {
        let mut known = VisibilityCache::default();
        let row = |sequence| WitnessRow {
            object: None,
            id: TransactionId { origin: Origin(1), sequence },
            kind: mingle_model::RowKind::Write,
            intent: "bank".into(),
            stores: vec!["feed".into()],
            seen: Vec::new(),
        };
        for (store, sequence) in [(0, 1), (2, 1), (2, 2)] {
            known.note_row(store, &row(sequence));
        }
        assert_eq!(*known.rows_at(), BTreeMap::from([(0, 1), (2, 2)]));
        known.drop_rows([row(1).id, row(7).id]);
        assert_eq!(*known.rows_at(), BTreeMap::from([(0, 0), (2, 1)]));
        assert_eq!(known.rows_on(2, None), [row(2)]);
    }

    #[test]
    fn an_answer_that_comes_late_takes_nothing_back() {
        let mut known = VisibilityCache::default();
        let stamp = |count| Stamp::from_iter([("r1".into(), count)]);
        let (early, late) = (Duration::from_secs(1), Duration::from_secs(2));
        known.note_everywhere(0, stamp(5), late);
        known.note_everywhere(0, stamp(3), early);
        assert_eq!(known.everywhere(0), Some(&(stamp(5), late)));
        known.note_prefetches_from(0, late);
        known.note_prefetches_from(0, early);
        assert_eq!(known.prefetches_from(0), late);
    }
}
