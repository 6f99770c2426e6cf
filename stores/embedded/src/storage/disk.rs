//! Rows in a redb file.
//!
//! Every commit is durable before it returns (redb's `Immediate`). Beside the file stands a lock
//! file, so a second process is told.

use std::fs::{File, TryLockError};
use std::path::Path;

use redb::{
    Database, DatabaseError, Durability, ReadOnlyTable, ReadableDatabase, StorageBackend,
    TableDefinition,
};

use super::{Changes, Direction, Snapshot, Storage, StorageError, View, Visit, prefix_end};
use crate::limits::CACHE_BYTES;
use crate::storage::Bytes;

const ROWS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("rows");

/// Storage in one file.
pub struct DiskStorage {
    database: Database,
    /// Held as long as the store is open; the system lets go of it when the process ends.
    _lock: Option<File>,
}

/// Why a file could not be opened.
#[derive(Debug)]
pub enum DiskError {
    /// Someone else has it open.
    Locked,
    /// Anything else.
    Failed(StorageError),
}

impl From<StorageError> for DiskError {
    fn from(error: StorageError) -> Self {
        Self::Failed(error)
    }
}

impl DiskStorage {
    /// Opens the file at `path`, made if there is none.
    ///
    /// A file is made beside its place and put there once it is safe, so whoever loses power
    /// during that has either no file or a whole one.
    ///
    /// # Errors
    ///
    /// When another process or store has the file open, and when the disk fails.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let lock = lock(&path.with_extension("lock"))?;
        if !path.try_exists().map_err(StorageError::new)? {
            let new = path.with_extension("new");
            if new.try_exists().map_err(StorageError::new)? {
                std::fs::remove_file(&new).map_err(StorageError::new)?;
            }
            drop(Self::prepare(Database::create(&new), None)?);
            std::fs::rename(&new, path).map_err(StorageError::new)?;
            sync_folder(path).map_err(StorageError::new)?;
        }
        let database = Database::builder().set_cache_size(CACHE_BYTES).create(path);
        Self::prepare(database, Some(lock))
    }

    /// Opens a database over a backend; tests put a faulty one here.
    ///
    /// # Errors
    ///
    /// When the backend fails.
    pub fn open_backend(backend: impl StorageBackend) -> Result<Self, DiskError> {
        Self::prepare(Database::builder().create_with_backend(backend), None)
    }

    fn prepare(
        opened: Result<Database, DatabaseError>,
        lock: Option<File>,
    ) -> Result<Self, DiskError> {
        let database = opened.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => DiskError::Locked,
            other => DiskError::Failed(StorageError::new(other)),
        })?;
        let transaction = database.begin_write().map_err(StorageError::new)?;
        transaction.open_table(ROWS).map_err(StorageError::new)?;
        transaction.commit().map_err(StorageError::new)?;
        Ok(Self { database, _lock: lock })
    }
}

/// Takes the lock file at `path`, which keeps others out even while the file itself is made.
fn lock(path: &Path) -> Result<File, DiskError> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(StorageError::new)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(DiskError::Locked),
        Err(TryLockError::Error(error)) => Err(StorageError::new(error).into()),
    }
}

/// A file's name is safe only once its folder is.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

impl Storage for DiskStorage {
    fn snapshot(&self) -> Result<Snapshot, StorageError> {
        let transaction = self.database.begin_read().map_err(StorageError::new)?;
        let table = transaction.open_table(ROWS).map_err(StorageError::new)?;
        Ok(Box::new(DiskView(table)))
    }

    fn commit(&self, changes: Changes) -> Result<(), StorageError> {
        let mut transaction = self.database.begin_write().map_err(StorageError::new)?;
        transaction.set_durability(Durability::Immediate).map_err(StorageError::new)?;
        {
            let mut table = transaction.open_table(ROWS).map_err(StorageError::new)?;
            for (key, value) in &changes {
                match value {
                    Some(value) => table.insert(&**key, &**value),
                    None => table.remove(&**key),
                }
                .map_err(StorageError::new)?;
            }
        }
        transaction.commit().map_err(StorageError::new)
    }

    fn is_durable(&self) -> bool {
        true
    }
}

struct DiskView(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl View for DiskView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        let row = self.0.get(key).map_err(StorageError::new)?;
        Ok(row.map(|row| Bytes::from(row.value())))
    }

    fn scan(
        &self,
        prefix: &[u8],
        from: Option<&[u8]>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), StorageError> {
        let end = prefix_end(prefix);
        let lower = from.map_or(prefix, |from| from.max(prefix));
        if end.as_deref().is_some_and(|end| lower >= end) {
            return Ok(());
        }
        let mut rows = match &end {
            Some(end) => self.0.range(lower..&**end),
            None => self.0.range(lower..),
        }
        .map_err(StorageError::new)?;
        loop {
            let row = match direction {
                Direction::Forward => rows.next(),
                Direction::Backward => rows.next_back(),
            };
            let Some(row) = row else { return Ok(()) };
            let (key, value) = row.map_err(StorageError::new)?;
            if !visit(key.value(), value.value()) {
                return Ok(());
            }
        }
    }
}
