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
pub struct Floors(BTreeMap<DcId, BTreeMap<Origin, Raised>>);

impl Floors {
    /// Takes note that a data center raised a floor.
    pub fn raise(&mut self, dc: DcId, raised: Raised) {
        let floor = self.0.entry(dc).or_default().entry(raised.origin).or_insert(raised);
        if raised.sequence > floor.sequence {
            *floor = raised;
        }
    }

    /// A data center was cut off. Floors that it raised above the cut are not known everywhere, so they
    /// settle nothing until it raises others.
    pub fn suspend(&mut self, dc: DcId, cut: Timestamp) {
        let floors = self.0.get_mut(&dc).into_iter().flat_map(BTreeMap::values_mut);
        floors.filter(|raised| raised.at > cut).for_each(|raised| raised.at = Timestamp(u64::MAX));
    }

    /// Where the floor of `origin` stands at a data center.
    pub fn of(&self, dc: DcId, origin: Origin) -> u64 {
        self.get(dc, origin).map_or(0, |raised| raised.sequence)
    }

    fn get(&self, dc: DcId, origin: Origin) -> Option<&Raised> {
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
            self.get(dc, id.transaction.origin).is_some_and(|raised| {
                id.transaction.sequence <= raised.sequence && raised.at <= folded[dc]
            })
        })
    }

    /// All floors.
    pub fn iter(&self) -> impl Iterator<Item = (DcId, Raised)> {
        self.0.iter().flat_map(|(dc, floors)| floors.values().map(|raised| (*dc, *raised)))
    }
}
