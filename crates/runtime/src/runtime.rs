//! The facade of the runtime: a program over its stores.
//!
//! The work is done by the parts: `Stores` (the stores, and all that is known of them), `InFlight` (the
//! transactions that this process has begun), `Executor` (runs transactions), and `Recovery` (finishes and
//! cleans up after others). Each part knows only those before it.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use mingle_lang::split::Mutation;
use mingle_lang::{Plan, Program};
use mingle_model::{Name, TransactionId};
use mingle_store::{Admission, Data, DataStore, Listed, Listing, Read, StoreError, World};
use tracing::Span;

use crate::api::call::{Call, CallReport, Finish, Running, Shared};
use crate::api::error::Error;
use crate::api::session::Session;
use crate::api::settings::Settings;
use crate::execute::Executor;
use crate::execute::bookkeeping::never_leaves_any;
use crate::execute::transaction::within;
use crate::host_transaction::Inside;
use crate::in_flight::table::Table;
use crate::in_flight::{InFlight, draw_origin};
use crate::mutants::Mutant;
use crate::observe::stats::Stats;
use crate::recovery::Recovery;
use crate::recovery::abandon::Abandoned;
use crate::recovery::survey::{Backlog, Found, Survey, Unfinished};
use crate::recovery::sweeper::Swept;
use crate::stores::answers::Answered;
use crate::stores::availability::Away;
use crate::stores::lost_replicas::Loss;
use crate::stores::{Parts, Stores};

