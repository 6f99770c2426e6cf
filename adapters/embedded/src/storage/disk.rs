//! Rows in a redb file.
//!
//! Every commit is durable before it returns (redb's `Immediate`). Beside the file stands a lock
//! file, so a second process gets an error. After a failure the file is closed, and can be opened again.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use redb::backends::FileBackend;
use redb::{
    CommitError, Database, DatabaseError, Durability, ReadOnlyTable, ReadableDatabase,
    StorageBackend, TableDefinition, WriteTransaction,
};

use super::contain::contain;
use super::guarded::{Guarded, Sums};
use super::verify::verify;
use super::{Changes, Direction, Snapshot, Storage, StorageError, View, Visit};
use crate::limits::CACHE_BYTES;
use crate::storage::Bytes;

/// Less than this, and more than nothing, is the progress of a repair that goes back to the commit before the
/// last one, whose checksums do not match (redb 4.4 says 0.3).
const FELL_BACK: f64 = 0.5;

const ROWS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("rows");

/// Storage in one file.
pub struct DiskStorage {
    place: Box<dyn Place>,
    /// None while it is closed.
    open: RwLock<Option<Open>>,
    /// True from when a commit begins to be written until it is on the disk: where it fails in between, the
    /// last commit in the file may be cut off in the middle, and was not acknowledged.
    is_torn: AtomicBool,
}

struct Open {
    // Closed before other processes may open the file.
    database: Database,
    /// Held as long as the store is open; the system lets go of it when the process ends.
    _lock: Option<File>,
}

/// The place of a database, which can be opened again and again.
trait Place: Send + Sync {
    /// Locks other processes out.
    fn lock(&self) -> Result<Option<File>, DiskError>;

    /// True if a database can be made in a file that is empty.
    fn may_be_empty(&self) -> bool;

    /// Returns the number of bytes of the file that redb may keep in memory.
    fn cache_bytes(&self) -> usize {
        CACHE_BYTES
    }

    /// Opens the file.
    fn file(&self, access: Access) -> Result<Box<dyn StorageBackend>, DiskError>;
}

/// The access that a file is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// The reason why a file could not be opened.
#[derive(Debug)]
pub enum DiskError {
    /// Another process or store has it open.
    Locked,
    /// The file is missing.
    Gone,
    /// Anything else.
    Failed(StorageError),
}

impl From<StorageError> for DiskError {
    fn from(error: StorageError) -> Self {
        Self::Failed(error)
    }
}

impl From<std::io::Error> for DiskError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(StorageError::new(error))
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked => f.write_str("another process has the file open"),
            Self::Gone => f.write_str("the file is gone"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl DiskStorage {
    /// Opens the file at `path`; makes it if it is missing and `may_make` is true.
    ///
    /// A file is created beside its place and moved there once it is safe, so after a loss of power
    /// there is either no file or a whole one.
    ///
    /// # Errors
    ///
    /// When another process or store has the file open, when the file is missing and may not be made,
    /// when it is damaged, and when the disk fails.
    pub fn open(path: &Path, may_make: bool) -> Result<Self, DiskError> {
        let place = FilePlace { path: path.to_owned() };
        let lock = place.lock()?;
        if !path.try_exists()? {
            if !may_make {
                return Err(DiskError::Gone);
            }
            make(path)?;
        }
        Self::over(Box::new(place), lock)
    }

    /// Opens a database over a backend; tests pass a faulty one. Reopening uses a clone of the backend.
    ///
    /// # Errors
    ///
    /// When the backend fails.
    pub fn open_backend(backend: impl StorageBackend + Clone) -> Result<Self, DiskError> {
        Self::over(Box::new(BackendPlace { backend, cache_bytes: CACHE_BYTES }), None)
    }

    /// As [`DiskStorage::open_backend`], with the given cache size: with a small cache redb reads the disk
    /// often.
    ///
    /// # Errors
    ///
    /// When the backend fails.
    pub fn open_backend_with(
        backend: impl StorageBackend + Clone,
        cache_bytes: usize,
    ) -> Result<Self, DiskError> {
        Self::over(Box::new(BackendPlace { backend, cache_bytes }), None)
    }

    fn over(place: Box<dyn Place>, lock: Option<File>) -> Result<Self, DiskError> {
        // Another process may have been cut off in the middle of a commit.
        let is_torn = AtomicBool::new(true);
        let open = RwLock::new(Some(Open::at(&*place, lock, &is_torn)?));
        Ok(Self { place, open, is_torn })
    }

    fn open_now(&self) -> RwLockReadGuard<'_, Option<Open>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the database.
    fn with<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, StorageError> {
        let open = self.open_now();
        let Open { database, .. } = open.as_ref().ok_or_else(StorageError::closed)?;
        contained(|| work(database).map_err(StorageError::of))
    }
}

impl Open {
    fn at(place: &dyn Place, lock: Option<File>, is_torn: &AtomicBool) -> Result<Self, DiskError> {
        let file = place.file(Access::Read)?;
        let is_new = place.may_be_empty() && file.len()? == 0;
        let sums = Sums::default();
        if !is_new {
            let guarded = Guarded::new(file, sums.clone())?;
            contained(|| verify(Box::new(guarded)))?;
        }
        let guarded = Guarded::new(place.file(Access::Write)?, sums)?;
        let mut builder = Database::builder();
        builder.set_cache_size(place.cache_bytes());
        if !is_torn.load(Ordering::Acquire) {
            // The last commit was acknowledged: redb may not go back to the one before it.
            builder.set_repair_callback(|repair| {
                if repair.progress() > 0.0 && repair.progress() < FELL_BACK {
                    repair.abort();
                }
            });
        }
        let database = contained(|| Ok(builder.create_with_backend(guarded)))?;
        let database = database.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => DiskError::Locked,
            DatabaseError::RepairAborted => {
                DiskError::Failed(StorageError::damaged("a checksum does not match"))
            }
            other => DiskError::Failed(StorageError::of(other)),
        })?;
        let made = contained(|| {
            let transaction = database.begin_write().map_err(StorageError::of)?;
            transaction.open_table(ROWS).map_err(StorageError::of)?;
            commit(transaction, is_torn).map_err(StorageError::of)
        });
        let open = Self { database, _lock: lock };
        match made {
            Ok(()) => Ok(open),
            Err(error) => {
                open.close();
                Err(error.into())
            }
        }
    }

    fn close(self) {
        // Closing writes to the file, which fails if the file is damaged or gone.
        let Self { database, _lock } = self;
        let _ = contain(move || drop(database));
    }
}

