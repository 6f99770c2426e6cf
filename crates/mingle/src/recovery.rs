//! What is not finished yet: waiting for it, and seeing to it.

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

/// How often to look whether something is over.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Between two attempts to finish what others have left.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

impl Database {
    /// As [`Database::open_idle`], also while stores are away: each of those answers all that is asked of it with why it could
    /// not be opened, for as long as this is open. For operators, who look at what the others hold.
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

    /// Returns the transactions that have committed at some stores and not yet at others, of all
    /// callers; those that run now may be among them.
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
    /// When a store answers what cannot be read, or is gone once it has answered.
    pub async fn left_behind(&self) -> Result<Found, Error> {
        self.runtime.left_behind().await
    }

    /// Returns the records that every replica of every store holds for the runtime, and the processes
    /// that left them. Takes a few seconds if a process is alive: its signs of life are read twice.
    pub async fn survey(&self) -> Survey {
        self.runtime.survey().await
    }

    /// Returns what this process has begun and not cleaned up, without asking any store.
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

    /// Finishes what other processes have left, and tries what is parked once more. Takes them for
    /// dead; one that is alive loses nothing by that, but has to begin anew under another name.
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

    /// Tries one transaction that is parked once more.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] when none of this id is unfinished; [`Error::Parked`] when a store refuses it
    /// still; else when a store fails.
    pub async fn retry(&self, id: TransactionId) -> Result<(), Error> {
        self.runtime.retry(id).await
    }

    /// Ends a transaction that is parked, and says why: the parts that have committed stay, the others
    /// never come, and nobody waits for them any more. [`Database::abandoned`] lists it for good.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] when none of this id is parked, or no reason is given; else when a store
    /// fails: then it may be done again.
    pub async fn abandon(&self, id: TransactionId, because: &str) -> Result<Abandoned, Error> {
        if because.trim().is_empty() {
            return Err(Error::Misuse("who abandons a transaction says why".into()));
        }
        self.runtime.abandon(id, because).await
    }

    /// The transactions that were abandoned.
    ///
    /// # Errors
    ///
    /// When a store fails.
    pub async fn abandoned(&self) -> Result<Vec<Abandoned>, Error> {
        self.runtime.abandoned().await
    }

    /// Waits, for so long at the most, until all that was called here is finished and cleaned up,
    /// and so is what earlier processes had left; whether it is. What is parked is not waited for.
    pub async fn settle(&self, at_most: Duration) -> bool {
        let world = self.runtime.world();
        let deadline = world.elapsed() + at_most;
        loop {
            let is_at_rest =
                self.runtime.is_at_rest() && !self.is_catching_up.load(Ordering::Acquire);
            // While something is parked, its process says that it lives.
            let is_signed_off = is_at_rest && self.runtime.end_lease().await.is_ok();
            if is_signed_off || world.elapsed() >= deadline {
                return is_at_rest && self.runtime.is_clean();
            }
            world.sleep(LOOK_EVERY).await;
        }
    }

    /// As [`Database::settle`], and then lets go of the stores: a folder can be opened again.
    pub async fn close(self, at_most: Duration) -> bool {
        let is_settled = self.settle(at_most).await;
        let world = self.runtime.world().clone();
        let deadline = world.elapsed() + at_most;
        let runtime = Arc::downgrade(&self.runtime);
        drop(self);
        // A sweep, or a transaction that is not over, may hold it for a moment.
        while runtime.strong_count() > 0 && world.elapsed() < deadline {
            world.sleep(LOOK_EVERY).await;
        }
        is_settled
    }

    /// Returns the outcome of a transaction whose outcome is unknown: asks the store that an
    /// [`Error::Unknown`] names. Once the answer is that it did not take effect, it never will.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] when there is no such store; else when it fails.
    pub async fn outcome(&self, store: &str, id: TransactionId) -> Result<Outcome, Error> {
        let stores = &self.program().checked.stores;
        let Some(index) = stores.iter().position(|known| *known.name == *store) else {
            return Err(Error::Misuse(format!("the program has no store {store:?}")));
        };
        let store = self.runtime.store(mingle_lang::hir::StoreId(index as u32));
        store.outcome(id).await.map_err(Error::Store)
    }

    /// Finishes, in the background, what earlier processes have left.
    pub(crate) fn catch_up(&self) {
        self.is_catching_up.store(true, Ordering::Release);
        let (me, world) = (Arc::downgrade(&self.runtime), self.runtime.world().clone());
        let is_catching_up = self.is_catching_up.clone();
        let every = self.runtime.settings().sweep_every;
        self.runtime.world().spawn(Box::pin(async move {
            let mut pause = AGAIN_AFTER;
            let mut all = Swept::default();
            while let Some(runtime) = me.upgrade() {
                // What fails now is tried again, and what is parked is left to `recover`.
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
    // One that is left may have waited for one that is finished now; and what is finished may have
    // to reach other replicas.
    let may_follow = if swept.left.is_empty() { !swept.open.is_empty() } else { !new.is_empty() };
    all.finished.extend(new);
    all.cleaned.extend(swept.cleaned);
    (all.left, all.open) = (swept.left, swept.open);
    may_follow
}
