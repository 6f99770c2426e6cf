//! One phase until it has committed: conflicts, waiting for others, stores that are away.
//!
//! A phase is attempted again and again (`attempt`), up to the deadline of its call. [`Tries`] holds the facts
//! that its attempts have learned, so each attempt asks for more than the one before it. The next step follows
//! from the end of an attempt:
//!
//! | end of the attempt | next |
//! | --- | --- |
//! | committed, or another process has run the phase | the phase has ended |
//! | over: its transaction was finished and cleaned up | the transaction ends |
//! | starts over: an answer it has built on has changed | the transaction starts over |
//! | must wait for other transactions | a pause; after `help_after`, this process finishes them itself |
//! | conflict | a pause, and then it also looks for its own commit witness and for a fence |
//! | witness rows that it had not met | the next attempt at once, with these rows |
//! | the replica lacks a state that the session has seen | a pause; a phase that only reads goes to the replica of the last writer |
//! | the store is away, or its answer was lost | until the transaction has begun, the call fails; then a pause, and another replica if any will do |
//! | refused, or a value is too large | until the transaction has begun, the call fails; then the transaction is parked |
//!
//! # Example
//!
//! The phase of transaction (7,41) at `feed` finds in its wait set that (9,5) must be there first.
//!
//! ```text
//!   attempt 1   asks for the commit witness of (9,5) and the floor of origin 9: neither is there ── waits
//!   attempt 2   the same; (9,5) was awaited for 500 ms ── this process finishes (9,5)
//!   attempt 3   the witness of (9,5) is there; the commit meets a conflict
//!   attempt 4   also asks for the witness of (7,41): no other process has run the phase ── committed
//! ```

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use mingle_model::{Name, TransactionId, WitnessRow};
use mingle_store::{Once, StoreError};
use tracing::{Instrument as _, debug_span, field};

use crate::api::call::PhaseReport;
use crate::api::error::Error;
use crate::api::watch::Event;
use crate::execute::Executor;
use crate::execute::attempt::Step;
use crate::execute::control::Control;
use crate::execute::execution::Execution;
use crate::execute::helper::Helper;
use crate::execute::prefetch::{Kept, Prefetched};
use crate::mutants::Mutant;
use crate::observe::metrics;
use crate::observe::stats::Counted;
use crate::protocol::wait_set::Awaited;

/// The result of running a phase.
pub(crate) enum PhaseEnd {
    /// It has committed, run by this process or by another.
    Ran(PhaseReport),
    /// The whole transaction was finished and cleaned up by others.
    Over,
    /// An operator has ended the transaction: its remaining phases never commit.
    Abandoned,
    /// The basis of its reads has changed: the transaction starts over. Nothing was written.
    StartOver,
}

/// The facts that the attempts of one phase have learned.
#[derive(Default)]
pub(crate) struct Tries {
    /// True if another process may have run the phase, or keep it from running.
    pub(crate) look: bool,
    /// The witness rows for which a commit was refused.
    pub(crate) rows: Vec<WitnessRow>,
    /// The replica to use instead of the session's.
    pub(crate) replica: Option<Name>,
    /// The pinned answers of the phase, where its store counts one of several copies.
    pub(crate) pinned: Option<crate::protocol::intent::PinnedAnswers>,
    /// The stamp that its store was asked to have seen.
    pub(crate) after: mingle_model::Stamp,
    /// The transaction that has read ahead, for the first attempt.
    pub(crate) begun: Kept,
    /// The time at which that began.
    pub(crate) read_since: Duration,
    /// The answers that must be pinned before the phase can go on, where the sender of the attempt must pin them.
    pub(crate) to_pin: Option<crate::protocol::intent::PinnedAnswers>,
    /// True if the worker beside the store must not run it.
    pub(crate) in_pieces: bool,
    /// True if it computes the phase again after it has committed. Only a planted fault does that.
    pub(crate) recomputes: bool,
    /// The store's error for the last attempt, if it answered with one.
    said: Option<StoreError>,
    waiting_since: Option<Duration>,
    helped: BTreeSet<TransactionId>,
    /// The number of rounds in which all of them were helped without success.
    rounds: u32,
}

impl Tries {
    /// Creates the tries of a phase that has already read, and returns its round trips.
    fn of(prefetched: Prefetched) -> (Self, u32) {
        let Prefetched { pinned, rows, begun, since: read_since, round_trips, .. } = prefetched;
        (Self { pinned: Some(pinned), rows, begun, read_since, ..Self::default() }, round_trips)
    }
}

