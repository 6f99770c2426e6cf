//! Operation ids, under which only one run counts (`runtime.md`, `by-id`).
//!
//! Several helpers may run a later phase of a Mingle transaction, at several data centers, each in
//! its own transaction. The operations carry the same ids each time. An item remembers the versions
//! of the runs of each id:
//!
//! - A run whose transaction saw an earlier run adds nothing.
//! - Among runs that did not see each other, the operation counts once, under the lowest version. A
//!   transaction that saw one of them saw the operation: its removal takes the operation away for
//!   good.
//!
//! Ids are remembered through folding, until the floor of their origin has passed them. An id with
//! several runs is also kept until all data centers have these runs and its value is removed.
//!
//! Departure: an amount added to a counter under an id counts at the origin of the lowest version. If two
//! concurrent resets of a counter have each seen a different run of one addition, and neither has
//! seen the other's run, both take it away. All replicas agree on the outcome (see
//! [`Counter`](super::Counter)).

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::Value;
use serde::{Deserialize, Serialize};

use super::{Cause, Mark, Op, OpId};
use crate::timestamp::{DcId, Version};
use crate::vector::Vector;

/// The operation ids that an item remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids(BTreeMap<OpId, Met>);

/// The remembered runs of one id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Met {
    /// The runs that had not seen another one, in the order of their versions.
    runs: Vec<Mark>,
    added: Option<Box<Added>>,
}

/// The amount that an operation adds to a sum; the sum itself does not show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Added {
    /// The key of the counter, in a map.
    key: Option<Value>,
    amount: i64,
}

/// The bytes of an entry.
pub const ENTRY_BYTES: usize = size_of::<(OpId, Met)>();

/// The bytes of one run; an entry usually has one.
pub const RUN_BYTES: usize = size_of::<Mark>();

/// The bytes of an added amount.
pub const ADDED_BYTES: usize = size_of::<Added>();

impl Added {
    fn by(op: &Op) -> Option<Box<Self>> {
        match op {
            Op::Add(amount) => Some(Box::new(Self { key: None, amount: *amount })),
            Op::Increment(key, amount) => {
                Some(Box::new(Self { key: Some(key.clone()), amount: *amount }))
            }
            _ => None,
        }
    }
}

impl Met {
    fn lowest(&self) -> Option<Version> {
        self.runs.first().map(|run| run.version)
    }

    fn is_in(&self, snapshot: &Vector) -> bool {
        self.runs.iter().any(|run| snapshot.covers(&run.commit_vec))
    }

    fn insert(&mut self, run: Mark) {
        if let Err(place) = self.runs.binary_search_by_key(&run.version, |run| run.version) {
            self.runs.insert(place, run);
        }
    }
}

/// The ids that an item remembers, and its snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a> {
    /// The ids that the item remembers.
    pub ids: &'a Ids,
    /// The snapshot of the item.
    pub at: &'a Vector,
}

impl Past<'_> {
    /// True if the item has already had the value with this mark and id.
    pub fn had(&self, mark: &Mark, id: Option<&OpId>) -> bool {
        self.at.covers(&mark.commit_vec) || id.is_some_and(|id| self.ids.0.contains_key(id))
    }

    /// True if the item has met this id and forgotten it, so that it had all runs.
    fn has_forgotten(&self, id: &OpId, met: &Met) -> bool {
        !self.ids.0.contains_key(id) && met.is_in(self.at)
    }
}

/// A correction of the sum of one origin's additions, for a counter or a counter of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The key of the counter, in a map.
    pub key: Option<Value>,
    /// The origin of the additions.
    pub origin: DcId,
    /// The amount to add.
    pub amount: i128,
}

/// The state of an operation's id before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// The id was unknown.
    First,
    /// The transaction saw an earlier run.
    Seen,
    /// Another run exists, and neither saw the other.
    Repeat {
        /// The lowest version so far, under which the operation counts.
        was: Version,
    },
}

impl Ids {
    /// Records a run of the operation `id`.
    pub fn note(&mut self, id: &OpId, cause: &Cause, op: &Op) -> Noted {
        let new = || Met { runs: Vec::with_capacity(1), added: Added::by(op) };
        let met = self.0.entry(*id).or_insert_with(new);
        let noted = match met.lowest() {
            None => Noted::First,
            Some(_) if met.runs.iter().any(|run| cause.observes(run)) => Noted::Seen,
            Some(was) => Noted::Repeat { was },
        };
        if noted != Noted::Seen {
            met.insert(cause.mark());
        }
        noted
    }

