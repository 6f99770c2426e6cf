//! The versions of one location, with the logical times at which they became visible.
//!
//! A version is visible from its earliest valid time (EVT) on, unless one with a higher timestamp is
//! visible already. So at time `t` the version with the highest timestamp is visible among those
//! whose EVT is at most `t`; kept in order, EVTs and timestamps both rise. A counter has the sum of
//! all additions whose EVT is at most `t`.

use crate::clock::Timestamp;
use crate::column::{Cell, Column, Content, Update};
use crate::deps::Dep;

/// One version, or one addition.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub evt: u64,
    pub dep: Dep,
    pub update: Update,
    /// The dependencies of the operation, which an addition covers.
    pub covers: Vec<Dep>,
    /// The time of its arrival here, in microseconds.
    pub arrived_us: u64,
}

/// The folded older additions of a counter.
#[derive(Clone, Debug, Default)]
struct Base {
    sum: i64,
    heads: Vec<Dep>,
    evt: u64,
    newest: Timestamp,
}

/// The versions of a location.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    entries: Vec<Entry>,
    base: Base,
}

impl Base {
    fn add(&mut self, entry: &Entry) {
        if let Update::Add(delta) = entry.update {
            self.sum += delta;
        }
        self.heads.retain(|head| !entry.covers.contains(head) && *head != entry.dep);
        self.heads.push(entry.dep);
        self.evt = self.evt.max(entry.evt);
        self.newest = self.newest.max(entry.dep.ts);
    }
}

impl Chain {
    /// True if these are additions: their timestamps need not rise with their EVTs.
    fn is_counter(&self) -> bool {
        let first = self.entries.first();
        self.base.evt > 0 || first.is_some_and(|first| matches!(first.update, Update::Add(_)))
    }

    /// Returns the highest timestamp.
    pub fn newest(&self) -> Timestamp {
        if !self.is_counter() {
            return self.entries.last().map(|entry| entry.dep.ts).unwrap_or_default();
        }
        let newest = self.entries.iter().map(|entry| entry.dep.ts).max().unwrap_or_default();
        newest.max(self.base.newest)
    }

    /// Adds a version or addition, and drops those that no transaction can ask for: overwritten for
    /// longer than `kept_us`.
    pub fn insert(&mut self, entry: Entry, kept_us: u64) {
        let now_us = entry.arrived_us;
        let is_addition = matches!(entry.update, Update::Add(_));
        if is_addition {
            let place = self.entries.partition_point(|other| other.evt <= entry.evt);
            self.entries.insert(place, entry);
        } else {
            self.insert_version(entry);
        }
        let is_old = |entry: &Entry| entry.arrived_us + kept_us < now_us;
        if is_addition {
            let old = self.entries.iter().take_while(|entry| is_old(entry)).count();
            for entry in self.entries.drain(..old) {
                self.base.add(&entry);
            }
        } else {
            // A version was visible until the next one arrived.
            let old = self.entries.iter().skip(1).take_while(|entry| is_old(entry)).count();
            self.entries.drain(..old);
        }
    }

    /// Adds a version, unless it is never visible; it hides those with later EVTs and earlier timestamps.
    fn insert_version(&mut self, entry: Entry) {
        let before = self.entries.partition_point(|other| other.evt <= entry.evt);
        if self.entries[..before].last().is_some_and(|other| other.dep.ts > entry.dep.ts) {
            return;
        }
        let from = self.entries.partition_point(|other| other.evt < entry.evt);
        let to = self.entries.partition_point(|other| other.dep.ts <= entry.dep.ts).max(from);
        self.entries.splice(from..to, [entry]);
    }

    /// Returns the column at a logical time, and the EVT from which on it has been so.
    pub fn at(&self, column: Column, time: u64) -> Option<(Cell, u64)> {
        let visible = &self.entries[..self.entries.partition_point(|entry| entry.evt <= time)];
        if self.is_counter() {
            let mut base = self.base.clone();
            for entry in visible {
                base.add(entry);
            }
            let (content, ts, deps) = (Content::Sum(base.sum), base.newest, base.heads);
            return (base.evt > 0).then_some((Cell { column, content, ts, deps }, base.evt));
        }
        let last = visible.last()?;
        let content = match last.update {
            Update::Insert(value) => Content::Value(value),
            Update::Delete => Content::Deleted,
            Update::Add(delta) => Content::Sum(delta),
        };
        let (ts, deps) = (last.dep.ts, vec![last.dep]);
        Some((Cell { column, content, ts, deps }, last.evt))
    }
}

#[cfg(test)]
mod tests {
    use mingle_model::random::Random;

    use super::*;
    use crate::clock::NodeId;

    fn entry(time: u64, evt: u64) -> Entry {
        let dep = Dep { key: 1, ts: Timestamp::new(time, NodeId::new(0, 0)) };
        Entry { evt, dep, update: Update::Insert(time), covers: Vec::new(), arrived_us: 0 }
    }

    /// At each time the version with the highest timestamp is visible among those whose EVT has come.
    #[test]
    fn the_highest_timestamp_is_visible_in_any_order_of_arrival() {
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let mut all: Vec<(u64, u64)> = Vec::new();
            let mut chain = Chain::default();
            for _ in 0..12 {
                let (time, evt) = (1 + random.below(40) as u64, 1 + random.below(15) as u64);
                if all.iter().any(|(other, _)| *other == time) {
                    continue;
                }
                all.push((time, evt));
                chain.insert(entry(time, evt), 1_000);
                for at in 0..17 {
                    let visible = all.iter().filter(|(_, evt)| *evt <= at).map(|(time, _)| *time);
                    let found = chain.at(Column::named(1), at).map(|(cell, _)| cell.ts.time());
                    assert_eq!(found, visible.max(), "seed {seed}, at {at}: {all:?}");
                }
                let newest = all.iter().map(|(time, _)| *time).max();
                assert_eq!(Some(chain.newest().time()), newest, "seed {seed}: {all:?}");
            }
        }
    }
}
