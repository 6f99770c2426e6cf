//! Calls inside a transaction that the application has begun itself: the first phase that writes,
//! and with it the intent, take effect if that transaction commits, and the rest follows.
//!
//! The store provides a place: a [`DataStore`] whose transactions are parts of the application's.
//! [`Runtime::call_inside`](crate::Runtime::call_inside) runs the phases there, up to and including the
//! first writing one. The application may still roll back, so updates of the process's knowledge and of the session are held back until the
//! transaction is decided. [`Inside::follow`] asks the store for the transaction's outcome and goes on from
//! there.
//!
//! **Invariant: the records in the application's transaction are enough.** If this process does not
//! follow, or is gone, the intent is found like any other.
//!
//! **Invariant: no attempt is repeated in a snapshot that is too old.** A conflict ends the call: only
//! a new transaction of the application sees the transaction that caused the conflict.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mingle_lang::Plan;
use mingle_lang::split::Mode;
use mingle_model::{Name, TransactionId};
use mingle_store::{DataStore, Outcome, StoreError};
use tracing::{Instrument as _, Span, debug_span, field, info_span};

use crate::api::call::{Call, CallReport, Finish, PhaseReport, Running, Shared};
use crate::api::error::Error;
use crate::api::settings::{ASKED_AT_ONCE_MAX, HOSTED_ATTEMPTS_MAX, LOOKS_BEFORE_ASKING};
use crate::api::watch::Event;
use crate::execute::Executor;
use crate::execute::attempt::Step;
use crate::execute::control::Control;
use crate::execute::execution::Execution;
use crate::execute::host::{HeldCommit, HostTransaction};
use crate::execute::phase::Tries;
use crate::execute::transaction::{Progress, Run};
use crate::in_flight::table::Left;
use crate::observe::metrics;
use crate::protocol::role::Role;
use crate::protocol::wait_set::Awaited;
use crate::stores::records::{is_visible, visible_reads};

/// A call whose first writing phase is a part of one of the application's transactions.
///
/// It reports how far the call has got. Once the application has committed, [`Inside::follow`] waits for
/// the rest. If it is dropped, the rest follows by itself.
pub struct Inside {
    executor: Arc<Executor>,
    /// The runtime, which must not end before this.
    _runtime: Arc<dyn Any + Send + Sync>,
    pending: Option<Box<Pending>>,
}

/// The state that is needed to go on.
struct Pending {
    execution: Execution,
    call: Call,
    shared: Arc<Shared>,
    report: CallReport,
    /// The time of the call.
    begin: Duration,
    running: metrics::Running,
    span: Span,
}

/// The way of following up: with a caller that waits, or without.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// The caller has said that the application's transaction has ended.
    Waits,
    /// The application's transaction may still be open.
    Looks,
}

impl Executor {
    /// Calls a transaction up to and including its first phase that writes, which takes effect with a
    /// transaction that the application has begun at `store`; phases at `place` are parts of that.
    pub(crate) async fn call_inside(
        self: &Arc<Self>,
        call: Call,
        store: &str,
        place: Arc<dyn DataStore>,
        runtime: Arc<dyn Any + Send + Sync>,
    ) -> Result<Inside, Error> {
        let plan = self.stores.checked_plan(&call)?;
        let store = self.checked_hosted(&call, &plan, store)?;
        let span = info_span!("transaction", name = %plan.name, error = field::Empty);
        let mut execution = self.execution(&plan, &call)?;
        execution.host_in(HostTransaction { store, place, held: None });
        let pending = Pending {
            execution,
            shared: Arc::new(Shared::of(&call)),
            call,
            report: CallReport::of_phases(Vec::with_capacity(plan.phases.len())),
            begin: self.stores.world.elapsed(),
            running: self.stores.figures.transaction(&plan.name).run(),
            span: span.clone(),
        };
        // If this is dropped before it has ended, `Inside` takes care of the writes already begun.
        let pending = Some(Box::new(pending));
        let mut inside = Inside { executor: self.clone(), _runtime: runtime, pending };
        let pending = inside.pending.as_mut().expect("it was put there above");
        let ran = self.run_hosted(pending).instrument(span).await;
        if let Err(error) = ran {
            let pending = inside.pending.take().expect("nobody else takes it");
            // The store undoes the writes, so it holds no record under this id.
            self.account(&pending.execution, &Err(error.clone()));
            self.has_ended(*pending, Err(error.clone()));
            return Err(error);
        }
        if let Some(id) = pending.execution.id {
            // Once it is committed, a transaction that finds it need not wait for this process to follow.
            self.in_flight.table().gives_up(id, None);
        }
        Ok(inside)
    }

