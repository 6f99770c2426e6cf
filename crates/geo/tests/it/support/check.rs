//! Checks of the values that sessions saw, by a model without vectors.
//!
//! Every transaction appends its number to logs, from which nothing is removed. So a read of a log
//! shows the transactions that it saw. A reader that sees a transaction must also see everything
//! that the transaction had seen.

use std::collections::{BTreeMap, BTreeSet};

use mingle_geo::{Key, State};
use mingle_model::Value;

pub type Number = i64;

/// The known facts about a transaction.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The logs that it appends to.
    pub keys: BTreeSet<Key>,
    /// The transactions that its session had seen when it was sent, with their pasts.
    pub past: BTreeSet<Number>,
    pub is_aborted: bool,
    pub is_committed: bool,
    /// True if its session was told that it survives `f` losses.
    pub is_uniform: bool,
}

/// All transactions of a run.
#[derive(Debug, Default)]
pub struct History {
    pub transactions: BTreeMap<Number, Known>,
}

/// The numbers in a log.
pub fn numbers(state: &State) -> Vec<Number> {
    let lines = state.as_log().expect("a log").iter();
    lines.map(|line| line.as_int().expect("a number")).collect()
}

impl History {
    pub fn aborted_count(&self) -> usize {
        self.transactions.values().filter(|known| known.is_aborted).count()
    }

    /// Checks the reads of one transaction, and adds them to its session's past. `reads` are all
    /// its reads, of all keys.
    pub fn check_reads(
        &self,
        reads: &BTreeMap<Key, Vec<Number>>,
        seen: &mut BTreeSet<Number>,
    ) -> Result<(), String> {
        for (key, numbers) in reads {
            let distinct: BTreeSet<Number> = numbers.iter().copied().collect();
            if distinct.len() != numbers.len() {
                return Err(format!("{key:?} has something twice: {numbers:?}"));
            }
            for number in numbers {
                let known = self.transactions.get(number).ok_or("a line that nobody wrote")?;
                if known.is_aborted {
                    return Err(format!("{key:?} shows {number}, which was aborted"));
                }
                if !known.keys.contains(key) {
                    return Err(format!("{key:?} shows {number}, which did not write it"));
                }
            }
            // If one line's transaction saw the other line, the other comes first.
            for (place, number) in numbers.iter().enumerate() {
                let past = &self.transactions[number].past;
                if let Some(late) = numbers[place..].iter().find(|later| past.contains(later)) {
                    return Err(format!("{key:?} shows {late} after {number}, which saw it"));
                }
            }
        }
        for number in reads.values().flatten() {
            seen.insert(*number);
            seen.extend(&self.transactions[number].past);
        }
        for number in seen.iter() {
            for key in &self.transactions[number].keys {
                if reads.get(key).is_some_and(|numbers| !numbers.contains(number)) {
                    return Err(format!("{key:?} lacks {number}, which was seen"));
                }
            }
        }
        Ok(())
    }
}

/// Returns the visible value of an item, for comparison.
pub fn shown(state: &State) -> String {
    let register = state.as_register().and_then(|register| register.value().cloned());
    let counter = state.as_counter().map(mingle_geo::types::Counter::value);
    let set: Option<Vec<Value>> = state.as_set().map(|set| set.iter().cloned().collect());
    let log = state.as_log().map(|log| log.iter().cloned().collect::<Vec<Value>>());
    let map = state.as_map().map(|map| {
        let entries: Vec<_> = map.entries().collect();
        let counts: Vec<_> = map.counts().map(|(key, count)| (key, count.value())).collect();
        format!("{entries:?} {counts:?}")
    });
    format!("{register:?} {counter:?} {set:?} {log:?} {map:?}")
}