impl Executor {
    /// Runs a phase until it commits.
    pub(crate) async fn phase(
        &self,
        execution: &mut Execution,
        index: usize,
        control: &Control<'_>,
    ) -> Result<PhaseEnd, Error> {
        let store = execution.store_name(&execution.call.plan.phases[index]).unwrap_or_default();
        let span = debug_span!("phase", %store, attempts = field::Empty);
        control.tell(|| {
            let store = execution.store_name(&execution.call.plan.phases[index]);
            Event::Began { phase: index, store }
        });
        let end = self.try_phase(execution, index, control).instrument(span.clone()).await;
        if let Ok(PhaseEnd::Ran(report)) = &end {
            span.record("attempts", report.attempts);
            self.stores.figures.ran(report);
            control.tell(|| Event::Committed { phase: index, report: report.clone() });
        }
        end
    }

    async fn try_phase(
        &self,
        execution: &mut Execution,
        index: usize,
        control: &Control<'_>,
    ) -> Result<PhaseEnd, Error> {
        if !execution.has_written() {
            self.stores.check_admitted(&execution.call.plan, execution.call.principal.as_ref())?;
        }
        let begin = self.stores.world.elapsed();
        let store = execution.store_name(&execution.call.plan.phases[index]);
        let mut report = PhaseReport { store, ..PhaseReport::default() };
        let prefetched = execution.take_prefetched(index);
        let (mut tries, mut prefetch_trips) =
            prefetched.map(|prefetched| Tries::of(*prefetched)).unwrap_or_default();
        loop {
            report.attempts += 1;
            report.round_trips = std::mem::take(&mut prefetch_trips);
            let attempt = self.timed(execution, index, &mut tries, control, &mut report).await;
            let error = match attempt {
                Ok(Step::Done) => {
                    self.note_visit(execution, &tries, &report, Ok(()));
                    report.time = self.stores.world.elapsed().saturating_sub(begin);
                    return Ok(PhaseEnd::Ran(report));
                }
                Ok(Step::Over) => return Ok(self.counted(Counted::Over, PhaseEnd::Over)),
                Ok(Step::Abandoned) => return Ok(self.counted(Counted::Over, PhaseEnd::Abandoned)),
                Ok(Step::StartOver) => return Ok(self.starts_over()),
                Ok(Step::Again) if self.stores.world.elapsed() >= control.deadline => {
                    return Err(conflict(&report, control));
                }
                Ok(Step::Again) => continue,
                Ok(Step::Hold(asked)) => {
                    if !self.hold(execution, index, *asked, control).await? {
                        return Ok(self.starts_over());
                    }
                    continue;
                }
                Ok(step @ (Step::Wait(_) | Step::Whole(_))) => {
                    let waits = (index, step);
                    self.wait_for(execution, &mut tries, control, &mut report, waits).await?;
                    continue;
                }
                Err(Error::Store(error)) => metrics::in_vain(report.store.as_ref(), error),
                Err(error) => return Err(self.park_if_begun(execution, index, error).await),
            };
            self.note_visit(execution, &tries, &report, Err(error.clone()));
            if let StoreError::Witnessed { rows } = error {
                self.stores.stats.count(Counted::Witnessed);
                tries.rows.extend(rows);
                if self.stores.world.elapsed() >= control.deadline {
                    return Err(conflict(&report, control));
                }
                continue;
            }
            control.tell_retries(index, report.attempts, &error);
            self.recover(execution, index, &mut tries, error.clone(), &report).await?;
            self.pause(control, &report, error).await?;
        }
    }

    fn starts_over(&self) -> PhaseEnd {
        self.counted(Counted::StartedOver, PhaseEnd::StartOver)
    }

    /// Counts the end of a phase.
    fn counted(&self, counted: Counted, end: PhaseEnd) -> PhaseEnd {
        self.stores.stats.count(counted);
        end
    }

    /// Runs one attempt at a phase, up to the deadline.
    async fn timed(
        &self,
        execution: &mut Execution,
        index: usize,
        tries: &mut Tries,
        control: &Control<'_>,
        report: &mut PhaseReport,
    ) -> Result<Step, Error> {
        let asked = self.stores.world.elapsed();
        let ended = {
            // Not moved, since the future is large.
            let attempt = self.attempt(execution, index, tries, control, report);
            self.stores.attempt_by(control.deadline, &control.doing, pin!(attempt)).await
        };
        let too_late = || Err(self.too_late(execution, tries, control, report, asked));
        let error = match ended.unwrap_or_else(too_late) {
            Err(Error::Store(error)) => self.located_visit(execution, tries, report, error),
            Err(Error::Unknown { store, id }) => {
                let answer = Err(StoreError::Unknown { store: store.clone(), id });
                self.note_visit(execution, tries, report, answer);
                return Err(Error::Unknown { store, id });
            }
            other => return other,
        };
        let is_away = matches!(error, StoreError::Unavailable { .. } | StoreError::Unknown { .. });
        tries.said = Some(error.clone()).filter(|_| !is_away);
        Err(Error::Store(error))
    }

