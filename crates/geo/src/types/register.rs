//! Registers.

use mingle_model::Value;
use serde::{Deserialize, Serialize};

use super::dots::{Dots, Seen};
use super::ids::Past;
use super::{Mark, OpId};
use crate::timestamp::Version;

/// One value, or none. Concurrent writes that did not see each other are all kept until a write has
/// seen them.
///
/// This is COPS-CD's rule (Lloyd's thesis §6.3: a write conflicts if and only if the version that
/// it saw is not the current one) without its dependency checks: the snapshot shows which versions
/// a write saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register(Dots<Value>);

impl Register {
    /// Returns the value of the last writer.
    pub fn value(&self) -> Option<&Value> {
        self.0.last().map(|dot| &dot.value)
    }

    /// Returns the version of the last writer.
    pub fn version(&self) -> Option<Version> {
        self.0.last().map(|dot| dot.mark.version)
    }

    /// Returns the conflicting values in the order of their versions; at most one if there is no
    /// conflict.
    pub fn siblings(&self) -> impl ExactSizeIterator<Item = (&Version, &Value)> {
        self.0.iter().map(|dot| (&dot.mark.version, &dot.value))
    }

    /// Returns the value, with conflicts settled by `merge`. It gets two or more conflicting values
    /// in the order of their versions, which is the same at all replicas, so any function is valid.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_geo::{Cause, DcId, Key, Kind, Op, State, Timestamp, Vector, Version};
    /// use mingle_model::Value;
    ///
    /// let mut state = State::new(Kind::Register);
    /// for (dc, price) in [(0, 7), (1, 5)] {
    ///     let version = Version { timestamp: Timestamp(10), origin: DcId(dc), index: 0 };
    ///     let cause = Cause { version, seen: Vector::ZERO };
    ///     state.apply(&cause, &Op::Write(Value::Int(price)), None);
    /// }
    /// let register = state.as_register().expect("a register");
    /// assert_eq!(register.value(), Some(&Value::Int(5)));
    /// let highest = register.merged(|bids| bids.iter().copied().max().cloned().expect("two bids"));
    /// assert_eq!(highest, Some(Value::Int(7)));
    /// ```
    pub fn merged(&self, merge: impl FnOnce(&[&Value]) -> Value) -> Option<Value> {
        if self.0.iter().len() < 2 {
            return self.value().cloned();
        }
        let values: Vec<&Value> = self.0.iter().map(|dot| &dot.value).collect();
        Some(merge(&values))
    }

    pub(super) fn displace(&mut self, seen: &Seen<'_>) {
        self.0.displace(seen);
    }

    pub(super) fn place(&mut self, mark: Mark, id: Option<&OpId>, value: &Value) {
        self.0.place(mark, id, value.clone());
    }

    pub(super) fn joined(&self, past: &Past<'_>, other: &Self, other_past: &Past<'_>) -> Self {
        Self(self.0.joined(past, &other.0, other_past))
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &OpId> {
        self.0.ids()
    }

    pub(super) fn restamp(&mut self, id: &OpId, mark: Mark) {
        self.0.restamp(id, mark);
    }
}
