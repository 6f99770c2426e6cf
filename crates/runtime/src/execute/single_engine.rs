//! A transaction whose stores all live in one engine: its phases are one transaction there.
//!
//! The phases run in their order, on one snapshot, and are committed together. So other processes
//! have nothing to finish, and none sees a part: no intent and no witness is left. Waits that the
//! witness rows of others ask for are kept as ever.
//!
//! Two kinds run apart: `isolated` transactions, whose reads of weaker stores the engine would not
//! guard, and calls with a key that turn out to write a weaker store only, because both of two
//! calls with one key might do so.

use std::pin::pin;
use std::time::Duration;

use mingle_model::Name;
use mingle_store::{
    Commit, Committed, Once, Outcome, Session as StoreSession, StoreError, United, UnitedCommit,
};
use tracing::{Instrument as _, debug_span, field};

use crate::api::call::PhaseReport;
use crate::api::error::Error;
use crate::api::watch::Event;
use crate::execute::Executor;
use crate::execute::attempt::{Step, Visit};
use crate::execute::bookkeeping::Draft;
use crate::execute::control::Control;
use crate::execute::drive::session_of;
use crate::execute::execution::Execution;
use crate::execute::phase::{Tries, conflict};
use crate::execute::turns::Turns;
use crate::interpreter::instructions::visits;
use crate::interpreter::machine::Finished;
use crate::observe::metrics;
use crate::observe::stats::Counted;
use crate::protocol::role::Role;
use crate::protocol::witness_rows::written_objects;

/// The outcome of a united transaction.
pub(crate) enum SingleEngineEnd {
    /// The whole has committed.
    Ran(Vec<PhaseReport>),
    /// Another call with its key has written. Nothing was written.
    StartOver,
    /// The transaction has to run phase by phase. Nothing was written.
    Apart,
}

/// The outcome of an attempt.
enum Attempt {
    Done(Vec<PhaseReport>),
    Step(Step),
    Apart,
}

/// The results of an attempt's phases so far.
#[derive(Default)]
struct Whole {
    commit: UnitedCommit,
    /// The store that is written first.
    decisive: Option<usize>,
    left: Vec<(Visit, Draft)>,
    reports: Vec<PhaseReport>,
}

impl Executor {
    /// Returns the store at which a transaction begins, if its phases can be one transaction of one
    /// engine.
    fn single_engine_at(&self, execution: &Execution) -> Option<usize> {
        if execution.call.plan.isolated
            || execution.call.plan.needs_origin()
            || execution.is_helper()
            || execution.call.plan.phases.len() < 2
        {
            return None;
        }
        let phases = execution.call.plan.phases.iter();
        let visiting = phases.filter(|phase| phase.code.iter().any(visits));
        let mut sites: Vec<usize> = visiting
            .filter_map(|phase| phase.store)
            .map(mingle_lang::hir::StoreId::index)
            .collect();
        sites.sort_unstable();
        sites.dedup();
        let engine = self.stores.all[*sites.first()?].engine()?;
        let is_one = sites.iter().all(|site| self.stores.all[*site].engine() == Some(engine));
        // This store is certified, so its demands on records hold.
        let decides = |site: &usize| self.stores.all[*site].capabilities().once == Once::Serial;
        sites.iter().copied().find(decides).filter(|_| is_one && sites.len() > 1)
    }

    /// Runs a transaction as one, if its engine can.
    pub(crate) async fn run_in_single_engine(
        &self,
        execution: &mut Execution,
        control: &Control<'_>,
    ) -> Result<SingleEngineEnd, Error> {
        let Some(first) = self.single_engine_at(execution) else {
            return Ok(SingleEngineEnd::Apart);
        };
        Box::pin(self.run_as_one(execution, first, control)).await
    }

    async fn run_as_one(
        &self,
        execution: &mut Execution,
        first: usize,
        control: &Control<'_>,
    ) -> Result<SingleEngineEnd, Error> {
        let store = self.stores.name_at(first);
        for (phase, planned) in execution.call.plan.phases.iter().enumerate() {
            control.tell(|| Event::Began { phase, store: execution.store_name(planned) });
        }
        let span = debug_span!("phase", %store, united = true, attempts = field::Empty);
        let end =
            self.try_in_single_engine(execution, (first, &store), control).instrument(span.clone());
        let end = end.await?;
        if let SingleEngineEnd::Ran(reports) = &end {
            self.stores.stats.count(Counted::United);
            for report in reports {
                self.stores.figures.ran(report);
            }
            span.record("attempts", reports.first().map_or(0, |report| report.attempts));
            for (phase, report) in reports.iter().enumerate() {
                control.tell(|| Event::Committed { phase, report: report.clone() });
            }
        }
        Ok(end)
    }

