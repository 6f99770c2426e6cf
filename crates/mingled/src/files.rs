//! The folder of a journal in the file system.

use std::fs::{self, File, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use mingle_geo_node::folder::Folder;

use super::journal::OpenError;

/// The file that one process at a time has locked. It has the number of that process.
const LOCK: &str = "lock";

/// The delay before the lock is tried again.
const LOCK_AGAIN: Duration = Duration::from_millis(10);

/// The number of further attempts. A program that a process with a lock starts shares the lock for a
/// moment, and a process that is killed keeps it until its memory is given back.
const PATIENCE: u32 = 50;

/// A folder in the file system.
#[derive(Clone, Debug)]
pub struct Files(Arc<Path>);

impl Files {
    /// Returns a folder that is only read. Another process may have it open.
    pub fn read_only(path: &Path) -> Self {
        Self(path.into())
    }

    /// Returns the number of the process that has a folder open, if there is one; it is 0 if it is not known.
    pub fn user(path: &Path) -> Option<u32> {
        let lock = path.join(LOCK);
        let file = File::open(&lock).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                let text = fs::read_to_string(&lock).unwrap_or_default();
                Some(text.trim().parse().unwrap_or(0))
            }
            _ => None,
        }
    }

    /// Creates the folder if it is missing, and locks it. The lock ends when the file is closed, also if
    /// the process is killed.
    pub fn lock(path: &Path) -> Result<(Self, File), OpenError> {
        let shown = path.display().to_string();
        let fault =
            |error: io::Error| OpenError::Folder { path: shown.clone(), why: error.to_string() };
        if !path.is_dir() {
            fs::create_dir_all(path).map_err(fault)?;
            // The name of the folder must not get lost either.
            sync_names(path.parent().filter(|parent| parent.is_dir())).map_err(fault)?;
        }
        let lock = path.join(LOCK);
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&lock);
        let mut file = file.map_err(fault)?;
        let mut patience = PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if patience > 0 => {
                    patience -= 1;
                    sleep(LOCK_AGAIN);
                }
                Err(TryLockError::WouldBlock) => {
                    let process = fs::read_to_string(&lock).ok();
                    let process = process.and_then(|text| text.trim().parse().ok());
                    return Err(OpenError::Locked { path: shown, process });
                }
                Err(TryLockError::Error(error)) => return Err(fault(error)),
            }
        }
        let write = |file: &mut File| {
            file.set_len(0)?;
            writeln!(file, "{}", std::process::id())
        };
        write(&mut file).map_err(fault)?;
        Ok((Self(path.into()), file))
    }
}

impl Folder for Files {
    type File = File;

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            // The journal's names are plain ASCII.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.0.join(name))
    }

    fn create(&self, name: &str) -> io::Result<File> {
        File::create(self.0.join(name))
    }

    fn write(&self, mut file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        sync_names(Some(&self.0))
    }
}

/// Makes the names in a folder safe. Only Unix has a sync of its own for them.
pub fn sync_names(folder: Option<&Path>) -> io::Result<()> {
    match folder {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}
