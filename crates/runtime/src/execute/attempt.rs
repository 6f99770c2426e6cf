//! One attempt at a phase: its first questions to the store, its run, and its commit.
//!
//! A phase that visits no store only computes. Any other attempt
//!
//! 1. learns pinned answers, if every process that runs the phase must compute from the same ones
//!    (`pinned_reads`);
//! 2. goes to the worker beside the store, if there is one (`send_phase`): the rest then happens there;
//! 3. begins a transaction of the store, at a replica that has seen the state of the session; or goes on in
//!    the one that has read before the first commit (`prefetch`);
//! 4. runs the machine. Its first batch of reads is sent with the questions of the attempt (`preflight`), so
//!    that together they take one round trip;
//! 5. judges the answers ([`Executor::judge`]): they can end the attempt before it has written anything;
//! 6. commits (`commit`).
//!
//! A [`Visit`] holds the facts of one attempt, a [`Step`] is its end.
//!
//! # Example
//!
//! A helper attempts the phase of (7,41) at `feed`. It sends one batch:
//!
//! ```text
//!   the witness of (9,5), the floor of 9     must this transaction wait for (9,5)?
//!   the witness of (7,41)                    has another process run this phase?
//!   the floor of 7                           is (7,41) over?
//!   customer.feed                            the first read of the program
//! ```
//!
//! If the witness of (7,41) is there, it holds the values that the phase has recorded, and the attempt takes
//! them over without running the phase. If the floor of origin 7 is at 41 or above, the transaction is over.
//! The guards of the commit ask the same once more: no witness of (7,41), and a floor below 41.

use std::pin::pin;
use std::time::Duration;

use crate::interpreter::instructions::visits;
use mingle_lang::hir::StoreId;
use mingle_model::{Name, TransactionId, WitnessRow};
use mingle_store::{
    Commit, Data, Once, Read, RecordKey, RecordKind, Session as StoreSession, StoreError,
    Transaction, Write,
};

use crate::api::call::PhaseReport;
use crate::api::error::Error;
use crate::execute::Executor;
use crate::execute::bookkeeping::leaves_nothing;
use crate::execute::commit::Uncommitted;
use crate::execute::control::Control;
use crate::execute::drive::session_of;
use crate::execute::early_prefetch::alongside;
use crate::execute::execution::Execution;
use crate::execute::lent::Lent;
use crate::execute::phase::Tries;
use crate::execute::preflight::{Question, called_read};
use crate::execute::turns::Turns;
use crate::interpreter::machine::answer::Asked;
use crate::interpreter::machine::hold::HoldAsked;
use crate::interpreter::machine::{Facts, Finished, Machine, Need, Start};
use crate::mutants::Mutant;
use crate::observe::stats::Counted;
use crate::protocol::intent::Witness;
use crate::protocol::wait_set::{Awaited, WaitSet};

/// The outcome of an attempt in which no store failed.
pub(crate) enum Step {
    /// The phase has committed.
    Done,
    /// The transaction was finished and cleaned up by another process.
    Over,
    /// An operator has ended the transaction: its remaining phases never commit.
    Abandoned,
    /// The transaction starts over.
    StartOver,
    /// The attempt is repeated at once.
    Again,
    /// The attempt needs a take that runs ahead.
    Hold(Box<HoldAsked>),
    /// The attempt must first wait for these transactions.
    Wait(Vec<(TransactionId, Awaited)>),
    /// The attempt must first wait for the whole of these transactions, also at other stores.
    Whole(Box<WaitSet>),
}