    async fn try_in_single_engine(
        &self,
        execution: &mut Execution,
        (first, store): (usize, &Name),
        control: &Control<'_>,
    ) -> Result<SingleEngineEnd, Error> {
        let begin = self.stores.world.elapsed();
        let before = execution.recorded.clone();
        let mut total = PhaseReport { store: Some(store.clone()), ..PhaseReport::default() };
        let mut tries = Tries::default();
        loop {
            total.attempts += 1;
            execution.recorded = before.clone();
            execution.result = None;
            let error =
                match self.timed_in_single_engine(execution, first, &mut tries, control).await {
                    Ok(Attempt::Done(reports)) => {
                        total.time = self.stores.world.elapsed().saturating_sub(begin);
                        return Ok(SingleEngineEnd::Ran(timed(reports, &total)));
                    }
                    Ok(Attempt::Apart) => {
                        execution.recorded = before;
                        execution.result = None;
                        return Ok(SingleEngineEnd::Apart);
                    }
                    Ok(Attempt::Step(step @ Step::Wait(_))) => {
                        let waits = (0, step);
                        self.wait_for(execution, &mut tries, control, &mut total, waits).await?;
                        continue;
                    }
                    Ok(Attempt::Step(Step::StartOver)) => return Ok(SingleEngineEnd::StartOver),
                    // Its id may not be used any more.
                    Ok(Attempt::Step(_)) => StoreError::Conflict,
                    Err(Error::Store(error)) => metrics::in_vain(Some(store), error),
                    Err(error) => return Err(error),
                };
            if let StoreError::Witnessed { rows } = error {
                self.stores.stats.count(Counted::Witnessed);
                tries.rows.extend(rows);
                if self.stores.world.elapsed() >= control.deadline {
                    return Err(conflict(&total, control));
                }
                continue;
            }
            if !error.is_retryable() {
                return Err(Error::Store(error));
            }
            tries.look = true;
            self.stores.stats.add(Counted::Behind, u64::from(error != StoreError::Conflict));
            control.tell_retries(0, total.attempts, &error);
            let pause = self.stores.backoff(total.attempts);
            if self.stores.world.elapsed() + pause > control.deadline {
                return Err(match error {
                    StoreError::Conflict => conflict(&total, control),
                    error => Error::Store(error),
                });
            }
            self.stores.world.sleep(pause).await;
        }
    }

    /// Makes one attempt, up to the deadline.
    async fn timed_in_single_engine(
        &self,
        execution: &mut Execution,
        first: usize,
        tries: &mut Tries,
        control: &Control<'_>,
    ) -> Result<Attempt, Error> {
        let asked = self.stores.world.elapsed();
        let ended = {
            let attempt = self.attempt_in_single_engine(execution, first, tries, control);
            self.stores.attempt_by(control.deadline, &control.doing, pin!(attempt)).await
        };
        let silent = || Err(Error::Store(self.stores.silent(first, None, asked)));
        ended.unwrap_or_else(silent).map_err(|error| match error {
            Error::Store(error) => Error::Store(self.stores.located(first, None, error)),
            error => error,
        })
    }

