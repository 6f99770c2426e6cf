//! Counters, exact in whatever causal order their additions and resets come.

use serde::{Deserialize, Serialize};

use crate::timestamp::{DcId, Timestamp, Version};
use crate::vector::Vector;

/// A sum of additions, less what resets have taken away.
///
/// For each origin there is the sum of all its additions and the furthest reset: how much of that
/// sum, up to which timestamp, was taken away. Of several resets the one that reaches furthest
/// contains the others, so none is counted twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter(Vec<Part>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    origin: DcId,
    added: i128,
    /// The last addition.
    last: Timestamp,
    /// The furthest reset, and the sum of the additions up to there.
    removed: (Timestamp, i128),
}

/// What a reset takes away: of each origin's additions, those up to a timestamp, with their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal(Vec<(DcId, Timestamp, i128)>);

impl Counter {
    /// The sum.
    pub fn value(&self) -> i128 {
        let live = self.0.iter().map(|part| part.added.wrapping_sub(part.removed.1));
        live.fold(0, i128::wrapping_add)
    }

    /// The sum, cut to what 64 bits hold.
    pub fn clamped(&self) -> i64 {
        self.value().clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// Whether anything was added since it was last reset.
    pub fn is_present(&self) -> bool {
        self.0.iter().any(|part| part.last > part.removed.0)
    }

    fn part(&mut self, origin: DcId) -> &mut Part {
        let place = match self.0.binary_search_by_key(&origin, |part| part.origin) {
            Ok(place) => place,
            Err(place) => {
                let removed = (Timestamp::ZERO, 0);
                self.0.insert(place, Part { origin, added: 0, last: Timestamp::ZERO, removed });
                place
            }
        };
        &mut self.0[place]
    }

    pub(super) fn add(&mut self, version: Version, amount: i64) {
        let part = self.part(version.origin);
        part.added = part.added.wrapping_add(i128::from(amount));
        part.last = part.last.max(version.timestamp);
    }

    /// An addition that stands under the version `was` ran at `version` too.
    pub(super) fn restamp(&mut self, was: Version, version: Version, amount: i64) {
        // Where it counts does not matter to whether it is there: both runs do.
        self.add(version, 0);
        if version < was {
            let amount = i128::from(amount);
            let from = self.part(was.origin);
            from.added = from.added.wrapping_sub(amount);
            let to = self.part(version.origin);
            to.added = to.added.wrapping_add(amount);
        }
    }

    pub(super) fn remove(&mut self, removal: &Removal) {
        for (origin, to, sum) in &removal.0 {
            let part = self.part(*origin);
            part.removed = part.removed.max((*to, *sum));
        }
    }

    /// What a reset takes away whose snapshot is this, and the state that of the snapshot.
    pub(super) fn removal(&self, snapshot: &Vector) -> Removal {
        let parts = self.0.iter().map(|part| (part.origin, snapshot[part.origin], part.added));
        Removal(parts.collect())
    }
}