/// One attempt.
pub(crate) struct Visit {
    /// The store's index in the runtime.
    pub(crate) store: usize,
    pub(crate) name: Name,
    /// The replica at which the attempt runs.
    pub(crate) replica: Option<Name>,
    pub(crate) questions: Vec<(Read, Question)>,
    /// Witness rows of the data that was read.
    pub(crate) rows: Vec<WitnessRow>,
    /// Witness rows that this runtime itself left, at some replica, on the objects written.
    pub(crate) remembered: Vec<WitnessRow>,
    /// The reads of the phase.
    pub(crate) reads: Vec<Read>,
    /// Answers, batch by batch.
    pub(crate) answers: Vec<Vec<Data>>,
    /// The latest version among the answers, or among the pinned answers.
    pub(crate) version: u64,
    /// Writes that were sent before the commit.
    pub(crate) flushed: Vec<Write>,
    /// The transaction's own id, if it has one yet.
    pub(crate) own: Option<TransactionId>,
    /// Awaited transactions that are visible here.
    pub(crate) satisfied: Vec<TransactionId>,
    /// The phase's commit witness, if another process ran the phase.
    pub(crate) taken: Option<Witness>,
    /// The origin may not begin transactions any more.
    pub(crate) is_fenced: bool,
    /// Something that the transaction held at the store is no longer there.
    pub(crate) is_hold_lost: bool,
    /// The phase leaves nothing at its store for any answers: its last reads may end it.
    pub(crate) leaves_nothing: bool,
    /// The answers are needed after the run.
    pub(crate) keeps_answers: bool,
    /// The number of facts about visible transactions that were known before the attempt began.
    pub(crate) known_before: u64,
    /// The time of the reads, if the attempt continues in the store transaction that read ahead: it
    /// began before any helper could act, so no other process need have run the phase.
    pub(crate) goes_on: Option<Duration>,
    /// The read with a policy that the machine has come to.
    pub(crate) asked: Option<Box<Asked>>,
    /// The number of answers so far.
    pub(crate) batch: usize,
    /// The store transaction, if reads of the phase have policies.
    pub(crate) lent: Option<Lent>,
}

/// The result of the questions and the run.
enum Driven {
    Step(Step),
    Finished(Finished),
}

impl Executor {
    /// Runs a phase once.
    pub(crate) async fn attempt(
        &self,
        execution: &mut Execution,
        index: usize,
        tries: &mut Tries,
        control: &Control<'_>,
        report: &mut PhaseReport,
    ) -> Result<Step, Error> {
        if control.shared.is_some_and(crate::api::call::Shared::is_given_up) {
            return Err(Error::Cancelled);
        }
        let plan = execution.call.plan.clone();
        let phase = &plan.phases[index];
        let Some(store) = phase.store.filter(|_| phase.code.iter().any(visits)) else {
            return self.run_locally(execution, index, Turns::of(control), report).await;
        };
        let store = self.site(execution, store)?;
        self.learn_pinned(execution, (index, store), tries, report.attempts).await?;
        if let Some(worker) = self.worker_for(store, tries).filter(|_| !execution.needs_origin()) {
            let place = (index, store);
            let beside = self.attempt_remotely(worker, execution, place, tries, control, report);
            return Box::pin(beside).await;
        }
        let mut visit = self.visit(execution, index, tries, store);
        tries.after =
            self.after(execution, store, tries.pinned.as_ref().map(|pinned| &pinned.seen));
        let session = session_of(execution, visit.replica.clone(), tries.after.clone());
        let begun = tries.begun.take();
        visit.goes_on = begun.is_some().then_some(tries.read_since);
        let mut transaction = match begun {
            Some(transaction) => transaction,
            None => self.begin_at(execution, &mut visit, &session).await?,
        };
        let mut early = self.prefetch_early(execution, index);
        let mut turns = Turns::of(control);
        let told = (&mut turns, &mut *report);
        let running = self.run_code(execution, index, tries, &mut visit, &mut *transaction, told);
        let driven = alongside(&mut early, pin!(running)).await?;
        visit.note_satisfied(execution);
        if visit.is_fenced {
            return Ok(self.start_as_another(execution));
        }
        if let Some(witness) = visit.taken.take() {
            // The session has now seen the other process's writes here.
            let seen = transaction.commit(Commit::default()).await.map_err(Error::Store)?;
            execution.wait_set.saw(self.stores.stamped(store), &seen.stamp);
            return Ok(self.take_over(execution, tries, witness, report));
        }
        match driven {
            Driven::Step(step) => Ok(step),
            Driven::Finished(finished) => {
                let attempt =
                    Uncommitted { index, tries, control, visit, transaction, finished, early };
                if self.has_only_read(execution, &attempt) {
                    return self.commit_read(execution, attempt, report).await;
                }
                self.commit_phase(execution, attempt, report).await
            }
        }
    }

