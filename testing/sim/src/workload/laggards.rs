//! Counts the clean-ups that meet a replica which lags: no update reaches it for much longer than
//! clean-up waits before it tries again. Either a floor is raised that the replica lacks, or the
//! replica is asked for the commit witnesses of finished transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mingle_model::Name;
use mingle_store::wrap::layer::{Layer, Layered, Request, Work};
use mingle_store::{
    BoxFuture, Capabilities, Commit, Committed, DataStore, Read, RecordKind, Session, StoreError,
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
    counts: Arc<Lagged>,
}

/// The number of clean-ups that met a replica which lagged.
#[derive(Debug, Default)]
pub(super) struct Lagged {
    /// Floors raised that some replica lacked for a long time.
    pub(super) floors: AtomicU64,
    /// Questions for commit witnesses to a replica that lagged.
    pub(super) questions: AtomicU64,
}

impl Laggards {
    /// Puts the layer around a store; it adds to `counts`.
    pub(super) fn watch(
        inner: Arc<dyn DataStore>,
        partitions: Arc<Partitions>,
        counts: Arc<Lagged>,
    ) -> Arc<dyn DataStore> {
        let Capabilities { store, replicas, .. } = inner.capabilities();
        let (store, replicas) = (store.clone(), replicas.clone());
        Layered::around(inner, Self { partitions, store, replica: None, replicas, counts })
    }

    /// True if some replica will not hear this one for a long time.
    fn has_laggard(&self) -> bool {
        self.is_down(|here, other| (here, other))
    }

    /// True if this replica will not hear another one for a long time.
    fn is_laggard(&self) -> bool {
        self.is_down(|here, other| (other, here))
    }

    fn is_down<'a>(&'a self, link: impl Fn(&'a Name, &'a Name) -> (&'a Name, &'a Name)) -> bool {
        let Some(here) = self.replica.as_ref().or(self.replicas.first()) else { return false };
        let node = |replica: &Name| format!("{}/{replica}", self.store);
        let others = self.replicas.iter().filter(|other| *other != here);
        let links = others.map(|other| link(here, other));
        links
            .map(|(from, to)| self.partitions.down_for(&node(from), &node(to)))
            .any(|lag| lag >= LAG)
    }
}

impl Layer for Laggards {
    fn for_session(&self, capabilities: &Capabilities, session: &Session) -> Self {
        let replica = session.replica.clone().filter(|name| capabilities.replicas.contains(name));
        Self { replica, ..self.clone() }
    }

    async fn call<T: Send>(
        &self,
        request: Request<'_>,
        work: Work<'_, T>,
    ) -> Result<T, StoreError> {
        if let Request::Read([Read::Record(first), .., Read::Record(last)]) = request
            && first.kind == RecordKind::Witness
            && last.kind == RecordKind::Floor
            && self.is_laggard()
        {
            self.counts.questions.fetch_add(1, Ordering::Relaxed);
        }
        work().await
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
            self.counts.floors.fetch_add(1, Ordering::Relaxed);
        }
        inner.commit(commit)
    }
}
