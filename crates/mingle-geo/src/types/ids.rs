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
//! several runs, until what they put there is taken away.
//!
//! Departure: amounts that are added under an id count at the origin of the lowest version. Where
//! two resets of a counter ran at once, and each had seen a different run of one addition, and
//! neither the other's, both take it away. All replicas agree on the outcome.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Cause, Mark, OpId};
use crate::timestamp::Version;

/// The ids that an item has met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids(BTreeMap<OpId, Vec<Mark>>);

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
    pub fn note(&mut self, id: &OpId, cause: &Cause) -> Noted {
        let marks = self.0.entry(*id).or_default();
        let noted = match marks.first() {
            None => Noted::First,
            Some(_) if marks.iter().any(|mark| cause.observes(mark)) => Noted::Seen,
            Some(lowest) => Noted::Repeat { was: lowest.version },
        };
        if let Err(place) = marks.binary_search_by_key(&cause.version, |mark| mark.version) {
            marks.insert(place, cause.mark());
        }
        noted
    }

    /// Whether a transaction saw the operation `id` run.
    pub fn observed(&self, id: &OpId, cause: &Cause) -> bool {
        let marks = self.0.get(id).map_or(&[][..], Vec::as_slice);
        marks.iter().any(|mark| cause.observes(mark))
    }

    /// Whether the operation `id` stands under no lower version than this one, as far as is known.
    pub fn may_stand(&self, id: &OpId, version: Version) -> bool {
        let lowest = self.0.get(id).and_then(|marks| marks.first());
        lowest.is_none_or(|lowest| lowest.version >= version)
    }

    /// The runs that are known beside the lowest of each operation.
    pub fn repeats(&self) -> Vec<Version> {
        let marks = self.0.values().flat_map(|marks| marks.iter().skip(1));
        marks.map(|mark| mark.version).collect()
    }

    /// Whether it has met none, or all are forgotten.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets ids that can come no more. Those of several runs are remembered while what they put there
    /// stands, which `stands` says: somebody who saw only one of the runs may yet take it away.
    pub fn forget(
        &mut self,
        is_past: impl Fn(&OpId) -> bool,
        stands: impl FnOnce() -> BTreeSet<OpId>,
    ) {
        let is_repeated = |id: &OpId, marks: &Vec<Mark>| marks.len() > 1 && is_past(id);
        let must_look = self.0.iter().any(|(id, marks)| is_repeated(id, marks));
        let standing = if must_look { stands() } else { BTreeSet::new() };
        self.0.retain(|id, marks| !is_past(id) || marks.len() > 1 && standing.contains(id));
    }
}
