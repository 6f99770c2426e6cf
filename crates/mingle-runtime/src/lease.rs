//! Signs of life: those that this origin gives, and those of others.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use mingle_model::Origin;
use mingle_store::record::read_floor;
use mingle_store::{Bytes, Data, Read, RecordKey, RecordKind, StoreError, Write};

use crate::runtime::Runtime;
use crate::stats::Counted;

/// Signs of life of other origins.
#[derive(Default)]
pub(crate) struct Watched {
    /// The last sign of life, and since when it has not changed.
    pub(crate) leases: BTreeMap<Origin, (Vec<Option<Bytes>>, Duration)>,
}

impl Runtime {
    /// Gives a sign of life while anything of this origin is open.
    pub(crate) async fn beat(&self) -> Result<(), StoreError> {
        let (origin, beats) = {
            let mut own = self.own();
            if own.is_clean() {
                return Ok(());
            }
            own.beats += 1;
            (own.origin, own.beats)
        };
        if self.is_taken_for_dead(origin).await? {
            // What it has begun is in others' hands.
            self.stats.count(Counted::Fenced);
            self.renew(origin);
            return Ok(());
        }
        for store in 0..self.stores.len() {
            let key = RecordKey::of_origin(RecordKind::Lease, origin);
            let beat = Write::Record(key, beats.to_be_bytes().as_slice().into());
            // Noted first: written or not, it is removed.
            self.own().leased.insert(store);
            self.write_records(store, None, vec![beat]).await?;
            // All may have been cleaned up meanwhile, and the sign removed before it arrived.
            let mut own = self.own();
            if own.origin == origin {
                own.leased.insert(store);
            }
        }
        Ok(())
    }

    /// Whether somebody has fenced this origin off, or even cleaned up after it.
    pub(crate) async fn is_taken_for_dead(&self, origin: Origin) -> Result<bool, StoreError> {
        let kinds = [RecordKind::Fence, RecordKind::Floor];
        let reads = kinds.map(|kind| Read::Record(RecordKey::of_origin(kind, origin)));
        let answers = match self.stores.len() {
            0 => return Ok(false),
            // Fences and last floors stand at every store.
            _ => self.read_records(0, None, &reads).await?,
        };
        Ok(match answers.as_slice() {
            [Data::Record(Some(_)), _] => true,
            [_, Data::Record(Some(floor))] => read_floor(floor) == u64::MAX,
            _ => false,
        })
    }

    /// Removes the signs of life once nothing is open: by whoever gives them, between two, and by
    /// whoever gives none any more. One that arrives after this is noted again.
    ///
    /// # Errors
    ///
    /// When a store fails.
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

    /// Whether an origin has given no sign of life for the length of a lease.
    pub(crate) async fn is_dead(&self, origin: Origin) -> Result<bool, StoreError> {
        let mut signs = Vec::new();
        let read = [Read::Record(RecordKey::of_origin(RecordKind::Lease, origin))];
        for store in 0..self.stores.len() {
            let answers = self.read_records(store, None, &read).await?;
            signs.push(match answers.into_iter().next() {
                Some(Data::Record(sign)) => sign,
                _ => None,
            });
        }
        let now = self.world.elapsed();
        let mut watched = self.watched();
        let (last, since) = watched.leases.entry(origin).or_insert((signs.clone(), now));
        if *last != signs {
            (*last, *since) = (signs, now);
        }
        Ok(now.saturating_sub(*since) >= self.settings.lease)
    }

    pub(crate) fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
