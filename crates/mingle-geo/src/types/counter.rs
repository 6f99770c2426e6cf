//! Counters, exact in whatever causal order their additions and resets come.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Op, Recent};
use crate::timestamp::{DcId, Timestamp, Version};
use crate::vector::Vector;

/// A sum of additions, less what resets have taken away.
///
/// For each origin there is the sum of all its additions, and what resets took away of it: all up to
/// a timestamp, with their sum, and single ones beyond. Of several resets the one that reaches
/// furthest contains what the others took up to there, so nothing is taken away twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    origin: DcId,
    added: i128,
    /// The last addition.
    last: Timestamp,
    removed: Removed,
}

/// What was taken away of one origin's additions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Removed {
    /// All up to here.
    to: Timestamp,
    /// The sum of those.
    sum: i128,
    /// Single ones beyond, by timestamp and place.
    beyond: BTreeMap<(Timestamp, u32), i64>,
}

impl Removed {
    fn join(&mut self, other: &Self) {
        if (other.to, other.sum) > (self.to, self.sum) {
            (self.to, self.sum) = (other.to, other.sum);
        }
        self.beyond.extend(&other.beyond);
        self.beyond = self.beyond.split_off(&(self.to, u32::MAX));
    }

    fn total(&self) -> i128 {
        let beyond = self.beyond.values().map(|amount| i128::from(*amount));
        beyond.fold(self.sum, i128::wrapping_add)
    }

    fn reaches(&self) -> Timestamp {
        self.beyond.last_key_value().map_or(self.to, |((timestamp, _), _)| *timestamp)
    }
}

/// What a reset takes away, by origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal(Vec<(DcId, Removed)>);

/// A recent addition; see [`Recent`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Addition {
    version: Version,
    amount: i64,
    is_held: bool,
}

impl Addition {
    pub(super) fn of(recent: &Recent<'_>, amount: i64) -> Self {
        Self { version: recent.version, amount, is_held: recent.is_held }
    }
}

/// What was recently added to a counter.
pub(super) fn additions(recent: &[Recent<'_>]) -> Vec<Addition> {
    let additions = recent.iter().filter_map(|recent| match recent.op {
        Op::Add(amount) => Some(Addition::of(recent, *amount)),
        _ => None,
    });
    additions.collect()
}

impl Counter {
    /// The sum.
    pub fn value(&self) -> i128 {
        let live = self.0.iter().map(|part| part.added.wrapping_sub(part.removed.total()));
        live.fold(0, i128::wrapping_add)
    }

    /// The sum, cut to what 64 bits hold.
    pub fn clamped(&self) -> i64 {
        self.value().clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// Whether anything was added since it was last reset.
    pub fn is_present(&self) -> bool {
        self.0
            .iter()
            .any(|part| part.last > part.removed.reaches() || part.added != part.removed.total())
    }

    fn part(&mut self, origin: DcId) -> &mut Part {
        let place = match self.0.binary_search_by_key(&origin, |part| part.origin) {
            Ok(place) => place,
            Err(place) => {
                let (last, removed) = (Timestamp::ZERO, Removed::default());
                self.0.insert(place, Part { origin, added: 0, last, removed });
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
        for (origin, removed) in &removal.0 {
            self.part(*origin).removed.join(removed);
        }
    }

    /// What a reset takes away whose snapshot is this, and the state that of the snapshot: of each
    /// origin all additions up to the first that the snapshot does not hold, and the single ones
    /// beyond that it holds.
    pub(super) fn removal(&self, snapshot: &Vector, recent: &[Addition]) -> Removal {
        let parts = self.0.iter().map(|part| {
            let of_origin = recent.iter().filter(|recent| recent.version.origin == part.origin);
            let missing = of_origin.clone().filter(|recent| !recent.is_held);
            let first = missing.map(|recent| recent.version.timestamp).min();
            let to = first.map_or(snapshot[part.origin], Timestamp::before);
            let held = of_origin
                .filter(|recent| recent.is_held && recent.version.timestamp > to)
                .map(|recent| ((recent.version.timestamp, recent.version.index), recent.amount));
            // What earlier resets took away is part of the sum, here as there.
            let beyond: BTreeMap<_, _> = held.collect();
            let single = beyond.values().map(|amount| i128::from(*amount));
            let sum = part.added.wrapping_sub(single.fold(0, i128::wrapping_add));
            (part.origin, Removed { to, sum, beyond })
        });
        Removal(parts.collect())
    }
}
