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
    /// Returns the highest timestamp.
    pub fn newest(&self) -> Timestamp {
        let newest = self.entries.iter().map(|entry| entry.dep.ts).max().unwrap_or_default();
        newest.max(self.base.newest)
    }

    /// Adds a version or addition, and drops those that no transaction can ask for: overwritten for
    /// longer than `kept_us`.
    pub fn insert(&mut self, entry: Entry, kept_us: u64) {
        let now_us = entry.arrived_us;
        let is_addition = matches!(entry.update, Update::Add(_));
        if !is_addition {
            let is_hidden = |other: &Entry| other.dep.ts > entry.dep.ts && other.evt <= entry.evt;
            if self.entries.iter().any(is_hidden) {
                return;
            }
            self.entries.retain(|other| other.dep.ts > entry.dep.ts || other.evt < entry.evt);
        }
        let place = self.entries.partition_point(|other| other.evt <= entry.evt);
        self.entries.insert(place, entry);
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

    /// Returns the column at a logical time, and the EVT from which on it has been so.
    pub fn at(&self, column: Column, time: u64) -> Option<(Cell, u64)> {
        let visible = self.entries.iter().take_while(|entry| entry.evt <= time);
        let last = visible.clone().last();
        let is_counter = self.base.evt > 0
            || self.entries.first().is_some_and(|first| matches!(first.update, Update::Add(_)));
        if is_counter {
            let mut base = self.base.clone();
            for entry in visible {
                base.add(entry);
            }
            let (content, ts, deps) = (Content::Sum(base.sum), base.newest, base.heads);
            return (base.evt > 0).then_some((Cell { column, content, ts, deps }, base.evt));
        }
        let last = last?;
        let content = match last.update {
            Update::Insert(value) => Content::Value(value),
            Update::Delete => Content::Deleted,
            Update::Add(delta) => Content::Sum(delta),
        };
        let (ts, deps) = (last.dep.ts, vec![last.dep]);
        Some((Cell { column, content, ts, deps }, last.evt))
    }
}
