//! One transaction, from its first phase to its last.
//!
//! [`Executor::run`] serves one call. Each round of its loop
//!
//! 1. looks for the answer of an earlier call with the same key (`idempotency`);
//! 2. checks that the caller may call the transaction, and that no store is away that it has to visit;
//! 3. creates an [`Execution`] with a time of day and a seed of its own, and with the wait set of the session;
//! 4. runs all phases in one transaction, if their stores share an engine (`single_engine`), and otherwise
//!    phase by phase (`phase`);
//! 5. stores in the session the transactions that this one has met;
//! 6. hands the records that it leaves to clean-up, or, if it is open, to a task that finishes it (`helper`).
//!
//! A round ends with a report, with an error, or by starting over: an answer on which it has built has changed,
//! and nothing was written. Then the next round begins after a pause.
//!
//! # The first commit
//!
//! Until the first commit, an error or a deadline ends the call, and nothing is left behind. The first commit
//! decides: from then on the call has its whole time once more, and an error of a later phase is
//! [`Error::Incomplete`], which names the stores that have committed and those that follow.
//!
//! # Example
//!
//! `order` takes an item from stock at `shop` and appends it to a feed at `feed`; the caller waits for `shop`
//! alone (`until`). Another call changes the item between the read and the commit.
//!
//! ```text
//!   round 1   execution, undecided
//!             phase 0 at shop: attempt 1 ── conflict
//!                              attempt 2 ── committed: begun as (7,41)
//!             the caller is answered; its session waits for (7,41) at feed
//!             phase 1 at feed: attempt 1 ── committed
//!             (7,41) is over, and its records go to clean-up
//! ```
//!
//! If `feed` were away for longer than the call may take, the phase at `feed` would fail, and the task of the
//! helper would try it again and again.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use mingle_lang::split::Mode;
use mingle_lang::{Phase, Plan};
use mingle_model::Name;
use tracing::{Span, field, info_span};

use crate::api::call::{Call, CallReport, Shared};
use crate::api::error::Error;
use crate::api::watch::Event;
use crate::execute::Executor;
use crate::execute::control::Control;
use crate::execute::execution::{Execution, Invocation};
use crate::execute::phase::PhaseEnd;
use crate::execute::single_engine::SingleEngineEnd;
use crate::mutants::Mutant;
use crate::observe::metrics;
use crate::observe::stats::Counted;
use crate::protocol::wait_set::{Awaited, WaitSet};

/// Polls a future in a span, like `instrument`, but without moving it: moving a large future takes time.
pub(crate) fn within<F: Future>(
    span: &Span,
    mut future: Pin<&mut F>,
) -> impl Future<Output = F::Output> {
    poll_fn(move |context| {
        let _entered = span.enter();
        future.as_mut().poll(context)
    })
}

/// The result of a run of a transaction.
pub(crate) enum Run {
    Ended(CallReport),
    StartOver,
}

/// The progress of a run.
pub(crate) struct Progress {
    pub(crate) report: CallReport,
    /// The stores that have committed all their writes.
    pub(crate) committed: Vec<Name>,
    /// The time at which the run gives up.
    pub(crate) deadline: Duration,
}

impl Executor {
    pub(crate) fn execution(&self, plan: &Arc<Plan>, call: &Call) -> Result<Execution, Error> {
        let session = &call.session;
        let program = (self.stores.program.clone(), self.stores.hash);
        let facts = self.stores.draw_facts();
        let invocation = Invocation::new(program, plan.clone(), call.arguments.clone(), facts);
        let home = self.stores.home(plan, session)?;
        if home != session.replica() {
            self.stores.stats.count(Counted::Leaned);
        }
        let execution = Execution::new(invocation, session.worklist(), home);
        // With `until`, the caller does not wait for phases after that store.
        let mut execution = execution.keyed(call);
        if let Some(caller) = execution.caller_mut() {
            caller.prefetches = call.until.is_none();
            caller.leans = session.leans();
        }
        Ok(execution)
    }

    /// Runs a transaction to its end, in a span of its own.
    pub(crate) async fn run(
        &self,
        plan: &Arc<Plan>,
        call: &Call,
        shared: &Shared,
    ) -> Result<CallReport, Error> {
        let span = info_span!("transaction", name = %plan.name, error = field::Empty);
        let (begin, running) =
            (self.stores.world.elapsed(), self.stores.figures.transaction(&plan.name).run());
        let result = within(&span, pin!(self.run_until_over(plan, call, shared))).await;
        running.end(&result, self.stores.world.elapsed().saturating_sub(begin));
        metrics::session_waits(call.session.waits());
        if let Err(error) = &result {
            span.record("error", error.code());
        }
        result
    }

