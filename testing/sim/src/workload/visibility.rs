//! P4 and P6 as one check: the transactions visible to a reader of another transaction.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::calls::Store;
use super::history::{End, History};
use super::promises::{Broken, broken};

/// P4 and P6: a reader of a transaction sees, at every store that it visits from then on, the
/// writes of that transaction there and everything that its session had seen before.
pub(super) fn seen_from_then_on(history: &History) -> Result<(), Broken> {
    let by_tag = history.by_tag();
    let mut pasts = Pasts::new(history, &by_tag);
    for index in 0..history.operations.len() {
        let operation = &history.operations[index];
        let mut known = pasts.before(index);
        let mut direct = pasts.direct(index);
        let End::Done { seen, .. } = &operation.end else { continue };
        for (object, entries) in seen {
            let is_there: HashSet<&str> = entries.iter().map(String::as_str).collect();
            // P4 is a promise of stores that commit atomically.
            if history.is_torn && object.store() == Store::Feed {
                continue;
            }
            let is_eventual = history.eventual.contains(&object.store());
            let expected = if is_eventual { &direct } else { &known };
            for tag in expected {
                let writer = &history.operations[*tag];
                let text = writer.call.tag_text();
                if writer.call.writes().contains(object) && !is_there.contains(text.as_str()) {
                    let how = format!(
                        "{:?} {} of client {} at {:?} read {object:?} without {text} ({:?}): {}",
                        operation.call.kind,
                        operation.call.tag,
                        operation.client,
                        operation.began,
                        writer.call.kind,
                        pasts.why(index, *tag, operation.call.visits().len())
                    );
                    return Err(broken("P4 and P6 visibility", how));
                }
            }
            for entry in entries {
                if let Some(tag) = by_tag.get(entry).filter(|tag| **tag != index) {
                    known.extend(pasts.of(*tag, object.store()));
                    known.insert(*tag);
                    if object.store() != Store::Feed {
                        direct.insert(*tag);
                    }
                }
            }
        }
    }
    Ok(())
}

/// The transactions known before operations, and those in the past of their writes.
pub(super) struct Pasts<'a> {
    history: &'a History,
    by_tag: &'a HashMap<String, usize>,
    before: HashMap<usize, BTreeSet<usize>>,
    of: HashMap<(usize, Store), BTreeSet<usize>>,
}

impl<'a> Pasts<'a> {
    /// Creates the pasts of a history whose writers are these.
    pub(super) fn new(history: &'a History, by_tag: &'a HashMap<String, usize>) -> Self {
        Self { history, by_tag, before: HashMap::new(), of: HashMap::new() }
    }

    /// Returns the transactions that the session knew before an operation.
    pub(super) fn before(&mut self, index: usize) -> BTreeSet<usize> {
        if let Some(known) = self.before.get(&index) {
            return known.clone();
        }
        let mut known = BTreeSet::new();
        for earlier in self.history.operations[index].after.clone() {
            known.extend(self.before(earlier));
            known.extend(self.learned(earlier));
        }
        self.before.insert(index, known.clone());
        known
    }

    /// Returns the multi-store transactions that the session itself has seen, written or
    /// overwritten at a store other than the feed, or that are its own. Only these count at an
    /// eventual store.
    fn direct(&mut self, index: usize) -> BTreeSet<usize> {
        let mut direct = BTreeSet::new();
        let mut left = self.history.operations[index].after.clone();
        let mut visited = BTreeSet::new();
        while let Some(earlier) = left.pop() {
            if !visited.insert(earlier) {
                continue;
            }
            let operation = &self.history.operations[earlier];
            left.extend(&operation.after);
            let End::Done { seen, .. } = &operation.end else { continue };
            for (_, entries) in seen.iter().filter(|(object, _)| object.store() != Store::Feed) {
                let tags = entries.iter().filter_map(|entry| self.by_tag.get(entry)).copied();
                direct.extend(tags.filter(|tag| *tag != earlier));
            }
            direct.extend(self.overwritten(earlier));
            direct.insert(earlier);
        }
        direct.retain(|tag| self.history.operations[*tag].call.writes().len() > 1);
        direct
    }

