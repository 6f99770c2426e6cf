//! Running the attempts of other processes.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use mingle_lang::split::Mutation;
use mingle_lang::{Plan, Program};
use mingle_model::Name;
use mingle_store::{Admission, DataStore, StoreError, World};

use super::elsewhere::{Elsewhere, here};
use crate::api::call::PhaseReport;
use crate::api::error::Error;
use crate::api::settings::{Settings, WORKER_INLINE_BYTES_MAX, WORKER_KEPT_MAX, WORKER_TRIES_MAX};
use crate::execute::Executor;
use crate::execute::attempt::Step;
use crate::execute::control::Control;
use crate::execute::execution::{Begun, Execution, Invocation, Runner, Stage};
use crate::execute::phase::Tries;
use crate::execute::send_phase::wire::{After, Attempt, Attempted, End, Left};
use crate::in_flight::InFlight;
use crate::in_flight::table::Table;
use crate::interpreter::instructions::visits;
use crate::interpreter::machine::{Facts, Recorded};
use crate::mutants::Mutant;
use crate::observe::stats::Counted;
use crate::protocol::intent::{ProgramHash, decode, encode};
use crate::stores::admission::check_attempt;
use crate::stores::{Parts, Stores};

/// Bytes that are no attempt at a phase of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAttempt(String);

impl fmt::Display for NoAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoAttempt {}

/// A worker's runner: it stands beside a store and runs the attempts that other processes send.
///
/// It bounds steps and memory of every phase, whichever bounds the sender names. If a phase exceeds them,
/// the sender runs it itself if the transaction has already written, and otherwise refuses it.
pub struct Beside {
    store: Arc<dyn DataStore>,
    world: Arc<dyn World>,
    /// Upper bounds of the deadline, steps, bytes and wait set that an attempt may ask for.
    settings: Settings,
    /// Programs whose texts are already kept in the store.
    kept: Mutex<BTreeSet<ProgramHash>>,
}

impl Beside {
    /// Creates a runner beside this store, with bounds on the deadline, the steps, the memory and the
    /// wait set of an attempt.
    pub fn new(store: Arc<dyn DataStore>, world: Arc<dyn World>, settings: Settings) -> Self {
        Self { store: here(store), world, settings, kept: Mutex::default() }
    }

    /// The store as senders of attempts see it: its answers can be lost.
    pub fn store(&self) -> &Arc<dyn DataStore> {
        &self.store
    }

    /// Runs an attempt of a program that declares this store, for a client whose callers may call the
    /// transactions that `admission` allows; without an `admission`, all transactions. If the future is
    /// dropped before it has ended, the attempt's outcome is unknown.
    ///
    /// # Errors
    ///
    /// When the bytes are no attempt at a phase of this program at this store.
    ///
    /// # Panics
    ///
    /// May panic if the sent values do not fit the phase, for example if recorded values of earlier
    /// phases have other types. Run it in a task of its own.
    pub async fn run(
        &self,
        program: &Arc<Program>,
        attempt: &[u8],
        admission: Option<&dyn Admission>,
    ) -> Result<Vec<u8>, NoAttempt> {
        // Decoding a large attempt takes a turn of computation.
        let is_large = attempt.len() > WORKER_INLINE_BYTES_MAX;
        let turn = if is_large { Some(self.world.turn().await) } else { None };
        let attempt: Attempt = decode(attempt).map_err(|_| {
            NoAttempt("the attempt is corrupt, or of another version of the protocol".into())
        })?;
        drop(turn);
        let plan = self.check(program, &attempt)?;
        let executor = self.executor(program, &attempt);
        Ok(encode(&self.attempt((&executor, admission), program, plan, attempt).await))
    }

    fn check(&self, program: &Program, attempt: &Attempt) -> Result<Arc<Plan>, NoAttempt> {
        let wrong =
            |why: String| NoAttempt(format!("transaction {:?}: {why}", attempt.transaction));
        let plan = program
            .plan(&attempt.transaction)
            .ok_or_else(|| wrong("the program has none of that name".into()))?;
        let index = attempt.phase as usize;
        let phase = plan.phases.get(index).filter(|phase| phase.code.iter().any(visits));
        let store = phase.and_then(|phase| phase.store);
        let store = store.map(|store| &program.checked.stores[store.index()].name);
        if store != Some(&self.store.capabilities().store) || store != Some(&attempt.store) {
            return Err(wrong(format!("phase {index} does not visit store {}", attempt.store)));
        }
        let fits = plan.params.len() == attempt.arguments.len()
            && plan.params.iter().zip(&attempt.arguments).all(|((_, param_type), argument)| {
                program.schema().conforms(argument, param_type) && argument.check().is_ok()
            });
        if !fits {
            return Err(wrong("the arguments do not fit".into()));
        }
        if attempt.begun.as_ref().is_some_and(|(_, first, _)| *first as usize >= index) {
            return Err(wrong(format!("phase {index} comes before the one that wrote first")));
        }
        if attempt.stores.len() != program.checked.stores.len() {
            return Err(wrong("it does not say what each store of the program can do".into()));
        }
        Ok(plan.clone())
    }