    /// Adds the place, store and replica, to an error of the store at which a phase was tried.
    fn located_visit(
        &self,
        execution: &Execution,
        tries: &Tries,
        report: &PhaseReport,
        error: StoreError,
    ) -> StoreError {
        match report.store.as_ref().and_then(|name| self.stores.store_called(name)) {
            Some(store) => {
                let replica = self.replica(execution, tries, store);
                self.stores.located(store, replica.as_ref(), error)
            }
            None => error,
        }
    }

    /// The error for an attempt that the deadline has ended: the last one of the store in some cases, so a phase must
    /// not try again after it.
    fn too_late(
        &self,
        execution: &Execution,
        tries: &Tries,
        control: &Control<'_>,
        report: &PhaseReport,
        asked: Duration,
    ) -> Error {
        let Some(store) = report.store.as_ref().and_then(|name| self.stores.store_called(name))
        else {
            return Error::Deadline { deadline: control.patience };
        };
        // If the last attempt took less than half of the time, the store's last error is the cause.
        let waited = self.stores.world.elapsed().saturating_sub(asked);
        if let Some(said) = tries.said.clone().filter(|_| waited * 2 < control.patience) {
            return Error::Store(said);
        }
        let replica = self.replica(execution, tries, store);
        Error::Store(self.stores.silent(store, replica.as_ref(), asked))
    }

    /// Pauses after a failed attempt, unless the deadline comes before the end of the pause.
    async fn pause(
        &self,
        control: &Control<'_>,
        report: &PhaseReport,
        error: StoreError,
    ) -> Result<(), Error> {
        let pause = self.stores.backoff(report.attempts);
        if self.stores.world.elapsed() + pause > control.deadline {
            return Err(match error {
                StoreError::Conflict => conflict(report, control),
                other => Error::Store(other),
            });
        }
        self.stores.world.sleep(pause).await;
        Ok(())
    }

    /// Notes how the replica at which a phase was tried has answered.
    fn note_visit(
        &self,
        execution: &Execution,
        tries: &Tries,
        report: &PhaseReport,
        answer: Result<(), StoreError>,
    ) {
        let store = report.store.as_ref().and_then(|name| self.stores.store_called(name));
        if let Some(store) = store.filter(|store| execution.hosted_at(*store).is_none()) {
            let replica = self.replica(execution, tries, store);
            self.stores.note_answer(store, replica.as_ref(), &answer);
        }
    }

    /// Parks a transaction that has written and whose phase computes a value that is too large. Up to its last
    /// write only sizes can fail, and they fail in every process that runs the phase.
    async fn park_if_begun(&self, execution: &Execution, index: usize, error: Error) -> Error {
        match error {
            Error::Limit(reason)
                if execution.has_begun() && Some(index) <= execution.last_witnessed() =>
            {
                let reason = format!("what it computes for that store is too large: {reason}");
                self.park(execution, &reason).await
            }
            error => error,
        }
    }

    pub(crate) fn tell_waits(
        &self,
        control: &Control<'_>,
        report: &PhaseReport,
        phase: usize,
        ids: &[(TransactionId, Awaited)],
    ) {
        metrics::waits(report.store.as_ref());
        self.stores.stats.count(Counted::Waited);
        let transactions = || ids.iter().map(|(id, _)| *id).collect();
        control.tell(|| Event::Waits { phase, transactions: transactions() });
    }

    /// Prepares the next attempt after a store's error, or returns the error if there can be none.
    async fn recover(
        &self,
        execution: &mut Execution,
        index: usize,
        tries: &mut Tries,
        error: StoreError,
        report: &PhaseReport,
    ) -> Result<(), Error> {
        let has_begun = execution.has_begun();
        match error {
            StoreError::Conflict => {
                tries.look = true;
                Ok(())
            }
            StoreError::Behind { .. } => {
                self.stores.stats.count(Counted::Behind);
                self.expedite(execution, index, tries, report);
                Ok(())
            }
            StoreError::Unknown { .. } | StoreError::Unavailable { .. } if has_begun => {
                tries.look = true;
                self.turn_elsewhere(execution, tries, report);
                Ok(())
            }
            // It waited for a transaction that was given up meanwhile; the next attempt asks only for the rest.
            StoreError::Refused { .. } if has_begun && self.has_lost(execution, tries, report) => {
                Ok(())
            }
            StoreError::Refused { reason, .. } if has_begun => {
                Err(self.park(execution, &reason).await)
            }
            StoreError::Violated { violation, .. } if has_begun => {
                Err(self.park(execution, &violation.message).await)
            }
            error => Err(Error::Store(error)),
        }
    }