    async fn run_until_over(
        &self,
        plan: &Arc<Plan>,
        call: &Call,
        shared: &Shared,
    ) -> Result<CallReport, Error> {
        let patience = call.deadline.unwrap_or(self.stores.settings.deadline);
        let deadline = self.stores.world.elapsed().saturating_add(patience);
        let mut attempts = 0;
        loop {
            attempts += 1;
            if let Some(report) = self.repeated(plan, call, deadline).await? {
                return Ok(report);
            }
            self.stores.check_admitted(plan, call.principal.as_ref())?;
            self.stores.refuse_if_away(plan, call)?;
            let mut execution = self.execution(plan, call)?;
            let run = self.run_once(&mut execution, call, shared, deadline).await;
            let is_finished = matches!(run, Ok(Run::Ended(_)));
            if let (true, Some(place)) = (is_finished, execution.wrote_first()) {
                // If this fails, a second call with this key learns that the call took effect, but not its result.
                let _ = self
                    .stores
                    .by(self.stores.asked_until(deadline), self.keep_result(&execution, place))
                    .await;
            }
            if !matches!(run, Err(Error::Unknown { .. })) {
                // A next round must not meet what this one holds.
                self.give_back_of(&mut execution).await;
            }
            self.learn(call, &execution, is_finished);
            self.account(&execution, &run);
            match run {
                Ok(Run::Ended(report)) => return Ok(report),
                Ok(Run::StartOver) => shared.tell(|| Event::StartsOver),
                Err(error) => return Err(error),
            }
            let pause = self.stores.backoff(attempts);
            if self.stores.world.elapsed() + pause > deadline {
                let store = plan.phases.first().and_then(|phase| execution.store_name(phase));
                let store = store.unwrap_or_default();
                return Err(Error::Conflict { store, attempts, deadline: patience });
            }
            self.stores.world.sleep(pause).await;
        }
    }

    /// Stores in the session the facts that the transaction has learned.
    pub(crate) fn learn(&self, call: &Call, execution: &Execution, is_finished: bool) {
        let session = &call.session;
        if self.stores.mutant == Mutant::SessionDropsWorklist || !self.stores.settings.tracking {
            return;
        }
        let has_met = !execution.wait_set.is_empty() || !execution.satisfied.is_empty();
        if !has_met && !execution.has_begun() && session.has_seen_nothing() {
            return;
        }
        session.learn(&execution.wait_set.clone().without_readers());
        // Where a replica may lack writes that another one has, the session waits at the next replica
        // for the same transactions as here.
        let mut own = WaitSet::default();
        for (store, id, awaited) in &execution.satisfied {
            if !self.forgets_at_other_replicas(store) {
                session.is_over(store, [*id]);
            } else if !awaited.is_reader {
                own.wait_at(store, *id, awaited.clone());
            }
        }
        if let Some(begun) = execution.begun() {
            // The session waits for an unfinished transaction at all of its stores: otherwise that one
            // might in turn have to wait for the session's next one.
            for name in execution.left.witnesses.iter().map(|store| self.stores.name_at(*store)) {
                if !is_finished || self.forgets_at_other_replicas(&name) {
                    let intent = begun.intent.clone();
                    own.wait_at(&name, begun.id, Awaited { intent, is_reader: false });
                }
            }
        }
        session.learn(&own);
        for (store, _) in session.worklist().seen() {
            let Some(index) = self.stores.store_called(store) else { continue };
            if let Some((everywhere, _)) = self.stores.cache().everywhere(index) {
                session.is_everywhere(store, everywhere);
            }
        }
        if self.stores.mutant == Mutant::SessionForgetsSeen {
            session.forget_seen();
        }
        self.stores.relieve(session);
    }

    /// True if a session that moves to another replica of a store may find less there than it has
    /// seen. The store keeps no count of a replica's state, so the session waits again at the next replica
    /// for the transactions that it has waited for at this one.
    fn forgets_at_other_replicas(&self, store: &str) -> bool {
        self.stores.store_called(store).is_some_and(|at| {
            self.stores.is_many(at)
                && self.stores.all[at].capabilities().level == mingle_model::Level::Eventual
        })
    }

    /// Arranges that the records that a transaction leaves are finished and cleaned up.
    pub(crate) fn account(&self, execution: &Execution, run: &Result<Run, Error>) {
        let Some(id) = execution.id else { return };
        let is_open = execution.has_begun() && !matches!(run, Ok(Run::Ended(_)));
        if is_open || matches!(run, Err(Error::Unknown { .. })) {
            self.finish_later(id, execution);
        } else if execution.must_give_back() {
            self.give_back_later(id, execution);
        } else {
            self.in_flight.is_over(id, (*execution.left).clone());
        }
    }

