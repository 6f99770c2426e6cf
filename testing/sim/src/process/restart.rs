//! A store whose server stops and restarts: acknowledged data is kept, work in progress is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_model::{Name, Stamp, TransactionId};
use mingle_store::wrap::layer::{Layer, Request, Work, within};
use mingle_store::{
    BoxFuture, Capabilities, DataStore, Outcome, Session, StoreError, Transaction, World,
};

/// A function that opens a store over the kept data.
pub type Reopen = Box<dyn Fn() -> Arc<dyn DataStore> + Send + Sync>;

/// A store that can be restarted.
pub struct RestartingStore {
    reopen: Reopen,
    capabilities: Capabilities,
    world: Arc<dyn World>,
    running: Arc<Mutex<Server>>,
}

struct Server {
    inner: Arc<dyn DataStore>,
    /// The number of the current start.
    generation: u64,
    /// The time at which it is up again.
    up_at: Duration,
}

fn lock(server: &Mutex<Server>) -> MutexGuard<'_, Server> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RestartingStore {
    /// Creates a store that `reopen` opens at each start.
    pub fn new(reopen: Reopen, world: Arc<dyn World>) -> Arc<Self> {
        let inner = reopen();
        let capabilities = inner.capabilities().clone();
        let server = Server { inner, generation: 1, up_at: Duration::ZERO };
        Arc::new(Self { reopen, capabilities, world, running: Arc::new(Mutex::new(server)) })
    }

    /// Stops the store and restarts it after `down`.
    pub fn restart(&self, down: Duration) {
        let inner = (self.reopen)();
        let mut server = lock(&self.running);
        *server =
            Server { inner, generation: server.generation + 1, up_at: self.world.elapsed() + down };
    }

    fn server(&self) -> Result<(Arc<dyn DataStore>, u64), StoreError> {
        let server = lock(&self.running);
        if self.world.elapsed() < server.up_at {
            return Err(stopped(&self.capabilities.store));
        }
        Ok((server.inner.clone(), server.generation))
    }
}

fn stopped(store: &Name) -> StoreError {
    StoreError::Unavailable { store: store.clone(), reason: "it was stopped".into() }
}

impl DataStore for RestartingStore {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            let (inner, generation) = self.server()?;
            let begun = inner.begin(session).await?;
            let (running, store) = (self.running.clone(), self.capabilities.store.clone());
            Ok(within(begun, Incarnation { running, generation, store }))
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(async move { self.server()?.0.outcome(id).await })
    }

    fn time(&self) -> u64 {
        self.server().map_or(0, |server| server.0.time())
    }

    fn place(&self, replica: Option<&Name>) -> Option<String> {
        self.server().ok()?.0.place(replica)
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        Box::pin(async move { self.server()?.0.everywhere().await })
    }
}

/// The layer around a transaction: it lives as long as the server that began it.
#[derive(Clone)]
struct Incarnation {
    running: Arc<Mutex<Server>>,
    generation: u64,
    store: Name,
}

impl Layer for Incarnation {
    async fn call<T: Send>(
        &self,
        _request: Request<'_>,
        work: Work<'_, T>,
    ) -> Result<T, StoreError> {
        if lock(&self.running).generation != self.generation {
            return Err(stopped(&self.store));
        }
        work().await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use mingle_store::{Commit, Data, Read, StoreSchema, TestWorld, Write};
    use mingle_store_embedded::storage::memory::MemoryStorage;
    use mingle_store_embedded::{Embedded, EmbeddedConfig};

    use super::*;
    use crate::process::kept;

    #[test]
    fn what_was_acknowledged_is_kept_and_what_was_in_progress_is_lost() {
        let program = mingle::compile(
            "store s: linearizable; object A in s { key k: string; n: counter; }
            transaction t(a: ref A) { a.n.add(1); }",
        )
        .unwrap();
        let schema = StoreSchema {
            store: "s".into(),
            level: mingle_model::Level::Linearizable,
            schema: program.schema().stored().into(),
            operations: BTreeMap::new(),
        };
        let world = TestWorld::new(1);
        let storage = Arc::new(MemoryStorage::default());
        let inside: Arc<dyn World> = world.clone();
        let reopen = move || {
            let (storage, config) = (kept(&storage), EmbeddedConfig::in_memory());
            Embedded::open_over(storage, &config, &schema, inside.clone()).unwrap()
        };
        let store = RestartingStore::new(Box::new(reopen), world.clone());
        let object = mingle_model::Ref::new("A", mingle_model::Value::from("x"));
        let address = mingle_store::Address { object, field: 0 };
        let add = || Commit { writes: vec![Write::Add(address.clone(), 1)], ..Commit::default() };
        world.block_on(async {
            let session = Session::default();
            store.begin(&session).await.unwrap().commit(add()).await.unwrap();
            let open = store.begin(&session).await.unwrap();
            store.restart(Duration::from_secs(1));
            let lost = open.commit(add()).await.unwrap_err();
            assert!(matches!(lost, StoreError::Unavailable { .. }), "{lost}");
            assert!(store.begin(&session).await.is_err());
            world.sleep(Duration::from_secs(1)).await;
            let mut again = store.begin(&session).await.unwrap();
            let answers = again.read(&[Read::Counter(address.clone())]).await.unwrap();
            assert_eq!(answers[0].data, Data::Counter(1));
        });
    }
}