    /// True if transactions that the phase asked its store to have seen were given up since the last check.
    fn has_lost(&self, execution: &Execution, tries: &mut Tries, report: &PhaseReport) -> bool {
        let Some(store) = report.store.as_ref().and_then(|name| self.stores.store_called(name))
        else {
            return false;
        };
        let left = self.after(execution, store, tries.pinned.as_ref().map(|pinned| &pinned.seen));
        let is_new = left != tries.after;
        tries.after = left;
        is_new
    }

    /// Moves a later phase to another replica once its own replica has failed a few times, if it may run
    /// anywhere: its store counts one of several copies, or its replicas agree, and its session does not lean on
    /// a replica there.
    fn turn_elsewhere(&self, execution: &Execution, tries: &mut Tries, report: &PhaseReport) {
        let Some(store) = report.store.as_ref().and_then(|name| self.stores.store_called(name))
        else {
            return;
        };
        let capabilities = self.stores.all[store].capabilities();
        // Replicas of a linearizable store agree at least on which transaction was first.
        let is_certified =
            capabilities.serializable || capabilities.level == mingle_model::Level::Linearizable;
        let anywhere = capabilities.once == Once::ById || is_certified;
        if !anywhere || report.attempts < 3 || execution.leans_at(&capabilities.store) {
            return;
        }
        let next = report.attempts as usize % capabilities.replicas.len().max(1);
        if let Some(replica) = capabilities.replicas.get(next) {
            tries.replica = Some(replica.clone());
        }
    }

    /// Moves a phase that only reads to the replica of the last writer, if the session's replica lacks a
    /// state that the session has seen (the technical report, §4.3).
    fn expedite(
        &self,
        execution: &Execution,
        index: usize,
        tries: &mut Tries,
        report: &PhaseReport,
    ) {
        let phase = &execution.call.plan.phases[index];
        if phase.mode == mingle_lang::split::Mode::Write || execution.has_written() {
            return;
        }
        let Some(store) = &report.store else { return };
        let Some(at) = self.stores.store_called(store) else { return };
        if execution.leans_at(store) {
            return;
        }
        let seen = execution.wait_set.seen_at(self.stores.stamped(at));
        let known = &self.stores.all[at].capabilities().replicas;
        let replicas = seen.iter().map(|(replica, _)| replica);
        let replicas: Vec<&Name> = replicas.filter(|replica| known.contains(replica)).collect();
        if report.attempts >= 2 && !replicas.is_empty() {
            let next = (report.attempts as usize - 2) % replicas.len();
            self.stores.stats.count(Counted::Expedited);
            tries.replica = Some(replicas[next].clone());
        }
    }

    /// Waits for transactions whose commit witness is not visible yet `at` a store, and helps them once that
    /// takes too long.
    pub(crate) async fn wait(
        &self,
        execution: &Execution,
        tries: &mut Tries,
        control: &Control<'_>,
        report: &mut PhaseReport,
        (at, awaited): (Option<&Name>, &[(TransactionId, Awaited)]),
    ) -> Result<(), Error> {
        let now = self.stores.world.elapsed();
        let since = *tries.waiting_since.get_or_insert(now);
        let (id, _) = awaited.first().expect("it waits for somebody");
        if now > control.deadline {
            let store = at.cloned().unwrap_or_default();
            return Err(Error::Waiting { store, id: *id, deadline: control.patience });
        }
        self.refuse_wait_for_away(execution, at, awaited)?;
        if now.saturating_sub(since) >= self.stores.settings.help_after
            && self.stores.mutant != Mutant::NobodyHelps
        {
            for (id, awaited) in awaited {
                if tries.helped.insert(*id) {
                    let mut chain = execution.chain().to_vec();
                    chain.extend(execution.id);
                    let helper = Helper {
                        replica: execution.replica.clone(),
                        chain,
                        deadline: control.deadline,
                        insists: false,
                        pushes: execution.pushes() || tries.rounds >= 2,
                    };
                    self.help_awaited(*id, awaited, helper).await?;
                }
            }
            if awaited.iter().all(|(id, _)| tries.helped.contains(id)) {
                // A transaction that was helped and is still not visible may need help again.
                tries.helped.clear();
                tries.rounds += 1;
                tries.waiting_since = Some(self.stores.world.elapsed());
            }
        }
        let pause = self.stores.backoff(report.attempts.min(6));
        self.stores.world.sleep(pause).await;
        report.waited += self.stores.world.elapsed().saturating_sub(now);
        Ok(())
    }
}

pub(crate) fn conflict(report: &PhaseReport, control: &Control<'_>) -> Error {
    let (store, deadline) = (report.store.clone().unwrap_or_default(), control.patience);
    Error::Conflict { store, attempts: report.attempts, deadline }
}
