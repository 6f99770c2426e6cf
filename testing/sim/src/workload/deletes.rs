//! Objects that are deleted: their lines are no log of their writers.
//!
//! A pad is at a strong store. Its writers and deleters also leave their tags in the shelf of the
//! same number, in the same commit, so the shelf tells the only right content of the pad after each
//! of them. With that, each read of a pad becomes a read of a log that nothing was deleted from, and
//! all checks of logs judge it.
//!
//! A sheet is at a causal store, where replicas delete and write at the same time: a deletion
//! removes the lines that its replica has. [`sheets`] judges them one by one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::calls::{Kind, OBJECTS, Object, Store};
use super::history::{End, History, Operation};
use super::promises::{Broken, broken};
use super::visibility::Pasts;

const PROMISE: &str = "P1 deletes";

/// Replaces the contents of pads by the logs of all their writers, in the final contents and in the
/// reads. Returns the number of final pads that have lost lines by a deletion.
///
/// # Errors
///
/// A content that no order of writers and deleters explains.
pub fn unroll(history: &mut History) -> Result<(), Broken> {
    let by_tag = history.by_tag();
    for number in 0..OBJECTS {
        let pad = Object::Pad(number);
        let log = Log::new(history, &by_tag, number);
        for replica in history.finals.get_mut(&pad).into_iter().flatten() {
            let expected = &log.tags[log.begin(log.tags.len())..];
            if replica.entries != expected {
                let how = format!("{pad:?} has {:?}, not {expected:?}", replica.entries);
                return Err(broken(PROMISE, how));
            }
            replica.entries.clone_from(&log.tags);
        }
        for operation in &mut history.operations {
            let call = &operation.call;
            let End::Done { seen, .. } = &mut operation.end else { continue };
            for (_, entries) in seen.iter_mut().filter(|(object, _)| *object == pad) {
                let Some(all) = log.up_to(entries) else {
                    let how = format!(
                        "{:?} {} read {entries:?} in {pad:?}, which was never so: {log:?}",
                        call.kind, call.tag
                    );
                    return Err(broken(PROMISE, how));
                };
                *entries = all;
            }
        }
    }
    Ok(())
}

/// The writers and deleters of a pad, in order.
#[derive(Debug)]
struct Log {
    tags: Vec<String>,
    /// The places of the deleters.
    deleters: BTreeSet<usize>,
}

impl Log {
    fn new(history: &History, by_tag: &HashMap<String, usize>, number: u8) -> Self {
        let kind = |tag: &String| Some(history.operations[*by_tag.get(tag)?].call.kind);
        let log = history.log(Object::Shelf(number)).iter();
        let tags: Vec<String> =
            log.filter(|tag| matches!(kind(tag), Some(Kind::Jot | Kind::Scrap))).cloned().collect();
        let is_deleter = |at: &usize| kind(&tags[*at]) == Some(Kind::Scrap);
        let deleters = (0..tags.len()).filter(is_deleter).collect();
        Self { tags, deleters }
    }

    /// Returns the place of the first line that is left after the first `count` of them.
    fn begin(&self, count: usize) -> usize {
        self.deleters.range(..count).next_back().copied().unwrap_or(0)
    }

    /// Returns all tags up to the time at which the pad had this content, if it ever had it.
    fn up_to(&self, entries: &[String]) -> Option<Vec<String>> {
        let count = match entries.last() {
            Some(last) => 1 + self.tags.iter().position(|tag| tag == last)?,
            None => 0,
        };
        (self.tags[self.begin(count)..count] == *entries).then(|| self.tags[..count].to_vec())
    }
}

/// The calls that wrote or deleted a sheet and took effect.
struct Sheet<'a> {
    history: &'a History,
    object: Object,
    /// The indices of the writers, by tag.
    writers: BTreeMap<String, usize>,
    /// The indices of the deleters.
    deleters: Vec<usize>,
}

impl<'a> Sheet<'a> {
    fn new(history: &'a History, number: u8) -> Self {
        let (mut writers, mut deleters) = (BTreeMap::new(), Vec::new());
        for (index, operation) in history.operations.iter().enumerate() {
            let call = &operation.call;
            let tag = call.tag_text();
            let account = Object::Account(call.account);
            if call.board != number || !history.log(account).contains(&tag) {
                continue;
            }
            match call.kind {
                Kind::Scribble => {
                    writers.insert(tag, index);
                }
                Kind::Wipe => deleters.push(index),
                _ => {}
            }
        }
        Self { history, object: Object::Sheet(number), writers, deleters }
    }