    async fn attempt_in_single_engine(
        &self,
        execution: &mut Execution,
        first: usize,
        tries: &mut Tries,
        control: &Control<'_>,
    ) -> Result<Attempt, Error> {
        if control.shared.is_some_and(crate::api::call::Shared::is_given_up) {
            return Err(Error::Cancelled);
        }
        let replica = self.replica(execution, tries, first);
        let after = execution.wait_set.seen_at(self.stores.stamped(first));
        let session = session_of(execution, replica, after);
        let mut united =
            self.stores.all[first].begin_united(&session).await.map_err(Error::Store)?;
        let mut whole = Whole::default();
        for index in 0..execution.call.plan.phases.len() {
            let ran =
                self.run_part(execution, index, (tries, control), &mut *united, &mut whole).await?;
            if let Some(step) = ran {
                return Ok(Attempt::Step(step));
            }
        }
        let is_guarded = whole
            .decisive
            .is_none_or(|site| self.stores.all[site].capabilities().once == Once::Serial);
        if execution.call.key.is_some() && !is_guarded {
            return Ok(Attempt::Apart);
        }
        if whole.decisive.is_some() && control.shared.is_some_and(|shared| !shared.begin_commit()) {
            return Err(Error::Cancelled);
        }
        let id = whole.commit.id;
        let place = (first, &session);
        let committed =
            self.commit_in_single_engine(execution, place, united, whole.commit, control).await;
        let committed = match committed {
            Ok(committed) => committed,
            Err(error) => {
                if let Some(shared) = control.shared.filter(|_| whole.decisive.is_some()) {
                    shared.commit_failed();
                }
                return Err(error);
            }
        };
        if let Some(decisive) = whole.decisive {
            execution.writes_at(decisive);
            self.stores.figures.committed(&self.stores.name_at(decisive), Role::Plain);
        }
        execution.wait_set.saw(self.stores.stamped(first), &committed.stamp);
        for (visit, draft) in &whole.left {
            self.note_left(execution, Role::Plain, visit, draft, &committed.stamp);
        }
        if let Some(last) = whole.reports.iter_mut().rfind(|report| report.store.is_some()) {
            last.round_trips += u32::from(id.is_some());
        }
        Ok(Attempt::Done(whole.reports))
    }

    /// Commits the whole. If the answer does not arrive, asks the store for the outcome.
    async fn commit_in_single_engine(
        &self,
        execution: &mut Execution,
        (first, session): (usize, &StoreSession),
        united: Box<dyn United>,
        commit: UnitedCommit,
        control: &Control<'_>,
    ) -> Result<Committed, Error> {
        let id = commit.id;
        let _commits = control.doing.commits();
        let unknown = || StoreError::Unknown { store: self.stores.name_at(first), id };
        let committing = self.stores.traced(first, "commit", united.commit(commit));
        let committed = self.stores.by_or_behind(control.deadline, committing).await;
        match committed.unwrap_or_else(|| Err(unknown())) {
            Err(StoreError::Unknown { .. }) => {
                self.ask_single_engine(execution, (first, session), id, control.deadline).await
            }
            committed => committed.map_err(Error::Store),
        }
    }

