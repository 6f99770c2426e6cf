//! Floors of operation ids: up to where those of an origin come no more (`runtime.md`, "End").
//!
//! A replica whose floor was raised accepts no operation with an id below. But what another data
//! center accepted before its own floor was raised may still be on its way, so an id is forgotten only
//! once the floor was raised everywhere, and everything from before is here and folded. For that each
//! replica raises its floor at a timestamp of its own, and tells it with the interval of its
//! transactions that holds that timestamp.

use std::collections::BTreeMap;

use mingle_model::Origin;
use serde::{Deserialize, Serialize};

use crate::timestamp::{DcId, Timestamp};
use crate::types::OpId;
use crate::vector::Vector;

/// A data center raised a floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raised {
    /// Of whose operation ids.
    pub origin: Origin,
    /// Those of its transactions up to this sequence come no more.
    pub sequence: u64,
    /// What the data center commits after this has none of them.
    pub at: Timestamp,
}

/// The floors of all data centers.
#[derive(Clone, Debug, Default)]
pub struct Floors(BTreeMap<DcId, BTreeMap<Origin, Floor>>);

/// A floor of one data center, as it was raised: it may be raised more often than anything is folded.
#[derive(Clone, Copy, Debug)]
struct Floor {
    newest: Raised,
    /// Of those before, the first up to which not everything was folded when the newest came.
    earlier: Option<Raised>,
    /// Of those up to which everything was folded then, the highest.
    settled: u64,
}

/// What was raised at no timestamp that counts.
const NEVER: Timestamp = Timestamp(u64::MAX);

impl Floor {
    fn new(raised: Raised) -> Self {
        Self { newest: raised, earlier: None, settled: 0 }
    }

    fn history(&self) -> impl Iterator<Item = Raised> {
        self.earlier.into_iter().chain([self.newest])
    }

    /// What it was raised to before everything that is folded up to `folded`.
    fn settled_at(&self, folded: Timestamp) -> u64 {
        let settled = self.history().filter(|raised| raised.at <= folded && raised.at != NEVER);
        settled.map(|raised| raised.sequence).fold(self.settled, u64::max)
    }

    fn raise(&mut self, raised: Raised, folded: Timestamp) {
        if raised.sequence <= self.newest.sequence {
            return;
        }
        let settled = self.settled_at(folded);
        let earlier = self.history().find(|raised| raised.at > folded && raised.at != NEVER);
        *self = Self { newest: raised, earlier, settled };
    }
}

impl Floors {
    /// Takes note that a data center raised a floor, of which everything up to `folded` is folded.
    pub fn raise(&mut self, dc: DcId, raised: Raised, folded: &Vector) {
        let floors = self.0.entry(dc).or_default();
        let floor = floors.entry(raised.origin).or_insert_with(|| Floor::new(raised));
        floor.raise(raised, folded[dc]);
    }

    /// A data center was cut off. Floors that it raised above the cut are not known everywhere, so they
    /// settle nothing until it raises others.
    pub fn suspend(&mut self, dc: DcId, cut: Timestamp) {
        for floor in self.0.get_mut(&dc).into_iter().flat_map(BTreeMap::values_mut) {
            floor.earlier = floor.earlier.filter(|raised| raised.at <= cut);
            if floor.newest.at > cut {
                floor.newest.at = NEVER;
            }
        }
    }

    /// Where the floor of `origin` stands at a data center.
    pub fn of(&self, dc: DcId, origin: Origin) -> u64 {
        self.get(dc, origin).map_or(0, |floor| floor.newest.sequence)
    }

    fn get(&self, dc: DcId, origin: Origin) -> Option<&Floor> {
        self.0.get(&dc)?.get(&origin)
    }

    /// Whether a data center accepts this id no more.
    pub fn refuses(&self, dc: DcId, id: &OpId) -> bool {
        id.transaction.sequence <= self.of(dc, id.transaction.origin)
    }

    /// Whether nobody accepts this id any more, and all that came before is in `folded`.
    pub fn is_settled(&self, dcs: impl Iterator<Item = DcId>, folded: &Vector, id: &OpId) -> bool {
        let mut dcs = dcs;
        dcs.all(|dc| {
            let floor = self.get(dc, id.transaction.origin);
            floor.is_some_and(|floor| id.transaction.sequence <= floor.settled_at(folded[dc]))
        })
    }

    /// All floors, as they were raised last.
    pub fn iter(&self) -> impl Iterator<Item = (DcId, Raised)> {
        self.0.iter().flat_map(|(dc, floors)| floors.values().map(|floor| (*dc, floor.newest)))
    }
}

#[cfg(test)]
mod tests {
    use mingle_model::TransactionId;

    use super::*;

    #[test]
    fn a_floor_settles_though_it_is_raised_more_often_than_anything_is_folded() {
        let (dc, origin) = (DcId(0), Origin(7));
        let id = |sequence| OpId {
            transaction: TransactionId { origin, sequence },
            phase: 1,
            position: 0,
        };
        let folded = |at: u64| Vector::ZERO.with(dc, Timestamp(at.saturating_sub(50)));
        let mut floors = Floors::default();
        for at in 0..1_000 {
            let raised = Raised { origin, sequence: at, at: Timestamp(at) };
            floors.raise(dc, raised, &folded(at));
            let settled = (0..=at)
                .take_while(|id_at| floors.is_settled([dc].into_iter(), &folded(at), &id(*id_at)));
            let settled = settled.count() as u64;
            // Nothing before it is folded; and all that was raised well before is settled.
            assert!(settled <= at.saturating_sub(50) + 1, "{settled} of {at}");
            assert!(settled >= at.saturating_sub(102), "{settled} of {at}");
        }
        floors.suspend(dc, Timestamp(500));
        assert!(!floors.is_settled([dc].into_iter(), &folded(2_000), &id(999)));
        let raised = Raised { origin, sequence: 1_000, at: Timestamp(1_500) };
        floors.raise(dc, raised, &folded(1_500));
        assert!(!floors.is_settled([dc].into_iter(), &folded(1_540), &id(1_000)));
        assert!(floors.is_settled([dc].into_iter(), &folded(1_550), &id(1_000)));
    }
}
