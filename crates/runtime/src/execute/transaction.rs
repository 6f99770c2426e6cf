//! One transaction, from its first phase to its last.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use mingle_lang::hir::StoreId;
use mingle_lang::split::Mode;
use mingle_lang::{Phase, Plan, Program};
use mingle_model::{Name, Principal, TransactionId, Value};
use mingle_store::{Data, Read};
use tracing::{Span, field, info_span};

use crate::api::call::{Call, CallReport, Shared};
use crate::api::error::Error;
use crate::api::watch::Event;
use crate::execute::host::Host;
use crate::execute::phase::{Control, PhaseEnd};
use crate::execute::prefetch::Ahead;
use crate::execute::single_engine::UnitedEnd;
use crate::in_flight::table::Left;
use crate::interpreter::machine::{Facts, Recorded};
use crate::mutants::Planted;
use crate::observe::metrics;
use crate::protocol::call_key::CallKey;
use crate::protocol::intent::{Intent, ProgramHash, Witness};
use crate::protocol::wait_set::{Awaited, Worklist};
use crate::runtime::Runtime;

/// A running transaction: of a caller, or one that another process has left.
pub(crate) struct Execution {
    pub(crate) program: Arc<Program>,
    pub(crate) hash: ProgramHash,
    pub(crate) plan: Arc<Plan>,
    pub(crate) arguments: Vec<Value>,
    pub(crate) facts: Facts,
    pub(crate) recorded: Recorded,
    pub(crate) result: Option<Value>,
    pub(crate) worklist: Worklist,
    /// The replica at which it runs.
    pub(crate) replica: Option<Name>,
    /// The replica of its session, which also runs its phases at stores that have homes.
    pub(crate) home: Option<Name>,
    /// Set once it has written, if others must be able to finish it.
    pub(crate) begun: Option<Begun>,
    /// Set once it has written.
    pub(crate) has_written: bool,
    /// The index of the store at which it has written first.
    pub(crate) wrote_first: Option<usize>,
    pub(crate) principal: Option<Principal>,
    /// The key of its call. The next field is the digest that distinguishes calls with the same key.
    pub(crate) key: Option<CallKey>,
    pub(crate) digest: [u8; 32],
    /// Its id; an `isolated` transaction draws it before it writes.
    pub(crate) id: Option<TransactionId>,
    /// The reads before an endorsement with their answers, by store.
    pub(crate) endorsed: BTreeMap<StoreId, Vec<(Read, Data)>>,
    /// The transactions for which it has waited, and the stores where it did.
    pub(crate) satisfied: Vec<(Name, TransactionId, Awaited)>,
    /// The records that it leaves at its stores.
    pub(crate) left: Box<Left>,
    pub(crate) is_helper: bool,
    /// True if the phase after the first writing one may read before that one commits.
    pub(crate) reads_ahead: bool,
    /// The phase that has read ahead.
    pub(crate) ahead: Option<Box<Ahead>>,
    /// The time of its phases at stores whose writes bear timestamps; 0 before it has begun.
    pub(crate) time: u64,
    /// A time before any other process can have met it, by this process's clock; none for a helper.
    pub(crate) decided_after: Option<Duration>,
    /// The application's own transaction in which its first writing phase runs, if it is called in one.
    pub(crate) host: Option<Host>,
    /// The transactions that wait for it, each because of the next.
    pub(crate) chain: Vec<TransactionId>,
    /// True if a lost answer may have held its result.
    pub(crate) is_result_lost: bool,
    /// True if it helps others although another task of this process is already at it.
    pub(crate) pushes: bool,
    /// True if an operator has ended it: its remaining phases never commit.
    pub(crate) is_abandoned: bool,
}

/// The facts that other processes need to finish a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    pub(crate) id: TransactionId,
    /// The index of the phase that wrote first.
    pub(crate) first: usize,
    /// The store of that phase, which holds the intent.
    pub(crate) intent: Name,
}

