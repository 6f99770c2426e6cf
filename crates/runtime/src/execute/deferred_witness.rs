//! Commit witnesses that are not written because the floor of their origin stands for them: the
//! decision, and the note once their phase has committed. `in_flight/deferred_witness` raises the floor.

use std::sync::Arc;

use mingle_store::{Capabilities, Once};

use crate::execute::Executor;
use crate::execute::attempt::Visit;
use crate::execute::bookkeeping::Draft;
use crate::execute::execution::Execution;
use crate::in_flight::table::DeferredWitness;
use crate::mutants::Mutant;

impl Executor {
    /// True if the commit witness of a later phase is omitted: it is the last phase, and the
    /// process that began the transaction runs it.
    pub(crate) fn defers_witness(
        &self,
        execution: &Execution,
        index: usize,
        visit: &Visit,
    ) -> bool {
        let Capabilities { once, floor_suffices, .. } = self.stores.all[visit.store].capabilities();
        *floor_suffices
            && *once == Once::ById
            && execution.decided_after().is_some()
            && execution.last_witnessed() == Some(index)
            && !execution.is_helper()
            && !execution.call.plan.isolated
            && self.stores.mutant == Mutant::None
    }

    /// Takes note of a deferred commit witness, once its phase has committed.
    pub(crate) fn note_deferred(
        &self,
        execution: &mut Execution,
        index: usize,
        visit: &Visit,
        draft: Draft,
    ) {
        let (Some(writes), Some(since)) = (draft.deferred, execution.decided_after()) else {
            return;
        };
        let writes = Arc::from(writes);
        let replica = visit.replica.clone();
        let (store, committed) = (visit.store, self.stores.world.elapsed());
        let deferred = DeferredWitness {
            store,
            replica,
            since,
            committed,
            writes,
            is_tried: false,
            is_written: false,
        };
        let before = &execution.call.plan.phases[..index];
        let was_here = before.iter().any(|p| execution.store_name(p).as_ref() == Some(&visit.name));
        if !draft.has_rows && !was_here {
            execution.left.rows.remove(&visit.store);
        }
        execution.left.deferred = Some(Box::new(deferred));
    }
}
