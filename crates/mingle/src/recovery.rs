//! Unfinished transactions: waiting for them, and finishing them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mingle_lang::Program;
use mingle_model::TransactionId;
use mingle_runtime::{Abandoned, Backlog, Error, Found, Survey, Swept, Unfinished};
use mingle_store::{Outcome, World};

use crate::binding::Binding;
use crate::database::Database;
use crate::open::OpenError;

/// The interval between two looks at whether all is finished.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The pause after a failed attempt to finish transactions that other processes left.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

impl Database {
    /// As [`Database::open_idle`], also while stores are away. Until this database is closed, a store that
    /// was away answers each request with the reason why it could not be opened. For operators, because they need
    /// to see the transactions at the other stores.
    ///
    /// # Errors
    ///
    /// When the binding does not fit the program, or a store that answers cannot be opened.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use mingle::{Binding, Database, TokioWorld};
    ///
    /// # #[cfg(feature = "postgres")]
    /// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
    /// let program = mingle::compile("store bank: linearizable; store feed: causal;").unwrap();
    /// // Nothing listens there.
    /// let binding = "[stores.bank]
    ///     engine = \"postgres\"
    ///     url = \"postgres://127.0.0.1:1/bank\"
    ///     [stores.feed]
    ///     engine = \"embedded\"";
    /// let binding = Binding::parse(binding).unwrap();
    /// let world = Arc::new(TokioWorld::new());
    /// let database = Database::open_reachable(program, &binding, None, world).await.unwrap();
    /// let found = database.left_behind().await.unwrap();
    /// assert_eq!(&*found.unreachable[0].store, "bank");
    /// # });
    /// ```
    pub async fn open_reachable(
        program: Arc<Program>,
        binding: &Binding,
        folder: Option<&Path>,
        world: Arc<dyn World>,
    ) -> Result<Self, OpenError> {
        Self::open_stores(program, binding, (folder, true), world, |_, store| store).await
    }

    /// Returns the transactions of all callers that have committed at some stores and not yet at
    /// others; transactions that still run may be among them.
    ///
    /// # Errors
    ///
    /// When a store fails.
    pub async fn unfinished(&self) -> Result<Vec<Unfinished>, Error> {
        self.runtime.unfinished().await
    }

    /// Returns the unfinished and abandoned transactions of the stores that answer, and the others.
    ///
    /// # Errors
    ///
    /// When a store's answer cannot be decoded, or a store is away after it has answered.
    pub async fn left_behind(&self) -> Result<Found, Error> {
        self.runtime.left_behind().await
    }

    /// Returns the records that every replica of every store holds for the runtime, and the processes
    /// that left them. Takes a few seconds if a process is alive: its signs of life are read twice.
    pub async fn survey(&self) -> Survey {
        self.runtime.survey().await
    }

    /// Returns the transactions that this process has begun and not cleaned up, without asking any store.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn shown(database: &mingle::Database) {
    /// let backlog = database.backlog();
    /// println!("{} open, the oldest for {:?}", backlog.open, backlog.oldest);
    /// # }
    /// ```
    pub fn backlog(&self) -> Backlog {
        self.runtime.backlog()
    }

    /// Finishes transactions that other processes left, and tries parked transactions once more. Takes
    /// the other processes for dead; a living one loses no data, but must begin anew under another name.
    ///
    /// # Errors
    ///
    /// When a store fails.
    pub async fn recover(&self) -> Result<Swept, Error> {
        let world = self.runtime.world();
        let deadline = world.elapsed() + self.runtime.settings().deadline;
        let mut all = Swept::default();
        loop {
            let swept = self.runtime.recover_all().await?;
            let may_follow = add(&mut all, swept);
            if !may_follow || world.elapsed() + AGAIN_AFTER > deadline {
                return Ok(all);
            }
            world.sleep(AGAIN_AFTER).await;
        }
    }

    /// Tries one parked transaction once more.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] when no transaction of this id is unfinished; [`Error::Parked`] when a store
    /// still refuses it; otherwise when a store fails.
    pub async fn retry(&self, id: TransactionId) -> Result<(), Error> {
        self.runtime.retry(id).await
    }

