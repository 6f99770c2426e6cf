//! Lists that grow at both ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use imbl::OrdMap;
use mingle_model::Value;
use serde::{Deserialize, Serialize};

use super::super::dots::Seen;
use super::super::ids::Past;
use super::super::{Mark, OpId};
use super::op::Side;
use crate::timestamp::Version;
use crate::vector::Vector;

/// The elements pushed at the left end, highest version first, and then those pushed at the right
/// end. No two operations have one version, so it names an element.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    left: OrdMap<Version, Pushed>,
    right: OrdMap<Version, Pushed>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Pushed {
    commit_vec: Vector,
    value: Value,
    /// The operation id. It is written beside the item, see [`Once`](super::once::Once).
    #[serde(skip)]
    id: Option<Box<OpId>>,
}

impl fmt::Debug for Pushed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pushed = f.debug_struct("Pushed");
        pushed.field("commit_vec", &self.commit_vec).field("value", &self.value);
        if let Some(id) = &self.id {
            pushed.field("id", id);
        }
        pushed.finish()
    }
}

impl Pushed {
    fn mark(&self, version: Version) -> Mark {
        Mark { version, commit_vec: self.commit_vec }
    }
}

/// An element of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The version of the push, by which [`ItemOp::Pull`](super::ItemOp::Pull) names the element.
    pub version: Version,
    /// Its value.
    pub value: &'a Value,
}

impl List {
    pub fn is_empty(&self) -> bool {
        self.left.is_empty() && self.right.is_empty()
    }

    /// Returns all elements in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Element<'_>> {
        let both = self.left.iter().rev().chain(self.right.iter());
        both.map(|(version, pushed)| Element { version: *version, value: &pushed.value })
    }

    /// Returns the highest version of an element.
    pub fn highest(&self) -> Option<Version> {
        let highest = |of: &OrdMap<Version, Pushed>| of.get_max().map(|(version, _)| *version);
        highest(&self.left).max(highest(&self.right))
    }

    fn end(&mut self, side: Side) -> &mut OrdMap<Version, Pushed> {
        if side == Side::Left { &mut self.left } else { &mut self.right }
    }

    pub fn push(&mut self, side: Side, mark: Mark, id: Option<&OpId>, value: Value) {
        let (commit_vec, id) = (mark.commit_vec, id.copied().map(Box::new));
        self.end(side).insert(mark.version, Pushed { commit_vec, value, id });
    }

    /// Removes elements that were seen. Another run of an element's operation may name it.
    pub fn pull(&mut self, elements: &[Version], seen: &Seen<'_>) {
        for named in elements {
            let is_here = self.left.contains_key(named) || self.right.contains_key(named);
            let counted = if is_here { None } else { seen.ids.counted(*named) };
            let version = counted.unwrap_or(*named);
            for end in [&mut self.left, &mut self.right] {
                let observes = |it: &Pushed| seen.observes(&it.mark(version), it.id.as_deref());
                if end.get(&version).is_some_and(observes) {
                    end.remove(&version);
                }
            }
        }
    }

    /// Lowers the version of the element under `id` at `was`, if it is still here.
    pub fn restamp(&mut self, side: Side, id: &OpId, was: Version, mark: Mark) {
        let end = self.end(side);
        if end.get(&was).is_some_and(|it| it.id.as_deref() == Some(id))
            && let Some(pushed) = end.remove(&was)
        {
            end.insert(mark.version, Pushed { commit_vec: mark.commit_vec, ..pushed });
        }
    }

    /// Returns the elements under operation ids, with these.
    pub fn named(&self) -> impl Iterator<Item = (Version, OpId)> {
        let both = self.left.iter().chain(self.right.iter());
        both.filter_map(|(version, pushed)| Some((*version, **pushed.id.as_ref()?)))
    }

    /// Returns the operation ids of the elements.
    pub fn ids(&self) -> impl Iterator<Item = &OpId> {
        self.left.values().chain(self.right.values()).filter_map(|pushed| pushed.id.as_deref())
    }

    /// Gives an element an operation id, if it is here.
    pub fn name(&mut self, version: Version, id: OpId) {
        for end in [&mut self.left, &mut self.right] {
            if let Some(pushed) = end.get_mut(&version) {
                pushed.id = Some(Box::new(id));
            }
        }
    }

    pub fn displace_all(&mut self, seen: &Seen<'_>) {
        self.retain(|version, pushed| !seen.observes(&pushed.mark(version), pushed.id.as_deref()));
    }

    pub fn keep(&mut self, keeps: impl Fn(Version) -> bool) {
        self.retain(|version, _| keeps(version));
    }

    fn retain(&mut self, keeps: impl Fn(Version, &Pushed) -> bool) {
        for end in [&mut self.left, &mut self.right] {
            let gone = end.iter().filter(|(version, pushed)| !keeps(**version, pushed));
            let gone: Vec<Version> = gone.map(|(version, _)| *version).collect();
            for version in gone {
                end.remove(&version);
            }
        }
    }

    /// Returns the elements that are in either list and were not removed in the other.
    pub fn joined(&self, past: &Past<'_>, other: &Self, other_past: &Past<'_>) -> Self {
        let left = joined(&self.left, past, &other.left, other_past);
        Self { left, right: joined(&self.right, past, &other.right, other_past) }
    }
}

/// Applies [`List::joined`] to one end.
fn joined(
    own: &OrdMap<Version, Pushed>,
    past: &Past<'_>,
    other: &OrdMap<Version, Pushed>,
    other_past: &Past<'_>,
) -> OrdMap<Version, Pushed> {
    let had = |past: &Past<'_>, version: &Version, pushed: &Pushed| {
        past.had(&pushed.mark(*version), pushed.id.as_deref())
    };
    let by_id: BTreeMap<&OpId, Version> =
        other.iter().filter_map(|(at, it)| Some((it.id.as_deref()?, *at))).collect();
    let (mut all, mut both) = (OrdMap::new(), BTreeSet::new());
    for (at, pushed) in own {
        let same = pushed.id.as_deref().map_or(Some(*at), |id| by_id.get(id).copied());
        match same.and_then(|same| other.get_key_value(&same)) {
            Some((theirs, it)) => {
                // Of two runs of one operation the lower counts.
                let (at, pushed) = if theirs < at { (theirs, it) } else { (at, pushed) };
                all.insert(*at, pushed.clone());
                both.insert(*theirs);
            }
            None if !had(other_past, at, pushed) => {
                all.insert(*at, pushed.clone());
            }
            None => {}
        }
    }
    for (at, pushed) in other {
        if !both.contains(at) && !had(past, at, pushed) {
            all.insert(*at, pushed.clone());
        }
    }
    all
}