    async fn run_once(
        &self,
        execution: &mut Execution,
        call: &Call,
        shared: &Shared,
        deadline: Duration,
    ) -> Result<Run, Error> {
        if execution.call.plan.isolated && execution.call.plan.phases.len() > 1 {
            execution.id = Some(self.in_flight.allocate());
        }
        let patience = call.deadline.unwrap_or(self.stores.settings.deadline);
        let control = Control::of_caller(shared, deadline, patience);
        let phases = Vec::with_capacity(execution.call.plan.phases.len());
        let report = match self.run_in_single_engine(execution, &control).await? {
            SingleEngineEnd::Ran(phases) => {
                let result = execution.result.clone();
                return Ok(Run::Ended(CallReport { result, ..CallReport::of_phases(phases) }));
            }
            SingleEngineEnd::StartOver => return Ok(Run::StartOver),
            SingleEngineEnd::Apart => CallReport::of_phases(phases),
        };
        let progress = Progress { report, committed: Vec::new(), deadline };
        self.run_from(execution, 0, progress, call, shared).await
    }

    /// Runs the phases from index `first` on.
    pub(crate) async fn run_from(
        &self,
        execution: &mut Execution,
        first: usize,
        progress: Progress,
        call: &Call,
        shared: &Shared,
    ) -> Result<Run, Error> {
        let Progress { mut report, mut committed, mut deadline } = progress;
        let patience = call.deadline.unwrap_or(self.stores.settings.deadline);
        for index in first..execution.call.plan.phases.len() {
            let had_written = execution.has_written();
            let control = Control::of_caller(shared, deadline, patience);
            match self.phase(execution, index, &control).await {
                Ok(PhaseEnd::Ran(phase)) => {
                    let writes = execution.call.plan.phases[index].mode == Mode::Write;
                    if execution.has_written() && writes {
                        committed.extend(phase.store.clone());
                    }
                    report.phases.push(phase);
                }
                Ok(PhaseEnd::StartOver) => return Ok(Run::StartOver),
                Ok(PhaseEnd::Over | PhaseEnd::Abandoned) => {
                    let id = execution.id.expect("what is over has an id");
                    if execution.call.plan.result.is_some() && execution.result.is_none() {
                        return Err(Error::ResultGone { id: Some(id) });
                    }
                    break;
                }
                Err(cause) if !execution.has_written() => return Err(cause),
                Err(cause) => return Err(incomplete(execution, index, committed, cause)),
            }
            if execution.has_written() && !had_written {
                // A committed transaction must be finished, however long it took to get there.
                deadline = self.stores.world.elapsed().saturating_add(patience);
            }
            self.has_run(execution, index, call, shared, &mut report);
        }
        let is_result_lost = execution.caller().is_some_and(|caller| caller.is_result_lost);
        if is_result_lost && execution.call.plan.result.is_some() && report.result.is_none() {
            return Err(Error::ResultGone { id: execution.id });
        }
        Ok(Run::Ended(report))
    }

    /// Notes in the report that a phase has run, and answers a caller that waits for no more.
    pub(crate) fn has_run(
        &self,
        execution: &Execution,
        index: usize,
        call: &Call,
        shared: &Shared,
        report: &mut CallReport,
    ) {
        report.result.clone_from(&execution.result);
        report.id = execution.begun().map(|begun| begun.id);
        if call.until.is_some() && report.phases[index].store == call.until {
            self.answer_early(execution, index, call, shared, report);
        }
    }

    /// Answers the caller early; the rest follows.
    fn answer_early(
        &self,
        execution: &Execution,
        index: usize,
        call: &Call,
        shared: &Shared,
        report: &CallReport,
    ) {
        let rest = &execution.call.plan.phases[index + 1..];
        if rest.is_empty() || (!execution.has_written() && rest.iter().any(writes)) {
            // The outcome is not certain yet.
            return;
        }
        self.learn(call, execution, false);
        let mut early = report.clone();
        early.following = rest.iter().filter_map(|phase| execution.store_name(phase)).collect();
        shared.finish(Ok(early));
    }
}

fn writes(phase: &Phase) -> bool {
    phase.mode == Mode::Write
}

fn incomplete(execution: &Execution, index: usize, committed: Vec<Name>, cause: Error) -> Error {
    let rest = &execution.call.plan.phases[index..];
    let id = execution.begun().map(|begun| begun.id);
    let written = rest.iter().filter(|phase| writes(phase));
    let mut missing: Vec<Name> = written.filter_map(|phase| execution.store_name(phase)).collect();
    if missing.is_empty() {
        // A missing phase without a witness reads only; it does not write.
        missing.extend(rest.iter().filter_map(|phase| execution.store_name(phase)));
    }
    Error::Incomplete { id, committed, missing, cause: Box::new(cause) }
}
