//! Takes that run ahead of the first commit: holds.
//!
//! A take at a store that is visited after the first commit cannot be decided there, since a refusal must leave nothing
//! behind. So it runs ahead, as a transaction of its own: it changes the counter and leaves a record of that, the
//! *hold*, under the id of the transaction that it serves. The phase of the counter's store settles the hold: it
//! removes the record. If the transaction never commits, what it holds is given back, once.
//!
//! # Example
//!
//! `buy` takes a seat at `seats` (eventual) and writes the order at `office` (linearizable).
//!
//! ```text
//!   phase at office, attempt 1   comes to the take: the attempt ends
//!   hold at seats                left is 7, becomes 6; hold (7,41)
//!                                guards: no fence of origin 7, its floor is below 41, no hold (7,41)
//!   phase at office, attempt 2   the result is known: true
//!                                writes the order, and the intent, which names the hold
//!   phase at seats               finds the hold (7,41); left is 6, and stays 6 + 1 - 1; removes the hold
//! ```
//!
//! | crash | state of the stores | recovery |
//! | --- | --- | --- |
//! | before the first commit | the hold | a sweep fences the origin at every replica, finds no intent, and gives the seat back |
//! | after it | the hold and the intent | a helper runs the phase at `seats`, which removes the hold |
//! | after the last commit | nothing of the hold | |
//!
//! A process that was fenced and is alive after all finds its hold gone, or its guards broken, and starts over.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{TransactionId, Value};
use mingle_store::{
    BoxFuture, Commit, Data, Guard, Read, RecordKey, RecordKind, Session as StoreSession,
    StoreError, Write,
};

use crate::api::error::Error;
use crate::execute::Executor;
use crate::execute::bookkeeping::Draft;
use crate::execute::control::Control;
use crate::execute::execution::{Execution, Invocation};
use crate::execute::phase::PhaseEnd;
use crate::interpreter::machine::hold::{HoldAnswers, HoldAsked};
use crate::mutants::Mutant;
use crate::protocol::floor;
use crate::protocol::held::Held;

/// The maximum number of takes of one transaction that run ahead.
const HOLDS_MAX: u32 = 1_000;

/// The maximum number of attempts at giving back a hold, before the caller pauses.
const ATTEMPTS_MAX: u32 = 20;

/// The takes of a transaction that ran ahead.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds {
    /// The results, by phase.
    pub(crate) answers: BTreeMap<usize, HoldAnswers>,
    /// The holds that may stand at stores, also those that the program no longer reaches.
    pub(crate) held: Vec<Held>,
    /// The number of takes so far.
    count: u32,
    /// True if the commit of the last hold may still follow.
    is_uncertain: bool,
}

/// A hold that a commit leaves.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    /// The transaction that holds it.
    pub(crate) id: TransactionId,
    held: Held,
}

impl Holds {
    /// True if it has asked for any.
    pub(crate) fn has_asked(&self) -> bool {
        self.count > 0
    }
}

impl Execution {
    /// Records the holds, for the processes that run the later phases.
    fn note_held(&mut self) {
        if let Some(queue) = self.call.plan.held_queue() {
            self.recorded.set_held(queue, &self.holds.held);
        }
    }

    /// True if no worker can run its phases: they have policies, takes that run ahead, or are such a take, or
    /// wait for others at other stores.
    pub(crate) fn needs_origin(&self) -> bool {
        self.call.plan.needs_origin() || self.hold.is_some() || self.call.plan.isolated
    }

    /// True if it holds something that its phases have not settled.
    pub(crate) fn must_give_back(&self) -> bool {
        !self.holds.held.is_empty() && !self.has_written()
    }
}

