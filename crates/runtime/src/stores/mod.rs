//! The program's stores, and all that this process has learned of them.

pub(crate) mod admission;
pub mod answers;
pub mod availability;
pub(crate) mod deadline;
pub mod lost_replicas;
pub(crate) mod monitors;
pub(crate) mod plans;
pub(crate) mod records;
pub(crate) mod traced;
pub(crate) mod visibility;
pub(crate) mod visibility_cache;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use mingle_lang::Program;
use mingle_lang::hir::StoreId;
use mingle_lang::split::Mutation;
use mingle_model::{LevelId, Name, Ref};
use mingle_store::{
    Admission, Data, DataStore, Listed, Listing, Read, Session as StoreSession, StoreError, World,
};

use crate::api::error::Error;
use crate::api::session::Session;
use crate::api::settings::Settings;
use crate::interpreter::machine::Facts;
use crate::mutants::Mutant;
use crate::observe::metrics::{self, Figures};
use crate::observe::stats::Stats;
use crate::protocol::intent::ProgramHash;
use crate::stores::answers::Sums;
use crate::stores::availability::Circuits;
use crate::stores::monitors::Monitors;
use crate::stores::visibility::Looked;
use crate::stores::visibility_cache::VisibilityCache;

/// A program, its stores, the world, and all that this process has learned of the stores.
pub(crate) struct Stores {
    pub(crate) program: Arc<Program>,
    pub(crate) hash: ProgramHash,
    /// By [`mingle_lang::hir::StoreId`].
    pub(crate) all: Vec<Arc<dyn DataStore>>,
    /// The name, by store, under which seen stamps are noted.
    stamped: Vec<Name>,
    pub(crate) world: Arc<dyn World>,
    pub(crate) settings: Settings,
    /// The decision which transactions named callers may call; if it is not set, all.
    pub(crate) admission: OnceLock<Arc<dyn Admission>>,
    cache: Mutex<VisibilityCache>,
    looked: Mutex<Looked>,
    circuits: Mutex<Circuits>,
    sums: Mutex<Sums>,
    /// The latencies of reads with a policy.
    pub(crate) monitors: Monitors,
    pub(crate) mutation: Mutation,
    pub(crate) mutant: Mutant,
    /// The answers to reads with a policy, in tests.
    pub(crate) given: Option<Given>,
    pub(crate) stats: Stats,
    pub(crate) figures: Figures,
    /// True if one attempt is run, beside its store, on behalf of another process.
    pub(crate) is_worker: bool,
    pub(crate) me: Weak<Self>,
}

/// Gives the answer to a read with a policy in a test: from the store, the object, the level that is asked
/// `at`, if one is, and the data of the store, the level and the data of the answer; none if it is late.
pub type Given = Arc<
    dyn Fn(StoreId, &Ref, Option<LevelId>, Vec<Data>) -> Option<(Name, Vec<Data>)> + Send + Sync,
>;

/// The parts of which [`Stores`] are made.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) program: Arc<Program>,
    pub(crate) stores: Vec<Arc<dyn DataStore>>,
    pub(crate) world: Arc<dyn World>,
    pub(crate) settings: Settings,
    pub(crate) mutation: Mutation,
    pub(crate) mutant: Mutant,
    pub(crate) given: Option<Given>,
    pub(crate) is_worker: bool,
}

