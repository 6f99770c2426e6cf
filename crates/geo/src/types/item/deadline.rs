//! The deadlines of an item, and the ends of its lives.

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use super::{is_running, time};
use crate::timestamp::Version;

/// The facts about an item's deadline that may still decide the end of a life: those that the
/// horizon has not reached, and the last one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlines(OrdMap<Version, Option<u64>>);

/// Returns the end of the life that a fact ends if no other fact comes in time.
fn end(version: Version, deadline_us: Option<u64>) -> Option<u64> {
    // A fact that commits after its deadline ends the life at once.
    Some(deadline_us?.max(time(version).saturating_add(1)))
}

impl Deadlines {
    /// True if no fact matters any more.
    pub fn is_blank(&self) -> bool {
        self.0.is_empty()
    }

    pub fn note(&mut self, version: Version, deadline_us: Option<u64>) {
        self.0.insert(version, deadline_us);
    }

    /// Lowers the version of a fact, if it is still here.
    pub fn restamp(&mut self, was: Version, version: Version) {
        if let Some(deadline_us) = self.0.remove(&was) {
            self.0.insert(version, deadline_us);
        }
    }

    /// Returns the last end of a life up to `now_us`, or 0.
    pub fn last_end(&self, now_us: u64) -> u64 {
        let (mut last, mut next): (u64, Option<u64>) = (0, None);
        for (version, deadline_us) in self.0.iter().rev() {
            if let Some(end) = end(*version, *deadline_us)
                && end <= now_us
                && next.is_none_or(|next| next >= end)
            {
                last = last.max(end);
            }
            next = Some(time(*version));
        }
        last
    }

    /// Returns the deadline of the life that began at this time.
    pub fn current(&self, life: u64) -> Option<u64> {
        let (version, deadline_us) = self.0.get_max()?;
        deadline_us.filter(|_| time(*version) >= life || is_running(*version))
    }

    /// Drops the facts older than the horizon that cannot end a life any more.
    pub fn settle(&mut self, horizon_us: u64) {
        let is_before = |version: &Version| time(*version) < horizon_us;
        let before = self.0.keys().take_while(|version| is_before(version));
        let mut before: Vec<Version> = before.copied().collect();
        let last = before.last().copied();
        // The next fact, if it is known, is above the horizon, and may be above the deadline too.
        if let Some(last) = last
            && end(last, self.0[&last]).is_some_and(|end| end > horizon_us)
        {
            before.pop();
        }
        for version in before {
            self.0.remove(&version);
        }
    }

    /// Returns the time that the horizon must reach for [`settle`](Self::settle) to drop a fact.
    pub fn due_us(&self) -> Option<u64> {
        let mut facts = self.0.iter();
        let (first, deadline_us) = facts.next()?;
        let own = end(*first, *deadline_us).unwrap_or(0).max(time(*first).saturating_add(1));
        // It is dropped too once the next fact is below the horizon.
        let next = facts.next().map(|(version, _)| time(*version).saturating_add(1));
        Some(next.map_or(own, |next| own.min(next)))
    }

    /// Returns the facts of both. Below its horizon, each has dropped what cannot matter.
    pub fn joined(&self, horizon_us: u64, other: &Self, other_horizon_us: u64) -> Self {
        let (further, beside, most) = if horizon_us >= other_horizon_us {
            (self, other, horizon_us)
        } else {
            (other, self, other_horizon_us)
        };
        let mut facts = further.0.clone();
        let above = beside.0.iter().filter(|(version, _)| time(**version) >= most);
        facts.extend(above.map(|(version, deadline_us)| (*version, *deadline_us)));
        Self(facts)
    }
}
