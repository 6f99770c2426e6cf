//! Eiger's locations as keys of the checkers, and its calls as a seed draws them.
//!
//! A column is one key. A counter is as many keys as it has additions: addition number `n` adds
//! `4^n`, so a sum tells exactly which additions it has, and whether one is counted twice. A read of a
//! counter is then a read of each addition, which is there or absent, and every check holds for
//! counters as it does for columns.

use std::collections::BTreeMap;

use mingle_cops::column::{Column, Family, Location, Mutation, Predicate, Slice, Update};
use mingle_cops::eiger::client::Call;
use mingle_model::random::Random;

/// The columns of a row, whose names are 1 to this.
const COLUMNS: u32 = 3;

/// The keys of the checkers for each row.
const KEYS_OF_ROW: u32 = 256;

/// The first key of a row for an addition to its counter; the key before is that of the counter.
const ADDITIONS: u32 = 128;

/// The most additions to a counter: more do not fit into a sum.
const ADDITIONS_MAX: u32 = 31;

/// Returns the location of a column.
fn location(row: u32, name: u32) -> Location {
    Location { key: row, family: Family::Standard(0), column: Column::named(name) }
}

/// Returns the slice of the counter of a row.
fn counter(row: u32) -> Slice {
    let predicate = Predicate::Names(vec![Column::named(1)]);
    Slice { key: row, family: Family::Counter(1), predicate }
}

/// Returns the location of a column of a slice's row.
pub(super) fn location_in(slice: &Slice, name: u32) -> Location {
    Location { key: slice.key, family: slice.family, column: Column::named(name) }
}

/// Returns the checkers' key of a location.
pub(super) fn key(location: Location) -> u32 {
    let row = location.key * KEYS_OF_ROW;
    match location.family {
        Family::Standard(_) => row + location.column.name,
        Family::Counter(_) => row + ADDITIONS - 1,
    }
}

/// Returns the row of a checkers' key.
pub(super) fn row(key: u32) -> u32 {
    key / KEYS_OF_ROW
}

/// Returns the checkers' key and the value of a mutation.
pub(super) fn write(mutation: &Mutation) -> (u32, Option<u64>) {
    let key = key(mutation.location);
    match mutation.update {
        Update::Insert(value) => (key, Some(value)),
        Update::Delete => (key, None),
        Update::Add(delta) => (key + 1 + delta.trailing_zeros() / 2, Some(delta as u64)),
    }
}

/// Returns the key of the counter to which a key of an addition belongs.
pub(super) fn counter_of(key: u32) -> Option<u32> {
    let row = key - key % KEYS_OF_ROW;
    (key % KEYS_OF_ROW >= ADDITIONS).then_some(row + ADDITIONS - 1)
}

/// Draws the calls of a run one after the other.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The number of additions to the counter of each row.
    additions: BTreeMap<u32, u32>,
}

impl Calls {
    /// Draws a call over rows below `rows`; `value` is for its inserts.
    pub fn draw(&mut self, random: &mut Random, rows: u32, value: u64) -> Call {
        match random.below(8) {
            0 | 1 => {
                let row = random.below(rows as usize) as u32;
                let other = if random.one_in(2) { row } else { random.below(rows as usize) as u32 };
                let first = self.mutation(random, row, value);
                let second = self.mutation(random, other, value);
                Call::BatchMutate(distinct([first, second]))
            }
            2 | 3 => {
                let count = 2 + random.below(3);
                let mutations = (0..count).map(|_| {
                    let row = random.below(rows as usize) as u32;
                    self.mutation(random, row, value)
                });
                Call::AtomicMutate(distinct(mutations))
            }
            _ => {
                let count = 1 + random.below(3);
                Call::MultigetSlice((0..count).map(|_| slice(random, rows)).collect())
            }
        }
    }

    fn mutation(&mut self, random: &mut Random, row: u32, value: u64) -> Mutation {
        let additions = self.additions.entry(row).or_default();
        if random.one_in(4) && *additions < ADDITIONS_MAX {
            let update = Update::Add(1 << (2 * *additions));
            *additions += 1;
            return Mutation { location: location_in(&counter(row), 1), update };
        }
        let location = location(row, 1 + random.below(COLUMNS as usize) as u32);
        let update = if random.one_in(4) { Update::Delete } else { Update::Insert(value) };
        Mutation { location, update }
    }
}

/// Leaves out mutations of a location that has one already.
fn distinct(mutations: impl IntoIterator<Item = Mutation>) -> Vec<Mutation> {
    let mut distinct: Vec<Mutation> = Vec::new();
    for mutation in mutations {
        if distinct.iter().all(|other| other.location != mutation.location) {
            distinct.push(mutation);
        }
    }
    distinct
}

fn slice(random: &mut Random, rows: u32) -> Slice {
    let row = random.below(rows as usize) as u32;
    let column = |random: &mut Random| Column::named(1 + random.below(COLUMNS as usize) as u32);
    let predicate = match random.below(4) {
        0 => return counter(row),
        1 => Predicate::Names(vec![column(random)]),
        _ => {
            let (start, count) = (Column::named(1), 1 + random.below(3));
            Predicate::Range { start, stop: column(random), count }
        }
    };
    Slice { key: row, family: Family::Standard(0), predicate }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_columns_and_additions_differ() {
        let (mut calls, mut random) = (Calls::default(), Random::new(5));
        let mut keys = BTreeMap::new();
        for _ in 0..2_000 {
            let mutation = calls.mutation(&mut random, 3, 7);
            let (key, value) = write(&mutation);
            if let Update::Add(delta) = mutation.update {
                assert_eq!(counter_of(key), Some(super::key(mutation.location)));
                assert_eq!(value, Some(delta as u64));
                assert!(keys.insert(key, mutation).is_none(), "{mutation:?} twice");
            } else {
                assert_eq!((counter_of(key), key), (None, super::key(mutation.location)));
            }
        }
        assert_eq!(keys.len(), ADDITIONS_MAX as usize);
    }
}
