//! A store beyond a network that can be partitioned.

use std::sync::Arc;
use std::time::Duration;

use mingle_model::Name;
use mingle_store::wrap::layer::{Layer, Layered, Request, Work};
use mingle_store::{Capabilities, DataStore, Session, StoreError, World};

use super::{Partitions, node};

/// The layer between a process and a store beyond a network. A call that does not reach the store
/// returns [`StoreError::Unavailable`] after the timeout and has no effect. A call whose answer is
/// lost has taken effect: a commit then returns [`StoreError::Unknown`], any other call is
/// unavailable.
///
/// [`DataStore::outcome`] and [`DataStore::everywhere`] concern the store as a whole: only cuts of
/// the whole store affect them.
#[derive(Clone)]
pub struct PartitionedStore {
    partitions: Arc<Partitions>,
    process: Name,
    store: Name,
    /// The called end: the store, or the replica at which a session stays.
    node: String,
    timeout: Duration,
    world: Arc<dyn World>,
}

impl PartitionedStore {
    /// Creates the view that the process of this name has of `inner`; it abandons a call after
    /// `timeout`, in its own `world`.
    pub fn new(
        inner: Arc<dyn DataStore>,
        process: impl Into<Name>,
        partitions: Arc<Partitions>,
        timeout: Duration,
        world: Arc<dyn World>,
    ) -> Arc<Layered<Self>> {
        let store = inner.capabilities().store.clone();
        let node = node(&store, None);
        let process = process.into();
        Layered::around(inner, Self { partitions, process, store, node, timeout, world })
    }

    fn unavailable(&self, why: &str) -> StoreError {
        let reason = format!("{} {why} {}", self.node, self.process);
        StoreError::Unavailable { store: self.store.clone(), reason }
    }
}

impl Layer for PartitionedStore {
    fn change(&self, capabilities: &mut Capabilities) {
        capabilities.may_lose_answers = true;
    }

    fn for_session(&self, capabilities: &Capabilities, session: &Session) -> Self {
        let replicas = &capabilities.replicas;
        let replica = match &session.replica {
            Some(name) if replicas.contains(name) => Some(name),
            _ => replicas.first(),
        };
        Self { node: node(&self.store, replica.map(|name| &**name)), ..self.clone() }
    }

    async fn call<T: Send>(
        &self,
        request: Request<'_>,
        work: Work<'_, T>,
    ) -> Result<T, StoreError> {
        if !self.partitions.is_up(&self.process, &self.node) {
            self.world.sleep(self.timeout).await;
            return Err(self.unavailable("does not hear"));
        }
        let slowness = || self.partitions.slowness(&self.process, &self.store);
        let there = slowness();
        if !there.is_zero() {
            self.world.sleep(there).await;
        }
        let answer = work().await;
        let back = slowness();
        if !back.is_zero() {
            self.world.sleep(back).await;
        }
        if self.partitions.is_up(&self.node, &self.process) {
            return answer;
        }
        self.world.sleep(self.timeout).await;
        Err(match request {
            Request::Commit { id, is_empty: false } => {
                StoreError::Unknown { store: self.store.clone(), id }
            }
            _ => self.unavailable("cannot answer"),
        })
    }
}