impl Executor {
    /// Makes a take that runs ahead, and notes its result. False if the origin may not begin transactions any more.
    pub(crate) fn hold<'a>(
        &'a self,
        execution: &'a mut Execution,
        phase: usize,
        asked: HoldAsked,
        control: &'a Control<'_>,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            if execution.holds.count >= HOLDS_MAX {
                return Err(Error::Limit(format!(
                    "the transaction takes more than {HOLDS_MAX} times ahead of its first commit"
                )));
            }
            let (mut taking, held) = self.taking(execution, &asked);
            // Its commit does not decide the transaction: the caller can still give up.
            let control = Control::without_caller(control.deadline, control.patience, true);
            let ended = self.phase(&mut taking, 0, &control).await;
            if let Some(own) = taking.id {
                self.in_flight.is_over(own, (*taking.left).clone());
            }
            match ended {
                Ok(PhaseEnd::Ran(_)) => {
                    let taken = taking.result == Some(Value::Bool(true));
                    execution.wait_set.join(&taking.wait_set);
                    if taken {
                        execution.holds.held.push(held);
                    }
                    if self.stores.mutant != Mutant::HoldNotSettled {
                        execution.note_held();
                    }
                    execution.holds.answers.entry(phase).or_default().note(asked, taken);
                    Ok(true)
                }
                Ok(PhaseEnd::StartOver | PhaseEnd::Over | PhaseEnd::Abandoned) => {
                    self.start_as_another(execution);
                    Ok(false)
                }
                Err(error) => {
                    // A mark may be left in its place, until the floor is above this transaction.
                    execution.left.rows.insert(held.store as usize);
                    execution.holds.held.push(held);
                    execution.holds.is_uncertain = true;
                    Err(error)
                }
            }
        })
    }

    /// Returns the transaction that makes a take for another one, and the hold that it leaves.
    fn taking(&self, execution: &mut Execution, asked: &HoldAsked) -> (Execution, Held) {
        let id = *execution.id.get_or_insert_with(|| self.in_flight.allocate());
        let plan = execution.call.plan.holds[asked.hold].clone();
        let held = Held {
            store: plan.store.0,
            object: asked.object.clone(),
            field: plan.field,
            change: -asked.amount,
            key: RecordKey::of(RecordKind::Hold, id, execution.holds.count),
        };
        execution.holds.count += 1;
        let program = (execution.call.program.clone(), execution.call.hash);
        let arguments = vec![Value::Ref(asked.object.clone()), Value::Int(asked.amount)];
        let call = Invocation {
            principal: execution.call.principal.clone(),
            ..Invocation::new(program, plan.plan, arguments, self.stores.draw_facts())
        };
        let (waits, replica) = (execution.wait_set.clone(), execution.replica.clone());
        let mut taking = Execution::new(call, waits, replica);
        taking.hold = Some(Box::new(Hold { id, held: held.clone() }));
        (taking, held)
    }

    /// Gives back what a transaction holds that will never commit.
    ///
    /// # Errors
    ///
    /// When a store fails; some may have been given back.
    pub(crate) async fn give_back(&self, holds: &mut Holds) -> Result<(), StoreError> {
        if self.stores.mutant == Mutant::HoldForgotten {
            holds.held.clear();
        }
        while let Some(held) = holds.held.last() {
            self.give_back_one(held.store as usize, &held.key, holds.is_uncertain).await?;
            holds.held.pop();
            holds.is_uncertain = false;
        }
        Ok(())
    }

    /// Gives back what a call holds that has failed; what a store does not take now follows in the background.
    pub(crate) async fn give_back_of(&self, execution: &mut Execution) {
        if !execution.must_give_back() {
            return;
        }
        let mut holds = std::mem::take(&mut execution.holds);
        if self.give_back(&mut holds).await.is_err() {
            execution.holds = holds;
        }
    }

    /// Gives back one hold, if it is there. If its commit may still follow, a mark keeps it from taking effect.
    pub(crate) async fn give_back_one(
        &self,
        store: usize,
        key: &RecordKey,
        may_follow: bool,
    ) -> Result<(), StoreError> {
        let mut known = BTreeSet::new();
        let mut attempts = 0;
        loop {
            let since = self.stores.world.elapsed();
            let until = since.saturating_add(self.stores.settings.deadline);
            let trying = self.try_to_give_back(store, key, may_follow, &known);
            let tried = self.stores.by(until, trying).await;
            attempts += 1;
            match tried.unwrap_or_else(|| Err(self.stores.silent(store, None, since))) {
                Ok(()) => return Ok(()),
                Err(StoreError::Witnessed { rows }) if attempts < ATTEMPTS_MAX => {
                    known.extend(rows.iter().map(|row| row.id));
                }
                Err(StoreError::Conflict | StoreError::Unknown { .. })
                    if attempts < ATTEMPTS_MAX =>
                {
                    self.stores.world.sleep(self.stores.backoff(attempts)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn try_to_give_back(
        &self,
        store: usize,
        key: &RecordKey,
        may_follow: bool,
        known: &BTreeSet<TransactionId>,
    ) -> Result<(), StoreError> {
        let witness = key.transaction().map(|(id, _)| RecordKey::of(RecordKind::Witness, id, 0));
        let reads: Vec<Read> =
            std::iter::once(key.clone()).chain(witness).map(Read::Record).collect();
        let mut transaction = self.stores.all[store].begin(&StoreSession::default()).await?;
        let answers = transaction.read(&reads).await?.into_iter();
        let mut records = answers.map(|answer| match answer.data {
            Data::Record(record) => record,
            _ => None,
        });
        let (record, witness) = (records.next().flatten(), records.next().flatten());
        let writes = match record {
            None if may_follow => vec![Write::Record(key.clone(), [].as_slice().into())],
            None => return Ok(()),
            // An operator has ended the transaction after its first commit: it keeps what it took.
            Some(_) if witness.is_some() => vec![Write::Discard(key.clone())],
            Some(record) => {
                let back = Held::given_back(&record).ok_or_else(|| StoreError::Refused {
                    store: self.stores.name_at(store),
                    reason: "the record of a hold is of another version".to_owned(),
                })?;
                back.into_iter().chain([Write::Discard(key.clone())]).collect()
            }
        };
        let commit = Commit { writes, known: known.clone(), ..Commit::default() };
        transaction.commit(commit).await.map(|_| ())
    }

    /// Gives back, in the background, what a transaction holds that will never commit; it is over after that.
    pub(crate) fn give_back_later(&self, id: TransactionId, execution: &Execution) {
        self.in_flight.table().gives_up(id, Some(self.may_concern(execution)));
        let (mut holds, left) = (execution.holds.clone(), (*execution.left).clone());
        let (me, world) = (self.me.clone(), self.stores.world.clone());
        self.stores.world.spawn(Box::pin(async move {
            let mut attempts = 1;
            loop {
                let Some(executor) = me.upgrade() else { return };
                if executor.give_back(&mut holds).await.is_ok() {
                    executor.in_flight.is_over(id, left);
                    return;
                }
                let pause = executor.stores.backoff(attempts);
                attempts = (attempts + 1).min(12);
                drop(executor);
                world.sleep(pause).await;
            }
        }));
    }

    /// Leaves the hold of a take that runs ahead, or removes those that a phase settles.
    pub(crate) fn leave_holds(execution: &Execution, index: usize, wrote: bool, draft: &mut Draft) {
        if let Some(hold) = execution.hold.as_ref().filter(|_| wrote) {
            let Hold { id, held } = &**hold;
            draft.writes.push(Write::Record(held.key.clone(), held.record()));
            draft.guards.extend(floor::may_begin(*id));
            draft.guards.push(Guard::Absent(held.key.clone()));
        }
        let plan = &execution.call.plan;
        let Some(store) = plan.phases[index].store else { return };
        let held = execution.recorded.held_at(plan, store);
        draft.writes.extend(held.into_iter().map(|held| Write::Discard(held.key)));
    }
}
