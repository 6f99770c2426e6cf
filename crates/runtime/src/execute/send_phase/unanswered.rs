//! Attempts whose answer was lost between worker and sender.
//!
//! The worker keeps its answers for a while, and the process that carries the attempt asks for
//! them. An answer is lost for good only if the worker has ended meanwhile, which is rare. This
//! process then asks the store for the outcome of the attempt.

use std::time::Duration;

use mingle_lang::split::Mode;
use mingle_model::TransactionId;
use mingle_store::{Outcome, StoreError};

use crate::api::error::Error;
use crate::execute::Executor;
use crate::execute::attempt::Step;
use crate::execute::control::Control;
use crate::execute::execution::{Begun, Execution};
use crate::execute::phase::Tries;

impl Executor {
    /// Continues after an attempt whose outcome the worker does not report.
    pub(super) async fn lost(
        &self,
        execution: &mut Execution,
        (index, store): (usize, usize),
        tries: &mut Tries,
        control: &Control<'_>,
        lent: TransactionId,
    ) -> Result<Step, Error> {
        let name = self.stores.name_at(store);
        if execution.has_begun() {
            // The commit witness of the phase says whether the phase has committed.
            return Err(Error::Store(StoreError::Unknown { store: name, id: execution.id }));
        }
        if execution.call.plan.phases[index].mode == Mode::Read {
            // It makes no difference whether it has read.
            return Err(Error::Store(StoreError::Conflict));
        }
        // From here on the transaction may stand under that id.
        execution.id = Some(lent);
        execution.left.rows.insert(store);
        let is_committed = self.outcome_of(store, lent, control.deadline).await;
        let Some(is_committed) = is_committed else {
            return Err(Error::Unknown { store: name, id: Some(lent) });
        };
        if !is_committed {
            self.in_flight.is_over(lent, std::mem::take(&mut execution.left));
            execution.id = None;
            tries.look = true;
            return Err(Error::Store(StoreError::Conflict));
        }
        self.restore(execution, (index, store), control, lent).await
    }

    /// Asks the store for the outcome of a commit; `None` if the store gives none before the deadline.
    async fn outcome_of(&self, store: usize, id: TransactionId, until: Duration) -> Option<bool> {
        let mut attempts = 1;
        loop {
            let asking = self.stores.all[store].outcome(id);
            match self.stores.by(self.stores.asked_until(until), asking).await? {
                Ok(Outcome::Committed) => return Some(true),
                Ok(Outcome::NotCommitted) => return Some(false),
                Ok(Outcome::Unknown) | Err(_) => {}
            }
            let pause = self.stores.backoff(attempts);
            attempts += 1;
            if self.stores.world.elapsed() + pause > until {
                return None;
            }
            self.stores.world.sleep(pause).await;
        }
    }

    /// Continues a transaction that has committed from its intent, if it has one.
    async fn restore(
        &self,
        execution: &mut Execution,
        (index, store): (usize, usize),
        control: &Control<'_>,
        id: TransactionId,
    ) -> Result<Step, Error> {
        let place = self.stores.name_at(store);
        let Ok(found) = self.intent_and_mark(id, &place).await else {
            return Err(Error::Unknown { store: place, id: Some(id) });
        };
        let mut left = std::mem::take(&mut execution.left);
        self.leaves_witnesses(execution, index, store, &mut left);
        execution.left = left;
        let Some((intent, _)) = found else {
            // It needed no intent, or others have finished it. The values it recorded are not known.
            let is_last = index + 1 == execution.call.plan.phases.len();
            if execution.call.plan.result.is_some() || !is_last {
                return Err(Error::ResultGone { id: Some(id) });
            }
            execution.writes_at(store);
            self.saw_own(execution, store, control.deadline).await;
            return Ok(Step::Done);
        };
        execution.writes_at(store);
        execution.time = intent.time;
        execution.wait_set.join(&intent.wait_set);
        let recorded = crate::interpreter::machine::Recorded::from_queues(
            &execution.call.plan,
            intent.recorded,
        );
        execution.recorded.merge(recorded);
        execution.begins(Begun { id, first: index, intent: place });
        execution.left.intent = Some(store);
        if let Some(caller) = execution.caller_mut() {
            caller.is_result_lost = true;
        }
        self.saw_own(execution, store, control.deadline).await;
        Ok(Step::Done)
    }

    /// Adds the transaction's own writes at the store to the state that its session has seen.
    async fn saw_own(&self, execution: &mut Execution, store: usize, deadline: Duration) {
        let replica = self.stores.replica_at(store, execution.replica.as_ref());
        if let Some(committed) = self.committed_unseen(store, replica.as_ref(), deadline).await {
            execution.wait_set.saw(&self.stores.name_at(store), &committed.stamp);
        }
    }
}
