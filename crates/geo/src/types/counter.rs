//! Counters that are exact for any causal order of their additions and resets.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::ids::Correction;
use super::{Op, Recent};
use crate::timestamp::{DcId, Timestamp, Version};
use crate::vector::Vector;

/// A sum of additions, minus the amounts that resets have taken away.
///
/// For each origin it holds the sum of all additions, and the part that resets took away: all
/// additions up to a timestamp except some, with their sum. Several resets together take the union
/// of their parts, so no addition is taken away twice. A reset that took no more than another one
/// is not kept. The union is computed in a fixed order, independent of the order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    origin: DcId,
    added: i128,
    /// The number of additions.
    count: u64,
    /// Resets in order; none of them took everything that another one did.
    resets: Vec<Removed>,
    /// The union of the resets' parts.
    taken: Taken,
}

/// The sum of the additions that were taken away, and their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Taken {
    sum: i128,
    count: u64,
}

/// The additions of one origin that a reset took away.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Removed {
    /// All additions up to here.
    to: Timestamp,
    /// Except these, by timestamp and index: the resets did not see them. While such an addition
    /// may be missing from a reset's snapshot, it is not folded where that reset is measured;
    /// additions that the resets saw may be.
    except: BTreeMap<(Timestamp, u32), i64>,
    /// Seen runs under ids that add nothing here, because a lower run elsewhere counts.
    repeats: BTreeSet<(Timestamp, u32)>,
    /// The sum of the additions that were taken away.
    sum: i128,
    /// The number of these additions.
    count: u64,
}

impl Removed {
    /// True if it took everything that the other took.
    fn covers(&self, other: &Self) -> bool {
        let mut missed = self.except.keys().filter(|at| at.0 <= other.to);
        self.to >= other.to && missed.all(|at| other.except.contains_key(at))
    }

    /// True if it represents both of two equal resets, because it knew of more repeated runs.
    fn is_above(&self, other: &Self) -> bool {
        let knew = self.repeats.len().cmp(&other.repeats.len());
        knew.then_with(|| self.cmp(other)).is_gt()
    }

    /// Adds the parts that `other` takes away; `other` does not reach further.
    fn join(&mut self, other: &Self) {
        let Self { except, repeats, sum, count, .. } = self;
        except.retain(|at, amount| {
            let is_taken = at.0 <= other.to && !other.except.contains_key(at);
            if is_taken && !other.repeats.contains(at) {
                *sum = sum.wrapping_add(i128::from(*amount));
                *count += 1;
            }
            !is_taken
        });
        repeats.extend(&other.repeats);
    }
}

impl Part {
    fn remove(&mut self, removed: &Removed) {
        let is_redundant =
            |one: &Removed| one.covers(removed) && !(removed.covers(one) && removed.is_above(one));
        if self.resets.iter().any(is_redundant) {
            return;
        }
        self.resets.retain(|one| !removed.covers(one));
        self.resets.push(removed.clone());
        self.resets.sort_unstable();
        let mut rest = self.resets.iter().rev();
        let mut all = rest.next().cloned().unwrap_or_default();
        rest.for_each(|one| all.join(one));
        self.taken = Taken { sum: all.sum, count: all.count };
    }
}

/// The additions that a reset takes away, by origin.
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

/// Returns the recent additions to a counter.
pub(super) fn additions(recent: &[Recent<'_>]) -> Vec<Addition> {
    let additions = recent.iter().filter_map(|recent| match recent.op {
        Op::Add(amount) => Some(Addition::of(recent, *amount)),
        _ => None,
    });
    additions.collect()
}

impl Counter {
    /// Returns the sum.
    pub fn value(&self) -> i128 {
        let live = self.0.iter().map(|part| part.added.wrapping_sub(part.taken.sum));
        live.fold(0, i128::wrapping_add)
    }

    /// Returns the sum, limited to the range of 64 bits.
    pub fn clamped(&self) -> i64 {
        self.value().clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// True if anything was added since the last reset.
    pub fn is_present(&self) -> bool {
        self.0.iter().any(|part| part.count > part.taken.count)
    }

    fn part(&mut self, origin: DcId) -> &mut Part {
        let place = match self.0.binary_search_by_key(&origin, |part| part.origin) {
            Ok(place) => place,
            Err(place) => {
                let (resets, taken) = (Vec::new(), Taken::default());
                self.0.insert(place, Part { origin, added: 0, count: 0, resets, taken });
                place
            }
        };
        &mut self.0[place]
    }

    pub(super) fn add(&mut self, version: Version, amount: i64) {
        let part = self.part(version.origin);
        part.added = part.added.wrapping_add(i128::from(amount));
        part.count += 1;
    }

    /// Handles a run at `version` of an addition that counts under the version `was`.
    pub(super) fn restamp(&mut self, was: Version, version: Version, amount: i64) {
        // Both runs count as additions, whichever holds the amount.
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
            self.part(*origin).remove(removed);
        }
    }

    /// For each origin, takes the sum of the state that has more of its additions, and the resets
    /// of both.
    pub(super) fn join(&mut self, other: &Self, is_further: impl Fn(DcId) -> bool) {
        for part in &other.0 {
            let own = self.part(part.origin);
            part.resets.iter().for_each(|removed| own.remove(removed));
        }
        for part in self.0.iter_mut().filter(|part| is_further(part.origin)) {
            let theirs = other.0.iter().find(|it| it.origin == part.origin);
            (part.added, part.count) = theirs.map_or((0, 0), |it| (it.added, it.count));
        }
    }

    pub(super) fn correct(&mut self, correction: &Correction) {
        let part = self.part(correction.origin);
        part.added = part.added.wrapping_add(correction.amount);
    }

    /// Returns the additions that a reset at this snapshot takes away; the state must be the
    /// snapshot's. For each origin these are all additions up to the snapshot's entry, except those
    /// outside the snapshot.
    pub(super) fn removal(
        &self,
        snapshot: &Vector,
        recent: &[Addition],
        repeats: &[Version],
    ) -> Removal {
        let parts = self.0.iter().map(|part| {
            let missing = recent
                .iter()
                .filter(|recent| recent.version.origin == part.origin && !recent.is_held);
            let except = missing
                .map(|recent| ((recent.version.timestamp, recent.version.index), recent.amount));
            // The parts that earlier resets took away are included in the sum at every replica.
            let (to, except) = (snapshot[part.origin], except.collect());
            let repeats = repeats.iter().filter(|version| version.origin == part.origin);
            let repeats = repeats.map(|version| (version.timestamp, version.index)).collect();
            (part.origin, Removed { to, except, repeats, sum: part.added, count: part.count })
        });
        Removal(parts.collect())
    }
}
