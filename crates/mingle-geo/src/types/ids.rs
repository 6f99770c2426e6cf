//! Operation ids, of which one counts (`runtime.md`, `by-id`).
//!
//! A later phase of a Mingle transaction may be run by several helpers, at several data centers,
//! each in a transaction of its own; its operations carry the same ids each time. An item remembers
//! the versions under which it met each id:
//!
//! - Who ran an operation after seeing it run adds nothing.
//! - Of those that did not see each other, the operation stands once, under the lowest version.
//!   Whoever saw one of them saw the operation: a removal takes it away for good.
//!
//! Ids are remembered through folding, until the floor of their origin has passed them; those of
//! several runs, until all data centers have these and what they put there is taken away.
//!
//! Departure: amounts that are added under an id count at the origin of the lowest version. Where
//! two resets of a counter ran at once, and each had seen a different run of one addition, and
//! neither the other's, both take it away. All replicas agree on the outcome (see
//! [`Counter`](super::Counter)).

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::Value;
use serde::{Deserialize, Serialize};

use super::{Cause, Mark, Op, OpId};
use crate::timestamp::{DcId, Version};
use crate::vector::Vector;

/// The ids that an item has met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids(BTreeMap<OpId, Met>);

/// An id that was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Met {
    /// Its runs that had not seen another, in the order of their versions.
    runs: Vec<Mark>,
    added: Option<Box<Added>>,
}

/// What an operation adds to a sum: nothing else tells that of the sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Added {
    /// To which counter of a map.
    key: Option<Value>,
    amount: i64,
}

/// Bytes of an entry.
pub const ENTRY_BYTES: usize = size_of::<(OpId, Met)>();

/// Bytes of the one run that an entry has mostly.
pub const RUN_BYTES: usize = size_of::<Mark>();

/// Bytes of what an operation added.
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

/// What an item has met, and the snapshot that it is at.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a> {
    /// What it has met.
    pub ids: &'a Ids,
    /// Where it is.
    pub at: &'a Vector,
}

impl Past<'_> {
    /// Whether it has had what stands elsewhere under this mark and id.
    pub fn had(&self, mark: &Mark, id: Option<&OpId>) -> bool {
        self.at.covers(&mark.commit_vec) || id.is_some_and(|id| self.ids.0.contains_key(id))
    }

    /// Whether it has met this id and forgotten it: so it had all runs.
    fn has_forgotten(&self, id: &OpId, met: &Met) -> bool {
        !self.ids.0.contains_key(id) && met.is_in(self.at)
    }
}

/// By how much to correct the sum of an origin's additions, of the counter of a key or of the only one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// Of which counter of a map.
    pub key: Option<Value>,
    /// Whose additions.
    pub origin: DcId,
    /// What to add.
    pub amount: i128,
}

/// What an item knew of an operation's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// Nothing.
    First,
    /// Its transaction saw it run before.
    Seen,
    /// It ran elsewhere, neither seeing the other.
    Repeat {
        /// The lowest version so far, under which it stands.
        was: Version,
    },
}

impl Ids {
    /// Remembers that the operation `id` ran.
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

    /// Whether a transaction saw the operation `id` run.
    pub fn observed(&self, id: &OpId, cause: &Cause) -> bool {
        let met = self.0.get(id);
        met.is_some_and(|met| met.runs.iter().any(|run| cause.observes(run)))
    }

    /// Whether the operation `id` stands under no lower version than this one, as far as is known.
    pub fn may_stand(&self, id: &OpId, version: Version) -> bool {
        let lowest = self.0.get(id).and_then(Met::lowest);
        lowest.is_none_or(|lowest| lowest >= version)
    }

    /// The runs that are known beside the lowest of each operation.
    pub fn repeats(&self) -> Vec<Version> {
        let repeats = self.0.values().flat_map(|met| met.runs.iter().skip(1));
        repeats.map(|run| run.version).collect()
    }

    /// How many it remembers.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether it has met none, or all are forgotten.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether [`forget`](Self::forget) would forget any.
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

    /// Forgets ids that are past, which `is_past` says of an id and its runs. Those of several runs are
    /// remembered while what they put there stands, which `stands` says: somebody who saw only one of the
    /// runs may yet take it away.
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

    /// What to correct where the sums of each origin's additions were taken from whichever of two states
    /// had more of it: `is_further` says whether that was the other. An amount is counted at the origin of
    /// the lowest run, and each of the two may know of another.
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

    /// What two have met that are at these snapshots. What one of them has forgotten is past.
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