    /// Ends a parked transaction and records the reason: the committed parts stay, the other parts never
    /// follow, and no transaction waits for them any more. [`Database::abandoned`] lists it for good.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] when no transaction of this id is parked, or no reason is given; otherwise when
    /// a store fails: then the caller may try again.
    pub async fn abandon(&self, id: TransactionId, because: &str) -> Result<Abandoned, Error> {
        if because.trim().is_empty() {
            return Err(Error::Misuse("who abandons a transaction says why".into()));
        }
        self.runtime.abandon(id, because).await
    }

    /// The abandoned transactions.
    ///
    /// # Errors
    ///
    /// When a store fails.
    pub async fn abandoned(&self) -> Result<Vec<Abandoned>, Error> {
        self.runtime.abandoned().await
    }

    /// Waits at most `at_most` until all calls of this process, and all transactions that earlier
    /// processes left, are finished and cleaned up. Returns true if they are. Does not wait for parked
    /// transactions.
    pub async fn settle(&self, at_most: Duration) -> bool {
        let world = self.runtime.world();
        let deadline = world.elapsed() + at_most;
        loop {
            let is_at_rest =
                self.runtime.is_at_rest() && !self.is_catching_up.load(Ordering::Acquire);
            // While a transaction is parked, this process keeps giving signs of life.
            let is_signed_off = is_at_rest && self.runtime.end_lease().await.is_ok();
            if is_signed_off || world.elapsed() >= deadline {
                return is_at_rest && self.runtime.is_clean();
            }
            world.sleep(LOOK_EVERY).await;
        }
    }

    /// As [`Database::settle`], and then releases the stores, so that a folder can be opened again.
    pub async fn close(self, at_most: Duration) -> bool {
        let is_settled = self.settle(at_most).await;
        let world = self.runtime.world().clone();
        let deadline = world.elapsed() + at_most;
        let runtime = Arc::downgrade(&self.runtime);
        drop(self);
        // A sweep or a running transaction may hold the runtime for a moment.
        while runtime.strong_count() > 0 && world.elapsed() < deadline {
            world.sleep(LOOK_EVERY).await;
        }
        is_settled
    }

    /// Asks the store that an [`Error::Unknown`] names for the outcome of the transaction. Once the
    /// answer is that the transaction did not take effect, it never will.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] when there is no such store; otherwise when the store fails.
    pub async fn outcome(&self, store: &str, id: TransactionId) -> Result<Outcome, Error> {
        let stores = &self.program().checked.stores;
        let Some(index) = stores.iter().position(|known| *known.name == *store) else {
            return Err(Error::Misuse(format!("the program has no store {store:?}")));
        };
        let store = self.runtime.store(mingle_lang::hir::StoreId(index as u32));
        store.outcome(id).await.map_err(Error::Store)
    }

    /// Finishes, in the background, transactions that earlier processes left.
    pub(crate) fn catch_up(&self) {
        self.is_catching_up.store(true, Ordering::Release);
        let (me, world) = (Arc::downgrade(&self.runtime), self.runtime.world().clone());
        let is_catching_up = self.is_catching_up.clone();
        let every = self.runtime.settings().sweep_every;
        self.runtime.world().spawn(Box::pin(async move {
            let mut pause = AGAIN_AFTER;
            let mut all = Swept::default();
            while let Some(runtime) = me.upgrade() {
                // A failed sweep is tried again; parked transactions are left to `recover`.
                let swept = runtime.sweep(true).await;
                drop(runtime);
                if swept.is_ok_and(|swept| !add(&mut all, swept)) {
                    break;
                }
                world.sleep(pause).await;
                pause = (pause * 2).min(every);
            }
            is_catching_up.store(false, Ordering::Release);
        }));
    }
}

/// Adds the results of one more sweep; returns true if another one may do more.
fn add(all: &mut Swept, swept: Swept) -> bool {
    let is_new = |id: &TransactionId| !all.finished.contains(id);
    let new: Vec<TransactionId> = swept.finished.into_iter().filter(is_new).collect();
    // A transaction that is left may have waited for one that is finished now, and a finished
    // transaction may still have to reach other replicas.
    let may_follow = if swept.left.is_empty() { !swept.open.is_empty() } else { !new.is_empty() };
    all.finished.extend(new);
    all.cleaned.extend(swept.cleaned);
    (all.left, all.open) = (swept.left, swept.open);
    may_follow
}