    /// Checks that a call can be made inside a transaction at a store; returns that store's index.
    fn checked_hosted(&self, call: &Call, plan: &Plan, store: &str) -> Result<usize, Error> {
        let name = &plan.name;
        let index = self.stores.store_called(store);
        let index =
            index.ok_or_else(|| Error::Misuse(format!("the program has no store {store:?}")))?;
        if call.key.is_some() {
            let why = "a call inside a transaction takes no key: it takes effect with that";
            return Err(Error::Misuse(why.into()));
        }
        if plan.isolated && plan.phases.len() > 1 {
            return Err(Error::Unsupported(format!(
                "{name} is isolated and visits several stores, where others would wait for it as long as the application's transaction is open"
            )));
        }
        if let Some(hold) = plan.holds.first() {
            return Err(Error::Unsupported(format!(
                "{name} takes at store {} ahead of its first commit, and would hold that as long as the application's transaction is open",
                self.stores.name_at(hold.store.index())
            )));
        }
        if !self.stores.settings.tracking {
            return Err(Error::Unsupported("without tracking nothing follows a commit".into()));
        }
        let last = plan.first_write.ok_or_else(|| writes_nothing(plan))?;
        for phase in &plan.phases[..=last] {
            // A call that has read another transaction's write elsewhere must see its other writes here,
            // and the application's snapshot may be older.
            match phase.store.map(mingle_lang::hir::StoreId::index) {
                Some(other) if other != index => {
                    return Err(Error::Misuse(format!(
                        "{name} visits store {} before it has written at store {store}, so it cannot be a part of a transaction there",
                        self.stores.name_at(other)
                    )));
                }
                _ => {}
            }
        }
        Ok(index)
    }

    /// The store at which a call writes first.
    pub(crate) fn writes_first_at(&self, call: &Call) -> Result<Name, Error> {
        let plan = self.stores.checked_plan(call)?;
        let first = plan.first_write.and_then(|first| plan.phases[first].store);
        let first = first.ok_or_else(|| writes_nothing(&plan))?;
        Ok(self.stores.name_at(first.index()))
    }

    async fn run_hosted(&self, pending: &mut Pending) -> Result<(), Error> {
        let Pending { execution, call, shared, report, .. } = pending;
        let patience = call.deadline.unwrap_or(self.stores.settings.deadline);
        let deadline = self.stores.world.elapsed().saturating_add(patience);
        let control = Control::of_caller(shared, deadline, patience);
        let last = execution.call.plan.first_write.expect("it was checked that it writes");
        for index in 0..=last {
            report.phases.push(self.hosted_phase(execution, index, &control).await?);
        }
        let held = execution.host().and_then(|host| host.held.as_ref());
        report.id = held.filter(|_| execution.last_witnessed() > Some(last)).and(execution.id);
        report.result = held.map_or_else(
            || execution.result.clone(),
            |held| held.phase_commit.finished.result.clone().or(execution.result.clone()),
        );
        Ok(())
    }

    /// Runs a phase as a part of the application's transaction.
    async fn hosted_phase(
        &self,
        execution: &mut Execution,
        index: usize,
        control: &Control<'_>,
    ) -> Result<PhaseReport, Error> {
        let store = execution.store_name(&execution.call.plan.phases[index]);
        let span = debug_span!("phase", store = store.as_deref(), attempts = field::Empty);
        control.tell(|| Event::Began { phase: index, store: store.clone() });
        self.stores.check_admitted(&execution.call.plan, execution.call.principal.as_ref())?;
        let begin = self.stores.world.elapsed();
        let mut report = PhaseReport { store, ..PhaseReport::default() };
        let tried = self.try_hosted(execution, index, control, &mut report);
        tried.instrument(span.clone()).await?;
        report.time = self.stores.world.elapsed().saturating_sub(begin);
        span.record("attempts", report.attempts);
        self.stores.figures.ran(&report);
        Ok(report)
    }