impl Execution {
    /// Creates a transaction that has done nothing yet, for a session that stays at this replica.
    pub(crate) fn new(
        (program, hash): (Arc<Program>, ProgramHash),
        plan: Arc<Plan>,
        arguments: Vec<Value>,
        facts: Facts,
        worklist: Worklist,
        replica: Option<Name>,
    ) -> Self {
        Self {
            recorded: Recorded::new(&plan),
            program,
            hash,
            plan,
            arguments,
            facts,
            result: None,
            worklist,
            home: replica.clone(),
            replica,
            begun: None,
            has_written: false,
            wrote_first: None,
            principal: None,
            key: None,
            digest: [0; 32],
            id: None,
            endorsed: BTreeMap::new(),
            satisfied: Vec::new(),
            left: Box::default(),
            is_helper: false,
            reads_ahead: false,
            ahead: None,
            time: 0,
            decided_after: None,
            host: None,
            chain: Vec::new(),
            is_result_lost: false,
            pushes: false,
            is_abandoned: false,
        }
    }

    /// Rebuilds a transaction from its intent.
    pub(crate) fn from_intent(
        id: TransactionId,
        place: Name,
        intent: Intent,
        program: Arc<Program>,
        plan: Arc<Plan>,
    ) -> Self {
        let program = (program, intent.program);
        let facts = Facts { now: intent.now, seed: intent.seed };
        let recorded = Recorded::from_queues(&plan, intent.recorded);
        let (worklist, replica) = (intent.worklist, intent.replica);
        Self {
            key: intent.key,
            principal: intent.principal,
            recorded,
            begun: Some(Begun { id, first: intent.first as usize, intent: place }),
            has_written: true,
            id: Some(id),
            is_helper: true,
            time: intent.time,
            ..Self::new(program, plan, intent.arguments, facts, worklist, replica)
        }
    }

    /// The intent that is kept for other processes once phase `first` has written.
    pub(crate) fn intent(&self, first: usize, recorded: &Recorded, worklist: Worklist) -> Intent {
        Intent {
            program: self.hash,
            transaction: self.plan.name.clone(),
            arguments: self.arguments.clone(),
            now: self.facts.now,
            seed: self.facts.seed,
            time: self.time,
            first: first as u32,
            recorded: recorded.queues().to_vec(),
            worklist,
            replica: self.home.clone(),
            key: self.key,
            principal: self.principal.clone(),
        }
    }

    /// The last phase that leaves a commit witness, so that others can finish the transaction: the last one
    /// that writes. The reads of an `isolated` transaction after its writes must come before later writes
    /// of others there, so all of its phases count.
    pub(crate) fn last_witnessed(&self) -> Option<usize> {
        if self.plan.isolated && self.plan.phases.len() > 1 {
            return Some(self.plan.phases.len() - 1);
        }
        self.plan.phases.iter().rposition(|phase| phase.mode == Mode::Write)
    }

    pub(crate) fn store_name(&self, phase: &Phase) -> Option<Name> {
        phase.store.map(|store| self.program.checked.stores[store.index()].name.clone())
    }

    /// The stores of later phases that leave a commit witness.
    pub(crate) fn witnessed_later(&self, index: usize) -> BTreeSet<Name> {
        let last = self.last_witnessed().map_or(0, |last| last + 1);
        let later = self.plan.phases.get(index + 1..last).unwrap_or_default();
        later.iter().filter_map(|phase| self.store_name(phase)).collect()
    }

    /// Applies the content of a commit witness.
    pub(crate) fn take(&mut self, witness: Witness) {
        if let Witness::Committed { recorded, result, worklist, .. } = witness {
            self.worklist.join(&worklist);
            let recorded = Recorded::from_queues(&self.plan, recorded);
            self.recorded.merge(recorded);
            self.result = result.or(self.result.take());
        }
    }
}

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

