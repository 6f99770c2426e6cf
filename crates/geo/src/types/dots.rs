//! The values of an item, each with the mark of the operation that wrote it.

use std::collections::BTreeMap;

use mingle_model::Value;
use serde::{Deserialize, Serialize};

use super::ids::{Ids, Past};
use super::{Cause, Mark, OpId};
use crate::timestamp::Version;

/// The operations on an item that a transaction had seen.
pub struct Seen<'a> {
    pub cause: &'a Cause,
    pub ids: &'a Ids,
}

impl Seen<'_> {
    /// True if the transaction saw the value with this mark and id.
    pub fn observes(&self, mark: &Mark, id: Option<&OpId>) -> bool {
        self.cause.observes(mark) || id.is_some_and(|id| self.ids.observed(id, self.cause))
    }
}

/// One value with its mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dot<T> {
    pub mark: Mark,
    pub id: Option<Box<OpId>>,
    pub value: T,
}

impl<T> Dot<T> {
    /// True if both are the same operation's value.
    fn is_same(&self, other: &Self) -> bool {
        match (&self.id, &other.id) {
            (Some(id), Some(other)) => id == other,
            _ => self.mark.version == other.mark.version,
        }
    }
}

/// Values of operations that did not see each other, in the order of their versions. Usually there
/// is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dots<T>(Vec<Dot<T>>);

impl<T> Default for Dots<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Dots<T> {
    /// Removes the values that were seen.
    pub fn displace(&mut self, seen: &Seen<'_>) {
        self.0.retain(|dot| !seen.observes(&dot.mark, dot.id.as_deref()));
    }

    /// Keeps the values with these versions.
    pub fn keep(&mut self, keeps: impl Fn(Version) -> bool) {
        self.0.retain(|dot| keeps(dot.mark.version));
    }

    pub fn place(&mut self, mark: Mark, id: Option<&OpId>, value: T) {
        let place = self.0.partition_point(|dot| dot.mark.version < mark.version);
        // It is usually the only one, so no spare capacity is reserved.
        if self.0.is_empty() {
            self.0.reserve_exact(1);
        }
        self.0.insert(place, Dot { mark, id: id.copied().map(Box::new), value });
    }

    /// Lowers the version of the value under `id`, if it is still here.
    pub fn restamp(&mut self, id: &OpId, mark: Mark) {
        if let Some(place) = self.0.iter().position(|dot| dot.id.as_deref() == Some(id)) {
            let dot = &mut self.0[place];
            if mark.version < dot.mark.version {
                dot.mark = mark;
                self.0.sort_unstable_by_key(|dot| dot.mark.version);
            }
        }
    }

    /// Returns the values that are in either state and were not removed in the other.
    pub fn joined(&self, past: &Past<'_>, other: &Self, other_past: &Past<'_>) -> Self
    where
        T: Clone,
    {
        let mut dots = Vec::new();
        for dot in &self.0 {
            match other.0.iter().find(|it| it.is_same(dot)) {
                Some(it) if it.mark.version < dot.mark.version => dots.push(it.clone()),
                Some(_) => dots.push(dot.clone()),
                None if !other_past.had(&dot.mark, dot.id.as_deref()) => dots.push(dot.clone()),
                None => {}
            }
        }
        let new = other.0.iter().filter(|dot| {
            !past.had(&dot.mark, dot.id.as_deref()) && !self.0.iter().any(|it| it.is_same(dot))
        });
        dots.extend(new.cloned());
        dots.sort_unstable_by_key(|dot| dot.mark.version);
        Self(dots)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value with the highest version.
    pub fn last(&self) -> Option<&Dot<T>> {
        self.0.last()
    }

    /// Returns the ids of all values.
    pub fn ids(&self) -> impl Iterator<Item = &OpId> {
        self.0.iter().filter_map(|dot| dot.id.as_deref())
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Dot<T>> + ExactSizeIterator {
        self.0.iter()
    }
}

/// Applies [`Dots::joined`] to each key.
pub fn joined<T: Clone>(
    own: &BTreeMap<Value, Dots<T>>,
    past: &Past<'_>,
    other: &BTreeMap<Value, Dots<T>>,
    other_past: &Past<'_>,
) -> BTreeMap<Value, Dots<T>> {
    let none = Dots::default();
    let new = other.iter().filter(|(key, _)| !own.contains_key(*key));
    let new = new.map(|(key, dots)| (key, none.joined(past, dots, other_past)));
    let beside = |key| other.get(key).unwrap_or(&none);
    let here = own.iter().map(|(key, dots)| (key, dots.joined(past, beside(key), other_past)));
    let standing = here.chain(new).filter(|(_, dots)| !dots.is_empty());
    standing.map(|(key, dots)| (key.clone(), dots)).collect()
}