    async fn try_hosted(
        &self,
        execution: &mut Execution,
        index: usize,
        control: &Control<'_>,
        report: &mut PhaseReport,
    ) -> Result<(), Error> {
        let mut tries = Tries::default();
        loop {
            report.attempts += 1;
            report.round_trips = 0;
            let is_last = report.attempts >= HOSTED_ATTEMPTS_MAX
                || self.stores.world.elapsed() >= control.deadline;
            let conflict = Err(Error::Store(StoreError::Conflict));
            match self.attempt(execution, index, &mut tries, control, report).await {
                Ok(Step::Done) => return Ok(()),
                Ok(Step::Again) if !is_last => {}
                Ok(
                    Step::Again | Step::Over | Step::Abandoned | Step::StartOver | Step::Hold(_),
                ) => {
                    return conflict;
                }
                Ok(Step::Wait(ids)) => {
                    metrics::waits(report.store.as_ref());
                    self.wait_outside(execution, &mut tries, control, report, &ids).await?;
                    return conflict;
                }
                Ok(step @ Step::Whole(_)) => {
                    let waits = (index, step);
                    self.wait_for(execution, &mut tries, control, report, waits).await?;
                    return conflict;
                }
                Err(Error::Store(error)) => match metrics::in_vain(report.store.as_ref(), error) {
                    StoreError::Witnessed { rows } if !is_last => tries.rows.extend(rows),
                    StoreError::Conflict | StoreError::Witnessed { .. } => {
                        self.see_to_fence(execution).await;
                        return conflict;
                    }
                    error => return Err(Error::Store(error)),
                },
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until the transactions are visible to a new transaction of the application: the current
    /// one may never see them.
    async fn wait_outside(
        &self,
        execution: &Execution,
        tries: &mut Tries,
        control: &Control<'_>,
        report: &mut PhaseReport,
        ids: &[(TransactionId, Awaited)],
    ) -> Result<(), Error> {
        let store = report.store.as_ref().and_then(|name| self.stores.store_called(name));
        let store = store.expect("a phase that waits has a store");
        loop {
            let mut open = Vec::new();
            for (id, awaited) in ids {
                let answers = self.stores.read_records(store, None, &visible_reads(*id)).await;
                if !is_visible(*id, &answers.map_err(Error::Store)?) {
                    open.push((*id, awaited.clone()));
                }
            }
            if open.is_empty() {
                return Ok(());
            }
            let at = report.store.clone();
            self.wait(execution, tries, control, report, (at.as_ref(), &open)).await?;
        }
    }

    /// Checks if this origin was taken for dead, since its commits are then refused: the next call
    /// uses another origin.
    async fn see_to_fence(&self, execution: &Execution) {
        let Some(id) = execution.id else { return };
        if self.in_flight.is_taken_for_dead(id.origin).await {
            self.stores.stats.count(crate::observe::stats::Counted::Fenced);
            self.in_flight.renew(id.origin);
        }
    }

    /// True if the application has committed; `None` if that is not known.
    async fn has_committed(
        &self,
        held: &HeldCommit,
        patience: Patience,
        looks: u32,
    ) -> Option<bool> {
        let Some(id) = held.id else { return Some(true) };
        let site = &self.stores.all[held.phase_commit.visit.store];
        let has_intent = held.phase_commit.role == Role::First;
        if patience == Patience::Looks {
            if has_intent && self.has_intent(held, id).await {
                return Some(true);
            }
            // Asking bars the id, and may take until the application's transaction has ended.
            if !looks.is_multiple_of(LOOKS_BEFORE_ASKING) || !self.begin_asking() {
                return None;
            }
        }
        let outcome = site.outcome(id).await;
        if patience == Patience::Looks {
            self.asking.fetch_sub(1, Ordering::AcqRel);
        }
        match outcome {
            Ok(Outcome::Committed) => Some(true),
            Ok(Outcome::NotCommitted) => Some(false),
            // A store keeps outcomes for a limited time, but an intent until the transaction is done.
            Ok(Outcome::Unknown) if has_intent && self.has_intent(held, id).await => Some(true),
            Ok(Outcome::Unknown) | Err(_) => None,
        }
    }

    async fn has_intent(&self, held: &HeldCommit, id: TransactionId) -> bool {
        let found = self.intent_and_mark(id, &held.phase_commit.visit.name).await;
        matches!(found, Ok(Some(_)))
    }

    fn begin_asking(&self) -> bool {
        let more = |asking: usize| (asking < ASKED_AT_ONCE_MAX).then_some(asking + 1);
        self.asking.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// Goes on with a call once the outcome of the application's transaction is known.
    fn follow_up(&self, pending: Box<Pending>, patience: Patience) {
        let (me, world) = (self.me.clone(), self.stores.world.clone());
        let finish = Finish(pending.shared.clone());
        let span = pending.span.clone();
        let task = async move {
            // The guard is moved in, so that it answers even if this task is dropped or panics.
            let _finish = finish;
            let deadline = {
                let Some(executor) = me.upgrade() else { return };
                let patience = pending.call.deadline.unwrap_or(executor.stores.settings.deadline);
                world.elapsed().saturating_add(patience)
            };
            let mut looks = 0;
            loop {
                let Some(executor) = me.upgrade() else { return };
                looks += 1;
                let host = pending.execution.host();
                let Some(held) = host.and_then(|host| host.held.as_ref()) else {
                    return executor.go_on(*pending).await;
                };
                match executor.has_committed(held, patience, looks).await {
                    Some(true) => return executor.go_on(*pending).await,
                    Some(false) => return executor.is_rolled_back(*pending),
                    None => {}
                }
                if world.elapsed() > deadline {
                    let (store, id) = (held.phase_commit.visit.name.clone(), held.id);
                    pending.shared.finish(Err(Error::Unknown { store, id }));
                }
                let pause = executor.stores.backoff(looks);
                drop(executor);
                world.sleep(pause).await;
            }
        };
        self.stores.world.spawn(Box::pin(task.instrument(span)));
    }

    fn is_rolled_back(&self, pending: Pending) {
        if let Some(id) = pending.execution.id {
            self.in_flight.is_over(id, Left::default());
        }
        self.has_ended(pending, Err(Error::Cancelled));
    }

    /// Runs the rest of a call after the application has committed.
    async fn go_on(&self, mut pending: Pending) {
        let Pending { execution, call, shared, report, .. } = &mut pending;
        let host = execution.take_host();
        let index = report.phases.len() - 1;
        let mut committed = Vec::new();
        if let Some(held) = host.and_then(|host| host.held) {
            self.stores.figures.committed(&held.phase_commit.visit.name, held.phase_commit.role);
            committed.push(held.phase_commit.visit.name.clone());
            self.take_effect(execution, held.phase_commit);
        }
        let phase = report.phases[index].clone();
        shared.tell(|| Event::Committed { phase: index, report: phase });
        let mut report = report.clone();
        self.has_run(execution, index, call, shared, &mut report);
        let patience = call.deadline.unwrap_or(self.stores.settings.deadline);
        let deadline = self.stores.world.elapsed().saturating_add(patience);
        let progress = Progress { report, committed, deadline };
        let run = self.run_from(execution, index + 1, progress, call, shared).await;
        self.learn(call, execution, matches!(run, Ok(Run::Ended(_))));
        self.account(execution, &run);
        let result = match run {
            Ok(Run::Ended(report)) => Ok(report),
            // A transaction that has written does not start over.
            Ok(Run::StartOver) => Err(Error::Store(StoreError::Conflict)),
            Err(error) => Err(error),
        };
        self.has_ended(pending, result);
    }

    fn has_ended(&self, pending: Pending, result: Result<CallReport, Error>) {
        if let Err(error) = &result {
            pending.span.record("error", error.code());
        }
        pending.running.end(&result, self.stores.world.elapsed().saturating_sub(pending.begin));
        metrics::session_waits(pending.call.session.waits());
        pending.shared.finish(result);
    }
}

fn writes_nothing(plan: &Plan) -> Error {
    let name = &plan.name;
    Error::Misuse(format!("{name} writes nothing, so it cannot be a part of a transaction"))
}

impl Inside {
    /// The report so far: the phases up to and including those in the application's transaction, and the
    /// result, if it is known already. All of it holds only if the application commits.
    pub fn report(&self) -> &CallReport {
        &self.pending.as_ref().expect("it is there until it follows").report
    }

    /// The stores at which the rest follows once the application has committed.
    pub fn following(&self) -> Vec<Name> {
        let pending = self.pending.as_ref().expect("it is there until it follows");
        let (plan, done) = (&pending.execution.call.plan, pending.report.phases.len());
        let rest = plan.phases[done..].iter().filter(|phase| phase.mode == Mode::Write);
        rest.filter_map(|phase| pending.execution.store_name(phase)).collect()
    }

    /// Waits for the rest after the application has committed: for all of it, or as far as
    /// [`Call::until`] says. The session has then seen the effects of the call. If the future is dropped, the
    /// rest still follows.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] when the application has rolled back; [`Error::Unknown`] when its
    /// transaction did not end within the deadline; [`Error::Incomplete`] when it has committed, and a
    /// later store has not yet.
    pub async fn follow(mut self) -> Result<CallReport, Error> {
        let pending = self.pending.take().expect("it is there until it follows");
        // From here on the caller cannot give it up.
        pending.shared.begin_commit();
        let running = Running(pending.shared.clone());
        self.executor.follow_up(pending, Patience::Waits);
        running.await
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let host = pending.execution.host();
        if host.is_some_and(|host| host.held.is_some()) {
            pending.shared.begin_commit();
            self.executor.follow_up(pending, Patience::Looks);
        } else if let Some(id) = pending.execution.id {
            // It was dropped before its end: only the store can say if the writes took effect.
            self.executor.finish_later(id, &pending.execution);
        }
    }
}

impl std::fmt::Debug for Inside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let report = self.pending.as_ref().map(|pending| &pending.report);
        f.debug_struct("Inside").field("report", &report).finish_non_exhaustive()
    }
}
