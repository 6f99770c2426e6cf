//! A journal in files, written by threads of its own.
//!
//! [`FileJournal`] implements [`Journal`] without ever waiting for the disk. Appended entries are kept
//! until [`sync`](Journal::sync), which hands them to one thread; that thread writes and syncs them, and
//! then calls the driver's report. Another thread writes checkpoints, so a sync does not wait for them;
//! the next checkpoint begins after the end of the one before it.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use mingle_geo_node::Journal;
use mingle_geo_node::folder::{self, Checkpoint, Fault, Log, Opened, SEGMENT_BYTES};
use mingle_geo_node::segment::Identity;

use super::files::Files;
use super::random;

/// The settings of a journal.
#[derive(Clone, Debug)]
pub struct JournalSettings {
    /// The folder; it is created if it is missing.
    pub folder: PathBuf,
    /// The process that the journal belongs to.
    pub identity: Identity,
    /// True for the first start of the process in an empty folder, and false for all others. So a
    /// process whose disk was lost does not begin as if it had never promised anything.
    pub is_founding: bool,
    /// The length of a log file.
    pub segment_bytes: u64,
}

impl JournalSettings {
    /// Returns the usual settings.
    pub fn new(folder: &Path, identity: Identity, is_founding: bool) -> Self {
        let segment_bytes = SEGMENT_BYTES;
        Self { folder: folder.to_owned(), identity, is_founding, segment_bytes }
    }
}

/// The reason why a journal cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The folder cannot be used.
    Folder {
        /// The path of the folder.
        path: String,
        /// The error of the operating system.
        why: String,
    },
    /// Another process has the folder.
    Locked {
        /// The path of the folder.
        path: String,
        /// The number of that process, if it is known.
        process: Option<u32>,
    },
    /// The journal in the folder is damaged, or does not fit.
    Journal {
        /// The path of the folder.
        path: String,
        /// The reason.
        why: Box<folder::OpenError>,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { path, why } => write!(f, "{path}: {why}"),
            Self::Locked { path, process: Some(process) } => {
                write!(f, "{path}: process {process} has opened this folder")
            }
            Self::Locked { path, process: None } => {
                write!(f, "{path}: another process has opened this folder")
            }
            Self::Journal { path, why } => write!(f, "{path}: {why}"),
        }
    }
}

impl std::error::Error for OpenError {}

/// The contents of a journal at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The entries, in order.
    pub entries: Vec<Vec<u8>>,
    /// The number of this start.
    pub boot: u32,
    /// True if a torn tail was dropped.
    pub was_torn: bool,
}

/// Receives the end of each sync, and the fault that ends the journal. It is called by the journal's
/// threads and must not block.
pub type Report = Box<dyn Fn(Result<(), Fault>) + Send + Sync>;

/// Work for the thread that syncs.
enum Job {
    Append(Vec<Vec<u8>>),
    Replace(Vec<Vec<u8>>),
}

/// A checkpoint with its entries.
type Written = (Checkpoint<Files>, Vec<Vec<u8>>);

/// A journal in files.
#[derive(Debug)]
pub struct FileJournal {
    /// Entries that no sync covers.
    pending: Vec<Vec<u8>>,
    length: usize,
    is_replacing: Arc<AtomicBool>,
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    /// Keeps the folder locked; it is closed after the threads have ended.
    _lock: File,
}

impl FileJournal {
    /// Opens the journal in a folder, or founds one. It copies all entries that can be read before it
    /// returns.
    ///
    /// # Errors
    ///
    /// If another process has the folder, if the journal is damaged or belongs to another process, or
    /// if a file cannot be read or written.
    pub fn open(settings: &JournalSettings, report: Report) -> Result<(Self, Restored), OpenError> {
        let path = settings.folder.display().to_string();
        let (files, lock) = Files::lock(&settings.folder)?;
        let JournalSettings { identity, is_founding, segment_bytes, .. } = *settings;
        let opened = Log::open(files, identity, is_founding, segment_bytes, random());
        let Opened { log, entries, boot, was_torn } =
            opened.map_err(|why| OpenError::Journal { path: path.clone(), why: Box::new(why) })?;
        let (report, is_replacing) = (Arc::new(report), Arc::new(AtomicBool::new(false)));
        let (jobs, work) = channel();
        let (checkpoints, to_write) = channel();
        let writer = {
            let (report, is_replacing) = (report.clone(), is_replacing.clone());
            move || write_checkpoints(&to_write, &is_replacing, &report)
        };
        let syncer = move || sync_all(log, &work, &checkpoints, &report);
        let fault = |error: std::io::Error| OpenError::Folder { path, why: error.to_string() };
        let threads = [
            Builder::new().name("journal".into()).spawn(syncer),
            Builder::new().name("checkpoint".into()).spawn(writer),
        ];
        let threads = threads.into_iter().collect::<Result<Vec<_>, _>>().map_err(fault)?;
        let length = entries.len();
        let jobs = Some(jobs);
        let journal =
            Self { pending: Vec::new(), length, is_replacing, jobs, threads, _lock: lock };
        Ok((journal, Restored { entries, boot, was_torn }))
    }

    fn give(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // The thread ends only after it has reported a fault.
            let _ = jobs.send(job);
        }
    }
}

impl Journal for FileJournal {
    fn append(&mut self, entry: &[u8]) {
        self.pending.push(entry.to_vec());
        self.length += 1;
    }

    fn sync(&mut self) {
        let entries = std::mem::take(&mut self.pending);
        self.give(Job::Append(entries));
    }

    /// Returns the number of entries; 0 while a checkpoint is being written, so that no other one
    /// begins.
    fn length(&self) -> usize {
        if self.is_replacing.load(Ordering::Acquire) { 0 } else { self.length }
    }

    fn replace(&mut self, entries: Vec<Vec<u8>>) {
        debug_assert!(self.pending.is_empty(), "all entries are safe");
        self.length = entries.len();
        self.is_replacing.store(true, Ordering::Release);
        self.give(Job::Replace(entries));
    }
}

impl Drop for FileJournal {
    /// Ends the threads, after the work that they have.
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Writes and syncs entries until the journal is dropped or a fault ends it.
fn sync_all(
    mut log: Log<Files>,
    work: &Receiver<Job>,
    checkpoints: &Sender<Written>,
    report: &Report,
) {
    while let Ok(job) = work.recv() {
        let done = match job {
            Job::Append(entries) => log.append(&entries),
            Job::Replace(entries) => match log.checkpoint() {
                Ok(checkpoint) => {
                    // The other thread ends only after it has reported a fault.
                    let _ = checkpoints.send((checkpoint, entries));
                    continue;
                }
                Err(fault) => Err(fault),
            },
        };
        let is_over = done.is_err();
        report(done);
        if is_over {
            return;
        }
    }
}

/// Writes checkpoints until the journal is dropped or a fault ends it.
fn write_checkpoints(to_write: &Receiver<Written>, is_replacing: &AtomicBool, report: &Report) {
    while let Ok((checkpoint, entries)) = to_write.recv() {
        if let Err(fault) = checkpoint.write(&entries) {
            return report(Err(fault));
        }
        is_replacing.store(false, Ordering::Release);
    }
}