    /// Runs the code of a phase, unless an answer stops it.
    async fn run_code(
        &self,
        execution: &Execution,
        index: usize,
        tries: &Tries,
        visit: &mut Visit,
        transaction: &mut dyn Transaction,
        told: (&mut Turns<'_>, &mut PhaseReport),
    ) -> Result<Driven, Error> {
        let facts = self.facts(execution);
        let mut machine = self.machine(execution, index, &facts);
        let pinned = tries.pinned.as_ref();
        let step = if visit.lent.is_some() {
            let place = (execution, index, pinned);
            Box::pin(self.run_with_answers(&mut machine, place, visit, transaction, told)).await?
        } else {
            self.drive(&mut machine, pinned, visit, transaction, told).await?
        };
        // The phase has removed the hold. Its witness may be gone, too, with a floor above it.
        let is_over = matches!(step, Some(Step::Over));
        let is_lost = visit.is_hold_lost && visit.taken.is_none() && !is_over;
        if is_lost && execution.has_begun() {
            // Another process has run the phase: the next attempt looks for its witness.
            return Err(Error::Store(StoreError::Conflict));
        }
        visit.is_fenced |= is_lost && !execution.has_begun();
        Ok(match step {
            Some(step) => Driven::Step(step),
            None => Driven::Finished(machine.finish()),
        })
    }

    /// Begins a transaction at a store, or in the host transaction if that has this store.
    async fn begin_at(
        &self,
        execution: &Execution,
        visit: &mut Visit,
        session: &StoreSession,
    ) -> Result<Box<dyn Transaction>, Error> {
        let site = execution.hosted_at(visit.store).unwrap_or(&self.stores.all[visit.store]);
        let begun = site.begin(session).await.map_err(Error::Store)?;
        Ok(if execution.call.plan.has_policies() {
            self.lend(execution, visit, begun, session.clone())
        } else {
            begun
        })
    }

    /// True if the effects of a transaction are known to be visible at the replica.
    fn is_known_there(
        &self,
        execution: &Execution,
        store: usize,
        replica: Option<&Name>,
        id: TransactionId,
    ) -> bool {
        // The snapshot of the host transaction may be older than the known facts.
        execution.hosted_at(store).is_none() && self.stores.cache().is_visible(store, replica, id)
    }

    pub(crate) fn machine<'a>(
        &self,
        execution: &'a Execution,
        index: usize,
        facts: &'a Facts,
    ) -> Machine<'a> {
        let first_write = execution.call.plan.first_write;
        self.machine_within(execution, index, facts, first_write.is_some_and(|first| index > first))
    }

    /// Creates a machine that is bounded by the run limits, unless the transaction was decided.
    pub(crate) fn machine_within<'a>(
        &self,
        execution: &'a Execution,
        index: usize,
        facts: &'a Facts,
        is_decided: bool,
    ) -> Machine<'a> {
        let plan = &execution.call.plan;
        let start = Start {
            program: &execution.call.program,
            plan,
            phase: &plan.phases[index],
            facts,
            earlier: &execution.recorded,
            // A worker need not trust the sender of a phase on this point.
            unbounded: !self.stores.is_worker && is_decided,
        };
        let mut machine = Machine::new(start, &execution.call.arguments, &self.stores.settings);
        machine.with_holds(execution.holds.answers.get(&index));
        machine.mutate(self.stores.mutation);
        machine
    }

    pub(crate) fn facts(&self, execution: &Execution) -> Facts {
        if self.stores.mutant == Mutant::HelperDrawsAnew && execution.is_helper() {
            return self.stores.draw_facts();
        }
        execution.call.facts.clone()
    }

    /// Computes a phase that visits no store.
    pub(crate) async fn run_locally(
        &self,
        execution: &mut Execution,
        index: usize,
        mut turns: Turns<'_>,
        report: &mut PhaseReport,
    ) -> Result<Step, Error> {
        let facts = self.facts(execution);
        let mut machine = self.machine(execution, index, &facts);
        match self.compute(&mut machine, &mut turns).await? {
            Need::Done => {
                let finished = machine.finish();
                report.recorded = finished.recorded.count();
                execution.recorded.merge(finished.recorded);
                execution.result = finished.result.or(execution.result.take());
                Ok(Step::Done)
            }
            Need::StartOver => Ok(Step::StartOver),
            Need::Hold(asked) => Ok(Step::Hold(Box::new(asked))),
            other => unreachable!("a phase without effects needs no store, not {other:?}"),
        }
    }

    /// Returns the index of a store of the execution's program.
    fn site(&self, execution: &Execution, store: StoreId) -> Result<usize, Error> {
        if execution.call.hash == self.stores.hash {
            return Ok(store.index());
        }
        let name = &execution.call.program.checked.stores[store.index()].name;
        self.stores.store_called(name).ok_or_else(|| {
            Error::Unsupported(format!(
                "an earlier program visits a store {name} that is not there"
            ))
        })
    }

    pub(crate) fn start_as_another(&self, execution: &mut Execution) -> Step {
        if let Some(id) = execution.id.take() {
            self.stores.stats.count(Counted::Fenced);
            self.in_flight.renew(id.origin);
        }
        // The process that has fenced this origin gives back what it held.
        let has_held = std::mem::take(&mut execution.holds).has_asked();
        if execution.call.plan.isolated || has_held || execution.hold.is_some() {
            Step::StartOver
        } else {
            Step::Again
        }
    }

    /// Handles a phase that another process has run, or has excluded from ever running.
    fn take_over(
        &self,
        execution: &mut Execution,
        tries: &mut Tries,
        witness: Witness,
        report: &mut PhaseReport,
    ) -> Step {
        if witness == Witness::Aborted {
            if !execution.has_begun() {
                return Step::StartOver;
            }
            return Step::Over;
        }
        if witness == Witness::Abandoned {
            return Step::Abandoned;
        }
        if self.stores.mutant == Mutant::MiddleValuesNotKept {
            tries.recomputes = true;
            return Step::Again;
        }
        self.stores.stats.count(Counted::Taken);
        report.was_done = true;
        execution.take(witness);
        Step::Done
    }

    /// Prepares an attempt with the questions that it asks first.
    pub(crate) fn visit(
        &self,
        execution: &Execution,
        index: usize,
        tries: &Tries,
        store: usize,
    ) -> Visit {
        let name = self.stores.all[store].capabilities().store.clone();
        let replica = self.replica(execution, tries, store);
        let mut asked = Vec::new();
        let record = |kind, id| Read::Record(RecordKey::of(kind, id, 0));
        let floor =
            |id: TransactionId| Read::Record(RecordKey::of_origin(RecordKind::Floor, id.origin));
        let is_checked = self.stores.mutant != Mutant::NoWitnessCheck;
        for (id, awaited) in execution.wait_set.waits_at(&name).filter(|_| is_checked) {
            // A transaction that itself waits for this one is skipped: if two transactions met at
            // two stores in opposite orders, neither could come first everywhere.
            if execution.id == Some(id)
                || execution.chain().contains(&id)
                || self.is_known_there(execution, store, replica.as_ref(), id)
            {
                continue;
            }
            asked.push((record(RecordKind::Witness, id), Question::Witness(id, awaited.clone())));
            asked.push((floor(id), Question::Floor(id)));
        }
        asked.extend(self.own_reads(execution, tries));
        asked.extend(Self::held_reads(execution, index));
        asked.extend(called_read(execution, tries));
        asked.extend(self.endorsed_reads(execution, index));
        let leaves_nothing = tries.pinned.is_none()
            && !self.pins_answers(execution, index, store)
            && leaves_nothing(execution, index);
        Visit {
            store,
            name,
            replica,
            questions: asked,
            rows: tries.rows.clone(),
            remembered: Vec::new(),
            reads: Vec::new(),
            answers: Vec::new(),
            version: tries.pinned.as_ref().map_or(0, |pinned| pinned.version),
            flushed: Vec::new(),
            own: execution.id.or(execution.hold.as_ref().map(|hold| hold.id)),
            satisfied: Vec::new(),
            taken: None,
            is_fenced: false,
            is_hold_lost: false,
            leaves_nothing,
            keeps_answers: !leaves_nothing || execution.call.plan.phases[index].before_endorsement,
            known_before: self.stores.cache().visible_count(),
            goes_on: None,
            asked: None,
            batch: 0,
            lent: None,
        }
    }

    /// Returns the replica at which the phase runs.
    pub(crate) fn replica(
        &self,
        execution: &Execution,
        tries: &Tries,
        store: usize,
    ) -> Option<Name> {
        let capabilities = self.stores.all[store].capabilities();
        if tries.replica.is_some() {
            return tries.replica.clone();
        }
        let stays = self.stores.mutant != Mutant::HelperLeavesHome;
        if execution.has_begun() && capabilities.once == Once::Home && stays {
            return self.stores.replica_at(store, execution.home.as_ref());
        }
        self.stores.replica_at(store, execution.replica.as_ref())
    }
}