/// A program, its stores and the world in which it runs.
pub struct Runtime {
    stores: Arc<Stores>,
    in_flight: Arc<InFlight>,
    executor: Arc<Executor>,
    recovery: Arc<Recovery>,
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
        let table = Table::new(draw_origin(&*world));
        let (mutation, mutant, is_worker) = (Mutation::None, Mutant::None, false);
        let parts =
            Parts { program, stores, world, settings, mutation, mutant, given: None, is_worker };
        Self::build(parts, table)
    }

    fn build(parts: Parts, table: Table) -> Arc<Self> {
        let stores = Stores::new(parts);
        let in_flight = InFlight::new(stores.clone(), table);
        let executor = Executor::new(in_flight.clone());
        let recovery = Recovery::new(executor.clone());
        Arc::new(Self { stores, in_flight, executor, recovery })
    }

    /// Breaks a part of the interpreter, for tests of the checks that must notice it.
    #[doc(hidden)]
    pub fn with_mutation(self: Arc<Self>, mutation: Mutation) -> Arc<Self> {
        self.rebuilt(|parts| parts.mutation = mutation)
    }

    /// Breaks a part of the protocol, for tests of the checks that must notice it.
    #[doc(hidden)]
    pub fn with_planted(self: Arc<Self>, mutant: Mutant) -> Arc<Self> {
        self.rebuilt(|parts| parts.mutant = mutant)
    }

    /// Gives the answers to reads with a policy, for tests that compare runs with the same answers.
    #[doc(hidden)]
    pub fn with_answers(self: Arc<Self>, given: crate::stores::Given) -> Arc<Self> {
        self.rebuilt(|parts| parts.given = Some(given))
    }

    fn rebuilt(&self, change: impl FnOnce(&mut Parts)) -> Arc<Self> {
        let mut parts = self.stores.parts();
        change(&mut parts);
        Self::build(parts, Table::new(self.in_flight.table().origin()))
    }

    /// The counts of events at this runtime.
    pub fn stats(&self) -> &Stats {
        &self.stores.stats
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.stores.program
    }

    /// The world in which it runs.
    pub fn world(&self) -> &Arc<dyn World> {
        &self.stores.world
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.stores.settings
    }

    /// The store with this id.
    pub fn store(&self, store: mingle_lang::hir::StoreId) -> &Arc<dyn DataStore> {
        self.stores.store(store)
    }

    /// Calls a transaction.
    ///
    /// # Errors
    ///
    /// See [`Error`]; each says which parts were written, if any.
    pub async fn call(self: &Arc<Self>, call: Call) -> Result<CallReport, Error> {
        let plan = self.stores.checked_plan(&call)?;
        if call.until.is_none() && never_leaves_any(&plan) && self.stores.world.is_here() {
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
            let result = within(&span, pin!(runtime.executor.run(&plan, &call, &shared))).await;
            finish.0.finish(result);
        };
        self.stores.world.spawn(Box::pin(task));
        running.await
    }

    /// Does the same as [`Runtime::call`] in the caller's own task: if the future is dropped, the call stops at once.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn call_in_place(&self, call: &Call) -> Result<CallReport, Error> {
        let plan = self.stores.checked_plan(call)?;
        self.run_here(&plan, call).await
    }

    async fn run_here(&self, plan: &Arc<Plan>, call: &Call) -> Result<CallReport, Error> {
        let shared = Shared::of(call);
        let result = self.executor.run(plan, call, &shared).await;
        shared.take().unwrap_or(result)
    }

    /// Lets calls that name a principal run only if it is admitted. Calls without one are this process's own.
    ///
    /// It is set once: returns false if it was set before.
    pub fn admit_by(&self, admission: Arc<dyn Admission>) -> bool {
        self.stores.admit_by(admission)
    }

    /// Checks that its stores can run a transaction with all of its guarantees.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`], with the reason.
    pub fn check_plan(&self, plan: &Plan) -> Result<(), Error> {
        self.stores.check_plan(plan)
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
        self.stores.read(store, session, reads).await
    }

    /// Lists objects as a session's replica has them, outside any transaction.
    ///
    /// # Errors
    ///
    /// When the store fails, or cannot list its objects.
    pub async fn list(
        &self,
        store: mingle_lang::hir::StoreId,
        session: &Session,
        listing: &Listing,
    ) -> Result<Listed, Error> {
        self.stores.list(store, session, listing).await
    }

    /// Calls a transaction up to and including its first phase that writes, which takes effect with a
    /// transaction that the application has begun at `store`; phases at `place` are parts of that.
    ///
    /// If this fails or is dropped, the provider of the place must undo the writes made there.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] and [`Error::Unsupported`] for a transaction that does not write first at that
    /// store; [`StoreError::Conflict`] if only a new transaction of the application's can succeed;
    /// else see [`Error`].
    pub async fn call_inside(
        self: &Arc<Self>,
        call: Call,
        store: &str,
        place: Arc<dyn DataStore>,
    ) -> Result<Inside, Error> {
        self.executor.call_inside(call, store, place, self.clone()).await
    }

    /// The store at which a call writes first.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] if there is no such transaction, or it writes nothing.
    pub fn writes_first_at(&self, call: &Call) -> Result<Name, Error> {
        self.executor.writes_first_at(call)
    }

    /// Returns the data that a session has seen and that was lost with replicas that were given up.
    /// Its calls are refused if they would need this data.
    pub fn losses(&self, session: &Session) -> Vec<Loss> {
        self.stores.losses(session)
    }

    /// Lets a session go on without the data that was lost with replicas that were given up, and
    /// returns the losses. No lost write is repeated.
    pub fn accept_losses(&self, session: &Session) -> Vec<Loss> {
        self.stores.accept_losses(session)
    }

    /// Removes the records of calls that were first made at least `age` ago, and returns their number;
    /// their keys may then be used again.
    ///
    /// # Errors
    ///
    /// When a store fails.
    pub async fn forget_keys(&self, age: Duration) -> Result<usize, Error> {
        self.executor.forget_keys(age).await
    }

    /// Returns the stores and replicas that do not answer at present.
    pub fn away(&self) -> Vec<Away> {
        self.stores.away()
    }

    /// Returns the answers of each store and replica that was asked.
    pub fn answered(&self) -> Vec<Answered> {
        self.stores.answered()
    }

    /// Returns the number of failures of each background task. Each is tried again.
    pub fn background_failures(&self) -> BTreeMap<&'static str, u64> {
        self.stores.background_failures()
    }

    /// Returns the number of calls that were refused because a store is away, by store.
    pub fn refused_away(&self) -> BTreeMap<Name, u64> {
        self.stores.refused_away()
    }

    /// True if all that this runtime has begun is over and cleaned up, so that only floors are left
    /// of it.
    pub fn is_clean(&self) -> bool {
        self.in_flight.is_clean()
    }

    /// Returns the number of transactions of this runtime that are not finished and cleaned up.
    pub fn open(&self) -> usize {
        self.in_flight.open()
    }

    /// True if no transaction of this runtime goes on by itself: it is clean, or waits for parked
    /// transactions.
    pub fn is_at_rest(&self) -> bool {
        self.in_flight.is_at_rest()
    }

    /// Removes the signs of life once nothing is open. The task that gives them calls this between
    /// two signs, and a runtime that gives none any more. A sign that arrives after this is noted
    /// again.
    ///
    /// # Errors
    ///
    /// If a store fails.
    pub async fn end_lease(&self) -> Result<(), StoreError> {
        self.in_flight.end_lease().await
    }

    /// Starts the periodic sweeps for records that other origins have left, for as long as the
    /// runtime exists.
    pub fn start_sweeps(&self) {
        self.recovery.start_sweeps();
    }

    /// Finds the records of other origins, finishes their transactions, and cleans up.
    /// `assumes_dead` waits for no lease; use it only if no other process is there.
    ///
    /// # Errors
    ///
    /// If a store fails.
    pub async fn sweep(&self, assumes_dead: bool) -> Result<Swept, Error> {
        self.recovery.sweep(assumes_dead).await
    }

    /// Sweeps as [`Runtime::sweep`] without waiting for leases, and tries parked transactions once
    /// more, this runtime's own as well.
    ///
    /// # Errors
    ///
    /// If a store fails.
    pub async fn recover_all(&self) -> Result<Swept, Error> {
        self.recovery.recover_all().await
    }

    /// Tries a parked transaction once more.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] if no unfinished transaction has this id; [`Error::Parked`] if a store
    /// still refuses it; otherwise if a store fails.
    pub async fn retry(&self, id: TransactionId) -> Result<(), Error> {
        self.recovery.retry(id).await
    }

    /// Ends a parked transaction: the parts that have committed stay, the others never run, and no
    /// transaction waits for them any more.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] if no parked transaction has this id; otherwise if a store fails: then the
    /// call may be repeated.
    pub async fn abandon(&self, id: TransactionId, because: &str) -> Result<Abandoned, Error> {
        self.recovery.abandon(id, because).await
    }

    /// Returns the transactions that were abandoned, at all stores.
    ///
    /// # Errors
    ///
    /// If a store fails.
    pub async fn abandoned(&self) -> Result<Vec<Abandoned>, Error> {
        self.recovery.abandoned().await
    }

    /// The transactions that this process has begun and not cleaned up.
    pub fn backlog(&self) -> Backlog {
        self.recovery.backlog()
    }

    /// The transactions of all origins that are not finished.
    ///
    /// # Errors
    ///
    /// When a store fails. [`Runtime::left_behind`] still returns the answers of the other stores.
    pub async fn unfinished(&self) -> Result<Vec<Unfinished>, Error> {
        self.recovery.unfinished().await
    }

    /// The unfinished and abandoned transactions at all stores that answer, and
    /// the stores that do not answer.
    ///
    /// # Errors
    ///
    /// When a store returns a record that cannot be read.
    pub async fn left_behind(&self) -> Result<Found, Error> {
        self.recovery.left_behind().await
    }

    /// Asks every replica of every store for its records. Leases are read twice, since only a
    /// lease that changes shows that its process lives: this takes a little longer than the time between two renewals.
    pub async fn survey(&self) -> Survey {
        self.recovery.survey().await
    }
}
