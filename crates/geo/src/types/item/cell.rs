//! Cells: a value, and additions to it.

use std::fmt;

use mingle_model::Value;
use serde::{Deserialize, Serialize};

use super::super::dots::{Dots, Seen};
use super::super::ids::Past;
use super::once::Named;
use super::sum::Sum;
use super::time;
use crate::timestamp::{DcId, Version};

/// The values that were put and stand, and the additions.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    pub writes: Dots<Value>,
    pub added: Sum,
    /// The additions under operation ids. They are written beside the item, see
    /// [`Once`](super::once::Once).
    #[serde(skip)]
    pub named: Named,
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cell = f.debug_struct("Cell");
        cell.field("writes", &self.writes).field("added", &self.added);
        if !self.named.is_empty() {
            cell.field("named", &self.named);
        }
        cell.finish()
    }
}

impl Cell {
    /// Returns the shown value in a life that began at this time.
    pub fn shown(&self, life: u64) -> Option<Value> {
        let base = self.writes.last().filter(|dot| time(dot.mark.version) >= life);
        let base = base.map(|dot| &dot.value);
        let live = self.live(life);
        match (base, live) {
            (None, None) => None,
            (Some(Value::Int(base)), Some(live)) => Some(clamped(i128::from(*base), live)),
            (Some(base), _) => Some(base.clone()),
            (None, Some(live)) => Some(clamped(0, live)),
        }
    }

    /// Returns the sum of the additions that are left in a life; `None` if there are none.
    fn live(&self, life: u64) -> Option<i128> {
        match (self.added.live(life), self.named.live(life)) {
            (Some(added), Some(named)) => Some(added.wrapping_add(named)),
            (added, named) => added.or(named),
        }
    }

    /// Removes the values, and the additions under operation ids, that were seen.
    pub fn displace(&mut self, seen: &Seen<'_>) {
        self.writes.displace(seen);
        self.named.displace(seen);
    }

    /// True if it exists in a life that began at this time.
    pub fn is_present(&self, life: u64) -> bool {
        self.writes.last().is_some_and(|dot| time(dot.mark.version) >= life)
            || self.live(life).is_some()
    }

    /// Returns the highest version of what stands in a life that began at this time.
    pub fn highest(&self, life: u64) -> Option<Version> {
        let write = self.writes.last().map(|dot| dot.mark.version);
        let write = write.filter(|version| time(*version) >= life);
        write.max(self.added.highest(life)).max(self.named.highest(life))
    }

    /// Drops everything older than the beginning of a life, in an item with this horizon.
    pub fn begin_life(&mut self, life: u64, horizon_us: u64) {
        self.writes.keep(|version| time(version) >= life);
        self.added.begin_life(life, horizon_us);
        self.named.begin_life(life);
    }

    pub fn joined(
        &self,
        past: &Past<'_>,
        other: &Self,
        other_past: &Past<'_>,
        is_further: impl Fn(DcId) -> bool,
    ) -> Self {
        let writes = self.writes.joined(past, &other.writes, other_past);
        let named = self.named.joined(past, &other.named, other_past);
        Self { writes, added: self.added.joined(&other.added, is_further), named }
    }
}

fn clamped(base: i128, added: i128) -> Value {
    let sum = base.saturating_add(added);
    Value::Int(sum.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}
