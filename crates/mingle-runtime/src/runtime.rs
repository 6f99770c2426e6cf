//! Phases in order: conflicts, deadlines, cancellation, and what is said of how it went.
//!
//! A transaction runs as a task of its [`World`], so that whoever called it may go away: until
//! the first phase that writes commits, going away undoes it; from then on it finishes.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mingle_lang::code::Instr;
use mingle_lang::{Phase, Plan, Program};
use mingle_model::{Name, Origin, TransactionId, Value};
use mingle_store::{Commit, DataStore, Outcome, Session, StoreError, World};

use crate::error::Error;
use crate::limits::Settings;
use crate::machine::{Facts, Finished, Machine, Need, Recorded, Start};

/// A program, its stores, and the world that they live in.
pub struct Runtime {
    program: Arc<Program>,
    /// By [`mingle_lang::hir::StoreId`].
    stores: Vec<Arc<dyn DataStore>>,
    world: Arc<dyn World>,
    settings: Settings,
    origin: Origin,
    sequence: AtomicU64,
    mutation: mingle_lang::split::Mutation,
}

/// One call of a transaction.
#[derive(Clone, Debug)]
pub struct Call {
    /// The transaction's name.
    pub transaction: Name,
    /// Its arguments, in order.
    pub arguments: Vec<Value>,
    /// Who asks, and from where.
    pub session: Session,
}

/// How a call went.
#[derive(Clone, Debug, PartialEq)]
pub struct CallReport {
    /// The transaction's result, if it declares one.
    pub result: Option<Value>,
    /// Its phases, in order.
    pub phases: Vec<PhaseReport>,
}

/// How a phase went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseReport {
    /// The store's name; none for a transaction that visits no store.
    pub store: Option<Name>,
    /// Round trips of the attempt that committed.
    pub round_trips: u32,
    /// How often it was tried.
    pub attempts: u32,
    /// How many values it recorded for later phases.
    pub recorded: usize,
    /// How long it took, all attempts together.
    pub time: Duration,
}

const RUNNING: u8 = 0;
const COMMITTING: u8 = 1;
const GIVEN_UP: u8 = 2;

/// What a call and the task that runs it share.
#[derive(Default)]
struct Shared {
    state: AtomicU8,
    finished: AtomicBool,
    outcome: Mutex<Answer>,
}

/// The outcome of a call, once it is there, and who waits for it.
#[derive(Default)]
struct Answer {
    result: Option<Result<CallReport, Error>>,
    waiter: Option<Waker>,
}

/// A call that runs. Dropped before the first commit, it writes nothing; dropped later, it
/// finishes.
struct Running(Arc<Shared>);

