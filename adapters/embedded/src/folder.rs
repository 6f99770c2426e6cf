//! The folder that a program's stores share, and the list of the stores made in it.
//!
//! Each store has a file `NAME.redb`. The file `stores` lists them, one name a line, so a missing
//! file is not mistaken for a new store.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crate::storage::disk::sync_folder;

/// The list's file.
const LIST: &str = "stores";

/// The first lines of the list.
const HEAD: &str = "# The stores that are kept here. A line without its file is an error: to begin again with an \
                    empty store, remove the line.\n";

/// A folder of stores.
pub struct Folder<'a>(pub &'a Path);

impl Folder<'_> {
    /// Makes the folder, and an empty list if there is nothing yet.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn make(&self) -> io::Result<()> {
        std::fs::create_dir_all(self.0)?;
        if self.listed()?.is_none() && self.found(&["redb", "lock"])?.is_empty() {
            self.change(|_| {})?;
        }
        Ok(())
    }

    /// Returns the file of a store.
    pub fn file(&self, store: &str) -> PathBuf {
        self.0.join(format!("{store}.redb"))
    }

    /// Returns the file that lists the stores.
    pub fn list(&self) -> PathBuf {
        self.0.join(LIST)
    }

    /// Returns the stores that were made here, even if their files are missing. A folder of an earlier
    /// version has no list; then the files and the lock files beside them name the stores.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn made(&self) -> io::Result<BTreeSet<String>> {
        match self.listed()? {
            Some(listed) => Ok(listed),
            None => self.found(&["redb", "lock"]),
        }
    }

    /// Returns the stores whose files are here.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn kept(&self) -> io::Result<BTreeSet<String>> {
        self.found(&["redb"])
    }

    /// Notes that a store was made here.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn note(&self, store: &str) -> io::Result<()> {
        if self.listed()?.is_some_and(|listed| listed.contains(store)) {
            return Ok(());
        }
        self.change(|made| {
            made.insert(store.to_owned());
        })
    }

    /// Notes the new name of a store.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if self.listed()?.is_some_and(|made| made.contains(to) && !made.contains(from)) {
            return Ok(());
        }
        self.change(|made| {
            made.remove(from);
            made.insert(to.to_owned());
        })
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<String>)) -> io::Result<()> {
        let lock = self.0.join(".stores-lock");
        let lock = File::options().create(true).truncate(false).write(true).open(lock)?;
        lock.lock()?;
        let mut made = self.made()?;
        change(&mut made);
        let (path, new) = (self.list(), self.0.join(".stores-new"));
        let mut text = HEAD.to_owned();
        for name in &made {
            text.push_str(name);
            text.push('\n');
        }
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &path)?;
        sync_folder(&path)
    }

    fn listed(&self) -> io::Result<Option<BTreeSet<String>>> {
        let text = match std::fs::read_to_string(self.list()) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(Some(lines.filter(|line| !line.starts_with('#')).map(str::to_owned).collect()))
    }

    fn found(&self, endings: &[&str]) -> io::Result<BTreeSet<String>> {
        let entries = match std::fs::read_dir(self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Err(error) => return Err(error),
        };
        let mut found = BTreeSet::new();
        for entry in entries {
            let path = entry?.path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            if let (Some(ending), Some(stem)) = (ending, stem)
                && endings.contains(&ending)
            {
                found.insert(stem.to_owned());
            }
        }
        Ok(found)
    }
}
