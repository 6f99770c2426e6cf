//! The questions of an attempt to its store besides the reads of its phase.

use mingle_model::TransactionId;
use mingle_store::record::read_floor;
use mingle_store::{Answer, Data, Read, RecordKey, RecordKind};

use crate::execute::Executor;
use crate::execute::execution::Execution;
use crate::execute::phase::Tries;
use crate::mutants::Mutant;
use crate::protocol::wait_set::Awaited;

/// A question of an attempt to its store besides the reads of its phase.
#[derive(Clone)]
pub(crate) enum Question {
    /// Is the commit witness of an awaited transaction visible?
    Witness(TransactionId, Awaited),
    /// Is the floor of its origin above it?
    Floor(TransactionId),
    /// Has another process run the phase?
    OwnWitness,
    /// Has another process finished the transaction?
    OwnFloor,
    /// Is the origin barred from beginning transactions: by its fence, and by its floor?
    Fence,
    FloorAsFence,
    /// Does the store still have what the transaction holds there?
    Hold,
    /// Has another call with the same key written?
    Called,
    /// Is the data that an endorsement read unchanged?
    Endorsed(Data),
    /// The witness rows of the whole store, for a query.
    OpenRows,
}

/// Returns the awaited transactions that the answers to an attempt's questions do not show.
pub(crate) fn invisible(
    asked: &[(Read, Question)],
    answers: &[Answer],
) -> Vec<(TransactionId, Awaited)> {
    let mut waits: Vec<(TransactionId, Awaited)> = Vec::new();
    for ((_, asked), answer) in asked.iter().zip(answers) {
        let Data::Record(record) = &answer.data else { continue };
        match asked {
            Question::Witness(id, awaited) if record.is_none() => {
                waits.push((*id, awaited.clone()));
            }
            Question::Floor(id) if id.sequence <= record.as_deref().map_or(0, read_floor) => {
                waits.retain(|(waited, _)| waited != id);
            }
            _ => {}
        }
    }
    waits
}

impl Executor {
    /// Returns the questions about the transaction itself: whether other processes have run it, or
    /// keep it from running.
    pub(crate) fn own_reads(&self, execution: &Execution, tries: &Tries) -> Vec<(Read, Question)> {
        let mut asked = Vec::new();
        let record = |kind, id| Read::Record(RecordKey::of(kind, id, 0));
        let floor =
            |id: TransactionId| Read::Record(RecordKey::of_origin(RecordKind::Floor, id.origin));
        match (execution.begun(), execution.id) {
            (Some(begun), _) if (tries.look || execution.is_helper()) && !tries.recomputes => {
                asked.push((record(RecordKind::Witness, begun.id), Question::OwnWitness));
                if self.stores.mutant != Mutant::HelperSkipsFloor {
                    asked.push((floor(begun.id), Question::OwnFloor));
                }
            }
            (None, Some(id)) if tries.look => {
                if execution.call.plan.isolated {
                    asked.push((record(RecordKind::Witness, id), Question::OwnWitness));
                }
                let fence = RecordKey::of_origin(RecordKind::Fence, id.origin);
                asked.push((Read::Record(fence), Question::Fence));
                asked.push((floor(id), Question::FloorAsFence));
            }
            (None, None) if tries.look && execution.hold.is_some() => {
                let id = execution.hold.as_ref().expect("it was there above").id;
                let fence = RecordKey::of_origin(RecordKind::Fence, id.origin);
                asked.push((Read::Record(fence), Question::Fence));
                asked.push((floor(id), Question::FloorAsFence));
            }
            _ => {}
        }
        asked
    }

    /// Returns the reads of what the transaction holds at the store of a phase: another process may have given it
    /// back, if this one was taken for dead.
    pub(crate) fn held_reads(execution: &Execution, index: usize) -> Vec<(Read, Question)> {
        let plan = &execution.call.plan;
        let store = plan.phases[index].store;
        let held = store.map(|store| execution.recorded.held_at(plan, store)).unwrap_or_default();
        held.into_iter().map(|held| (Read::Record(held.key), Question::Hold)).collect()
    }

    /// Returns the reads of an endorsement at the store of a phase, whose answers must be
    /// unchanged.
    pub(crate) fn endorsed_reads(
        &self,
        execution: &Execution,
        index: usize,
    ) -> Vec<(Read, Question)> {
        let is_checked = match self.stores.mutant {
            Mutant::EndorsementUnchecked => false,
            Mutant::RevalidatedAfterCommit => execution.has_written(),
            _ => !execution.has_written(),
        };
        let phase = &execution.call.plan.phases[index];
        let store = phase.store.filter(|_| is_checked && !phase.before_endorsement);
        let reads = store.and_then(|store| execution.endorsed.get(&store));
        let endorsed =
            |(read, data): &(Read, Data)| (read.clone(), Question::Endorsed(data.clone()));
        reads.into_iter().flatten().map(endorsed).collect()
    }
}

/// Asks if another call with the same key has written, once an earlier try was obstructed.
pub(crate) fn called_read(execution: &Execution, tries: &Tries) -> Option<(Read, Question)> {
    let key = execution.call.key.filter(|_| tries.look && !execution.has_written())?;
    Some((Read::Record(key.record(0)), Question::Called))
}
