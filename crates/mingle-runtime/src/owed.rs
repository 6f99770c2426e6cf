//! Commit witnesses that are not written, since the floor of their origin stands for them.
//!
//! At a store that counts one of several copies of a phase nothing rests on the commit witness of a
//! transaction's last phase but what others are told: that they need not wait for it any more, and
//! that nobody has to run it again. The floor of its origin tells them the same. So where
//! [`mingle_store::Capabilities::floor_suffices`], the process that has begun the transaction leaves
//! that witness out, and raises the floor soon, for all that are over by then. What has to wait too
//! long, since a transaction before it is not over, has its commit witness written after all. Until
//! either stands the transaction's intent does: should this process die before, whoever finds that
//! runs the phase again, which comes to the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::Name;
use mingle_store::{Capabilities, Once, StoreError, Write};

use crate::attempt::Visit;
use crate::leave::Draft;
use crate::limits::{OWED_FOR, SETTLED_EVERY};
use crate::own::Owed;
use crate::planted::Planted;
use crate::runtime::Runtime;
use crate::stats::Counted;
use crate::transaction::Execution;

/// The commit witnesses that cannot wait at one place.
#[derive(Default)]
struct Late {
    sequences: Vec<u64>,
    writes: Vec<Write>,
}

impl Runtime {
    /// Whether the commit witness of a later phase is left out: it is the last one, and the process
    /// that began the transaction runs it.
    pub(crate) fn owes_witness(&self, execution: &Execution, index: usize, visit: &Visit) -> bool {
        let Capabilities { once, floor_suffices, .. } = self.stores[visit.store].capabilities();
        *floor_suffices
            && *once == Once::ById
            && execution.decided_after.is_some()
            && execution.last_witnessed() == Some(index)
            && !execution.is_helper
            && !execution.plan.isolated
            && self.planted == Planted::None
    }

    /// Takes note of a commit witness that was left out, once its phase has committed.
    pub(crate) fn note_owed(
        &self,
        execution: &mut Execution,
        index: usize,
        visit: &Visit,
        draft: Draft,
    ) {
        let (Some(writes), Some(since)) = (draft.owed, execution.decided_after) else { return };
        let writes = Arc::from(writes);
        let replica = visit.replica.clone();
        let (store, committed) = (visit.store, self.world.elapsed());
        let owed =
            Owed { store, replica, since, committed, writes, is_tried: false, is_written: false };
        let before = &execution.plan.phases[..index];
        let was_here = before.iter().any(|p| execution.store_name(p).as_ref() == Some(&visit.name));
        if !draft.has_rows && !was_here {
            execution.left.rows.remove(&visit.store);
        }
        execution.left.owed = Some(Box::new(owed));
    }

    /// Raises floors for what is owed, soon and until nothing is.
    pub(crate) fn see_to_owed(&self) {
        let (me, world) = (self.me.clone(), self.world.clone());
        self.world.spawn(Box::pin(async move {
            let (mut pause, mut failed) = (SETTLED_EVERY, 0);
            loop {
                world.sleep(pause).await;
                let Some(runtime) = me.upgrade() else { return };
                // What failed is tried again.
                failed = if runtime.raise_for_owed().await.is_ok() { 0 } else { failed + 1 };
                pause = SETTLED_EVERY.max(runtime.backoff(failed + 4));
                let mut own = runtime.own();
                if !own.owes() {
                    own.is_settling = false;
                    return;
                }
            }
        }));
    }

    /// Raises the floors that can be raised for what is owed, and writes the commit witnesses that
    /// cannot wait.
    async fn raise_for_owed(&self) -> Result<(), StoreError> {
        let due = self.own().due();
        for due in due {
            self.raise_at(due.store, due.replica.as_ref(), due.last).await?;
            self.own().settle(&due);
            self.stats.add(Counted::FloorStood, due.count);
        }
        let (origin, late) = {
            let own = self.own();
            (own.origin(), own.owed_since(self.world.elapsed().saturating_sub(OWED_FOR)))
        };
        let mut places: BTreeMap<(usize, Option<Name>), Late> = BTreeMap::new();
        for (sequence, owed) in late {
            let late = places.entry((owed.store, owed.replica)).or_default();
            self.own().tries(origin, sequence);
            late.sequences.push(sequence);
            late.writes.extend(owed.writes.iter().cloned());
        }
        for ((store, replica), late) in places {
            self.write_records(store, replica, late.writes).await?;
            let mut own = self.own();
            for sequence in late.sequences {
                own.has_written(origin, sequence);
            }
        }
        Ok(())
    }
}
