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
//! Ids are remembered through folding, until the floor of their origin has passed them.
//!
//! Departure: amounts that are added under an id count at the origin of the lowest version. Where
//! two resets of a counter ran at once, and each had seen a different run of one addition, and
//! neither the other's, both take it away. All replicas agree on the outcome.

use std::collections::BTreeMap;

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

    /// Forgets ids that can come no more.
    pub fn forget(&mut self, is_past: impl Fn(&OpId) -> bool) {
        self.0.retain(|id, _| !is_past(id));
    }
}
