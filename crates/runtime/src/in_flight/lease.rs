//! Signs of life that this origin gives. `recovery/dead_origins` watches those of others.

use futures_util::future::join_all;
use mingle_model::Origin;
use mingle_store::record::read_floor;
use mingle_store::{Data, Read, RecordKey, RecordKind, StoreError, Write};

use crate::in_flight::InFlight;
use crate::observe::stats::Counted;

impl InFlight {
    /// Gives a sign of life while any transaction of this origin is open, at all stores in
    /// parallel: a store that is away keeps none of the others waiting.
    pub(crate) async fn beat(&self) {
        let (origin, beats) = {
            let mut own = self.table();
            if own.is_clean() {
                return;
            }
            own.beats += 1;
            (own.origin, own.beats)
        };
        if self.is_taken_for_dead(origin).await {
            // Other processes have taken over its transactions.
            self.stores.stats.count(Counted::Fenced);
            self.renew(origin);
            return;
        }
        join_all((0..self.stores.all.len()).map(|store| self.beat_at(store, origin, beats))).await;
    }

    async fn beat_at(&self, store: usize, origin: Origin, beats: u64) {
        let key = RecordKey::of_origin(RecordKind::Lease, origin);
        let beat = Write::Record(key, beats.to_be_bytes().as_slice().into());
        // Noted before the write: the sign is removed whether it was written or not.
        self.table().leased.insert(store);
        // After a failed sign the next one follows.
        let _ =
            self.stores.at_most_a_third(self.stores.write_records(store, None, vec![beat])).await;
        // Meanwhile all may have been cleaned up, and the sign removed before it arrived.
        let mut own = self.table();
        if own.origin == origin {
            own.leased.insert(store);
        }
    }

    /// True if another process has fenced this origin off, or has even cleaned up after it.
    pub(crate) async fn is_taken_for_dead(&self, origin: Origin) -> bool {
        let kinds = [RecordKind::Fence, RecordKind::Floor];
        let reads = kinds.map(|kind| Read::Record(RecordKey::of_origin(kind, origin)));
        // Fences and last floors stand at every store: one answer is enough.
        let asked = (0..self.stores.all.len()).map(|store| {
            self.stores.at_most_a_third(self.stores.read_records(store, None, &reads))
        });
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
    pub(crate) async fn end_lease(&self) -> Result<(), StoreError> {
        loop {
            let (origin, store) = {
                let own = self.table();
                let Some(store) = own.leased.first().filter(|_| own.is_clean()) else {
                    return Ok(());
                };
                (own.origin, *store)
            };
            let key = RecordKey::of_origin(RecordKind::Lease, origin);
            self.stores.write_records(store, None, vec![Write::Discard(key)]).await?;
            self.table().leased.remove(&store);
        }
    }
}
