//! Rows that outlive the store that has them open.

use std::sync::Arc;

use mingle_store_embedded::storage::memory::MemoryStorage;
use mingle_store_embedded::storage::{Changes, Snapshot, Storage, StorageError};

struct Kept(Arc<MemoryStorage>);

/// Creates a storage over rows kept elsewhere, as on a disk.
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
