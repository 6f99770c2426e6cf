//! Lists that grow at both ends.

use imbl::OrdMap;
use mingle_model::Value;
use serde::{Deserialize, Serialize};

use super::super::Mark;
use super::super::dots::Seen;
use super::super::ids::Past;
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pushed {
    commit_vec: Vector,
    value: Value,
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

    pub fn push(&mut self, side: Side, mark: Mark, value: Value) {
        let end = if side == Side::Left { &mut self.left } else { &mut self.right };
        end.insert(mark.version, Pushed { commit_vec: mark.commit_vec, value });
    }

    pub fn pull(&mut self, elements: &[Version]) {
        for version in elements {
            self.left.remove(version);
            self.right.remove(version);
        }
    }

    pub fn displace_all(&mut self, seen: &Seen<'_>) {
        self.retain(|mark| !seen.observes(&mark, None));
    }

    pub fn keep(&mut self, keeps: impl Fn(Version) -> bool) {
        self.retain(|mark| keeps(mark.version));
    }

    fn retain(&mut self, keeps: impl Fn(Mark) -> bool) {
        for end in [&mut self.left, &mut self.right] {
            let mark = |version: &Version, pushed: &Pushed| Mark {
                version: *version,
                commit_vec: pushed.commit_vec,
            };
            let gone = end.iter().filter(|(version, pushed)| !keeps(mark(version, pushed)));
            let gone: Vec<Version> = gone.map(|(version, _)| *version).collect();
            for version in gone {
                end.remove(&version);
            }
        }
    }

    pub fn joined(&self, past: &Past<'_>, other: &Self, other_past: &Past<'_>) -> Self {
        let join = |own: &OrdMap<Version, Pushed>, other: &OrdMap<Version, Pushed>| {
            let is_new = |version: &Version, pushed: &Pushed, past: &Past<'_>| {
                !past.had(&Mark { version: *version, commit_vec: pushed.commit_vec }, None)
            };
            let mut joined = OrdMap::new();
            for (version, pushed) in own {
                if other.contains_key(version) || is_new(version, pushed, other_past) {
                    joined.insert(*version, pushed.clone());
                }
            }
            for (version, pushed) in other {
                if !own.contains_key(version) && is_new(version, pushed, past) {
                    joined.insert(*version, pushed.clone());
                }
            }
            joined
        };
        Self { left: join(&self.left, &other.left), right: join(&self.right, &other.right) }
    }
}