    /// Returns the lines that an operation has read in the sheet.
    fn read(&self, index: usize) -> Option<&'a [String]> {
        let End::Done { seen, .. } = &self.history.operations[index].end else { return None };
        seen.iter().find(|(object, _)| *object == self.object).map(|(_, lines)| &**lines)
    }

    /// True if a deletion may have removed the line of a writer: the writer did not know of it.
    fn may_be_gone(&self, pasts: &mut Pasts<'_>, writer: usize) -> bool {
        let known = pasts.before(writer);
        self.deleters.iter().any(|deleter| !known.contains(deleter))
    }

    /// Checks the final lines: a deletion has removed all lines that it read, and every other line
    /// is there, unless a deletion that its writer did not know of has removed it.
    fn check_final(&self, pasts: &mut Pasts<'_>) -> Result<(), Broken> {
        let lines = self.history.log(self.object);
        for deleter in &self.deleters {
            let gone = self.read(*deleter).unwrap_or_default();
            if let Some(line) = lines.iter().find(|line| gone.contains(line)) {
                let how = format!("has {line}, which {} read and deleted", self.name(*deleter));
                return Err(self.broken(&how));
            }
        }
        for line in lines {
            if !self.writers.contains_key(line) {
                return Err(self.broken(&format!("has {line}, which took no effect")));
            }
            if lines.iter().filter(|other| *other == line).count() > 1 {
                return Err(self.broken(&format!("has {line} more than once")));
            }
        }
        for (line, writer) in &self.writers {
            if !lines.contains(line) && !self.may_be_gone(pasts, *writer) {
                return Err(self.broken(&format!("lacks {line}, which nothing has deleted")));
            }
        }
        Ok(())
    }

    /// Checks a read: it shows the lines of the writers that its reader knew, and none that a
    /// deletion has removed which the reader knew.
    fn check_read(&self, pasts: &mut Pasts<'_>, reader: usize) -> Result<(), Broken> {
        let Some(lines) = self.read(reader) else { return Ok(()) };
        let by_tag = self.history.by_tag();
        let mut known = pasts.before(reader);
        let End::Done { seen, .. } = &self.history.operations[reader].end else { return Ok(()) };
        for (object, entries) in seen.iter().take_while(|(object, _)| *object != self.object) {
            for tag in entries.iter().filter_map(|entry| by_tag.get(entry)) {
                known.extend(pasts.of(*tag, object.store()));
                known.insert(*tag);
            }
        }
        known.remove(&reader);
        for (line, writer) in &self.writers {
            let is_due = known.contains(writer) && !lines.contains(line);
            if is_due && !self.may_be_gone(pasts, *writer) {
                let how =
                    format!("was read by {} without {line}, which it knew", self.name(reader));
                return Err(self.broken(&how));
            }
        }
        for deleter in self.deleters.iter().filter(|deleter| known.contains(deleter)) {
            let gone = self.read(*deleter).unwrap_or_default();
            if let Some(line) = lines.iter().find(|line| gone.contains(line)) {
                let how = format!(
                    "was read by {} with {line}, which {} had read and deleted",
                    self.name(reader),
                    self.name(*deleter)
                );
                return Err(self.broken(&how));
            }
        }
        Ok(())
    }

    fn name(&self, index: usize) -> String {
        let Operation { call, client, began, .. } = &self.history.operations[index];
        format!("{:?} {} of client {client} at {began:?}", call.kind, call.tag)
    }

    fn broken(&self, how: &str) -> Broken {
        broken(PROMISE, format!("{:?} {how}", self.object))
    }
}

/// Checks the sheets: P3 and convergence for the final lines, P4 and P6 for the lines that were
/// read. An eventual store promises only the first two.
pub(super) fn sheets(history: &History) -> Result<(), Broken> {
    let by_tag = history.by_tag();
    let mut pasts = Pasts::new(history, &by_tag);
    let is_causal = !history.eventual.contains(&Store::Wall);
    for number in 0..OBJECTS {
        let sheet = Sheet::new(history, number);
        sheet.check_final(&mut pasts)?;
        for reader in (0..history.operations.len()).filter(|_| is_causal) {
            sheet.check_read(&mut pasts, reader)?;
        }
    }
    Ok(())
}

/// Counts the deletions that removed lines.
pub(super) fn counts(history: &History) -> BTreeMap<String, u64> {
    let by_tag = history.by_tag();
    let (mut pads, mut sheets) = (0, 0);
    for number in 0..OBJECTS {
        let log = Log::new(history, &by_tag, number);
        pads += log.deleters.iter().filter(|at| **at > 0).count();
        let sheet = Sheet::new(history, number);
        let has_lines = |index: &&usize| sheet.read(**index).is_some_and(|lines| !lines.is_empty());
        sheets += sheet.deleters.iter().filter(has_lines).count();
    }
    let counts = [("deletions at a strong store", pads), ("deletions at a causal store", sheets)];
    counts.map(|(name, count)| (name.to_owned(), count as u64)).into()
}

#[cfg(test)]
mod tests {
    use super::super::history::Final;
    use super::*;

