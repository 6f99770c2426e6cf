//! A journal as files of one folder.
//!
//! [`Log`] writes it, and [`recover`] reads it, over a [`Folder`], which is the file system or its
//! simulated twin in the tests. Neither knows threads: a driver calls `Log` where it may block.
//!
//! | file | content |
//! | --- | --- |
//! | `log-N.mgj` | a [segment](crate::segment): the entries in order, `N` counts up without gaps |
//! | `checkpoint-N.mgj` | the entries that replace all logs before `log-N` |
//! | `*.tmp` | a file that is not complete; it has no meaning |
//!
//! The journal is the checkpoint with the highest number, and the logs from its number on.
//!
//! - A file gets its name once its header, and a checkpoint all of its content, is synced. So a named
//!   file with a bad header is damaged, never torn.
//! - The next log exists only after the one before it is synced to its end. So only the last log has
//!   a torn tail, and a log that ends before the next one begins is damaged.
//! - **A checkpoint** is written while entries are appended to the log that has its number: before it
//!   has its name the old files and that log are the journal, and afterwards the checkpoint and that
//!   log are. Earlier files are removed then, and are without meaning if a crash brings some back.
//! - **A start** copies all entries that can be read into a checkpoint, before the node sends
//!   anything: after a failed sync the file system may show bytes that are not on the disk, and a
//!   copy that is synced has them. Each start has a number, the boot.
//! - A failed write or sync is final: the log refuses all further work, and the process must stop.
//!
//! The loss of the last log as a whole is not noticed here, nor the return of an old copy of the
//! folder. The other data centers know more than such a folder, and the node notices that
//! ([`Outdated`](crate::Outdated)).

mod log;
mod name;
mod recover;

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;

pub use log::{Checkpoint, Log, OpenError, Opened, SEGMENT_BYTES};
pub use name::Name;
pub use recover::{Damage, Damaged, RecoverError, Recovered, recover};

/// The folder of a journal. A crash may lose everything that was not synced.
pub trait Folder: Clone {
    /// An open file.
    type File: std::fmt::Debug;

    /// Returns the names of all files.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Reads a file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;

    /// Creates an empty file, in place of one that has the name.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Writes bytes at a place of a file.
    fn write(&self, file: &Self::File, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes the content of a file safe.
    fn sync(&self, file: &Self::File) -> io::Result<()>;

    /// Renames a file, in place of one that has the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names of all files safe.
    fn sync_names(&self) -> io::Result<()>;
}

/// A failed operation on a file of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The operation.
    pub action: &'static str,
    /// The name of the file; empty for the folder itself.
    pub file: String,
    /// The kind of error.
    pub kind: io::ErrorKind,
    /// The error of the operating system.
    pub why: String,
}

impl Fault {
    pub(crate) fn new(action: &'static str, file: &str, error: &io::Error) -> Self {
        Self { action, file: file.to_owned(), kind: error.kind(), why: error.to_string() }
    }

    /// True if there is no room for more data.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self.kind, StorageFull | QuotaExceeded | FileTooLarge)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, file, why, .. } = self;
        if self.is_full() {
            f.write_str("the disk of the journal is full: ")?;
        }
        match file.as_str() {
            "" => write!(f, "cannot {action} the folder of the journal: {why}"),
            file => write!(f, "cannot {action} {file} of the journal: {why}"),
        }
    }
}

impl std::error::Error for Fault {}
