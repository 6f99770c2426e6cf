//! Sets in which additions win.

use std::collections::BTreeMap;

use mingle_model::Value;
use serde::{Deserialize, Serialize};

use super::dots::{self, Dots, Seen};
use super::ids::Past;
use super::{Mark, OpId};
use crate::timestamp::Version;

/// Distinct values in order. A removal removes only the insertions that it saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set(BTreeMap<Value, Dots<()>>);

impl Set {
    /// True if the set contains `value`.
    pub fn contains(&self, value: &Value) -> bool {
        self.0.contains_key(value)
    }

    /// Returns the version of the last insertion of `value`, if the set contains it.
    pub fn version(&self, value: &Value) -> Option<Version> {
        self.0.get(value).and_then(Dots::last).map(|dot| dot.mark.version)
    }

    /// Returns the number of values.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the values in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.0.keys()
    }

    pub(super) fn displace(&mut self, value: &Value, seen: &Seen<'_>) {
        if let Some(dots) = self.0.get_mut(value) {
            dots.displace(seen);
            if dots.is_empty() {
                self.0.remove(value);
            }
        }
    }

    pub(super) fn displace_all(&mut self, seen: &Seen<'_>) {
        self.0.retain(|_, dots| {
            dots.displace(seen);
            !dots.is_empty()
        });
    }

    pub(super) fn place(&mut self, mark: Mark, id: Option<&OpId>, value: &Value) {
        self.0.entry(value.clone()).or_default().place(mark, id, ());
    }

    pub(super) fn joined(&self, past: &Past<'_>, other: &Self, other_past: &Past<'_>) -> Self {
        Self(dots::joined(&self.0, past, &other.0, other_past))
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &OpId> {
        self.0.values().flat_map(Dots::ids)
    }

    pub(super) fn restamp(&mut self, id: &OpId, mark: Mark, value: &Value) {
        if let Some(dots) = self.0.get_mut(value) {
            dots.restamp(id, mark);
        }
    }
}