    const SHELF: Object = Object::Shelf(0);
    const PAD: Object = Object::Pad(0);
    const SHEET: Object = Object::Sheet(0);
    const ACCOUNT: Object = Object::Account(0);

    fn text(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| (*entry).to_owned()).collect()
    }

    /// Returns a call on the objects number 0 by a client that made the calls `after` before.
    fn call(kind: Kind, tag: u32, after: &[usize], seen: &[(Object, &[&str])]) -> Operation {
        let mut operation = Operation::done(kind, tag, after);
        if let End::Done { seen: read, .. } = &mut operation.end {
            *read = seen.iter().map(|(object, entries)| (*object, text(entries))).collect();
        }
        operation
    }

    fn history(operations: Vec<Operation>, logs: &[(Object, &[&str])]) -> History {
        let log = |(object, entries): &(Object, &[&str])| {
            (*object, vec![Final { entries: text(entries), ..Final::default() }])
        };
        History { operations, finals: logs.iter().map(log).collect(), ..History::default() }
    }

    /// Unrolls a pad that was written, deleted and written, with this final content and read.
    fn unrolled(last: &[&str], read: &[&str]) -> Result<(Vec<String>, Vec<String>), &'static str> {
        let operations = vec![
            call(Kind::Jot, 1, &[], &[]),
            call(Kind::Scrap, 2, &[], &[]),
            call(Kind::Jot, 3, &[], &[]),
            call(Kind::ReadPad, 4, &[], &[(PAD, read)]),
        ];
        let mut all = history(operations, &[(SHELF, &["1", "2", "3"]), (PAD, last)]);
        unroll(&mut all).map_err(|broken| broken.promise)?;
        let End::Done { seen, .. } = &all.operations[3].end else { panic!("it is done") };
        Ok((all.log(PAD).to_vec(), seen[0].1.clone()))
    }

    #[test]
    fn a_pad_holds_what_was_written_since_its_last_deletion() {
        let all = text(&["1", "2", "3"]);
        for (read, is_part) in [(&[][..], 0), (&["1"], 1), (&["2"], 2), (&["2", "3"], 3)] {
            let found = unrolled(&["2", "3"], read);
            assert_eq!(found, Ok((all.clone(), all[..is_part].to_vec())), "{read:?}");
        }
        for read in [&["1", "2"][..], &["3"], &["1", "2", "3"], &["7"]] {
            assert_eq!(unrolled(&["2", "3"], read), Err(PROMISE), "{read:?}");
        }
        for last in [&[][..], &["3"], &["1", "2", "3"]] {
            assert_eq!(unrolled(last, &[]), Err(PROMISE), "{last:?}");
        }
    }

    /// Judges a sheet: `1` writes, `2` deletes, and `3` reads; `after` and the first part of
    /// `read` are the calls before the writer and the reader.
    fn judged(
        after: &[usize],
        gone: &[&str],
        read: (&[usize], &[&str]),
        last: &[&str],
    ) -> Result<(), &'static str> {
        let operations = vec![
            call(Kind::Wipe, 2, &[], &[(SHEET, gone)]),
            call(Kind::Scribble, 1, after, &[]),
            call(Kind::ReadSheet, 3, read.0, &[(ACCOUNT, &[]), (SHEET, read.1)]),
        ];
        let all = history(operations, &[(ACCOUNT, &["1", "2"]), (SHEET, last)]);
        sheets(&all).map_err(|broken| broken.promise)
    }

    #[test]
    fn a_deletion_removes_what_it_read_and_nothing_that_came_after_it() {
        // The deletion may have removed the line, or not have met it.
        assert_eq!(judged(&[], &[], (&[], &[]), &[]), Ok(()));
        assert_eq!(judged(&[], &[], (&[], &["1"]), &["1"]), Ok(()));
        assert_eq!(judged(&[], &["1"], (&[], &["1"]), &[]), Ok(()));
        // It has read the line, so it has removed it, for all its successors too.
        assert_eq!(judged(&[], &["1"], (&[], &[]), &["1"]), Err(PROMISE));
        assert_eq!(judged(&[], &["1"], (&[0], &["1"]), &[]), Err(PROMISE));
        // The writer came after the deletion: the line stays, and its successors see it.
        assert_eq!(judged(&[0], &[], (&[1], &["1"]), &["1"]), Ok(()));
        assert_eq!(judged(&[0], &[], (&[], &[]), &[]), Err(PROMISE));
        assert_eq!(judged(&[0], &[], (&[1], &[]), &["1"]), Err(PROMISE));
        // Lines that no effective call wrote, or that are there twice.
        assert_eq!(judged(&[], &[], (&[], &[]), &["7"]), Err(PROMISE));
        assert_eq!(judged(&[], &[], (&[], &[]), &["1", "1"]), Err(PROMISE));
    }
}
