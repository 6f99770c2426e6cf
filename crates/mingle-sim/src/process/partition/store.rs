//! A store beyond a network that parts.

use std::sync::Arc;
use std::time::Duration;

use mingle_model::{Name, Stamp, TransactionId};
use mingle_store::{
    Answer, BoxFuture, Capabilities, Commit, Committed, DataStore, Outcome, Read, Session,
    StoreError, Transaction, World, Write,
};

use super::{Partitions, node};

/// What a process sees of a store beyond a network that parts. A call that does not get there is
/// [`StoreError::Unavailable`] after a time, and has done nothing. A call whose answer does not get
/// back has been made: a commit is [`StoreError::Unknown`] then, any other call unavailable.
///
/// [`DataStore::outcome`] and [`DataStore::everywhere`] are asked of the store as a whole: only
/// cuts of the whole store concern them.
pub struct PartitionedStore {
    inner: Arc<dyn DataStore>,
    capabilities: Capabilities,
    way: Way,
}

/// From a process to a store, or to one of its replicas, and back.
#[derive(Clone)]
struct Way {
    partitions: Arc<Partitions>,
    process: Name,
    store: Name,
    /// The end that is called.
    node: String,
    timeout: Duration,
    world: Arc<dyn World>,
}

impl PartitionedStore {
    /// What the process of this name sees of `inner`; it gives a call up after `timeout`, in its
    /// own `world`.
    pub fn new(
        inner: Arc<dyn DataStore>,
        process: impl Into<Name>,
        partitions: Arc<Partitions>,
        timeout: Duration,
        world: Arc<dyn World>,
    ) -> Arc<Self> {
        let mut capabilities = inner.capabilities().clone();
        capabilities.may_lose_answers = true;
        let store = capabilities.store.clone();
        let node = node(&store, None);
        let way = Way { partitions, process: process.into(), store, node, timeout, world };
        Arc::new(Self { inner, capabilities, way })
    }

    /// The way to the replica at which a session stays.
    fn way_to(&self, session: &Session) -> Way {
        let replicas = &self.capabilities.replicas;
        let replica = match &session.replica {
            Some(name) if replicas.contains(name) => Some(name),
            _ => replicas.first(),
        };
        let node = node(&self.way.store, replica.map(|name| &**name));
        Way { node, ..self.way.clone() }
    }
}

impl Way {
    /// Goes there.
    async fn go(&self) -> Result<(), StoreError> {
        if self.partitions.is_up(&self.process, &self.node) {
            return Ok(());
        }
        self.world.sleep(self.timeout).await;
        Err(self.unavailable("does not hear"))
    }

    /// Comes back; else gives what the caller takes it for.
    async fn back(&self, lost: impl FnOnce() -> StoreError) -> Result<(), StoreError> {
        if self.partitions.is_up(&self.node, &self.process) {
            return Ok(());
        }
        self.world.sleep(self.timeout).await;
        Err(lost())
    }

    fn unavailable(&self, why: &str) -> StoreError {
        let reason = format!("{} {why} {}", self.node, self.process);
        StoreError::Unavailable { store: self.store.clone(), reason }
    }

    /// Makes a call that may be lost on either way.
    async fn call<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        work: impl FnOnce() -> F,
    ) -> Result<T, StoreError> {
        self.go().await?;
        let answer = work().await;
        self.back(|| self.unavailable("cannot answer")).await?;
        answer
    }
}

impl DataStore for PartitionedStore {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            let way = self.way_to(session);
            let inner = way.call(|| self.inner.begin(session)).await?;
            let transaction: Box<dyn Transaction> =
                Box::new(Partitioned { inner, way, has_flushed: false });
            Ok(transaction)
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(self.way.call(move || self.inner.outcome(id)))
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        Box::pin(self.way.call(|| self.inner.everywhere()))
    }
}

struct Partitioned {
    inner: Box<dyn Transaction>,
    way: Way,
    has_flushed: bool,
}

impl Transaction for Partitioned {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        let Self { inner, way, .. } = self;
        Box::pin(way.call(move || inner.read(reads)))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.has_flushed |= !writes.is_empty();
        let Self { inner, way, .. } = self;
        Box::pin(way.call(move || inner.flush(writes)))
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let Self { inner, way, has_flushed } = *self;
        let has_effect = has_flushed || !commit.writes.is_empty() || !commit.guards.is_empty();
        Box::pin(async move {
            way.go().await?;
            let id = commit.id;
            let answer = inner.commit(commit).await;
            let lost = || {
                if has_effect {
                    StoreError::Unknown { store: way.store.clone(), id }
                } else {
                    way.unavailable("cannot answer")
                }
            };
            way.back(lost).await?;
            answer
        })
    }
}