    /// Runs a phase as a part of the whole.
    async fn run_part(
        &self,
        execution: &mut Execution,
        index: usize,
        (tries, control): (&Tries, &Control<'_>),
        united: &mut dyn mingle_store::United,
        whole: &mut Whole,
    ) -> Result<Option<Step>, Error> {
        let plan = execution.call.plan.clone();
        let phase = &plan.phases[index];
        let mut report =
            PhaseReport { store: execution.store_name(phase), ..PhaseReport::default() };
        let Some(store) = phase.store.filter(|_| phase.code.iter().any(visits)) else {
            let turns = Turns::of(control);
            let step = self.run_locally(execution, index, turns, &mut report).await?;
            whole.reports.push(report);
            return Ok(Some(step).filter(|step| !matches!(step, Step::Done)));
        };
        let mut visit = self.visit(execution, index, tries, store.index());
        // The commit of the whole ends it.
        visit.leaves_nothing = false;
        let name = visit.name.clone();
        let part = united.part(&name).await.map_err(Error::Store)?;
        let earlier = whole.commit.parts.iter_mut().find(|(other, _)| *other == name);
        if let Some((_, earlier)) = earlier.filter(|(_, commit)| !commit.writes.is_empty()) {
            // An earlier phase at this store: this phase must see its writes.
            let writes = std::mem::take(&mut earlier.writes);
            part.flush(writes).await.map_err(Error::Store)?;
        }
        let facts = self.facts(execution);
        let mut machine = self.machine(execution, index, &facts);
        let mut turns = Turns::of(control);
        let told = (&mut turns, &mut report);
        let stopped = self.drive(&mut machine, None, &mut visit, part, told).await?;
        let finished = stopped.is_none().then(|| machine.finish());
        visit.note_satisfied(execution);
        if visit.is_fenced {
            return Ok(Some(self.start_as_another(execution)));
        }
        let Some(finished) = finished else { return Ok(stopped) };
        report.recorded = finished.recorded.count();
        whole.reports.push(report);
        self.add_part(execution, index, (visit, finished), whole)?;
        Ok(None)
    }

    /// Adds the result of a phase to the whole.
    fn add_part(
        &self,
        execution: &mut Execution,
        index: usize,
        (mut visit, mut finished): (Visit, Finished),
        whole: &mut Whole,
    ) -> Result<(), Error> {
        let phase = &execution.call.plan.phases[index];
        if let Some(store) = phase.store.filter(|_| phase.before_endorsement) {
            execution.endorsed.insert(store, visit.read());
        }
        let own_writes = std::mem::take(&mut finished.writes);
        let written = written_objects(&visit.flushed, &own_writes);
        let wrote = !visit.flushed.is_empty() || !own_writes.is_empty();
        self.remember_rows(&mut visit, &written);
        let mut draft = Draft::default();
        self.meet(execution, index, &visit, &written, &mut draft);
        self.leave_rows(execution, index, Role::Plain, &visit, &written, &mut draft)?;
        self.leave_records(execution, index, Role::Plain, &visit, &finished, &mut draft);
        let is_decisive = wrote && whole.decisive.is_none();
        self.leave_called(execution, index, (Role::Plain, is_decisive), &finished, &mut draft);
        if is_decisive {
            whole.decisive = Some(visit.store);
        }
        let commit = self.commit_of(execution, index, Role::Plain, &visit, own_writes, &mut draft);
        if whole.decisive.is_some() && whole.commit.id.is_none() {
            whole.commit.id = commit.id;
        }
        join(&mut whole.commit, &visit.name, commit);
        execution.wait_set.join(&draft.found);
        execution.recorded.merge(finished.recorded);
        execution.result = finished.result.or(execution.result.take());
        whole.left.push((visit, draft));
        Ok(())
    }

    /// Asks for the outcome of a commit whose answer was lost.
    async fn ask_single_engine(
        &self,
        execution: &mut Execution,
        (first, session): (usize, &StoreSession),
        id: Option<mingle_model::TransactionId>,
        deadline: Duration,
    ) -> Result<Committed, Error> {
        let site = &self.stores.all[first];
        let unknown = || Error::Unknown { store: self.stores.name_at(first), id };
        let asked = id.ok_or_else(unknown)?;
        let mut attempts = 0;
        loop {
            let asking = site.outcome(asked);
            match self
                .stores
                .by(self.stores.asked_until(deadline), asking)
                .await
                .ok_or_else(unknown)?
            {
                Ok(Outcome::Committed) => {
                    // The stamp of a new transaction there covers it.
                    let after =
                        StoreSession { after: mingle_model::Stamp::default(), ..session.clone() };
                    let looking = async {
                        let transaction = site.begin(&after).await?;
                        transaction.commit(Commit::default()).await
                    };
                    let looked = self.stores.by(self.stores.asked_until(deadline), looking).await;
                    if let Ok(committed) = looked.ok_or_else(unknown)? {
                        return Ok(committed);
                    }
                }
                Ok(Outcome::NotCommitted) => {
                    if execution.id == Some(asked) {
                        execution.id = None;
                    }
                    return Err(Error::Store(StoreError::Conflict));
                }
                Ok(Outcome::Unknown) | Err(_) => {}
            }
            attempts += 1;
            let pause = self.stores.backoff(attempts);
            if self.stores.world.elapsed() + pause > deadline {
                return Err(unknown());
            }
            self.stores.world.sleep(pause).await;
        }
    }
}

/// Returns the phases' reports; each phase counts the time of all of them.
fn timed(mut reports: Vec<PhaseReport>, total: &PhaseReport) -> Vec<PhaseReport> {
    for report in &mut reports {
        (report.attempts, report.time) = (total.attempts, total.time);
        report.waited = total.waited;
    }
    reports
}

/// Adds the commit of a phase to that of its store.
fn join(whole: &mut UnitedCommit, store: &Name, commit: Commit) {
    match whole.parts.iter_mut().find(|(name, _)| name == store) {
        Some((_, earlier)) => {
            earlier.writes.extend(commit.writes);
            earlier.guards.extend(commit.guards);
            earlier.known.extend(commit.known);
        }
        None => whole.parts.push((store.clone(), commit)),
    }
}
