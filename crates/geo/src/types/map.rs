//! Maps of registers and counters.

use std::collections::BTreeMap;

use mingle_model::Value;
use serde::{Deserialize, Serialize};

use super::counter::{Addition, Counter, Removal};
use super::dots::{self, Dots, Seen};
use super::ids::{Correction, Past};
use super::{Mark, Op, OpId, Recent};
use crate::timestamp::{DcId, Version};
use crate::vector::Vector;

/// Registers and counters by key. The register and the counter of a key are independent: putting a
/// value leaves the counter unchanged. Deleting a key removes both, as far as the deletion saw
/// them.
///
/// A deleted counter leaves its sums behind, one per origin, so that a reset is not counted twice.
/// Registers leave nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Map {
    entries: BTreeMap<Value, Dots<Value>>,
    counts: BTreeMap<Value, Counter>,
}

impl Map {
    /// Returns the value of the last writer of `key`.
    pub fn get(&self, key: &Value) -> Option<&Value> {
        self.entries.get(key).and_then(Dots::last).map(|dot| &dot.value)
    }

    /// Returns the version of the last writer of `key`, if it has a value.
    pub fn version(&self, key: &Value) -> Option<Version> {
        self.entries.get(key).and_then(Dots::last).map(|dot| dot.mark.version)
    }

    /// Returns the counter of `key`, if anything was added to it since it was last deleted.
    pub fn count(&self, key: &Value) -> Option<&Counter> {
        self.counts.get(key).filter(|counter| counter.is_present())
    }

    /// Returns the keys that have a value, with their values, in order.
    pub fn entries(&self) -> impl Iterator<Item = (&Value, &Value)> {
        self.entries.iter().filter_map(|(key, dots)| dots.last().map(|dot| (key, &dot.value)))
    }

    /// Returns the keys that have a counter, with their counters, in order.
    pub fn counts(&self) -> impl Iterator<Item = (&Value, &Counter)> {
        self.counts.iter().filter(|(_, counter)| counter.is_present())
    }

    pub(super) fn displace(&mut self, key: &Value, seen: &Seen<'_>) {
        if let Some(dots) = self.entries.get_mut(key) {
            dots.displace(seen);
            if dots.is_empty() {
                self.entries.remove(key);
            }
        }
    }

    pub(super) fn displace_all(&mut self, seen: &Seen<'_>) {
        self.entries.retain(|_, dots| {
            dots.displace(seen);
            !dots.is_empty()
        });
    }

    pub(super) fn place(&mut self, mark: Mark, id: Option<&OpId>, key: &Value, value: &Value) {
        self.entries.entry(key.clone()).or_default().place(mark, id, value.clone());
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &OpId> {
        self.entries.values().flat_map(Dots::ids)
    }

    pub(super) fn restamp(&mut self, id: &OpId, mark: Mark, key: &Value) {
        if let Some(dots) = self.entries.get_mut(key) {
            dots.restamp(id, mark);
        }
    }

    pub(super) fn add(&mut self, version: Version, key: &Value, amount: i64) {
        self.counts.entry(key.clone()).or_default().add(version, amount);
    }

    pub(super) fn restamp_count(
        &mut self,
        was: Version,
        version: Version,
        key: &Value,
        amount: i64,
    ) {
        self.counts.entry(key.clone()).or_default().restamp(was, version, amount);
    }

    pub(super) fn remove_count(&mut self, key: &Value, removal: &Removal) {
        self.counts.entry(key.clone()).or_default().remove(removal);
    }

    pub(super) fn clear_count(&mut self, key: &Value) {
        self.counts.remove(key);
    }

    pub(super) fn clear_counts(&mut self) {
        self.counts.clear();
    }

    pub(super) fn joined(
        &self,
        past: &Past<'_>,
        other: &Self,
        other_past: &Past<'_>,
        is_further: impl Fn(DcId) -> bool,
    ) -> Self {
        let entries = dots::joined(&self.entries, past, &other.entries, other_past);
        let mut counts = self.counts.clone();
        for key in other.counts.keys().filter(|key| !self.counts.contains_key(*key)) {
            counts.insert(key.clone(), Counter::default());
        }
        let none = Counter::default();
        for (key, counter) in &mut counts {
            counter.join(other.counts.get(key).unwrap_or(&none), &is_further);
        }
        Self { entries, counts }
    }

    pub(super) fn correct(&mut self, correction: &Correction) {
        if let Some(key) = &correction.key {
            self.counts.entry(key.clone()).or_default().correct(correction);
        }
    }

    /// Returns the additions that deleting `key` takes away from its counter.
    pub(super) fn removal(
        &self,
        key: &Value,
        snapshot: &Vector,
        recent: &[Recent<'_>],
        repeats: &[Version],
    ) -> Option<Removal> {
        self.count(key).map(|counter| counter.removal(snapshot, &additions(key, recent), repeats))
    }

    /// Returns the additions that emptying the map takes away from its counters.
    pub(super) fn removals(
        &self,
        snapshot: &Vector,
        recent: &[Recent<'_>],
        repeats: &[Version],
    ) -> Vec<(Value, Removal)> {
        let removals = self.counts().map(|(key, counter)| {
            (key.clone(), counter.removal(snapshot, &additions(key, recent), repeats))
        });
        removals.collect()
    }
}

/// Returns the recent additions to the counter of `key`.
fn additions(key: &Value, recent: &[Recent<'_>]) -> Vec<Addition> {
    let additions = recent.iter().filter_map(|recent| match recent.op {
        Op::Increment(of, amount) if of == key => Some(Addition::of(recent, *amount)),
        _ => None,
    });
    additions.collect()
}
