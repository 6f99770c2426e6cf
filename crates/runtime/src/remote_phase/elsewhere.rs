//! Stand-ins for the other stores during an attempt that runs on behalf of another process.

use std::sync::Arc;

use mingle_model::{Name, Stamp, TransactionId};
use mingle_store::wrap::layer::{Layer, Layered};
use mingle_store::{BoxFuture, Capabilities, DataStore, Outcome, Session, StoreError, Transaction};

/// A store that this process cannot reach: it only reports the sender's knowledge of it.
pub(super) struct Elsewhere {
    pub(super) capabilities: Capabilities,
    pub(super) everywhere: Stamp,
    pub(super) time: u64,
}

impl Elsewhere {
    fn away(&self) -> StoreError {
        let reason = "a phase that runs beside another store does not reach it".to_owned();
        StoreError::Unavailable { store: self.capabilities.store.clone(), reason }
    }

    /// The capabilities of a store about which the sender knows nothing.
    pub(super) fn nowhere(store: Name) -> Capabilities {
        Capabilities {
            store,
            level: mingle_model::Level::Linearizable,
            atomic_commit: true,
            serializable: true,
            once: mingle_store::Once::Never,
            may_lose_answers: true,
            floor_suffices: false,
            replicas: Vec::new(),
            weaker_answers: Vec::new(),
            operations_per_round_trip: 1,
            round_trip: std::time::Duration::ZERO,
        }
    }
}

impl DataStore for Elsewhere {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn begin<'a>(
        &'a self,
        _: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(std::future::ready(Err(self.away())))
    }

    fn outcome(&self, _: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(std::future::ready(Err(self.away())))
    }

    fn time(&self) -> u64 {
        self.time
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        Box::pin(std::future::ready(Ok(self.everywhere.clone())))
    }
}

/// A layer that declares that answers can be lost: between worker and sender they can, wherever
/// the store is.
#[derive(Clone)]
struct Distant;

impl Layer for Distant {
    fn change(&self, capabilities: &mut Capabilities) {
        capabilities.may_lose_answers = true;
    }
}

/// The store as a layer that always asks for the outcome of a commit by its id.
pub(super) fn here(store: Arc<dyn DataStore>) -> Arc<dyn DataStore> {
    if store.capabilities().may_lose_answers {
        return store;
    }
    Layered::around(store, Distant)
}
