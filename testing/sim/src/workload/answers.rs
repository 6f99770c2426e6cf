//! Judges the answers to reads with policies (IPA): each is as good as its level says, and the transactions
//! that it shows are seen whole from then on.
//!
//! An answer at the store's own level is judged as any other read, by all other checks. This module judges
//! answers at weaker levels, and numbers that only the mark of a transaction tells.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::calls::{ClientCall, Kind, Object, Store};
use super::history::{End, History, LATE, WEAKER};
use super::promises::{Broken, broken};
use super::visibility::Pasts;

const PROMISE: &str = "answers";

/// Checks all answers.
///
/// # Errors
///
/// The first answer that is not as good as its level says.
pub(super) fn answers(history: &History) -> Result<(), Broken> {
    let by_tag = history.by_tag();
    let mut pasts = Pasts::new(history, &by_tag);
    for index in 0..history.operations.len() {
        let operation = &history.operations[index];
        let End::Done { weaker, mark, has_rest, .. } = &operation.end else { continue };
        if let Some((object, entries)) = weaker {
            written(history, &by_tag, (index, *object), entries)?;
        }
        // A caller that was answered early has no mark.
        if operation.call.kind == Kind::Rush && *mark >= 0 && !has_rest {
            counted(history, &mut pasts, index, *mark)?;
        }
        whole(history, &by_tag, index)?;
    }
    Ok(())
}

/// Counts the weaker answers without a write that their session knew.
pub(super) fn counts(history: &History) -> BTreeMap<String, u64> {
    let by_tag = history.by_tag();
    let mut pasts = Pasts::new(history, &by_tag);
    let mut count = 0;
    for (index, operation) in history.operations.iter().enumerate() {
        let End::Done { weaker: Some((object, entries)), .. } = &operation.end else { continue };
        let is_missing = |other: &usize| {
            let call = &history.operations[*other].call;
            call.writes().contains(object) && !entries.contains(&call.tag_text())
        };
        count += u64::from(pasts.before(index).iter().any(is_missing));
    }
    [(STALE.to_owned(), count)].into()
}

/// The coverage point of an answer that only a weaker level permits.
const STALE: &str = "weaker answer without a write that its session knew";

/// Returns the name under which an answer is counted.
pub(super) fn kind(call: &ClientCall, mark: i64) -> Option<&'static str> {
    let has_policy = call.asked().is_some() || matches!(call.kind, Kind::Rush | Kind::Hurry);
    has_policy.then_some(match mark {
        WEAKER => "answer at a weaker level",
        LATE => "answer that was late",
        _ => "answer at the store's own level",
    })
}

/// Checks that a weaker answer shows only lines that transactions have written, each once.
fn written(
    history: &History,
    by_tag: &HashMap<String, usize>,
    (index, object): (usize, Object),
    entries: &[String],
) -> Result<(), Broken> {
    let operation = &history.operations[index];
    let mut known = HashSet::new();
    for entry in entries {
        let tag = entry.split(' ').next().unwrap_or_default();
        let writer = by_tag.get(tag).map(|writer| &history.operations[*writer]);
        let is_written = writer.is_some_and(|writer| {
            writer.call.writes().contains(&object) && writer.began <= operation.ended
        });
        if !is_written || !known.insert(entry) {
            let how = format!(
                "{:?} {} was shown {entry:?} in {object:?}, which had {entries:?}",
                operation.call.kind, operation.call.tag
            );
            return Err(broken(PROMISE, how));
        }
    }
    Ok(())
}

/// Checks that a count at the causal level has all writes that its session knew, and none that had not
/// begun.
fn counted(
    history: &History,
    pasts: &mut Pasts<'_>,
    index: usize,
    count: i64,
) -> Result<(), Broken> {
    let operation = &history.operations[index];
    let board = Object::Board(operation.call.board);
    let writes = |other: &usize| history.operations[*other].call.writes().contains(&board);
    let least = pasts.before(index).iter().filter(|other| writes(other)).count() as i64;
    let most = (0..history.operations.len()).filter(|other| *other != index && writes(other));
    let most = most.filter(|other| history.operations[*other].began <= operation.ended);
    let most = most.count() as i64;
    if (least..=most).contains(&count) {
        return Ok(());
    }
    let how = format!(
        "{:?} {} counted {count} writes of {board:?}: its session knew {least}, and {most} had begun",
        operation.call.kind, operation.call.tag
    );
    Err(broken(PROMISE, how))
}