impl Stores {
    /// Creates the stores, of which nothing is known yet.
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let Parts { program, stores, world, settings, mutation, mutant, given, is_worker } = parts;
        assert_eq!(
            stores.len(),
            program.checked.stores.len(),
            "one store for each that the program declares"
        );
        metrics::describe();
        let hash = ProgramHash::of(&program.text);
        let cache = VisibilityCache::of(hash, program.clone());
        let stamped = stamped(&stores);
        let figures = Figures::of(&program);
        Arc::new_cyclic(|me| Self {
            program,
            hash,
            all: stores,
            stamped,
            world,
            settings,
            admission: OnceLock::new(),
            cache: Mutex::new(cache),
            looked: Mutex::default(),
            circuits: Mutex::default(),
            sums: Mutex::default(),
            monitors: Monitors::default(),
            mutation,
            mutant,
            given,
            stats: Stats::default(),
            figures,
            is_worker,
            me: me.clone(),
        })
    }

    /// Returns the parts of which other stores like these are made.
    pub(crate) fn parts(&self) -> Parts {
        Parts {
            program: self.program.clone(),
            stores: self.all.clone(),
            world: self.world.clone(),
            settings: self.settings.clone(),
            mutation: self.mutation,
            mutant: self.mutant,
            given: self.given.clone(),
            is_worker: self.is_worker,
        }
    }

    /// Draws the time and the seed of a new transaction.
    pub(crate) fn draw_facts(&self) -> Facts {
        let seed = u128::from(self.world.random()) << 64 | u128::from(self.world.random());
        Facts { now: self.world.now(), seed }
    }

    /// Reads objects of a store as a session sees them, outside any transaction.
    pub(crate) async fn read(
        &self,
        store: mingle_lang::hir::StoreId,
        session: &Session,
        reads: &[Read],
    ) -> Result<Vec<Data>, Error> {
        let site = self.store(store);
        let answers = self.ask_beside(store, session, |session| async move {
            site.begin(&session).await?.read(reads).await
        });
        Ok(answers.await?.into_iter().map(|answer| answer.data).collect())
    }

    /// Lists objects of a store at a session's replica, outside any transaction.
    pub(crate) async fn list(
        &self,
        store: mingle_lang::hir::StoreId,
        session: &Session,
        listing: &Listing,
    ) -> Result<Listed, Error> {
        let site = self.store(store);
        let list = |session| async move { site.list(&session, listing).await };
        self.ask_beside(store, session, list).await
    }

    /// Asks a store as a session sees it, beside all transactions; again after errors that pass.
    async fn ask_beside<T, F: Future<Output = Result<T, StoreError>> + Send>(
        &self,
        store: mingle_lang::hir::StoreId,
        session: &Session,
        ask: impl Fn(StoreSession) -> F,
    ) -> Result<T, Error> {
        self.check_replica(session)?;
        let after = session.worklist().seen_at(self.stamped(store.index()));
        let home = self.home_at([store.index()], session)?;
        let replica = self.replica_at(store.index(), home.as_ref());
        let session = StoreSession { replica, after, ..StoreSession::default() };
        let deadline = self.world.elapsed() + self.settings.deadline;
        let mut attempts = 0;
        loop {
            let since = self.world.elapsed();
            let silent = || Err(self.silent(store.index(), session.replica.as_ref(), since));
            let error = match self.by(deadline, ask(session.clone())).await.unwrap_or_else(silent) {
                Ok(found) => return Ok(found),
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

    /// The replica of a store at which a session that stays at `replica` runs.
    pub(crate) fn replica_at(&self, store: usize, replica: Option<&Name>) -> Option<Name> {
        let known = &self.all[store].capabilities().replicas;
        replica.filter(|replica| known.contains(replica)).cloned()
    }

    pub(crate) fn cache(&self) -> MutexGuard<'_, VisibilityCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.all.iter().position(|store| *store.capabilities().store == *name)
    }

    /// The name under which stamps seen at a store are noted: the stamps seen at one store of an engine
    /// hold for all stores of the engine.
    pub(crate) fn stamped(&self, store: usize) -> &Name {
        &self.stamped[store]
    }

    /// True if a replica of the store may lack acknowledged writes. Replicas of a
    /// serializable store agree.
    pub(crate) fn is_many(&self, store: usize) -> bool {
        let capabilities = self.all[store].capabilities();
        capabilities.replicas.len() > 1 && !capabilities.serializable
    }

    /// The replicas of a store, if one may lack writes that another has; `[None]` if the store has only one,
    /// or its replicas agree. Replicas that were given up are not included.
    pub(crate) fn replicas(&self, store: usize) -> Vec<Option<Name>> {
        let capabilities = self.all[store].capabilities();
        if capabilities.serializable || capabilities.replicas.is_empty() {
            return vec![None];
        }
        let departed = self.all[store].departed();
        let left = capabilities.replicas.iter().filter(|name| !departed.contains(name));
        left.cloned().map(Some).collect()
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

/// Returns, for each store, the name under which it is stamped: the first store of its engine whose
/// replicas may lag, or its own name if it has an engine of its own.
fn stamped(stores: &[Arc<dyn DataStore>]) -> Vec<Name> {
    let name = |store: &Arc<dyn DataStore>| store.capabilities().store.clone();
    let lags = |store: &&Arc<dyn DataStore>| !store.capabilities().serializable;
    let named = stores.iter().map(|store| {
        let engine = store.engine();
        let mut fellows =
            stores.iter().filter(|other| engine.is_some() && other.engine() == engine);
        fellows.clone().find(lags).or_else(|| fellows.next()).map_or_else(|| name(store), name)
    });
    named.collect()
}
