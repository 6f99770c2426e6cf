//! Rows in memory.

use std::ops::Bound;
use std::sync::{PoisonError, RwLock};

use imbl::OrdMap;

use super::{Bytes, Changes, Direction, Snapshot, Storage, StorageError, View, Visit};

/// Storage that lasts as long as this process.
#[derive(Default)]
pub struct MemoryStorage {
    rows: RwLock<OrdMap<Bytes, Bytes>>,
}

impl Storage for MemoryStorage {
    fn snapshot(&self) -> Result<Snapshot, StorageError> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        Ok(Box::new(MemoryView(rows.clone())))
    }

    fn commit(&self, changes: Changes) -> Result<(), StorageError> {
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in changes {
            match value {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
        Ok(())
    }

    fn is_durable(&self) -> bool {
        false
    }
}

struct MemoryView(OrdMap<Bytes, Bytes>);

impl View for MemoryView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        Ok(self.0.get(key).cloned())
    }

    fn range(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), StorageError> {
        let upper = upper.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rows = self.0.range::<_, [u8]>((Bound::Included(lower), upper));
        match direction {
            Direction::Forward => while rows.next().is_some_and(|(k, v)| visit(k, v)) {},
            Direction::Backward => while rows.next_back().is_some_and(|(k, v)| visit(k, v)) {},
        }
        Ok(())
    }
}
