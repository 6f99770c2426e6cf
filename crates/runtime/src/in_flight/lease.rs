//! Signs of life: those that this origin gives, and those of others.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use mingle_model::Origin;
use mingle_store::record::read_floor;
use mingle_store::{Bytes, Data, Read, RecordKey, RecordKind, StoreError, Write};

use crate::observe::stats::Counted;
use crate::runtime::Runtime;

/// Signs of life of other origins.
#[derive(Default)]
pub(crate) struct Watched {
    /// The last sign of life, and the time since which it has not changed.
    pub(crate) leases: BTreeMap<Origin, (Vec<Option<Bytes>>, Duration)>,
}

impl Runtime {
    /// Gives a sign of life while any transaction of this origin is open, at all stores in
    /// parallel: a store that is away keeps none of the others waiting.
    pub(crate) async fn beat(&self) {
        let (origin, beats) = {
            let mut own = self.own();
            if own.is_clean() {
                return;
            }
            own.beats += 1;
            (own.origin, own.beats)
        };
        if self.is_taken_for_dead(origin).await {
            // Other processes have taken over its transactions.
            self.stats.count(Counted::Fenced);
            self.renew(origin);
            return;
        }
        join_all((0..self.stores.len()).map(|store| self.beat_at(store, origin, beats))).await;
    }

    async fn beat_at(&self, store: usize, origin: Origin, beats: u64) {
        let key = RecordKey::of_origin(RecordKind::Lease, origin);
        let beat = Write::Record(key, beats.to_be_bytes().as_slice().into());
        // Noted before the write: the sign is removed whether it was written or not.
        self.own().leased.insert(store);
        // After a failed sign the next one follows.
        let _ = self.at_most_a_third(self.write_records(store, None, vec![beat])).await;
        // Meanwhile all may have been cleaned up, and the sign removed before it arrived.
        let mut own = self.own();
        if own.origin == origin {
            own.leased.insert(store);
        }
    }

    /// Returns the answer of a store within a third of a lease; none if it does not answer.
    async fn at_most_a_third<T>(
        &self,
        asking: impl Future<Output = Result<T, StoreError>>,
    ) -> Option<T> {
        let asking = pin!(asking);
        match select(asking, self.world.sleep(self.settings.lease / 3)).await {
            Either::Left((answer, _)) => answer.ok(),
            Either::Right(_) => None,
        }
    }

    /// True if another process has fenced this origin off, or has even cleaned up after it.
    pub(crate) async fn is_taken_for_dead(&self, origin: Origin) -> bool {
        let kinds = [RecordKind::Fence, RecordKind::Floor];
        let reads = kinds.map(|kind| Read::Record(RecordKey::of_origin(kind, origin)));
        // Fences and last floors stand at every store: one answer is enough.
        let asked = (0..self.stores.len())
            .map(|store| self.at_most_a_third(self.read_records(store, None, &reads)));
        let answers = join_all(asked).await;
        answers.into_iter().flatten().any(|answers| match answers.as_slice() {
            [Data::Record(Some(_)), _] => true,
            [_, Data::Record(Some(floor))] => read_floor(floor) == u64::MAX,
            _ => false,
        })
    }

    /// Removes the signs of life once nothing is open. The task that gives them calls this between
    /// two signs, and a runtime that gives none any more. A sign that arrives after this is noted
    /// again.
    ///
    /// # Errors
    ///
    /// If a store fails.
    pub async fn end_lease(&self) -> Result<(), StoreError> {
        loop {
            let (origin, store) = {
                let own = self.own();
                let Some(store) = own.leased.first().filter(|_| own.is_clean()) else {
                    return Ok(());
                };
                (own.origin, *store)
            };
            let key = RecordKey::of_origin(RecordKind::Lease, origin);
            self.write_records(store, None, vec![Write::Discard(key)]).await?;
            self.own().leased.remove(&store);
        }
    }

    /// True if an origin has given no sign of life for a lease at any store that answers.
    pub(crate) async fn is_dead(&self, origin: Origin) -> bool {
        let read = [Read::Record(RecordKey::of_origin(RecordKind::Lease, origin))];
        let asked = (0..self.stores.len())
            .map(|store| self.at_most_a_third(self.read_records(store, None, &read)));
        let answers = join_all(asked).await;
        if answers.iter().all(Option::is_none) {
            return false;
        }
        let now = self.world.elapsed();
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
        now.saturating_sub(*since) >= self.settings.lease
    }

    pub(crate) fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
