//! Sums of additions, for a cell of an item that may expire.
//!
//! A [`Counter`](super::super::Counter) keeps totals only. Here the end of a life may divide the
//! additions at any time above the horizon, so those above it are kept one by one, in a sum and in a
//! removal that was measured before the end was known. Below the horizon both are totals of the life
//! that was decided there. An end that a removal's replica did not know is above the horizon of that
//! replica: the folded snapshot there has every older fact, and the snapshot of the removal contains
//! the folded one. So a removal can be restricted to any later life.

use std::collections::BTreeMap;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::timestamp::{DcId, Timestamp, Version};
use crate::vector::Vector;

/// The place of an addition among those of its origin.
type At = (Timestamp, u32);

/// The sum and number of some additions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Total {
    sum: i128,
    count: u64,
}

impl Total {
    fn of(amounts: impl Iterator<Item = i64>) -> Self {
        let mut total = Self::default();
        amounts.for_each(|amount| total.add(amount));
        total
    }

    fn add(&mut self, amount: i64) {
        self.sum = self.sum.wrapping_add(i128::from(amount));
        self.count += 1;
    }

    fn plus(self, other: Self) -> Self {
        Self { sum: self.sum.wrapping_add(other.sum), count: self.count + other.count }
    }
}

/// The additions to a cell, minus those that removals took away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum(Vec<Part>);

/// The additions of one origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    origin: DcId,
    /// The beginning of the life that the totals belong to.
    life: u64,
    /// Those below the horizon.
    settled: Total,
    /// The highest of these.
    last: At,
    /// Those above the horizon.
    recent: OrdMap<At, i64>,
    /// What removals took; none of them took all that another one did.
    taken: Vec<Taken>,
}

/// The additions of one origin that a removal took away.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Taken {
    /// All additions up to here.
    to: Timestamp,
    /// Except these, which its snapshot lacked.
    except: BTreeMap<At, i64>,
    /// The beginning of the life that `settled` belongs to.
    life: u64,
    /// The horizon of the replica that measured it, or that summed up more of it.
    horizon: u64,
    /// Those below the horizon.
    settled: Total,
    /// Those above it.
    recent: BTreeMap<At, i64>,
}

/// The additions that an operation takes away from a cell, by origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal(Vec<(DcId, Taken)>);

impl Removal {
    /// Returns a rough count of the bytes of memory that it points to.
    pub(super) fn weight(&self) -> usize {
        let parts = self.0.iter().map(|(_, taken)| {
            let count = taken.except.len() + taken.recent.len();
            size_of::<(DcId, Taken)>() + count * size_of::<(At, i64)>()
        });
        parts.sum()
    }
}

/// The position from which a life counts additions.
fn from(life: u64) -> At {
    (Timestamp::new(life, crate::timestamp::PartitionId(0)), 0)
}

impl Taken {
    /// True if it took the addition at this position, which came from the same origin.
    fn has(&self, at: At) -> bool {
        at.0 <= self.to && !self.except.contains_key(&at)
    }

    /// True if it took everything that the other took.
    fn covers(&self, other: &Self) -> bool {
        let mut missed = self.except.keys().filter(|at| at.0 <= other.to);
        self.to >= other.to && missed.all(|at| other.except.contains_key(at))
    }

    /// Restricts it to a life; `None` if nothing of it is left.
    fn within(&self, life: u64) -> Option<Self> {
        if life <= self.life {
            return Some(self.clone());
        }
        if life <= self.horizon {
            // The life began where the item was absent: there is nothing older in the total.
            return Some(Self { life, ..self.clone() });
        }
        let start = from(life);
        let after = |map: &BTreeMap<At, i64>| map.range(start..).map(|(at, n)| (*at, *n)).collect();
        let (except, recent) = (after(&self.except), after(&self.recent));
        let is_left = self.to >= start.0;
        let Self { to, horizon, .. } = *self;
        is_left.then(|| Self { to, except, life, horizon, settled: Total::default(), recent })
    }

    fn total(&self) -> Total {
        self.settled.plus(Total::of(self.recent.values().copied()))
    }
}

/// Returns the total of what several removals took together.
fn union(taken: &[Taken]) -> Total {
    // The furthest took everything that any of them did, except its exceptions.
    let Some(furthest) = taken.iter().max_by(|a, b| a.to.cmp(&b.to)) else {
        return Total::default();
    };
    let by_others = furthest.except.iter().filter(|(at, _)| taken.iter().any(|it| it.has(**at)));
    furthest.total().plus(Total::of(by_others.map(|(_, amount)| *amount)))
}

