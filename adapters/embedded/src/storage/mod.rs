//! Ordered rows of bytes with snapshots and atomic commits: all that the engines ask of a disk.
//!
//! - [`memory`]: a persistent ordered map; a snapshot costs nothing.
//! - [`disk`]: redb, where a commit is on the disk before it returns.
//! - [`overlay`]: changes that are not committed yet, over a snapshot.
//! - [`contain`]: a panic of the storage library becomes an error; `verify` finds damage before a file is
//!   opened, `guarded` finds it later.

use std::fmt;
use std::sync::Arc;

pub use mingle_store::order::prefix_end;

pub mod contain;
pub mod disk;
mod guarded;
pub mod memory;
pub mod overlay;
mod verify;

/// A row's key or value: cheap to clone.
pub type Bytes = Arc<[u8]>;

/// Rows by key; `None` removes.
pub type Changes = std::collections::BTreeMap<Bytes, Option<Bytes>>;

/// The callback of a scan for each row; it returns true to go on.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> bool + 'a;

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// By ascending keys.
    Forward,
    /// By descending keys.
    Backward,
}

/// Rows as they stand at one moment.
pub trait View {
    /// The row under `key`.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError>;

    /// Visits the rows whose keys are not below `lower`, and below `upper` if there is one, in order of their
    /// keys, while `visit` returns true. `lower` is below `upper`.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    fn range(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), StorageError>;

    /// Visits the rows whose keys start with `prefix`, in order of their keys, while `visit`
    /// returns true. With `from`, only keys that are not below it.
    ///
    /// # Errors
    ///
    /// When the disk fails.
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
        self.range(lower, end.as_deref(), direction, visit)
    }
}

/// A view that a transaction keeps.
pub type Snapshot = Box<dyn View + Send + Sync>;

/// Rows with snapshots and atomic commits.
pub trait Storage: Send + Sync {
    /// The rows as the last commit left them.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    fn snapshot(&self) -> Result<Snapshot, StorageError>;

    /// Makes all changes, or none; durable storage has them on the disk when this returns.
    ///
    /// # Errors
    ///
    /// When the disk fails: the changes may or may not survive, and nothing may be built on this
    /// storage before it is opened again.
    fn commit(&self, changes: Changes) -> Result<(), StorageError>;

    /// True if rows survive this process; a commit then blocks on a disk.
    fn is_durable(&self) -> bool;

    /// Lets go of the disk, after a failure: nothing can be read or written until it is opened again.
    fn close(&self) {}

    /// Opens the disk again.
    ///
    /// # Errors
    ///
    /// When that fails, or there is no disk.
    fn reopen(&self) -> Result<(), StorageError> {
        Err(StorageError::new("it is not on a disk"))
    }
}

/// A disk that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageError {
    /// The kind of failure.
    pub kind: StorageErrorKind,
    /// The error message.
    pub message: String,
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageErrorKind {
    /// The disk, or the system.
    Failed,
    /// The contents of the disk are not the bytes that were written.
    Damaged,
    /// Nothing: the disk was closed since the snapshot was taken.
    Closed,
}

impl StorageError {
    /// Wraps an error of a library.
    pub fn new(cause: impl fmt::Display) -> Self {
        Self { kind: StorageErrorKind::Failed, message: cause.to_string() }
    }

    /// Creates an error for contents that differ from the bytes that were written.
    pub fn damaged(cause: impl fmt::Display) -> Self {
        Self { kind: StorageErrorKind::Damaged, message: cause.to_string() }
    }

    /// The disk is closed.
    pub fn closed() -> Self {
        let message = "the store was closed after a failure of its disk".into();
        Self { kind: StorageErrorKind::Closed, message }
    }

    /// Converts an error of redb.
    pub fn of(cause: impl Into<redb::Error>) -> Self {
        match cause.into() {
            redb::Error::Corrupted(why) => Self::damaged(why),
            redb::Error::DatabaseClosed => Self::closed(),
            redb::Error::Io(why) if why.kind() == std::io::ErrorKind::InvalidData => {
                Self::damaged(why)
            }
            other => Self::new(other),
        }
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            StorageErrorKind::Damaged => write!(
                f,
                "the file is damaged ({}); put a copy of it in its place that was made while no process had it open",
                self.message
            ),
            StorageErrorKind::Failed | StorageErrorKind::Closed => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for StorageError {}
