//! A program over its stores.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use mingle_lang::split::{Mode, Mutation};
use mingle_lang::{Plan, Program};
use mingle_model::{Name, Origin, TransactionId};
use mingle_store::{Admission, Data, DataStore, Once, Read, Session as StoreSession, World};
use tracing::Span;

use crate::api::call::{Call, CallReport, Finish, Running, Shared};
use crate::api::error::Error;
use crate::api::session::Session;
use crate::api::settings::Settings;
use crate::execute::bookkeeping::never_leaves_any;
use crate::execute::transaction::within;
use crate::in_flight::table::Own;
use crate::interpreter::machine::Facts;
use crate::mutants::Planted;
use crate::observe::metrics::Figures;
use crate::observe::stats::Stats;
use crate::protocol::intent::ProgramHash;
use crate::recovery::dead_origins::Watched;
use crate::stores::answers::Sums;
use crate::stores::availability::Circuits;
use crate::stores::visibility::Looked;
use crate::stores::visibility_cache::Known;

/// A program, its stores and the world in which it runs.
pub struct Runtime {
    pub(crate) program: Arc<Program>,
    pub(crate) hash: ProgramHash,
    /// By [`mingle_lang::hir::StoreId`].
    pub(crate) stores: Vec<Arc<dyn DataStore>>,
    /// The name, by store, under which seen stamps are noted.
    stamped: Vec<Name>,
    pub(crate) world: Arc<dyn World>,
    pub(crate) settings: Settings,
    /// The decision which transactions named callers may call; if it is not set, all.
    pub(crate) admission: OnceLock<Arc<dyn Admission>>,
    pub(crate) own: Mutex<Own>,
    pub(crate) known: Mutex<Known>,
    pub(crate) watched: Mutex<Watched>,
    pub(crate) looked: Mutex<Looked>,
    pub(crate) circuits: Mutex<Circuits>,
    sums: Mutex<Sums>,
    pub(crate) mutation: Mutation,
    pub(crate) planted: Planted,
    pub(crate) stats: Stats,
    pub(crate) figures: Figures,
    /// The number of pending outcome queries for transactions of the application.
    pub(crate) asking: AtomicUsize,
    /// True if it runs one attempt, beside its store, on behalf of another process.
    pub(crate) is_beside: bool,
    pub(crate) me: Weak<Self>,
}

/// The parts of which a runtime is made.
struct Parts {
    program: Arc<Program>,
    stores: Vec<Arc<dyn DataStore>>,
    world: Arc<dyn World>,
    settings: Settings,
    mutation: Mutation,
    planted: Planted,
    own: Own,
    is_beside: bool,
}