impl Runtime {
    pub(crate) fn execution(&self, plan: &Arc<Plan>, call: &Call) -> Execution {
        let session = &call.session;
        let execution = Execution::new(
            (self.program.clone(), self.hash),
            plan.clone(),
            call.arguments.clone(),
            self.draw_facts(),
            session.worklist(),
            session.replica(),
        );
        // With `until`, the caller does not wait for phases after that store.
        Execution { reads_ahead: call.until.is_none(), ..execution.keyed(call) }
    }

    /// Runs a transaction to its end, in a span of its own.
    pub(crate) async fn run(
        &self,
        plan: &Arc<Plan>,
        call: &Call,
        shared: &Shared,
    ) -> Result<CallReport, Error> {
        let span = info_span!("transaction", name = %plan.name, error = field::Empty);
        let (begin, running) = (self.world.elapsed(), self.figures.transaction(&plan.name).run());
        let result = within(&span, pin!(self.run_until_over(plan, call, shared))).await;
        running.end(&result, self.world.elapsed().saturating_sub(begin));
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
        let patience = call.deadline.unwrap_or(self.settings.deadline);
        let deadline = self.world.elapsed().saturating_add(patience);
        let mut attempts = 0;
        loop {
            attempts += 1;
            if let Some(report) = self.repeated(plan, call, deadline).await? {
                return Ok(report);
            }
            self.check_admitted(plan, call.principal.as_ref())?;
            self.refuse_if_away(plan, call)?;
            let mut execution = self.execution(plan, call);
            let run = self.run_once(&mut execution, call, shared, deadline).await;
            let is_finished = matches!(run, Ok(Run::Ended(_)));
            if let (true, Some(place)) = (is_finished, execution.wrote_first) {
                // If this fails, a second call with this key learns that the call took effect, but not its result.
                let _ =
                    self.by(self.asked_until(deadline), self.keep_result(&execution, place)).await;
            }
            self.learn(call, &execution, is_finished);
            self.account(&execution, &run);
            match run {
                Ok(Run::Ended(report)) => return Ok(report),
                Ok(Run::StartOver) => shared.tell(|| Event::StartsOver),
                Err(error) => return Err(error),
            }
            let pause = self.backoff(attempts);
            if self.world.elapsed() + pause > deadline {
                let store = plan.phases.first().and_then(|phase| execution.store_name(phase));
                let store = store.unwrap_or_default();
                return Err(Error::Conflict { store, attempts, deadline: patience });
            }
            self.world.sleep(pause).await;
        }
    }

    /// Stores in the session the facts that the transaction has learned.
    pub(crate) fn learn(&self, call: &Call, execution: &Execution, is_finished: bool) {
        let session = &call.session;
        if self.planted == Planted::SessionDropsWorklist || !self.settings.tracking {
            return;
        }
        let has_met = !execution.worklist.is_empty() || !execution.satisfied.is_empty();
        if !has_met && execution.begun.is_none() && session.has_seen_nothing() {
            return;
        }
        session.learn(&execution.worklist.clone().without_readers());
        // Where a replica may lack writes that another one has, the session waits at the next replica
        // for the same transactions as here.
        let mut own = Worklist::default();
        for (store, id, awaited) in &execution.satisfied {
            if !self.forgets_at_other_replicas(store) {
                session.is_over(store, [*id]);
            } else if !awaited.is_reader {
                own.wait_at(store, *id, awaited.clone());
            }
        }
        if let Some(begun) = &execution.begun {
            // The session waits for an unfinished transaction at all of its stores: otherwise that one
            // might in turn have to wait for the session's next one.
            for name in execution.left.witnesses.iter().map(|store| self.name_at(*store)) {
                if !is_finished || self.forgets_at_other_replicas(&name) {
                    let intent = begun.intent.clone();
                    own.wait_at(&name, begun.id, Awaited { intent, is_reader: false });
                }
            }
        }
        session.learn(&own);
        for (store, _) in session.worklist().seen() {
            let Some(index) = self.store_called(store) else { continue };
            if let Some((everywhere, _)) = self.known().everywhere(index) {
                session.is_everywhere(store, everywhere);
            }
        }
        if self.planted == Planted::SessionForgetsSeen {
            session.forget_seen();
        }
        self.relieve(session);
    }

