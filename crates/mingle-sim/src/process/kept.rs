//! Rows that outlive the store that is open over them.

use std::sync::Arc;

use mingle_store_embedded::storage::memory::MemoryStorage;
use mingle_store_embedded::storage::{Changes, Snapshot, Storage, StorageError};

struct Kept(Arc<MemoryStorage>);

/// Storage over rows that are kept elsewhere, as a disk keeps them.
pub fn kept(rows: &Arc<MemoryStorage>) -> Box<dyn Storage> {
    Box::new(Kept(Arc::clone(rows)))
}

impl Storage for Kept {
    fn snapshot(&self) -> Result<Snapshot, StorageError> {
        self.0.snapshot()
    }

    fn commit(&self, changes: Changes) -> Result<(), StorageError> {
        self.0.commit(changes)
    }

    fn is_durable(&self) -> bool {
        false
    }
}