    /// Creates an executor for which this store is the only reachable one.
    fn executor(&self, program: &Arc<Program>, attempt: &Attempt) -> Arc<Executor> {
        let declared = program.checked.stores.iter().zip(&attempt.stores);
        let mut stores: Vec<Arc<dyn DataStore>> = Vec::new();
        for (declared, known) in declared {
            if declared.name == attempt.store {
                stores.push(self.store.clone());
                continue;
            }
            let mut capabilities = match known {
                Some(known) => known.capabilities.clone(),
                None => Elsewhere::nowhere(declared.name.clone()),
            };
            capabilities.store = declared.name.clone();
            let everywhere = known.as_ref().and_then(|known| known.everywhere.clone());
            let everywhere = everywhere.unwrap_or_default();
            let time = attempt.latest;
            stores.push(Arc::new(Elsewhere { capabilities, everywhere, time }));
        }
        let bounds = &attempt.bounds;
        let settings = Settings {
            deadline: bounds.within.min(self.settings.deadline),
            steps_max: bounds.steps.min(self.settings.steps_max),
            memory_bytes_max: self.settings.memory_bytes_max.min(bounds.memory_bytes as usize),
            worklist_max: self.settings.worklist_max.min(bounds.wait_set as usize),
            tracking: bounds.tracking,
            ..self.settings.clone()
        };
        let (mutation, mutant, is_worker) = (Mutation::None, Mutant::None, true);
        let parts = Parts {
            program: program.clone(),
            stores,
            world: self.world.clone(),
            settings,
            mutation,
            given: None,
            mutant,
            is_worker,
        };
        let in_flight = InFlight::new(Stores::new(parts), Table::lent(attempt.lent));
        let executor = Executor::new(in_flight);
        let now = self.world.elapsed();
        let mut known = executor.stores.cache();
        for (store, sent) in attempt.stores.iter().enumerate() {
            if let Some(everywhere) = sent.as_ref().and_then(|sent| sent.everywhere.clone()) {
                known.note_everywhere(store, everywhere, now);
            }
            if program.checked.stores[store].name == attempt.store
                && self.kept().contains(&executor.stores.hash)
            {
                known.note_kept(store, executor.stores.hash);
            }
        }
        drop(known);
        executor
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, BTreeSet<ProgramHash>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn attempt(
        &self,
        (executor, admission): (&Executor, Option<&dyn Admission>),
        program: &Arc<Program>,
        plan: Arc<Plan>,
        attempt: Attempt,
    ) -> Attempted {
        let (index, lent, stores) = (attempt.phase as usize, attempt.lent, &executor.stores);
        let site = plan.phases[index].store.expect("it was checked to visit a store");
        let before = attempt.recorded.clone();
        let mut tries = tries_of(&attempt);
        let mut execution = execution(program, stores.hash, &plan, attempt, site);
        let deadline = self.world.elapsed().saturating_add(stores.settings.deadline);
        // A transaction that has begun must be finished; steps are bounded here all the same.
        let may_end = !execution.has_begun();
        let control = Control::without_caller(deadline, stores.settings.deadline, may_end);
        let (mut report, mut end, mut tried_so_often) = (PhaseReport::default(), End::Again, 0);
        if let Err(error) = check_admitted(&execution, admission) {
            let after = after(executor, execution, tries, report, (before, site));
            return Attempted { end: End::Failed(error), after, stats: Vec::new() };
        }
        for tried in 1..=WORKER_TRIES_MAX {
            tried_so_often = tried;
            let attempted =
                executor.attempt(&mut execution, index, &mut tries, &control, &mut report).await;
            let may_go_on = tried < WORKER_TRIES_MAX
                && !executor.in_flight.table().is_spent
                && executor.in_flight.table().origin() == lent.origin
                && self.world.elapsed() < deadline;
            end = match attempted {
                // The worker can use the learned rows at once, without asking the sender.
                Err(Error::Store(StoreError::Witnessed { rows })) if may_go_on => {
                    stores.stats.count(Counted::Witnessed);
                    tries.rows.extend(rows);
                    continue;
                }
                Err(Error::Store(StoreError::Conflict)) if may_go_on => {
                    tries.look = true;
                    self.world.sleep(stores.backoff(tried)).await;
                    continue;
                }
                Ok(Step::Again) if may_go_on && tries.to_pin.is_none() => continue,
                Ok(Step::Again) => tries.to_pin.take().map_or(End::Again, End::Pin),
                Ok(Step::Done) => End::Done,
                Ok(Step::Over | Step::Abandoned) => End::Over,
                Ok(Step::StartOver | Step::Hold(_) | Step::Whole(_)) => End::StartOver,
                Ok(Step::Wait(ids)) => End::Wait(ids),
                Err(Error::Limit(why)) => End::Failed(Error::Limit(self.bounded(&why, executor))),
                Err(error) => End::Failed(error),
            };
            break;
        }
        self.note_kept(executor, site.index());
        let is_fenced = executor.in_flight.table().origin() != lent.origin;
        let stats = Counted::ALL.iter().map(|counted| stores.stats.get(*counted)).collect();
        let is_spent = executor.in_flight.table().is_spent;
        let after = after(executor, execution, tries, report, (before, site));
        let after = After { is_fenced, is_spent, tried: tried_so_often, ..after };
        Attempted { end, after, stats }
    }

    fn bounded(&self, why: &str, executor: &Executor) -> String {
        let (store, settings) = (&self.store.capabilities().store, &executor.stores.settings);
        format!(
            "{why} (at the worker of store {store}, where a phase may take {} steps and {} bytes)",
            settings.steps_max, settings.memory_bytes_max
        )
    }

    fn note_kept(&self, executor: &Executor, store: usize) {
        if !executor.stores.cache().is_kept(store, executor.stores.hash) {
            return;
        }
        let mut kept = self.kept();
        if kept.len() >= WORKER_KEPT_MAX {
            kept.clear();
        }
        kept.insert(executor.stores.hash);
    }
}

/// Refuses an attempt whose principal may not call the transaction, up to the first commit.
fn check_admitted(execution: &Execution, admission: Option<&dyn Admission>) -> Result<(), Error> {
    let principal = execution.call.principal.as_ref();
    check_attempt(&execution.call.plan, principal, execution.has_written(), admission)
}

/// Returns the tries with the facts that the sender has learned from earlier attempts.
fn tries_of(attempt: &Attempt) -> Tries {
    let mut tries = Tries::default();
    tries.look = attempt.look;
    tries.rows.clone_from(&attempt.rows);
    tries.replica.clone_from(&attempt.elsewhere);
    tries.pinned.clone_from(&attempt.pinned);
    tries
}

/// Rebuilds the transaction as the sender has it.
fn execution(
    program: &Arc<Program>,
    hash: ProgramHash,
    plan: &Arc<Plan>,
    attempt: Attempt,
    site: mingle_lang::hir::StoreId,
) -> Execution {
    let facts = Facts { now: attempt.now, seed: attempt.seed };
    let call = Invocation {
        key: attempt.key,
        principal: attempt.principal,
        digest: attempt.digest,
        ..Invocation::new((program.clone(), hash), plan.clone(), attempt.arguments, facts)
    };
    let mut execution = Execution::new(call, attempt.wait_set, attempt.replica);
    execution.recorded = Recorded::from_queues(plan, attempt.recorded);
    execution.result = attempt.result;
    execution.home = attempt.home;
    execution.stage = match attempt.begun {
        Some((id, first, intent)) => {
            Stage::Begun { begun: Begun { id, first: first as usize, intent }, first: None }
        }
        None if attempt.has_written => Stage::Written { first: None },
        None => Stage::Undecided,
    };
    execution.id = attempt.id;
    if attempt.is_helper {
        execution.runner = Runner::Helper { chain: attempt.chain, pushes: false };
    }
    execution.time = attempt.time;
    if !attempt.endorsed.is_empty() {
        execution.endorsed.insert(site, attempt.endorsed);
    }
    execution
}

fn after(
    executor: &Executor,
    mut execution: Execution,
    tries: Tries,
    report: PhaseReport,
    (before, site): (Vec<Vec<mingle_model::Value>>, mingle_lang::hir::StoreId),
) -> After {
    let names = |stores: &BTreeSet<usize>| -> Vec<Name> {
        stores.iter().map(|store| executor.stores.name_at(*store)).collect()
    };
    let left = &execution.left;
    let left = Left {
        intent: left.intent.map(|store| executor.stores.name_at(store)),
        witnesses: names(&left.witnesses),
        maybe: names(&left.maybe),
        rows: names(&left.rows),
        seen: left.seen.clone(),
    };
    // Only the values that this phase has added: each queue is recorded whole, by one phase.
    let recorded = execution.recorded.queues().iter().enumerate().map(|(queue, values)| {
        if before.get(queue) == Some(values) { Vec::new() } else { values.clone() }
    });
    After {
        id: execution.id,
        is_fenced: false,
        is_spent: false,
        tried: 1,
        time: execution.time,
        has_written: execution.has_written(),
        has_begun: execution.has_begun(),
        recorded: recorded.collect(),
        result: execution.result.take(),
        endorsed: execution.endorsed.remove(&site),
        satisfied: execution.satisfied,
        wait_set: execution.wait_set,
        left,
        look: tries.look,
        rows: tries.rows,
        recorded_count: report.recorded as u64,
        was_done: report.was_done,
    }
}