/// Writes a commit.
fn commit(transaction: WriteTransaction, is_torn: &AtomicBool) -> Result<(), CommitError> {
    is_torn.store(true, Ordering::Release);
    transaction.commit()?;
    is_torn.store(false, Ordering::Release);
    Ok(())
}

/// Runs calls of redb: a panic there is damage.
fn contained<T>(work: impl FnOnce() -> Result<T, StorageError>) -> Result<T, StorageError> {
    contain(work).unwrap_or_else(|panic| Err(StorageError::damaged(panic)))
}

struct FilePlace {
    path: PathBuf,
}

impl Place for FilePlace {
    fn lock(&self) -> Result<Option<File>, DiskError> {
        let path = self.path.with_extension("lock");
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Err(DiskError::Locked),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    fn may_be_empty(&self) -> bool {
        // The file is moved to its place only when it is complete.
        false
    }

    fn file(&self, access: Access) -> Result<Box<dyn StorageBackend>, DiskError> {
        let mut options = File::options();
        options.read(true).write(access == Access::Write);
        let file = options.open(&self.path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => DiskError::Gone,
            _ => error.into(),
        })?;
        let backend = FileBackend::new(file).map_err(StorageError::of)?;
        Ok(Box::new(backend))
    }
}

struct BackendPlace<B> {
    backend: B,
    cache_bytes: usize,
}

impl<B: StorageBackend + Clone> Place for BackendPlace<B> {
    fn lock(&self) -> Result<Option<File>, DiskError> {
        Ok(None)
    }

    fn may_be_empty(&self) -> bool {
        true
    }

    fn file(&self, _access: Access) -> Result<Box<dyn StorageBackend>, DiskError> {
        Ok(Box::new(self.backend.clone()))
    }

    fn cache_bytes(&self) -> usize {
        self.cache_bytes
    }
}

/// Makes a file with no rows.
fn make(path: &Path) -> Result<(), DiskError> {
    let new = path.with_extension("new");
    if new.try_exists()? {
        std::fs::remove_file(&new)?;
    }
    contained(|| {
        let database = Database::create(&new).map_err(StorageError::of)?;
        let transaction = database.begin_write().map_err(StorageError::of)?;
        transaction.open_table(ROWS).map_err(StorageError::of)?;
        transaction.commit().map_err(StorageError::of)
    })?;
    std::fs::rename(&new, path)?;
    sync_folder(path)?;
    Ok(())
}

/// A file's name is safe only once its folder is.
pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

impl Storage for DiskStorage {
    fn snapshot(&self) -> Result<Snapshot, StorageError> {
        let table = self.with(|database| Ok(database.begin_read()?.open_table(ROWS)?))?;
        Ok(Box::new(DiskView(table)))
    }

    fn commit(&self, changes: Changes) -> Result<(), StorageError> {
        self.with(|database| {
            let mut transaction = database.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            {
                let mut table = transaction.open_table(ROWS)?;
                for (key, value) in &changes {
                    match value {
                        Some(value) => table.insert(&**key, &**value),
                        None => table.remove(&**key),
                    }?;
                }
            }
            Ok(commit(transaction, &self.is_torn)?)
        })
    }

    fn is_durable(&self) -> bool {
        true
    }

    fn close(&self) {
        let open = self.open.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(open) = open {
            open.close();
        }
    }

    fn reopen(&self) -> Result<(), StorageError> {
        self.close();
        let opened = self.place.lock().and_then(|lock| Open::at(&*self.place, lock, &self.is_torn));
        let opened = opened.map_err(|error| match error {
            DiskError::Failed(error) => error,
            other => StorageError::new(other),
        })?;
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        Ok(())
    }
}

impl Drop for DiskStorage {
    fn drop(&mut self) {
        self.close();
    }
}

struct DiskView(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl DiskView {
    fn range_now(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), StorageError> {
        let mut rows = match upper {
            Some(upper) => self.0.range(lower..upper),
            None => self.0.range(lower..),
        }
        .map_err(StorageError::of)?;
        loop {
            let row = match direction {
                Direction::Forward => rows.next(),
                Direction::Backward => rows.next_back(),
            };
            let Some(row) = row else { return Ok(()) };
            let (key, value) = row.map_err(StorageError::of)?;
            if !visit(key.value(), value.value()) {
                return Ok(());
            }
        }
    }
}

impl View for DiskView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        contained(|| {
            let row = self.0.get(key).map_err(StorageError::of)?;
            Ok(row.map(|row| Bytes::from(row.value())))
        })
    }

    fn range(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), StorageError> {
        contained(|| self.range_now(lower, upper, direction, visit))
    }
}
