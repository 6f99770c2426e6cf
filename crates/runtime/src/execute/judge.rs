//! The judgement of the answers to an attempt's questions.

use mingle_model::{Stamp, TransactionId};
use mingle_store::record::read_floor;
use mingle_store::{Answer, Data, Read, RecordKind, Transaction};

use crate::api::error::Error;
use crate::execute::Executor;
use crate::execute::attempt::{Step, Visit};
use crate::execute::preflight::{Question, invisible};
use crate::protocol::intent::{Unreadable, Witness, decode};
use crate::stores::records::{read_parts, unreadable};

impl Executor {
    /// Judges the answers: they can end the attempt, or make it wait.
    pub(crate) async fn judge(
        &self,
        visit: &mut Visit,
        asked: &[(Read, Question)],
        answers: Vec<Answer>,
        transaction: &mut dyn Transaction,
    ) -> Result<Option<Step>, Error> {
        let waits = invisible(asked, &answers);
        let mut step = None;
        for ((_, asked), answer) in asked.iter().zip(answers) {
            let record = match answer.data {
                Data::Record(record) => record,
                Data::Witnesses(rows) => {
                    visit.rows.extend(rows);
                    continue;
                }
                data => {
                    if let Question::Endorsed(before) = asked
                        && *before != data
                    {
                        step = Some(Step::StartOver);
                    }
                    continue;
                }
            };
            let floor = record.as_deref().map_or(0, read_floor);
            let is_below = |id: Option<TransactionId>| id.is_some_and(|id| id.sequence <= floor);
            match asked {
                Question::Witness(id, _) if record.is_some() => visit.satisfied.push(*id),
                Question::Floor(id) if is_below(Some(*id)) => visit.satisfied.push(*id),
                Question::OwnFloor if is_below(visit.own) => step = Some(Step::Over),
                // After starting over, the call is answered from the record.
                Question::Called if record.is_some() => step = Some(Step::StartOver),
                Question::Hold => visit.is_hold_lost |= record.is_none(),
                Question::Fence => visit.is_fenced |= record.is_some(),
                Question::FloorAsFence => visit.is_fenced |= is_below(visit.own),
                Question::OwnWitness => {
                    if let (Some(first), Some(id)) = (record, visit.own) {
                        visit.taken = Some(read_witness(transaction, id, &first).await?);
                    }
                }
                _ => {}
            }
        }
        for id in &visit.satisfied {
            self.stores.note_visible(visit.store, visit.replica.as_ref(), *id, &Stamp::default());
        }
        Ok(step.or_else(|| (!waits.is_empty()).then_some(Step::Wait(waits))))
    }
}

/// Reads the whole commit witness that has this first part.
async fn read_witness(
    transaction: &mut dyn Transaction,
    id: TransactionId,
    first: &[u8],
) -> Result<Witness, Error> {
    let bytes = read_parts(transaction, RecordKind::Witness, id, 0, first).await?;
    decode(&bytes).map_err(|Unreadable| unreadable("commit witness", id))
}