    /// True if a session that moves to another replica of a store may find less there than it has
    /// seen. The store keeps no count of a replica's state, so the session waits again at the next replica
    /// for the transactions that it has waited for at this one.
    fn forgets_at_other_replicas(&self, store: &str) -> bool {
        self.store_called(store).is_some_and(|at| {
            self.is_many(at)
                && self.stores[at].capabilities().level == mingle_model::Level::Eventual
        })
    }

    /// Arranges that the records that a transaction leaves are finished and cleaned up.
    pub(crate) fn account(&self, execution: &Execution, run: &Result<Run, Error>) {
        let Some(id) = execution.id else { return };
        let is_open = execution.begun.is_some() && !matches!(run, Ok(Run::Ended(_)));
        if is_open || matches!(run, Err(Error::Unknown { .. })) {
            self.finish_later(id, execution);
        } else {
            self.is_over(id, (*execution.left).clone());
        }
    }

    async fn run_once(
        &self,
        execution: &mut Execution,
        call: &Call,
        shared: &Shared,
        deadline: Duration,
    ) -> Result<Run, Error> {
        if execution.plan.isolated && execution.plan.phases.len() > 1 {
            execution.id = Some(self.allocate());
        }
        let patience = call.deadline.unwrap_or(self.settings.deadline);
        let control = Control::of_caller(shared, deadline, patience);
        let phases = Vec::with_capacity(execution.plan.phases.len());
        let report = match self.run_united(execution, &control).await? {
            UnitedEnd::Ran(phases) => {
                let result = execution.result.clone();
                return Ok(Run::Ended(CallReport { result, ..CallReport::of_phases(phases) }));
            }
            UnitedEnd::StartOver => return Ok(Run::StartOver),
            UnitedEnd::Apart => CallReport::of_phases(phases),
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
        let patience = call.deadline.unwrap_or(self.settings.deadline);
        for index in first..execution.plan.phases.len() {
            let had_written = execution.has_written;
            let control = Control::of_caller(shared, deadline, patience);
            match self.phase(execution, index, &control).await {
                Ok(PhaseEnd::Ran(phase)) => {
                    let writes = execution.plan.phases[index].mode == Mode::Write;
                    if execution.has_written && writes {
                        committed.extend(phase.store.clone());
                    }
                    report.phases.push(phase);
                }
                Ok(PhaseEnd::StartOver) => return Ok(Run::StartOver),
                Ok(PhaseEnd::Over) => {
                    let id = execution.id.expect("what is over has an id");
                    if execution.plan.result.is_some() && execution.result.is_none() {
                        return Err(Error::ResultGone { id: Some(id) });
                    }
                    break;
                }
                Err(cause) if !execution.has_written => return Err(cause),
                Err(cause) => return Err(incomplete(execution, index, committed, cause)),
            }
            if execution.has_written && !had_written {
                // A committed transaction must be finished, however long it took to get there.
                deadline = self.world.elapsed().saturating_add(patience);
            }
            self.has_run(execution, index, call, shared, &mut report);
        }
        if execution.is_result_lost && execution.plan.result.is_some() && report.result.is_none() {
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
        report.id = execution.begun.as_ref().map(|begun| begun.id);
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
        let rest = &execution.plan.phases[index + 1..];
        if rest.is_empty() || (!execution.has_written && rest.iter().any(writes)) {
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
    let rest = &execution.plan.phases[index..];
    let id = execution.begun.as_ref().map(|begun| begun.id);
    let written = rest.iter().filter(|phase| writes(phase));
    let mut missing: Vec<Name> = written.filter_map(|phase| execution.store_name(phase)).collect();
    if missing.is_empty() {
        // A missing phase without a witness reads only; it does not write.
        missing.extend(rest.iter().filter_map(|phase| execution.store_name(phase)));
    }
    Error::Incomplete { id, committed, missing, cause: Box::new(cause) }
}
