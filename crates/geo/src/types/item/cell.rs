//! Cells: a value, and additions to it.

use mingle_model::Value;
use serde::{Deserialize, Serialize};

use super::super::dots::Dots;
use super::super::ids::Past;
use super::sum::Sum;
use super::time;
use crate::timestamp::{DcId, Version};

/// The values that were put and stand, and the additions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    pub writes: Dots<Value>,
    pub added: Sum,
}

impl Cell {
    /// Returns the shown value in a life that began at this time.
    pub fn shown(&self, life: u64) -> Option<Value> {
        let base = self.writes.last().filter(|dot| time(dot.mark.version) >= life);
        let base = base.map(|dot| &dot.value);
        let live = self.added.live(life);
        match (base, live) {
            (None, None) => None,
            (Some(Value::Int(base)), Some(live)) => Some(clamped(i128::from(*base), live)),
            (Some(base), _) => Some(base.clone()),
            (None, Some(live)) => Some(clamped(0, live)),
        }
    }

    /// True if it exists in a life that began at this time.
    pub fn is_present(&self, life: u64) -> bool {
        self.writes.last().is_some_and(|dot| time(dot.mark.version) >= life)
            || self.added.live(life).is_some()
    }

    /// Returns the highest version of what stands in a life that began at this time.
    pub fn highest(&self, life: u64) -> Option<Version> {
        let write = self.writes.last().map(|dot| dot.mark.version);
        let write = write.filter(|version| time(*version) >= life);
        write.max(self.added.highest(life))
    }

    /// Drops everything older than the beginning of a life, in an item with this horizon.
    pub fn begin_life(&mut self, life: u64, horizon_us: u64) {
        self.writes.keep(|version| time(version) >= life);
        self.added.begin_life(life, horizon_us);
    }

    pub fn joined(
        &self,
        past: &Past<'_>,
        other: &Self,
        other_past: &Past<'_>,
        is_further: impl Fn(DcId) -> bool,
    ) -> Self {
        let writes = self.writes.joined(past, &other.writes, other_past);
        Self { writes, added: self.added.joined(&other.added, is_further) }
    }
}

fn clamped(base: i128, added: i128) -> Value {
    let sum = base.saturating_add(added);
    Value::Int(sum.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}
