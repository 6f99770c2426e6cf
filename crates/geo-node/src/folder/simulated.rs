//! A folder in memory that loses unsynced data in a crash, in any way that a disk may.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use mingle_model::random::Random;

use super::Folder;

/// The unit that a disk writes as a whole, small so that many writes are torn.
const BLOCK: usize = 64;

/// A file: its content, and the content that is safe.
#[derive(Clone, Debug, Default)]
struct Content {
    now: Vec<u8>,
    safe: Vec<u8>,
}

#[derive(Debug, Default)]
struct State {
    files: Vec<Content>,
    /// The names, and those that are safe.
    names: BTreeMap<String, usize>,
    safe_names: BTreeMap<String, usize>,
    /// The number of operations until one fails; none if none fails.
    fails_in: Option<u32>,
    /// The bytes that may be written; none if there is room for all.
    room: Option<usize>,
    has_failed: bool,
}

/// The folder; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Simulated(Rc<RefCell<State>>);

impl Simulated {
    /// Makes the operation after this many others fail, and all later ones.
    pub fn fail_in(&self, operations: u32) {
        self.0.borrow_mut().fails_in = Some(operations);
    }

    /// Leaves room for this many bytes.
    pub fn leave_room(&self, bytes: usize) {
        self.0.borrow_mut().room = Some(bytes);
    }

    /// Loses any part of the data that is not safe; afterwards no operation fails.
    pub fn crash(&self, random: &mut Random) {
        let mut state = self.0.borrow_mut();
        let State { files, names, safe_names, fails_in, room, has_failed } = &mut *state;
        (*fails_in, *room, *has_failed) = (None, None, false);
        for content in files {
            content.crash(random);
        }
        let all: Vec<String> = names.keys().chain(safe_names.keys()).cloned().collect();
        for name in all {
            let from = if random.one_in(2) { &*names } else { &*safe_names };
            match from.get(&name).copied() {
                Some(file) => _ = safe_names.insert(name, file),
                None => _ = safe_names.remove(&name),
            }
        }
        names.clone_from(safe_names);
    }

    /// Returns all files.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.0.borrow();
        let files = state.names.iter();
        files.map(|(name, file)| (name.clone(), state.files[*file].now.clone())).collect()
    }

    /// Counts an operation; the error is the fault of the disk.
    fn operate(&self) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        match &mut state.fails_in {
            Some(0) => {
                state.has_failed = true;
                Err(io::Error::other("the simulated disk fails"))
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// True if an operation has failed since the last crash.
    pub fn has_failed(&self) -> bool {
        self.0.borrow().has_failed
    }
}

impl Content {
    fn crash(&mut self, random: &mut Random) {
        let length = self.now.len().max(self.safe.len());
        // The length may be that of before or after.
        let kept = if random.one_in(2) { self.now.len() } else { self.safe.len() };
        let mut left = self.safe.clone();
        left.resize(length, 0);
        for begin in (0..self.now.len()).step_by(BLOCK) {
            let end = (begin + BLOCK).min(self.now.len());
            match random.below(4) {
                0 | 1 => left[begin..end].copy_from_slice(&self.now[begin..end]),
                // A block that was being written may hold anything, if it changed.
                2 if left[begin..end] != self.now[begin..end] => {
                    let places = left[begin..end].iter_mut().zip(&self.now[begin..end]);
                    for (left, _) in places.filter(|(left, now)| *left != *now) {
                        *left = random.below(256) as u8;
                    }
                }
                _ => {}
            }
        }
        left.truncate(kept.max(self.safe.len()));
        self.now.clone_from(&left);
        self.safe = left;
    }
}

impl Folder for Simulated {
    type File = usize;

    fn names(&self) -> io::Result<Vec<String>> {
        self.operate()?;
        Ok(self.0.borrow().names.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.operate()?;
        let state = self.0.borrow();
        let file = state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(state.files[*file].now.clone())
    }

    fn create(&self, name: &str) -> io::Result<usize> {
        self.operate()?;
        let mut state = self.0.borrow_mut();
        let file = state.files.len();
        state.files.push(Content::default());
        state.names.insert(name.to_owned(), file);
        Ok(file)
    }

    fn write(&self, file: &usize, at: u64, bytes: &[u8]) -> io::Result<()> {
        let failed = self.operate();
        let mut state = self.0.borrow_mut();
        let mut count = bytes.len();
        // A write that fails may have written a part.
        if failed.is_err() {
            count /= 2;
        }
        if let Some(room) = &mut state.room {
            count = count.min(*room);
            *room -= count;
        }
        let now = &mut state.files[*file].now;
        let end = at as usize + count;
        if now.len() < end {
            now.resize(end, 0);
        }
        now[at as usize..end].copy_from_slice(&bytes[..count]);
        failed?;
        if count < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&self, file: &usize) -> io::Result<()> {
        // After a failed sync the content looks as if it were safe.
        self.operate()?;
        let content = &mut self.0.borrow_mut().files[*file];
        content.safe.clone_from(&content.now);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.operate()?;
        let names = &mut self.0.borrow_mut().names;
        let file = names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        names.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.operate()?;
        let removed = self.0.borrow_mut().names.remove(name);
        removed.map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_names(&self) -> io::Result<()> {
        self.operate()?;
        let mut state = self.0.borrow_mut();
        state.safe_names = state.names.clone();
        Ok(())
    }
}
