//! A disk that fails and crashes as a seed determines.
//!
//! Unsynced writes are kept apart, sector by sector. At a crash each such sector
//! ends up with any one of the contents that it has had since the last sync: so writes are lost,
//! torn and reordered in every way that a disk allows.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mingle_store::random::next_random;
use redb::StorageBackend;

const SECTOR: usize = 512;

/// A disk, shared by the store that uses it and the test that breaks it.
#[derive(Clone, Debug)]
pub struct TwinDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// The content that readers see.
    current: Vec<u8>,
    /// The length of the safe content, in bytes.
    synced_length: usize,
    /// Contents of each sector since the last sync, oldest first, the safe one included.
    unsynced: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Lengths since the last sync.
    lengths: Vec<usize>,
    calls: u64,
    /// The number of the call that fails, and its fault.
    fault: Option<(u64, DiskFault)>,
    reads_fail: bool,
    is_dead: bool,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// The machine loses power: this call and all later ones fail.
    PowerLoss,
    /// One write or sync fails, and those after it work.
    OneError,
}

impl TwinDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::with(Vec::new())
    }

    /// A disk with these bytes, all of them safe.
    pub fn with(contents: Vec<u8>) -> Self {
        let state = State {
            synced_length: contents.len(),
            current: contents,
            unsynced: BTreeMap::new(),
            lengths: Vec::new(),
            calls: 0,
            fault: None,
            reads_fail: false,
            is_dead: false,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Injects a fault after `calls` more writes and syncs.
    pub fn fail_after(&self, calls: u64, fault: DiskFault) {
        let mut state = self.state();
        let at = state.calls + calls;
        state.fault = Some((at, fault));
    }

    /// Makes reads fail from now on, or succeed again.
    pub fn fail_reads(&self, fail: bool) {
        self.state().reads_fail = fail;
    }

    /// All bytes, as readers see them.
    pub fn image(&self) -> Vec<u8> {
        self.state().current.clone()
    }

    /// Changes bytes without the store's knowledge.
    pub fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.state().current);
    }

    /// True if the fault has happened.
    pub fn has_failed(&self) -> bool {
        let state = self.state();
        state.is_dead || state.fault.is_some_and(|(at, _)| state.calls > at)
    }

    /// Loses power, and returns the disk as it is afterwards.
    pub fn crash(&self, random: &mut u64) -> Self {
        let mut state = self.state();
        state.is_dead = true;
        let mut lengths = state.lengths.clone();
        lengths.push(state.synced_length);
        let length = lengths[next_random(random) as usize % lengths.len()];
        let mut image = state.current.clone();
        for (sector, contents) in &state.unsynced {
            let start = sector * SECTOR;
            let chosen = &contents[next_random(random) as usize % contents.len()];
            let end = (start + SECTOR).min(image.len());
            if start < end {
                image[start..end].copy_from_slice(&chosen[..end - start]);
            }
        }
        image.resize(length, 0);
        Self::with(image)
    }
}

impl State {
    /// Counts a write or sync, which may fail.
    fn call(&mut self) -> io::Result<()> {
        let call = self.calls;
        self.calls += 1;
        if let Some((at, fault)) = self.fault
            && call == at
        {
            self.is_dead |= fault == DiskFault::PowerLoss;
            return Err(io::Error::other("the disk failed, as the test says"));
        }
        self.check()
    }

    fn check(&self) -> io::Result<()> {
        if self.is_dead {
            return Err(io::Error::other("the disk has lost power"));
        }
        Ok(())
    }

    fn sector(&self, sector: usize) -> Vec<u8> {
        let start = (sector * SECTOR).min(self.current.len());
        let end = (start + SECTOR).min(self.current.len());
        let mut contents = self.current[start..end].to_vec();
        contents.resize(SECTOR, 0);
        contents
    }
}

impl StorageBackend for TwinDisk {
    fn len(&self) -> io::Result<u64> {
        let state = self.state();
        state.check()?;
        Ok(state.current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        state.check()?;
        if state.reads_fail {
            return Err(io::Error::other("the disk cannot be read, as the test says"));
        }
        let start = offset as usize;
        let found = state
            .current
            .get(start..start + out.len())
            .ok_or_else(|| io::Error::other("a read beyond the end"))?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        state.current.resize(length as usize, 0);
        state.lengths.push(length as usize);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        state.unsynced.clear();
        state.lengths.clear();
        state.synced_length = state.current.len();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let (start, end) = (offset as usize, offset as usize + data.len());
        let sectors = start / SECTOR..end.div_ceil(SECTOR);
        for sector in sectors.clone() {
            let before = state.sector(sector);
            state.unsynced.entry(sector).or_insert_with(|| vec![before]);
        }
        let failed = state.call();
        if failed.is_err() && state.is_dead {
            return failed;
        }
        if state.current.len() < end {
            state.current.resize(end, 0);
        }
        // A failed write may have been done in part.
        let end = if failed.is_err() { start + data.len() / 2 } else { end };
        state.current[start..end].copy_from_slice(&data[..end - start]);
        for sector in sectors {
            let after = state.sector(sector);
            let contents = state.unsynced.get_mut(&sector);
            contents.expect("it was put there above").push(after);
        }
        failed
    }
}
