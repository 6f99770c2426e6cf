//! What both engines share: one store's rows, layout and world.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mingle_model::{Name, TransactionId};
use mingle_store::{StoreError, World};

use crate::builtin::Builtins;
use crate::layout::Layout;
use crate::storage::{Snapshot, Storage, StorageError};

/// One open store.
pub struct Core {
    /// The store's name.
    pub store: Name,
    /// Its objects.
    pub layout: Layout,
    /// Its declared operations.
    pub builtins: Builtins,
    /// Its rows.
    pub storage: Box<dyn Storage>,
    /// Clock, tasks and randomness.
    pub world: Arc<dyn World>,
    /// Set once the disk has failed: what it holds then is known only after the store has been
    /// opened again, so nothing is served until then.
    broken: AtomicBool,
}

impl Core {
    /// An open store.
    pub fn new(
        store: Name,
        layout: Layout,
        builtins: Builtins,
        storage: Box<dyn Storage>,
        world: Arc<dyn World>,
    ) -> Self {
        Self { store, layout, builtins, storage, world, broken: AtomicBool::new(false) }
    }

    /// Whether the disk has failed.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Refuses once the disk has failed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], since a restart may help.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.is_broken() {
            return Err(self.unavailable("its disk has failed; open the store again".into()));
        }
        Ok(())
    }

    /// The rows as they stand now.
    ///
    /// # Errors
    ///
    /// When the disk fails, now or before.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        self.check()?;
        self.storage.snapshot().map_err(|error| self.fail(&error))
    }

    /// Notes that the disk failed, and says so.
    pub fn fail(&self, error: &StorageError) -> StoreError {
        self.broken.store(true, Ordering::Release);
        self.unavailable(format!("its disk failed: {error}"))
    }

    /// The error for what failed within a transaction.
    pub fn failure(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Storage(error) => self.fail(&error),
            Failure::Refused(reason) => self.refused(reason),
        }
    }

    /// A [`StoreError::Unavailable`] of this store.
    pub fn unavailable(&self, reason: String) -> StoreError {
        StoreError::Unavailable { store: self.store.clone(), reason }
    }

    /// A [`StoreError::Refused`] of this store.
    pub fn refused(&self, reason: String) -> StoreError {
        StoreError::Refused { store: self.store.clone(), reason }
    }

    /// A [`StoreError::Unknown`] of this store.
    pub fn unknown(&self, id: Option<TransactionId>) -> StoreError {
        StoreError::Unknown { store: self.store.clone(), id }
    }

    /// The error for a late commit whose id was said to be not committed.
    pub fn barred(&self, id: TransactionId) -> StoreError {
        self.refused(format!("{id} was said to be not committed, so it must not commit any more"))
    }
}

/// What can go wrong in the middle of a transaction.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The disk failed.
    Storage(StorageError),
    /// The store says no.
    Refused(String),
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}
