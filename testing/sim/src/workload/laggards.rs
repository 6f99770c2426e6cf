//! Counts the clean-ups that meet a replica which lags: no update reaches it for much longer than
//! clean-up waits before it tries again, and a floor is raised that it lacks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mingle_model::Name;
use mingle_store::wrap::layer::{Layer, Layered, Request};
use mingle_store::{
    BoxFuture, Capabilities, Commit, Committed, DataStore, RecordKind, Session, StoreError,
    Transaction, Write,
};

use crate::process::Partitions;

/// The minimum remaining time of a lag that counts: ten times the interval of clean-ups.
const LAG: Duration = Duration::from_secs(2);

/// The layer around a replicated store that counts.
#[derive(Clone)]
pub(super) struct Laggards {
    partitions: Arc<Partitions>,
    store: Name,
    /// The replica of the transaction.
    replica: Option<Name>,
    replicas: Vec<Name>,
    count: Arc<AtomicU64>,
}

impl Laggards {
    /// Puts the layer around a store; it adds to `count`.
    pub(super) fn watch(
        inner: Arc<dyn DataStore>,
        partitions: Arc<Partitions>,
        count: Arc<AtomicU64>,
    ) -> Arc<dyn DataStore> {
        let Capabilities { store, replicas, .. } = inner.capabilities();
        let (store, replicas) = (store.clone(), replicas.clone());
        Layered::around(inner, Self { partitions, store, replica: None, replicas, count })
    }

    /// True if some replica will not hear this one for a long time.
    fn has_laggard(&self) -> bool {
        let Some(here) = self.replica.as_ref().or(self.replicas.first()) else { return false };
        let node = |replica: &Name| format!("{}/{replica}", self.store);
        let others = self.replicas.iter().filter(|other| *other != here);
        others
            .map(|other| self.partitions.down_for(&node(here), &node(other)))
            .any(|lag| lag >= LAG)
    }
}

impl Layer for Laggards {
    fn for_session(&self, capabilities: &Capabilities, session: &Session) -> Self {
        let replica = session.replica.clone().filter(|name| capabilities.replicas.contains(name));
        Self { replica, ..self.clone() }
    }

    fn commit(
        self,
        _request: Request<'static>,
        inner: Box<dyn Transaction>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let is_floor = |write: &Write| match write {
            Write::Record(key, _) => key.kind == RecordKind::Floor,
            _ => false,
        };
        if commit.writes.iter().any(is_floor) && self.has_laggard() {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        inner.commit(commit)
    }
}
