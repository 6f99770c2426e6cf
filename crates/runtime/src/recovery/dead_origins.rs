//! Origins that give no sign of life any more.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use mingle_model::Origin;
use mingle_store::{Bytes, Data, Read, RecordKey, RecordKind};

use crate::recovery::Recovery;

/// Signs of life of other origins.
#[derive(Default)]
pub(crate) struct Watched {
    /// The last sign of life, and the time since which it has not changed.
    pub(crate) leases: BTreeMap<Origin, (Vec<Option<Bytes>>, Duration)>,
}

impl Recovery {
    /// True if an origin has given no sign of life for a lease at any store that answers.
    pub(crate) async fn is_dead(&self, origin: Origin) -> bool {
        let read = [Read::Record(RecordKey::of_origin(RecordKind::Lease, origin))];
        let asked = (0..self.stores.all.len())
            .map(|store| self.stores.at_most_a_third(self.stores.read_records(store, None, &read)));
        let answers = join_all(asked).await;
        if answers.iter().all(Option::is_none) {
            return false;
        }
        let now = self.stores.world.elapsed();
        let mut watched = self.watched();
        let none = || (vec![None; answers.len()], now);
        let (last, since) = watched.leases.entry(origin).or_insert_with(none);
        for (last, answer) in last.iter_mut().zip(answers) {
            // A store that does not answer says nothing about the origin.
            let Some(Data::Record(sign)) = answer.and_then(|all| all.into_iter().next()) else {
                continue;
            };
            if *last != sign {
                (*last, *since) = (sign, now);
            }
        }
        now.saturating_sub(*since) >= self.stores.settings.lease
    }

    pub(crate) fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