    /// True if a transaction saw a run of the operation `id`.
    pub fn observed(&self, id: &OpId, cause: &Cause) -> bool {
        let met = self.0.get(id);
        met.is_some_and(|met| met.runs.iter().any(|run| cause.observes(run)))
    }

    /// Returns the version under which an operation counts that this run belongs to, if it is known.
    pub fn counted(&self, run: Version) -> Option<Version> {
        let has = |met: &&Met| met.runs.iter().any(|one| one.version == run);
        self.0.values().find(has).and_then(Met::lowest)
    }

    /// Returns, for the operations that both of two items know and that count under different versions
    /// there: those two versions.
    pub fn differing(&self, other: &Self) -> Vec<(Version, Version)> {
        let both = self
            .0
            .iter()
            .filter_map(|(id, met)| Some((met.lowest()?, other.0.get(id).and_then(Met::lowest)?)));
        both.filter(|(own, theirs)| own != theirs).collect()
    }

    /// True if no lower version than this one is known for the operation `id`.
    pub fn may_stand(&self, id: &OpId, version: Version) -> bool {
        let lowest = self.0.get(id).and_then(Met::lowest);
        lowest.is_none_or(|lowest| lowest >= version)
    }

    /// Returns all known runs of each operation except the lowest.
    pub fn repeats(&self) -> Vec<Version> {
        let repeats = self.0.values().flat_map(|met| met.runs.iter().skip(1));
        repeats.map(|run| run.version).collect()
    }

    /// Returns the number of remembered ids.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// True if no id is remembered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if [`forget`](Self::forget) would forget an id.
    pub fn has_past(
        &self,
        is_past: impl Fn(&OpId, &[Mark]) -> bool,
        stands: impl FnOnce() -> BTreeSet<OpId>,
    ) -> bool {
        let mut past = self.0.iter().filter(|(id, met)| is_past(id, &met.runs)).peekable();
        if past.peek().is_none() {
            return false;
        }
        let standing = stands();
        past.any(|(id, met)| met.runs.len() <= 1 || !standing.contains(id))
    }

    /// Forgets the ids for which `is_past` holds, given the id and its runs. An id with several
    /// runs is kept while its value is in `stands`, since a transaction that saw only one of the
    /// runs may still remove the value.
    pub fn forget(
        &mut self,
        is_past: impl Fn(&OpId, &[Mark]) -> bool,
        stands: impl FnOnce() -> BTreeSet<OpId>,
    ) {
        let is_repeated = |id: &OpId, met: &Met| met.runs.len() > 1 && is_past(id, &met.runs);
        let must_look = self.0.iter().any(|(id, met)| is_repeated(id, met));
        let standing = if must_look { stands() } else { BTreeSet::new() };
        self.0.retain(|id, met| {
            !is_past(id, &met.runs) || met.runs.len() > 1 && standing.contains(id)
        });
    }

    /// Returns the corrections of a join in which each origin's sum was taken from the state with
    /// more of its additions; `is_further` is true where that was the other state. An amount counts
    /// at the origin of the lowest run, and each state may know a different lowest run.
    pub fn corrections(
        own: &Past<'_>,
        other: &Past<'_>,
        is_further: impl Fn(DcId) -> bool,
    ) -> Vec<Correction> {
        let mut corrections = Vec::new();
        let both = own.ids.0.iter().filter_map(|(id, met)| Some((met, other.ids.0.get(id)?)));
        for (met, others) in both {
            let (Some(added), Some(here), Some(there)) =
                (&met.added, met.lowest(), others.lowest())
            else {
                continue;
            };
            let lowest = here.min(there).origin;
            let mut origins = vec![here.origin, there.origin];
            origins.dedup();
            for origin in origins {
                let taken = if is_further(origin) { there.origin } else { here.origin };
                let (is_in, must_be) = (taken == origin, lowest == origin);
                if is_in != must_be {
                    let amount = i128::from(added.amount);
                    let (key, amount) = (added.key.clone(), if must_be { amount } else { -amount });
                    corrections.push(Correction { key, origin, amount });
                }
            }
        }
        corrections
    }

    /// Joins the ids of two items at these snapshots. An id that one of them has forgotten is past.
    pub fn joined(own: &Past<'_>, other: &Past<'_>) -> Self {
        let mut joined = Self::default();
        for (past, beside) in [(own, other), (other, own)] {
            let remembered = past.ids.0.iter().filter(|(id, met)| !beside.has_forgotten(id, met));
            for (id, met) in remembered {
                match joined.0.get_mut(id) {
                    Some(joined) => met.runs.iter().for_each(|run| joined.insert(*run)),
                    None => {
                        joined.0.insert(*id, met.clone());
                    }
                }
            }
        }
        joined
    }
}
