//! The replacement for a store that could not be opened.
//!
//! [`crate::Database::open_reachable`], which operators use while a store is away, opens the other stores
//! and replaces each store that does not answer by this one. It answers every request with the reason.

use mingle_model::{Level, Name, TransactionId};
use mingle_store::{
    BoxFuture, Capabilities, DataStore, Listed, Listing, Once, Outcome, Session, StoreError,
    Transaction,
};

/// A store that answers nothing.
pub struct AwayStore {
    capabilities: Capabilities,
    reason: String,
}

impl AwayStore {
    /// Creates the replacement of a store with these replicas, which could not be opened for this reason.
    pub fn new(store: Name, level: Level, replicas: Vec<Name>, reason: String) -> Self {
        let capabilities = Capabilities {
            store,
            level,
            atomic_commit: true,
            serializable: replicas.is_empty(),
            once: Once::Home,
            may_lose_answers: false,
            floor_suffices: false,
            replicas,
            weaker_answers: Vec::new(),
            operations_per_round_trip: 1,
            round_trip: std::time::Duration::ZERO,
        };
        Self { capabilities, reason }
    }

    fn error(&self) -> StoreError {
        let (store, reason) = (self.capabilities.store.clone(), self.reason.clone());
        StoreError::Unavailable { store, reason }
    }
}

impl DataStore for AwayStore {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn begin<'a>(
        &'a self,
        _: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(std::future::ready(Err(self.error())))
    }

    fn list<'a>(
        &'a self,
        _: &'a Session,
        _: &'a Listing,
    ) -> BoxFuture<'a, Result<Listed, StoreError>> {
        Box::pin(std::future::ready(Err(self.error())))
    }

    fn outcome(&self, _: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(std::future::ready(Err(self.error())))
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Err(self.error())))
    }
}