impl Runtime {
    /// Creates a runtime over stores in the order in which the program declares them.
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
        let own = Own::new(draw_origin(&*world));
        let (mutation, planted, is_beside) = (Mutation::None, Planted::None, false);
        Self::build(Parts { program, stores, world, settings, mutation, planted, own, is_beside })
    }

    /// Creates a runtime for one attempt on behalf of another process, which lends it an id.
    pub(crate) fn beside(
        program: Arc<Program>,
        stores: Vec<Arc<dyn DataStore>>,
        world: Arc<dyn World>,
        settings: Settings,
        lent: TransactionId,
    ) -> Arc<Self> {
        let (own, is_beside) = (Own::lent(lent), true);
        let (mutation, planted) = (Mutation::None, Planted::None);
        Self::build(Parts { program, stores, world, settings, mutation, planted, own, is_beside })
    }

    fn build(parts: Parts) -> Arc<Self> {
        let Parts { program, stores, world, settings, mutation, planted, own, is_beside } = parts;
        assert_eq!(
            stores.len(),
            program.checked.stores.len(),
            "one store for each that the program declares"
        );
        crate::observe::metrics::describe();
        let hash = ProgramHash::of(&program.text);
        let known = Known::of(hash, program.clone());
        let stamped = crate::execute::single_engine::stamped(&stores);
        let figures = Figures::of(&program);
        Arc::new_cyclic(|me| Self {
            program,
            hash,
            stores,
            stamped,
            world,
            settings,
            admission: OnceLock::new(),
            own: Mutex::new(own),
            known: Mutex::new(known),
            watched: Mutex::default(),
            looked: Mutex::default(),
            circuits: Mutex::default(),
            sums: Mutex::default(),
            mutation,
            planted,
            stats: Stats::default(),
            figures,
            asking: AtomicUsize::new(0),
            is_beside,
            me: me.clone(),
        })
    }

    fn parts(&self) -> Parts {
        Parts {
            program: self.program.clone(),
            stores: self.stores.clone(),
            world: self.world.clone(),
            settings: self.settings.clone(),
            mutation: self.mutation,
            planted: self.planted,
            own: Own::new(self.own().origin()),
            is_beside: self.is_beside,
        }
    }

    /// Breaks a part of the interpreter, for tests of the checks that must notice it.
    #[doc(hidden)]
    pub fn with_mutation(self: Arc<Self>, mutation: Mutation) -> Arc<Self> {
        Self::build(Parts { mutation, ..self.parts() })
    }

    /// Breaks a part of the protocol, for tests of the checks that must notice it.
    #[doc(hidden)]
    pub fn with_planted(self: Arc<Self>, planted: Planted) -> Arc<Self> {
        Self::build(Parts { planted, ..self.parts() })
    }

    /// Draws the time and the seed of a new transaction.
    pub(crate) fn draw_facts(&self) -> Facts {
        let seed = u128::from(self.world.random()) << 64 | u128::from(self.world.random());
        Facts { now: self.world.now(), seed }
    }

    /// The counts of events at this runtime.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The world in which it runs.
    pub fn world(&self) -> &Arc<dyn World> {
        &self.world
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The store with this id.
    pub fn store(&self, store: mingle_lang::hir::StoreId) -> &Arc<dyn DataStore> {
        &self.stores[store.index()]
    }

    /// Reads objects of a store as a session sees them, outside any transaction.
    ///
    /// # Errors
    ///
    /// When the store fails, or does not see the session's state within the deadline.
    pub async fn read(
        &self,
        store: mingle_lang::hir::StoreId,
        session: &Session,
        reads: &[Read],
    ) -> Result<Vec<Data>, Error> {
        let site = self.store(store);
        self.check_replica(session)?;
        let after = session.worklist().seen_at(self.stamped(store.index()));
        let replica = self.replica_at(store.index(), session.replica().as_ref());
        let session = StoreSession { replica, after, ..StoreSession::default() };
        let deadline = self.world.elapsed() + self.settings.deadline;
        let mut attempts = 0;
        loop {
            let since = self.world.elapsed();
            let reading = async { site.begin(&session).await?.read(reads).await };
            let silent = || Err(self.silent(store.index(), session.replica.as_ref(), since));
            let error = match self.by(deadline, reading).await.unwrap_or_else(silent) {
                Ok(answers) => return Ok(answers.into_iter().map(|answer| answer.data).collect()),
                Err(error) => error,
            };
            attempts += 1;
            let pause = self.backoff(attempts);
            if !error.is_retryable() || self.world.elapsed() + pause > deadline {
                return Err(Error::Store(error));
            }
            self.world.sleep(pause).await;
        }
    }

    /// Calls a transaction.
    ///
    /// # Errors
    ///
    /// See [`Error`]; each says which parts were written, if any.
    pub async fn call(self: &Arc<Self>, call: Call) -> Result<CallReport, Error> {
        let plan = self.checked_plan(&call)?;
        if call.until.is_none() && never_leaves_any(&plan) && self.world.is_here() {
            // If the caller goes away, nothing is left to finish.
            let running = AssertUnwindSafe(self.run_here(&plan, &call)).catch_unwind();
            return running.await.unwrap_or(Err(Error::Cancelled));
        }
        let shared = Arc::new(Shared::of(&call));
        let running = Running(shared.clone());
        let runtime = self.clone();
        let (finish, span) = (Finish(shared.clone()), Span::current());
        let task = async move {
            // The guard is moved in, so that it answers even if this task is dropped or panics.
            let finish = finish;
            let result = within(&span, pin!(runtime.run(&plan, &call, &shared))).await;
            finish.0.finish(result);
        };
        self.world.spawn(Box::pin(task));
        running.await
    }

    /// Does the same as [`Runtime::call`] in the caller's own task: if the future is dropped, the call stops at once.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn call_in_place(&self, call: &Call) -> Result<CallReport, Error> {
        let plan = self.checked_plan(call)?;
        self.run_here(&plan, call).await
    }

    async fn run_here(&self, plan: &Arc<Plan>, call: &Call) -> Result<CallReport, Error> {
        let shared = Shared::of(call);
        let result = self.run(plan, call, &shared).await;
        shared.take().unwrap_or(result)
    }

    pub(crate) fn checked_plan(&self, call: &Call) -> Result<Arc<Plan>, Error> {
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
            let bounds = argument.check();
            bounds.map_err(|why| Error::Misuse(format!("{param} of {name}: {why}")))?;
        }
        if let Some(until) = &call.until
            && !plan.phases.iter().any(|phase| self.name_of(phase) == Some(until))
        {
            return Err(Error::Misuse(format!("{name} does not visit a store {until:?}")));
        }
        self.check_plan(plan)?;
        self.check_replica(&call.session)?;
        Ok(plan.clone())
    }

    /// Checks that some store has the session's replica. The session stays at that replica in every
    /// store that has one of that name.
    fn check_replica(&self, session: &Session) -> Result<(), Error> {
        let Some(replica) = session.replica() else { return Ok(()) };
        let all = || self.stores.iter().flat_map(|store| &store.capabilities().replicas);
        if all().next().is_none() || all().any(|known| *known == replica) {
            return Ok(());
        }
        let known: BTreeSet<&str> = all().map(|name| &**name).collect();
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        Err(Error::Misuse(format!("no store has a replica {replica}; there are {known}")))
    }

    /// The replica of a store at which a session that stays at `replica` runs.
    pub(crate) fn replica_at(&self, store: usize, replica: Option<&Name>) -> Option<Name> {
        let known = &self.stores[store].capabilities().replicas;
        replica.filter(|replica| known.contains(replica)).cloned()
    }

    fn name_of(&self, phase: &mingle_lang::Phase) -> Option<&Name> {
        phase.store.map(|store| &self.program.checked.stores[store.index()].name)
    }

    /// Checks that its stores can run a transaction with all of its guarantees.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`], with the reason.
    pub fn check_plan(&self, plan: &Plan) -> Result<(), Error> {
        let unsupported = |why: String| Err(Error::Unsupported(format!("{}: {why}", plan.name)));
        let mut has_written = false;
        for phase in plan.phases.iter().filter(|phase| phase.mode == Mode::Write) {
            let Some(store) = phase.store else { continue };
            let capabilities = self.store(store).capabilities();
            if has_written && capabilities.once == Once::Never {
                return unsupported(format!(
                    "store {} cannot see to it that a phase takes effect once, so it cannot be written after another store",
                    capabilities.store
                ));
            }
            has_written = true;
        }
        if plan.isolated && plan.phases.len() > 1 {
            for phase in &plan.phases[..plan.phases.len() - 1] {
                let Some(store) = phase.store else { continue };
                let capabilities = self.store(store).capabilities();
                if !capabilities.serializable {
                    return unsupported(format!(
                        "it is isolated, so all stores that it visits but the last must be serializable, and {} is not",
                        capabilities.store
                    ));
                }
            }
            self.check_isolated_order(plan)?;
        }
        Ok(())
    }

    /// Refuses two isolated transactions that visit two stores in opposite orders: they could not be ordered.
    fn check_isolated_order(&self, plan: &Plan) -> Result<(), Error> {
        let stores =
            |plan: &Plan| -> Vec<_> { plan.phases.iter().filter_map(|p| p.store).collect() };
        let mine = stores(plan);
        for other in self.program.plans.iter().filter(|other| other.isolated) {
            let theirs = stores(other);
            for (at, first) in mine.iter().enumerate() {
                for second in &mine[at + 1..] {
                    let place = |store| theirs.iter().position(|known| known == store);
                    if let (Some(a), Some(b)) = (place(first), place(second))
                        && a > b
                    {
                        let name = |store: &mingle_lang::hir::StoreId| {
                            self.program.checked.stores[store.index()].name.clone()
                        };
                        return Err(Error::Unsupported(format!(
                            "{} visits {} before {}, and {} the other way round, so they cannot both be isolated",
                            plan.name,
                            name(first),
                            name(second),
                            other.name
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn circuits(&self) -> MutexGuard<'_, Circuits> {
        self.circuits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn looked(&self) -> MutexGuard<'_, Looked> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of the store called `name`.
    pub(crate) fn store_called(&self, name: &str) -> Option<usize> {
        self.stores.iter().position(|store| *store.capabilities().store == *name)
    }

    /// The name under which stamps seen at a store are noted: the stamps seen at one store of an engine
    /// hold for all stores of the engine.
    pub(crate) fn stamped(&self, store: usize) -> &Name {
        &self.stamped[store]
    }

    /// True if a replica of the store may lack acknowledged writes. Replicas of a
    /// serializable store agree.
    pub(crate) fn is_many(&self, store: usize) -> bool {
        let capabilities = self.stores[store].capabilities();
        capabilities.replicas.len() > 1 && !capabilities.serializable
    }

    /// The replicas of a store, if one may lack writes that another has; `[None]` if the store has only one,
    /// or its replicas agree. Replicas that were given up are not included.
    pub(crate) fn replicas(&self, store: usize) -> Vec<Option<Name>> {
        let capabilities = self.stores[store].capabilities();
        if capabilities.serializable || capabilities.replicas.is_empty() {
            return vec![None];
        }
        let departed = self.stores[store].departed();
        let left = capabilities.replicas.iter().filter(|name| !departed.contains(name));
        left.cloned().map(Some).collect()
    }

    /// Replaces a fenced origin, which can begin no more transactions, by a new one. The process that fenced it
    /// finishes the transactions that it began.
    pub(crate) fn renew(&self, fenced: Origin) {
        let mut own = self.own();
        if own.origin() == fenced {
            *own = Own::new(draw_origin(&*self.world));
        }
    }

    /// The pause after so many attempts: it doubles with each, and a random part of it, at least half, is used.
    pub(crate) fn backoff(&self, attempts: u32) -> Duration {
        let shift = attempts.saturating_sub(1).min(16);
        let doubled = self.settings.backoff_min.saturating_mul(1_u32 << shift);
        let longest = doubled.min(self.settings.backoff_max);
        let parts = 512 + (self.world.random() % 512) as u32;
        longest * parts / 1024
    }
}

fn draw_origin(world: &dyn World) -> Origin {
    Origin(u128::from(world.random()) << 64 | u128::from(world.random()))
}
