//! Commit witnesses that are not written because the floor of their origin stands for them.
//!
//! Where a store counts one of several copies of a phase, the commit witness of a transaction's
//! last phase only tells other processes that they need not wait for the transaction any more, and
//! need not run the phase again. The floor of its origin tells them the same. So where
//! [`mingle_store::Capabilities::floor_suffices`], the process that began the transaction omits
//! that witness, and soon raises the floor for all transactions that are over by then. A witness
//! that would have to wait too long for the floor, because an earlier transaction is not over, is
//! written after all. Until one of the two stands, the transaction's intent remains: if this
//! process dies before, any process that finds the intent runs the phase again, with the same
//! effect.

use std::collections::BTreeMap;

use mingle_model::Name;
use mingle_store::{StoreError, Write};

use crate::api::settings::{DEFERRED_FOR, SETTLED_EVERY};
use crate::in_flight::InFlight;
use crate::observe::stats::Counted;

/// The commit witnesses at one place that cannot wait for a floor.
#[derive(Default)]
struct Late {
    sequences: Vec<u64>,
    writes: Vec<Write>,
}

impl InFlight {
    /// Raises floors for deferred witnesses soon, and repeats this until no witness is omitted.
    pub(crate) fn see_to_deferred(&self) {
        let (me, world) = (self.me.clone(), self.stores.world.clone());
        self.stores.world.spawn(Box::pin(async move {
            let (mut pause, mut failed) = (SETTLED_EVERY, 0);
            loop {
                world.sleep(pause).await;
                let Some(in_flight) = me.upgrade() else { return };
                // Failed steps are tried again.
                failed = if in_flight.raise_for_deferred().await.is_ok() { 0 } else { failed + 1 };
                pause = SETTLED_EVERY.max(in_flight.stores.backoff(failed + 4));
                let mut own = in_flight.table();
                if !own.has_deferred() {
                    own.is_settling = false;
                    return;
                }
            }
        }));
    }

    /// Raises the floors that can be raised for deferred witnesses, and writes the commit witnesses
    /// that cannot wait.
    async fn raise_for_deferred(&self) -> Result<(), StoreError> {
        let due = self.table().due();
        for due in due {
            self.stores.raise_at(due.store, due.replica.as_ref(), due.last).await?;
            self.table().settle(&due);
            self.stores.stats.add(Counted::FloorStood, due.count);
        }
        let (origin, late) = {
            let own = self.table();
            (
                own.origin(),
                own.deferred_since(self.stores.world.elapsed().saturating_sub(DEFERRED_FOR)),
            )
        };
        let mut places: BTreeMap<(usize, Option<Name>), Late> = BTreeMap::new();
        for (sequence, deferred) in late {
            let late = places.entry((deferred.store, deferred.replica)).or_default();
            self.table().tries(origin, sequence);
            late.sequences.push(sequence);
            late.writes.extend(deferred.writes.iter().cloned());
        }
        for ((store, replica), late) in places {
            self.stores.write_records(store, replica, late.writes).await?;
            let mut own = self.table();
            for sequence in late.sequences {
                own.has_written(origin, sequence);
            }
        }
        Ok(())
    }
}