impl Future for Running {
    type Output = Result<CallReport, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut outcome = self.0.outcome.lock().expect("nobody panics with this lock");
        match outcome.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                outcome.waiter = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails when the task has gone past the point of no return, or is done.
        let _ =
            self.0.state.compare_exchange(RUNNING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// Sees to it that a caller gets an answer when its task ends without one.
struct Finish(Arc<Shared>);

impl Drop for Finish {
    fn drop(&mut self) {
        self.0.finish(Err(Error::Cancelled));
    }
}

impl Shared {
    /// Passes the point of no return; false if the caller has gone away.
    fn begin_commit(&self) -> bool {
        let before =
            self.state.compare_exchange(RUNNING, COMMITTING, Ordering::AcqRel, Ordering::Acquire);
        matches!(before, Ok(_) | Err(COMMITTING))
    }

    /// The commit did not take effect, so the caller may go away again.
    fn commit_failed(&self) {
        let _ =
            self.state.compare_exchange(COMMITTING, RUNNING, Ordering::AcqRel, Ordering::Acquire);
    }

    fn is_given_up(&self) -> bool {
        self.state.load(Ordering::Acquire) == GIVEN_UP
    }

    fn finish(&self, result: Result<CallReport, Error>) {
        let mut outcome = self.outcome.lock().expect("nobody panics with this lock");
        if self.finished.swap(true, Ordering::AcqRel) {
            return;
        }
        outcome.result = Some(result);
        if let Some(waker) = outcome.waiter.take() {
            waker.wake();
        }
    }
}

impl Runtime {
    /// A runtime over stores in the order in which the program declares them.
    ///
    /// # Panics
    ///
    /// When there are fewer or more stores than the program declares.
    pub fn new(
        program: Arc<Program>,
        stores: Vec<Arc<dyn DataStore>>,
        world: Arc<dyn World>,
        settings: Settings,
    ) -> Arc<Self> {
        assert_eq!(
            stores.len(),
            program.checked.stores.len(),
            "one store for each that the program declares"
        );
        let origin = Origin(u128::from(world.random()) << 64 | u128::from(world.random()));
        let sequence = AtomicU64::new(1);
        Arc::new(Self {
            program,
            stores,
            world,
            settings,
            origin,
            sequence,
            mutation: mingle_lang::split::Mutation::None,
        })
    }

    /// Breaks a part of the interpreter, for tests that want to see what notices.
    #[doc(hidden)]
    pub fn with_mutation(self: Arc<Self>, mutation: mingle_lang::split::Mutation) -> Arc<Self> {
        let sequence = AtomicU64::new(1);
        Arc::new(Self {
            program: self.program.clone(),
            stores: self.stores.clone(),
            world: self.world.clone(),
            settings: self.settings.clone(),
            origin: self.origin,
            sequence,
            mutation,
        })
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The store with this id.
    pub fn store(&self, store: mingle_lang::hir::StoreId) -> &Arc<dyn DataStore> {
        &self.stores[store.index()]
    }

    /// Calls a transaction.
    ///
    /// # Errors
    ///
    /// See [`Error`]; each says what was written, if anything was.
    pub async fn call(self: &Arc<Self>, call: Call) -> Result<CallReport, Error> {
        let plan = self.checked_plan(&call)?;
        let shared = Arc::new(Shared::default());
        let running = Running(shared.clone());
        let runtime = self.clone();
        let finish = Finish(shared.clone());
        self.world.spawn(Box::pin(async move {
            // Moved in, so that it answers even if this task is dropped or panics.
            let finish = finish;
            let result = runtime.run(&plan, &call, &shared).await;
            finish.0.finish(result);
        }));
        running.await
    }

    /// As [`Runtime::call`], in the caller's own task: dropped, it stops where it stands.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn call_in_place(&self, call: &Call) -> Result<CallReport, Error> {
        let plan = self.checked_plan(call)?;
        let shared = Shared::default();
        self.run(&plan, call, &shared).await
    }

    fn checked_plan(&self, call: &Call) -> Result<Arc<Plan>, Error> {
        let name = &call.transaction;
        let plan = self
            .program
            .plan(name)
            .ok_or_else(|| Error::Misuse(format!("no transaction is called {name:?}")))?;
        if plan.params.len() != call.arguments.len() {
            let (expected, found) = (plan.params.len(), call.arguments.len());
            return Err(Error::Misuse(format!("{name} takes {expected} arguments, found {found}")));
        }
        for ((param, param_type), argument) in plan.params.iter().zip(&call.arguments) {
            if !self.program.schema().conforms(argument, param_type) {
                return Err(Error::Misuse(format!(
                    "{param} of {name} is of type {param_type}, found {argument}"
                )));
            }
        }
        if plan.endorses() {
            return Err(Error::Unsupported(format!(
                "{name} endorses, which is checked and explained but not run in this version"
            )));
        }
        Ok(plan.clone())
    }

    async fn run(&self, plan: &Plan, call: &Call, shared: &Shared) -> Result<CallReport, Error> {
        let facts = Facts {
            now: self.world.now(),
            seed: u128::from(self.world.random()) << 64 | u128::from(self.world.random()),
        };
        let mut recorded = Recorded::new(plan);
        let mut report = CallReport { result: None, phases: Vec::with_capacity(plan.phases.len()) };
        let mut committed: Vec<Name> = Vec::new();
        let mut deadline = self.world.elapsed() + self.settings.deadline;
        for (index, phase) in plan.phases.iter().enumerate() {
            let later = plan.first_write.is_some_and(|first| index > first);
            if plan.first_write.is_some_and(|first| index == first + 1) {
                // What is committed has to be finished, however long it took to get there.
                deadline = self.world.elapsed() + self.settings.deadline;
            }
            let attempt = Attempt { plan, phase, later, facts: &facts, call, shared, deadline };
            match self.phase(&attempt, &recorded).await {
                Ok((finished, phase_report)) => {
                    if plan.first_write.is_some_and(|first| index >= first)
                        && phase.mode == mingle_lang::split::Mode::Write
                    {
                        committed.extend(phase_report.store.clone());
                    }
                    recorded.merge(finished.recorded);
                    report.result = finished.result.or(report.result);
                    report.phases.push(phase_report);
                }
                Err(cause) if committed.is_empty() => return Err(cause),
                Err(cause) => {
                    let left = plan.phases[index..]
                        .iter()
                        .filter(|phase| phase.mode == mingle_lang::split::Mode::Write);
                    let missing = left.filter_map(|phase| self.store_name(phase)).collect();
                    return Err(Error::Incomplete { committed, missing, cause: Box::new(cause) });
                }
            }
        }
        Ok(report)
    }

    fn store_name(&self, phase: &Phase) -> Option<Name> {
        phase.store.map(|store| self.program.checked.stores[store.index()].name.clone())
    }

    /// Runs one phase until it commits.
    async fn phase(
        &self,
        attempt: &Attempt<'_>,
        earlier: &Recorded,
    ) -> Result<(Finished, PhaseReport), Error> {
        let begin = self.world.elapsed();
        let mut report =
            PhaseReport { store: self.store_name(attempt.phase), ..PhaseReport::default() };
        loop {
            report.attempts += 1;
            report.round_trips = 0;
            let error = match self.attempt(attempt, earlier, &mut report).await {
                Ok(finished) => {
                    report.recorded = finished.recorded.count();
                    report.time = self.world.elapsed().saturating_sub(begin);
                    return Ok((finished, report));
                }
                Err(error) => error,
            };
            if !matches!(error, Error::Store(StoreError::Conflict)) {
                return Err(error);
            }
            let pause = self.backoff(report.attempts);
            if self.world.elapsed() + pause > attempt.deadline {
                let store = report.store.clone().unwrap_or_default();
                let deadline = self.settings.deadline;
                return Err(Error::Conflict { store, attempts: report.attempts, deadline });
            }
            self.world.sleep(pause).await;
        }
    }

    /// The pause after so many attempts: doubling, of which a random half to the whole.
    fn backoff(&self, attempts: u32) -> Duration {
        let doubled = self.settings.backoff_min.saturating_mul(1_u32 << (attempts - 1).min(16));
        let longest = doubled.min(self.settings.backoff_max);
        let parts = 512 + (self.world.random() % 512) as u32;
        longest * parts / 1024
    }

    /// Runs one phase once.
    async fn attempt(
        &self,
        attempt: &Attempt<'_>,
        earlier: &Recorded,
        report: &mut PhaseReport,
    ) -> Result<Finished, Error> {
        let Attempt { plan, phase, later, facts, call, shared, .. } = *attempt;
        if shared.is_given_up() {
            return Err(Error::Cancelled);
        }
        let start = Start { program: &self.program, plan, phase, facts, earlier, unbounded: later };
        let mut machine = Machine::new(start, &call.arguments, &self.settings);
        machine.mutate(self.mutation);
        let Some(store) = phase.store else {
            return match machine.resume()? {
                Need::Done => Ok(machine.finish()),
                other => unreachable!("a phase without a store needs none, not {other:?}"),
            };
        };
        let store = self.store(store);
        if !phase.code.iter().any(visits) {
            return match machine.resume()? {
                Need::Done => Ok(machine.finish()),
                other => unreachable!("a phase without effects needs no store, not {other:?}"),
            };
        }
        let mut transaction = store.begin(&call.session).await.map_err(Error::Store)?;
        loop {
            match machine.resume()? {
                Need::Read(reads) => {
                    let mut answers = Vec::with_capacity(reads.len());
                    for part in reads.chunks(store.capabilities().operations_per_round_trip.max(1))
                    {
                        report.round_trips += 1;
                        let part = transaction.read(part).await.map_err(Error::Store)?;
                        answers.extend(part.into_iter().map(|answer| answer.data));
                    }
                    machine.supply(answers)?;
                }
                Need::Flush(writes) => {
                    report.round_trips += 1;
                    transaction.flush(writes).await.map_err(Error::Store)?;
                }
                Need::Done => break,
            }
        }
        let mut finished = machine.finish();
        let writes = std::mem::take(&mut finished.writes);
        if phase.mode == mingle_lang::split::Mode::Write {
            if !later && !shared.begin_commit() {
                return Err(Error::Cancelled);
            }
            report.round_trips += u32::from(!writes.is_empty());
        }
        let committed = self.commit(&**store, transaction, writes, attempt.deadline).await;
        if committed.is_err() && !later {
            shared.commit_failed();
        }
        committed.map(|()| finished)
    }

    /// Commits; where the answer is lost, asks until it is known or the deadline has passed.
    async fn commit(
        &self,
        store: &dyn DataStore,
        transaction: Box<dyn mingle_store::Transaction>,
        writes: Vec<mingle_store::Write>,
        deadline: Duration,
    ) -> Result<(), Error> {
        let capabilities = store.capabilities();
        let id = capabilities.may_lose_answers.then(|| TransactionId {
            origin: self.origin,
            sequence: self.sequence.fetch_add(1, Ordering::Relaxed),
        });
        let Err(error) = transaction.commit(Commit { id, writes, ..Commit::default() }).await
        else {
            return Ok(());
        };
        if !matches!(error, StoreError::Unknown { .. }) {
            return Err(Error::Store(error));
        }
        let unknown = || Error::Unknown { store: capabilities.store.clone(), id };
        let id_known = id.ok_or_else(unknown)?;
        let mut attempts = 1;
        loop {
            match store.outcome(id_known).await {
                Ok(Outcome::Committed) => return Ok(()),
                Ok(Outcome::NotCommitted) => return Err(Error::Store(StoreError::Conflict)),
                Ok(Outcome::Unknown) | Err(_) => {}
            }
            let pause = self.backoff(attempts);
            attempts += 1;
            if self.world.elapsed() + pause > deadline {
                return Err(unknown());
            }
            self.world.sleep(pause).await;
        }
    }
}

/// One phase of one call.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    plan: &'a Plan,
    phase: &'a Phase,
    /// Comes after the first phase that writes, so nothing of the program's own may fail.
    later: bool,
    facts: &'a Facts,
    call: &'a Call,
    shared: &'a Shared,
    deadline: Duration,
}

fn visits(instr: &Instr) -> bool {
    match instr {
        Instr::Fetch(_) | Instr::Read { .. } | Instr::Write { .. } => true,
        Instr::ForStart { prefetch, .. } => !prefetch.is_empty(),
        _ => false,
    }
}