impl Part {
    fn new(origin: DcId, life: u64) -> Self {
        let (settled, last) = (Total::default(), At::default());
        Self { origin, life, settled, last, recent: OrdMap::new(), taken: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.settled == Total::default() && self.recent.is_empty() && self.taken.is_empty()
    }

    /// Returns what is left in a life.
    fn live(&self, life: u64) -> Total {
        let (added, taken) = if life <= self.life {
            (self.settled.plus(Total::of(self.recent.values().copied())), union(&self.taken))
        } else {
            let within: Vec<Taken> =
                self.taken.iter().filter_map(|taken| taken.within(life)).collect();
            let recent = self.recent.range(from(life)..).map(|(_, amount)| *amount);
            (Total::of(recent), union(&within))
        };
        let sum = added.sum.wrapping_sub(taken.sum);
        Total { sum, count: added.count.saturating_sub(taken.count) }
    }

    /// Returns the highest addition that is left in a life.
    fn highest(&self, life: u64) -> Option<At> {
        if self.live(life).count == 0 {
            return None;
        }
        let start = from(life);
        let last = self.recent.get_max().map_or(self.last, |(at, _)| *at);
        let taken = |at: At| self.taken.iter().any(|it| it.has(at));
        if !taken(last) {
            return Some(last).filter(|at| *at >= start);
        }
        // Whichever removal took the last one took all but its exceptions.
        let exceptions = self.taken.iter().filter(|it| it.has(last));
        let exceptions = exceptions.flat_map(|it| it.except.keys().copied());
        let is_here = |at: &At| *at <= self.last || self.recent.contains_key(at);
        exceptions.filter(|at| *at >= start && is_here(at) && !taken(*at)).max()
    }

    fn remove(&mut self, taken: &Taken) {
        let Some(taken) = taken.within(self.life) else { return };
        let is_redundant = |one: &Taken| one.covers(&taken) && !(taken.covers(one) && taken > *one);
        if self.taken.iter().any(is_redundant) {
            return;
        }
        self.taken.retain(|one| !taken.covers(one));
        self.taken.push(taken);
        self.taken.sort_unstable();
    }

    fn begin_life(&mut self, life: u64, horizon_us: u64) {
        if life <= self.life {
            return;
        }
        self.life = life;
        if life > horizon_us {
            self.settled = Total::default();
        }
        self.recent = self.recent.range(from(life)..).map(|(at, n)| (*at, *n)).collect();
        let taken: Vec<Taken> =
            self.taken.drain(..).filter_map(|taken| taken.within(life)).collect();
        for taken in &taken {
            self.remove(taken);
        }
    }
}

impl Sum {
    /// True if there is nothing in it, not even taken additions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the sum of the additions that are left in a life; `None` if there are none.
    pub fn live(&self, life: u64) -> Option<i128> {
        let parts = self.0.iter().map(|part| part.live(life));
        let live = parts.fold(Total::default(), Total::plus);
        (live.count > 0).then_some(live.sum)
    }

    /// Returns the highest version of an addition that is left in a life.
    pub fn highest(&self, life: u64) -> Option<Version> {
        let parts = self.0.iter().filter_map(|part| {
            let (timestamp, index) = part.highest(life)?;
            Some(Version { timestamp, origin: part.origin, index })
        });
        parts.max()
    }

    fn part(&mut self, origin: DcId, life: u64) -> &mut Part {
        let place = match self.0.binary_search_by_key(&origin, |part| part.origin) {
            Ok(place) => place,
            Err(place) => {
                self.0.insert(place, Part::new(origin, life));
                place
            }
        };
        &mut self.0[place]
    }

    /// Adds an amount, in an item whose life began at this time.
    pub fn add(&mut self, version: Version, amount: i64, life: u64) {
        self.part(version.origin, life).recent.insert((version.timestamp, version.index), amount);
    }

    /// Takes additions away, in an item whose life began at this time.
    pub fn remove(&mut self, removal: &Removal, life: u64) {
        for (origin, taken) in &removal.0 {
            self.part(*origin, life).remove(taken);
        }
        self.0.retain(|part| !part.is_empty());
    }

    /// Drops everything older than the beginning of a life, in an item with this horizon.
    pub fn begin_life(&mut self, life: u64, horizon_us: u64) {
        self.0.iter_mut().for_each(|part| part.begin_life(life, horizon_us));
        self.0.retain(|part| !part.is_empty());
    }

    /// Sums up the additions below the horizon. Returns true if others are left.
    pub fn settle(&mut self, horizon_us: u64) -> bool {
        for part in &mut self.0 {
            while let Some((at, amount)) = part.recent.get_min().copied()
                && at.0.micros() < horizon_us
            {
                part.recent.remove(&at);
                part.settled.add(amount);
                part.last = part.last.max(at);
            }
            for taken in &mut part.taken {
                taken.horizon = taken.horizon.max(horizon_us);
                while let Some((at, amount)) = taken.recent.first_key_value()
                    && at.0.micros() < horizon_us
                {
                    taken.settled.add(*amount);
                    taken.recent.pop_first();
                }
            }
        }
        let is_open = |part: &Part| {
            !part.recent.is_empty() || part.taken.iter().any(|taken| !taken.recent.is_empty())
        };
        self.0.iter().any(is_open)
    }

    /// For each origin, takes the additions of the state that has more of them, and the removals of
    /// both. Both belong to one life.
    pub fn joined(&self, other: &Self, is_further: impl Fn(DcId) -> bool) -> Self {
        let (mut joined, none) = (self.clone(), Part::new(DcId::default(), 0));
        for theirs in &other.0 {
            let own = joined.part(theirs.origin, theirs.life);
            theirs.taken.iter().for_each(|taken| own.remove(taken));
        }
        for own in joined.0.iter_mut().filter(|part| is_further(part.origin)) {
            let theirs = other.0.iter().find(|part| part.origin == own.origin).unwrap_or(&none);
            own.settled = theirs.settled;
            own.last = theirs.last;
            own.recent = theirs.recent.clone();
        }
        joined.0.retain(|part| !part.is_empty());
        joined
    }

    /// Returns the additions that an operation at this snapshot takes away; the state must be the
    /// snapshot's, settled up to its item's horizon. `missing` are additions that may be within the
    /// snapshot's entries and are not in the snapshot.
    pub fn removal(&self, snapshot: &Vector, missing: &[(Version, i64)], horizon: u64) -> Removal {
        let parts = self.0.iter().map(|part| {
            let missing = missing.iter().filter(|(version, _)| version.origin == part.origin);
            let except =
                missing.map(|(version, amount)| ((version.timestamp, version.index), *amount));
            let taken = Taken {
                to: snapshot[part.origin],
                except: except.collect(),
                life: part.life,
                horizon,
                settled: part.settled,
                recent: part.recent.iter().map(|(at, amount)| (*at, *amount)).collect(),
            };
            (part.origin, taken)
        });
        Removal(parts.collect())
    }
}
