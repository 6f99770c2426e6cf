//! Counters, exact in whatever causal order their additions and resets come.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::ids::Correction;
use super::{Op, Recent};
use crate::timestamp::{DcId, Timestamp, Version};
use crate::vector::Vector;

/// A sum of additions, less what resets have taken away.
///
/// For each origin there is the sum of all its additions, and what resets took away of it: all up to
/// a timestamp but some, with their sum. Of several resets that is what any of them took, so nothing
/// is taken away twice. Those that took no more than another are not kept; what the rest took together is
/// found in one order, whatever they came in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    origin: DcId,
    added: i128,
    /// How many additions that were.
    count: u64,
    /// By resets of which none took all that another did, in order.
    resets: Vec<Removed>,
    /// What they took together.
    taken: Taken,
}

/// What was taken away, and how many additions that were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Taken {
    sum: i128,
    count: u64,
}

/// What was taken away of one origin's additions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Removed {
    /// All up to here.
    to: Timestamp,
    /// But these, by timestamp and place: the resets did not see them. They are not folded anywhere
    /// where a reset is measured that did not see them, while those that it saw may be.
    except: BTreeMap<(Timestamp, u32), i64>,
    /// Runs under ids that were seen, and that add nothing here: a lower run does, elsewhere.
    repeats: BTreeSet<(Timestamp, u32)>,
    /// The sum of what was taken away.
    sum: i128,
    /// How many additions that were.
    count: u64,
}

impl Removed {
    /// Whether it took all that the other took.
    fn covers(&self, other: &Self) -> bool {
        let mut missed = self.except.keys().filter(|at| at.0 <= other.to);
        self.to >= other.to && missed.all(|at| other.except.contains_key(at))
    }

    /// Whether it stands for both, if the two took the same: it knew of more repeated runs.
    fn is_above(&self, other: &Self) -> bool {
        let knew = self.repeats.len().cmp(&other.repeats.len());
        knew.then_with(|| self.cmp(other)).is_gt()
    }

    /// Takes away what the other takes away too, which does not reach further.
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
        let live = self.0.iter().map(|part| part.added.wrapping_sub(part.taken.sum));
        live.fold(0, i128::wrapping_add)
    }

    /// The sum, cut to what 64 bits hold.
    pub fn clamped(&self) -> i64 {
        self.value().clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// Whether anything was added since it was last reset.
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
            self.part(*origin).remove(removed);
        }
    }

    /// Takes of each origin the sum of whichever has more of its additions, and what resets took away
    /// in either.
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

    /// What a reset takes away whose snapshot is this, and the state that of the snapshot: of each
    /// origin all additions up to there, but those that the snapshot does not hold.
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
            // What earlier resets took away is part of the sum, here as there.
            let (to, except) = (snapshot[part.origin], except.collect());
            let repeats = repeats.iter().filter(|version| version.origin == part.origin);
            let repeats = repeats.map(|version| (version.timestamp, version.index)).collect();
            (part.origin, Removed { to, except, repeats, sum: part.added, count: part.count })
        });
        Removal(parts.collect())
    }
}
