//! Dependencies: operations that must be applied before the operation that names them.
//!
//! An operation's *nearest* dependencies have a longest path of one hop to it; its *one-hop*
//! dependencies have a shortest path of one hop, so the nearest are among them (thesis §4.3). COPS and
//! Eiger track one-hop dependencies, for which a client needs to know nothing of the operations that
//! it reads. COPS-RT tracks all dependencies, and computes the nearest.

use std::collections::{BTreeMap, BTreeSet};

use crate::clock::Timestamp;

/// A dependency on an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dep {
    /// The locator: a key of the operation; its server knows if the operation is applied.
    pub key: u32,
    /// The timestamp of the operation.
    pub ts: Timestamp,
}

/// The context of an actor in COPS and Eiger: the one-hop dependencies of its next write.
///
/// # Examples
///
/// ```
/// use mingle_cops::clock::{NodeId, Timestamp};
/// use mingle_cops::deps::{Dep, OneHop};
///
/// let dep = |key, time| Dep { key, ts: Timestamp::new(time, NodeId::new(0, 0)) };
/// let mut context = OneHop::default();
/// context.read(dep(1, 4));
/// context.read(dep(2, 5));
/// assert_eq!(context.deps(), [dep(1, 4), dep(2, 5)]);
/// context.wrote([dep(3, 6)]);
/// assert_eq!(context.deps(), [dep(3, 6)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct OneHop(Vec<Dep>);

impl OneHop {
    /// Adds the operation that a read returned, unless it was never written.
    pub fn read(&mut self, dep: Dep) {
        if dep.ts != Timestamp::ABSENT && !self.0.contains(&dep) {
            self.0.push(dep);
        }
    }

    /// Replaces the context by the operations of a write: they are nearer than all before.
    pub fn wrote(&mut self, deps: impl IntoIterator<Item = Dep>) {
        self.0 = deps.into_iter().collect();
    }

    /// Returns the one-hop dependencies.
    pub fn deps(&self) -> Vec<Dep> {
        self.0.clone()
    }
}

/// The context of an actor in COPS-RT: all operations in its past, each with its dependencies.
#[derive(Clone, Debug, Default)]
pub struct Graph(BTreeMap<Dep, Vec<Dep>>);

impl Graph {
    /// Adds an operation with all its dependencies.
    pub fn add(&mut self, dep: Dep, deps: &[Dep]) {
        if dep.ts == Timestamp::ABSENT {
            return;
        }
        for below in deps {
            self.0.entry(*below).or_default();
        }
        self.0.insert(dep, deps.to_vec());
    }

    /// Adds the actor's own write, which depends on all operations of the context: of those only the
    /// dependencies of the next write are kept.
    pub fn wrote(&mut self, dep: Dep) {
        let deps = self.all();
        self.0 = deps.iter().map(|below| (*below, Vec::new())).collect();
        self.0.insert(dep, deps);
    }

    /// Removes an operation that is applied everywhere, and all that it depends on.
    pub fn never_depend(&mut self, dep: Dep) {
        for below in self.0.remove(&dep).unwrap_or_default() {
            self.0.remove(&below);
        }
    }

    /// Returns all dependencies of the next write, the most recent one of each key.
    pub fn all(&self) -> Vec<Dep> {
        let recent: BTreeMap<u32, Timestamp> = self.0.keys().map(|dep| (dep.key, dep.ts)).collect();
        recent.into_iter().map(|(key, ts)| Dep { key, ts }).collect()
    }

    /// Returns the nearest dependencies: those on which no other operation of the context depends.
    pub fn nearest(&self) -> Vec<Dep> {
        let far: BTreeSet<&Dep> = self.0.values().flatten().collect();
        self.0.keys().filter(|dep| !far.contains(dep)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::NodeId;

    fn dep(key: u32, time: u64) -> Dep {
        Dep { key, ts: Timestamp::new(time, NodeId::new(0, 0)) }
    }

    /// Thesis §4.4: w6 depends on w3, which depends on w1; w1 was read too.
    #[test]
    fn a_dependency_with_a_longer_path_is_not_nearest() {
        let mut graph = Graph::default();
        graph.add(dep(1, 1), &[]);
        graph.add(dep(3, 3), &[dep(1, 1)]);
        assert_eq!(graph.nearest(), [dep(3, 3)]);
        assert_eq!(graph.all(), [dep(1, 1), dep(3, 3)]);
    }

    #[test]
    fn of_each_key_the_most_recent_dependency_counts() {
        let mut graph = Graph::default();
        graph.add(dep(1, 1), &[]);
        graph.add(dep(1, 4), &[]);
        assert_eq!(graph.all(), [dep(1, 4)]);
    }

    #[test]
    fn after_a_write_it_alone_is_nearest_and_older_versions_of_a_key_are_gone() {
        let mut graph = Graph::default();
        graph.add(dep(1, 1), &[]);
        graph.add(dep(1, 4), &[]);
        graph.wrote(dep(2, 5));
        assert_eq!(graph.nearest(), [dep(2, 5)]);
        assert_eq!(graph.all(), [dep(1, 4), dep(2, 5)]);
        graph.wrote(dep(2, 6));
        assert_eq!(graph.all(), [dep(1, 4), dep(2, 6)]);
        assert_eq!(graph.nearest(), [dep(2, 6)]);
    }

    #[test]
    fn an_operation_that_is_applied_everywhere_leaves_with_its_past() {
        let mut graph = Graph::default();
        graph.add(dep(3, 3), &[dep(1, 1)]);
        graph.add(dep(2, 2), &[]);
        graph.never_depend(dep(3, 3));
        assert_eq!(graph.all(), [dep(2, 2)]);
    }
}
