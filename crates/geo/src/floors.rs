//! Floors of operation ids: an origin's ids up to its floor are no longer used (`runtime.md`,
//! "End").
//!
//! A replica whose floor was raised accepts no operation with an id below it. But an operation that
//! another data center accepted before raising its own floor may still be on its way. So an id is
//! forgotten only once the floor was raised in every data center, and everything from before is
//! here and folded. For this, each replica raises its floor at a timestamp of its own, and sends
//! the floor with the interval of transactions that contains that timestamp.

use std::collections::BTreeMap;

use mingle_model::Origin;
use serde::{Deserialize, Serialize};

use crate::timestamp::{DcId, Timestamp};
use crate::types::OpId;
use crate::vector::Vector;

/// A floor that one data center raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raised {
    /// The origin of the operation ids.
    pub origin: Origin,
    /// The ids of its transactions up to this sequence are no longer accepted.
    pub sequence: u64,
    /// Transactions that the data center commits after this timestamp use none of them.
    pub at: Timestamp,
}

/// The floors of all data centers.
#[derive(Clone, Debug, Default)]
pub struct Floors(BTreeMap<DcId, BTreeMap<Origin, Floor>>);

/// The history of one floor of one data center; the floor may be raised more often than anything is
/// folded.
#[derive(Clone, Copy, Debug)]
struct Floor {
    newest: Raised,
    /// The first earlier raise whose timestamp was not yet folded when the newest came.
    earlier: Option<Raised>,
    /// The highest sequence among earlier raises whose timestamps were folded then.
    settled: u64,
}

/// The timestamp of a floor that settles nothing.
const NEVER: Timestamp = Timestamp(u64::MAX);

impl Floor {
    fn new(raised: Raised) -> Self {
        Self { newest: raised, earlier: None, settled: 0 }
    }

    fn history(&self) -> impl Iterator<Item = Raised> {
        self.earlier.into_iter().chain([self.newest])
    }

    /// Returns the highest sequence that this floor had reached at or before `folded`.
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
    /// Records that data center `dc` raised a floor; everything up to `folded` is folded here.
    pub fn raise(&mut self, dc: DcId, raised: Raised, folded: &Vector) {
        let floors = self.0.entry(dc).or_default();
        let floor = floors.entry(raised.origin).or_insert_with(|| Floor::new(raised));
        floor.raise(raised, folded[dc]);
    }

    /// Handles the cut of a data center. Floors that it raised above the cut are not known
    /// everywhere, so they settle nothing until it raises others.
    pub fn suspend(&mut self, dc: DcId, cut: Timestamp) {
        for floor in self.0.get_mut(&dc).into_iter().flat_map(BTreeMap::values_mut) {
            floor.earlier = floor.earlier.filter(|raised| raised.at <= cut);
            if floor.newest.at > cut {
                floor.newest.at = NEVER;
            }
        }
    }

    /// Returns the floor of `origin` at a data center.
    pub fn of(&self, dc: DcId, origin: Origin) -> u64 {
        self.get(dc, origin).map_or(0, |floor| floor.newest.sequence)
    }

    fn get(&self, dc: DcId, origin: Origin) -> Option<&Floor> {
        self.0.get(&dc)?.get(&origin)
    }

    /// True if a data center no longer accepts this id.
    pub fn refuses(&self, dc: DcId, id: &OpId) -> bool {
        id.transaction.sequence <= self.of(dc, id.transaction.origin)
    }

    /// True if no data center accepts this id any more, and all earlier operations are in `folded`.
    pub fn is_settled(&self, dcs: impl Iterator<Item = DcId>, folded: &Vector, id: &OpId) -> bool {
        let mut dcs = dcs;
        dcs.all(|dc| {
            let floor = self.get(dc, id.transaction.origin);
            floor.is_some_and(|floor| id.transaction.sequence <= floor.settled_at(folded[dc]))
        })
    }

    /// Returns all floors, as last raised.
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
            // Before that nothing is folded; after that all floors that were raised well before are
            // settled.
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