/// P4: a session that has met a transaction in a weaker answer sees its writes at all other stores that
/// it visits from then on.
fn whole(history: &History, by_tag: &HashMap<String, usize>, index: usize) -> Result<(), Broken> {
    let operation = &history.operations[index];
    let End::Done { seen, .. } = &operation.end else { return Ok(()) };
    let met = met(history, by_tag, index);
    let is_judged = |store: Store| {
        !(history.eventual.contains(&store) || history.is_torn && store == Store::Feed)
    };
    for (object, entries) in seen.iter().filter(|(object, _)| is_judged(object.store())) {
        for (writer, store) in &met {
            let call = &history.operations[*writer].call;
            let is_missing = *store != object.store()
                && call.writes().contains(object)
                && !entries.contains(&call.tag_text());
            if is_missing {
                let how = format!(
                    "{:?} {} read {object:?} without {:?} {}, which a weaker answer at {} had shown",
                    operation.call.kind,
                    operation.call.tag,
                    call.kind,
                    call.tag,
                    store.name()
                );
                return Err(broken(PROMISE, how));
            }
        }
    }
    Ok(())
}

/// Returns the transactions that weaker answers have shown to the session before an operation, with the
/// stores of these answers.
fn met(history: &History, by_tag: &HashMap<String, usize>, index: usize) -> BTreeMap<usize, Store> {
    let mut left = history.operations[index].after.clone();
    let (mut visited, mut met) = (BTreeSet::new(), BTreeMap::new());
    while let Some(earlier) = left.pop() {
        if !visited.insert(earlier) {
            continue;
        }
        let operation = &history.operations[earlier];
        left.extend(&operation.after);
        if let End::Done { weaker: Some((object, entries)), .. } = &operation.end {
            let tags = entries.iter().filter_map(|entry| by_tag.get(entry)).copied();
            met.extend(tags.filter(|tag| *tag != earlier).map(|tag| (tag, object.store())));
        }
    }
    met
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::history::{Final, Operation};

    const BOARD: Object = Object::Board(0);
    const INBOX: Object = Object::Inbox(0);

    /// Gives a call what it read, what a weaker answer showed, and its mark.
    fn with(
        mut operation: Operation,
        read: Option<(Object, &[&str])>,
        shown: Option<(Object, &[&str])>,
        of: i64,
    ) -> Operation {
        let text = |(object, entries): (Object, &[&str])| {
            (object, entries.iter().map(|entry| (*entry).to_owned()).collect())
        };
        if let End::Done { seen, weaker, mark, .. } = &mut operation.end {
            (*seen, *weaker, *mark) = (read.map(text).into_iter().collect(), shown.map(text), of);
        }
        operation
    }

    fn judged(operations: Vec<Operation>) -> Result<(), String> {
        let entries: Vec<String> = vec!["1".to_owned()];
        let finals = [BOARD, INBOX]
            .map(|object| (object, vec![Final { entries: entries.clone(), ..Final::default() }]));
        let history = History { operations, finals: finals.into(), ..History::default() };
        answers(&history).map_err(|broken| broken.how)
    }

    #[test]
    fn a_weaker_answer_may_lack_a_write_but_invents_none() {
        let glance = |shown: &[&str]| {
            let glance = Operation::done(Kind::Glance, 2, &[0]);
            judged(vec![
                Operation::done(Kind::Swap, 1, &[]),
                with(glance, None, Some((BOARD, shown)), WEAKER),
            ])
        };
        assert_eq!(glance(&["1"]), Ok(()));
        assert_eq!(glance(&[]), Ok(()), "its session had seen it, but the answer is weak");
        for shown in [&["7"][..], &["1", "1"], &["2"]] {
            assert!(glance(shown).is_err_and(|how| how.contains("was shown")), "{shown:?}");
        }
    }

    #[test]
    fn a_count_of_the_own_level_has_the_writes_that_its_session_knew() {
        let rush = |after: &[usize], mark| {
            let rush = with(Operation::done(Kind::Rush, 2, after), None, None, mark);
            judged(vec![Operation::done(Kind::Swap, 1, &[]), rush])
        };
        assert_eq!((rush(&[0], 1), rush(&[], 0), rush(&[0], WEAKER)), (Ok(()), Ok(()), Ok(())));
        assert!(rush(&[0], 0).is_err_and(|how| how.contains("counted 0")));
        assert!(rush(&[], 2).is_err_and(|how| how.contains("1 had begun")));
    }

    #[test]
    fn a_transaction_that_a_weaker_answer_has_shown_is_seen_whole_from_then_on() {
        let later = |shown: &[&str], read: &[&str]| {
            let glance =
                with(Operation::done(Kind::Glance, 2, &[]), None, Some((BOARD, shown)), WEAKER);
            let reader =
                with(Operation::done(Kind::ReadInbox, 3, &[1]), Some((INBOX, read)), None, 0);
            judged(vec![Operation::done(Kind::Swap, 1, &[]), glance, reader])
        };
        assert_eq!((later(&["1"], &["1"]), later(&[], &[])), (Ok(()), Ok(())));
        assert!(later(&["1"], &[]).is_err_and(|how| how.contains("without Swap 1")));
    }
}
