//! The state that both engines share: one store's rows, layout and world.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_model::{Name, TransactionId};
use mingle_store::{StoreError, World};

use crate::builtin::Builtins;
use crate::encoding::key;
use crate::layout::Layout;
use crate::mending::Health;
use crate::numbers::Numbers;
use crate::outcome::Sweep;
use crate::storage::contain::contain;
use crate::storage::{Snapshot, Storage, StorageError, StorageErrorKind, View};

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
    /// The health of the disk. After a failure, its contents are known only once it is opened
    /// again, so nothing is served until then.
    pub health: Health,
    /// The numbers drawn for keys.
    pub numbers: Numbers,
    /// The position of the search for old outcomes.
    pub outcomes: Sweep,
    /// Number of times the disk was opened again.
    openings: AtomicU64,
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
        let (health, openings) = (Health::default(), AtomicU64::new(0));
        let outcomes = Sweep::default();
        let numbers = Numbers::default();
        Self { store, layout, builtins, storage, world, health, numbers, outcomes, openings }
    }

    /// True if the disk has failed and was not opened again since.
    pub fn is_broken(&self) -> bool {
        self.health.is_broken()
    }

    /// Returns how often the disk was opened again: a transaction's reads count only while this
    /// number stays the same.
    pub fn openings(&self) -> u64 {
        self.openings.load(Ordering::Acquire)
    }

    /// Refuses once the disk has failed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], since the disk may work again.
    pub fn check(&self) -> Result<(), StoreError> {
        self.health.trouble().map_or(Ok(()), |why| Err(self.unavailable(why)))
    }

    /// Refuses a transaction that began before the disk failed.
    ///
    /// # Errors
    ///
    /// As [`Core::check`].
    pub fn check_since(&self, openings: u64) -> Result<(), StoreError> {
        self.check()?;
        if self.openings() != openings {
            let why = "its disk failed while the transaction ran; the store is open again";
            return Err(self.unavailable(why.into()));
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
        let why = match error.kind {
            StorageErrorKind::Failed => format!("its disk failed: {error}"),
            StorageErrorKind::Damaged => error.to_string(),
            // It was noted when the disk failed.
            StorageErrorKind::Closed => return self.unavailable(error.to_string()),
        };
        self.health.fail(why.clone(), self.world.elapsed());
        self.unavailable(why)
    }

    /// Opens the disk again after a failure; `reload` restores the state kept in memory from it.
    ///
    /// # Errors
    ///
    /// The reason why that fails.
    pub fn reopen(
        &self,
        reload: impl FnOnce(&dyn View) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.storage.reopen()?;
        let view = self.storage.snapshot()?;
        if view.get(key::CATALOG)?.is_none() {
            return Err(StorageError::new("its file has no store in it"));
        }
        contain(|| reload(&*view)).unwrap_or_else(|panic| Err(StorageError::damaged(panic)))?;
        self.openings.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Runs work that reads rows: a panic over rows of a disk is an error, and stops the store.
    ///
    /// # Errors
    ///
    /// That of the work, and [`StoreError::Unavailable`] if the disk is damaged.
    pub fn contained<T>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if !self.storage.is_durable() {
            return work();
        }
        contain(work).unwrap_or_else(|panic| Err(self.fail(&StorageError::damaged(panic))))
    }

    /// Converts a failure within a transaction to the store's error.
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

/// The kinds of failure within a transaction.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The disk failed.
    Storage(StorageError),
    /// The store refuses.
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
