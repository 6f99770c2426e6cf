//! The replicas that a session leans on: they have transactions that it no longer names.
//!
//! A session names the transactions that it has seen until every replica has them. While a replica
//! of an `eventual` store hears nothing, that can be any number of them. So a session with many of them
//! drops those that its own replica has, and remembers in their place the replica, and the last
//! sequence number of each origin among them: it *leans* on that replica. If its client moves, its calls at
//! that store still run at the replica that it leans on, until the floors of these origins have passed
//! the numbers at every replica.
//!
//! # Example
//!
//! ```text
//!   at r1   33 waits at `feed`, r3 hears nothing   drops (7,1) … (7,33)     leans on r1, up to (7,33)
//!   moves to r3                                    a call at `feed`         runs at r1
//!   r3 hears again; the floor of 7 is at 40 everywhere                      leans on none
//!                                                  a call at `feed`         runs at r3
//! ```

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Name, Origin, TransactionId};
use serde::{Deserialize, Serialize};

/// For each store, the replicas that a session leans on, each with the last sequence number of each origin that
/// the session has seen there and no longer names. A session without a replica leans on
/// `None`, the place where the store runs such sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leans(BTreeMap<Name, BTreeMap<Option<Name>, BTreeMap<Origin, u64>>>);

impl Leans {
    /// Leans on a replica of `store`, which has these transactions.
    pub(crate) fn lean(
        &mut self,
        store: &Name,
        replica: Option<&Name>,
        ids: impl IntoIterator<Item = TransactionId>,
    ) {
        for id in ids {
            let at = self.0.entry(store.clone()).or_default();
            let last = at.entry(replica.cloned()).or_default().entry(id.origin).or_default();
            *last = id.sequence.max(*last);
        }
    }

    /// Adds all that `other` leans on.
    pub(crate) fn join(&mut self, other: &Self) {
        for (store, replicas) in &other.0 {
            for (replica, origins) in replicas {
                let ids = origins.iter();
                let ids =
                    ids.map(|(origin, last)| TransactionId { origin: *origin, sequence: *last });
                self.lean(store, replica.as_ref(), ids);
            }
        }
    }

    /// Returns the stores at which the session leans on a replica.
    pub(crate) fn stores(&self) -> impl Iterator<Item = &Name> {
        self.0.keys()
    }

    /// Returns the replicas of `store` that the session leans on.
    pub(crate) fn replicas(&self, store: &str) -> BTreeSet<Option<Name>> {
        self.0.get(store).into_iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// Returns the last transaction of each origin for which the session leans on a replica of `store`.
    pub(crate) fn last(&self, store: &str) -> BTreeSet<TransactionId> {
        let origins = self.0.get(store).into_iter().flat_map(BTreeMap::values).flatten();
        origins.map(|(origin, last)| TransactionId { origin: *origin, sequence: *last }).collect()
    }

    /// Ends the need for a replica of `store` for the transactions up to those for which `is_everywhere`
    /// holds.
    pub(crate) fn release(&mut self, store: &str, is_everywhere: impl Fn(TransactionId) -> bool) {
        let Some(replicas) = self.0.get_mut(store) else { return };
        for origins in replicas.values_mut() {
            origins.retain(|origin, last| {
                !is_everywhere(TransactionId { origin: *origin, sequence: *last })
            });
        }
        replicas.retain(|_, origins| !origins.is_empty());
        if replicas.is_empty() {
            self.0.remove(store);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(origin: u128, sequence: u64) -> TransactionId {
        TransactionId { origin: Origin(origin), sequence }
    }

    #[test]
    fn a_session_leans_on_a_replica_until_the_last_transaction_of_each_origin_is_everywhere() {
        let (feed, r1) = (Name::from("feed"), Name::from("r1"));
        let mut leans = Leans::default();
        leans.lean(&feed, Some(&r1), [id(7, 3), id(7, 2), id(8, 1)]);
        assert_eq!(leans.replicas("feed"), BTreeSet::from([Some(r1.clone())]));
        assert_eq!(leans.last("feed"), BTreeSet::from([id(7, 3), id(8, 1)]));
        leans.release("feed", |id| id.origin == Origin(7) && id.sequence <= 2);
        assert_eq!(leans.last("feed").len(), 2, "the floor is below the last one");
        leans.release("feed", |id| id.origin == Origin(7) && id.sequence <= 3);
        assert_eq!(leans.last("feed"), BTreeSet::from([id(8, 1)]));
        leans.release("feed", |_| true);
        assert_eq!(leans, Leans::default());
    }

    #[test]
    fn joining_keeps_every_replica_and_the_highest_number() {
        let (feed, r1, r2) = (Name::from("feed"), Name::from("r1"), Name::from("r2"));
        let (mut one, mut other) = (Leans::default(), Leans::default());
        one.lean(&feed, Some(&r1), [id(7, 3)]);
        other.lean(&feed, Some(&r1), [id(7, 5)]);
        other.lean(&feed, Some(&r2), [id(7, 1)]);
        let mut joined = one.clone();
        joined.join(&other);
        other.join(&one);
        assert_eq!(joined, other);
        assert_eq!(joined.replicas("feed"), BTreeSet::from([Some(r1), Some(r2)]));
        joined.release("feed", |id| id.sequence <= 4);
        assert_eq!(joined.last("feed"), BTreeSet::from([id(7, 5)]));
    }
}