    /// Returns the transactions that a session learned by an operation.
    fn learned(&mut self, index: usize) -> BTreeSet<usize> {
        let operation = &self.history.operations[index];
        let mut known = BTreeSet::new();
        let End::Done { seen, .. } = &operation.end else { return known };
        for (object, entries) in seen {
            for entry in entries {
                if let Some(tag) = self.by_tag.get(entry).copied().filter(|tag| *tag != index) {
                    known.extend(self.of(tag, object.store()));
                    known.insert(tag);
                }
            }
        }
        if !operation.call.writes().is_empty() {
            known.insert(index);
            known.extend(self.overwritten(index));
        }
        known
    }

    /// Returns the transactions that this one has overwritten at a strong store, where there is an
    /// order.
    fn overwritten(&self, index: usize) -> BTreeSet<usize> {
        let operation = &self.history.operations[index];
        let tag = operation.call.tag_text();
        let mut found = BTreeSet::new();
        let End::Done { visits, .. } = &operation.end else { return found };
        let visits = operation.call.visits().into_iter().take(*visits);
        let written = visits.flat_map(|visit| visit.writes);
        for object in written.filter(|object| !object.store().is_causal()) {
            let log = self.history.log(object);
            let before = log.iter().take_while(|entry| **entry != tag);
            found.extend(before.filter_map(|entry| self.by_tag.get(entry)).copied());
        }
        found
    }

    /// Describes the steps by which an operation learned of a transaction, newest first; only the
    /// first `reads` of its own reads count.
    fn why(&mut self, index: usize, target: usize, reads: usize) -> String {
        let operation = &self.history.operations[index];
        let name = format!("{:?} {}", operation.call.kind, operation.call.tag);
        if let End::Done { seen, .. } = &operation.end {
            for (object, entries) in seen.iter().take(reads) {
                for entry in entries {
                    let Some(tag) = self.by_tag.get(entry).copied().filter(|tag| *tag != index)
                    else {
                        continue;
                    };
                    if tag == target {
                        return format!("{name} read {entry} in {object:?}");
                    }
                    if self.of(tag, object.store()).contains(&target) {
                        let writer = &self.history.operations[tag];
                        let visits = writer.call.visits();
                        let reads = visits.iter().take_while(|v| v.store <= object.store()).count();
                        let rest = self.why(tag, target, reads);
                        return format!("{name} read {entry} in {object:?}, {rest}");
                    }
                }
            }
        }
        for earlier in operation.after.clone().into_iter().rev() {
            if earlier == target {
                return format!("{name} came after it");
            }
            if self.overwritten(earlier).contains(&target)
                && self.learned(earlier).contains(&target)
            {
                let earlier = &self.history.operations[earlier].call;
                return format!(
                    "{name} came after {:?} {}, which overwrote it",
                    earlier.kind, earlier.tag
                );
            }
            if self.learned(earlier).contains(&target) || self.before(earlier).contains(&target) {
                let visits = self.history.operations[earlier].call.visits().len();
                return format!("{name} came after {}", self.why(earlier, target, visits));
            }
        }
        format!("{name} knew it")
    }

    /// Returns the transactions that the session had seen when a transaction wrote at a store.
    pub(super) fn of(&mut self, index: usize, store: Store) -> BTreeSet<usize> {
        if let Some(known) = self.of.get(&(index, store)) {
            return known.clone();
        }
        let mut known = self.before(index);
        let operation = &self.history.operations[index];
        if let End::Done { seen, .. } = &operation.end {
            for (object, entries) in seen.iter().filter(|(object, _)| object.store() <= store) {
                for entry in entries {
                    if let Some(tag) = self.by_tag.get(entry).copied().filter(|tag| *tag != index) {
                        known.extend(self.of(tag, object.store()));
                        known.insert(tag);
                    }
                }
            }
        }
        self.of.insert((index, store), known.clone());
        known
    }
}
