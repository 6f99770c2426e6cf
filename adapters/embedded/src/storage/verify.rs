//! Verifies a file before it is opened.
//!
//! redb verifies the checksums of all pages after a crash, and none after a clean end. Here they are
//! verified after a clean end too, with all writes kept aside in memory, so the file stays as it was
//! found. That reads the file once: about a second for each gigabyte.
//!
//! After a crash a damaged page of the last commit looks like one that the crash tore. redb then goes back
//! to the commit before it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::{Builder, StorageBackend};

use super::StorageError;
use super::guarded::BLOCK;
use crate::limits::CACHE_BYTES;

/// The offset of the flags in a redb file; the flags follow.
const FLAGS_AT: usize = 9;
const SECOND_IS_PRIMARY: u8 = 1;
const NOT_CLOSED: u8 = 2;

/// The offset of the two slots of the last two commits, which have increasing numbers.
const SLOTS_AT: usize = 64;
const SLOT_BYTES: usize = 128;
const NUMBER_AT: usize = 104;
const HEADER_BYTES: usize = SLOTS_AT + 2 * SLOT_BYTES;

/// Verifies the content of `file`, if it was closed cleanly; writes nothing to it.
///
/// # Errors
///
/// When the file cannot be read, or is damaged. The caller must contain a panic of redb.
pub fn verify(file: Box<dyn StorageBackend>) -> Result<(), StorageError> {
    let length = file.len().map_err(StorageError::new)?;
    let mut header = [0; HEADER_BYTES];
    if length == 0 {
        return Err(StorageError::damaged("it is empty"));
    }
    if length < HEADER_BYTES as u64 {
        return Err(StorageError::damaged(format!("it has only {length} bytes")));
    }
    file.read(0, &mut header).map_err(StorageError::new)?;
    let flags = header[FLAGS_AT];
    if flags & NOT_CLOSED != 0 {
        return Ok(());
    }
    let primary = usize::from(flags & SECOND_IS_PRIMARY);
    if number(&header, primary) < number(&header, 1 - primary) {
        return Err(StorageError::damaged("its header names an older commit as the last"));
    }
    let scratch = Scratch::over(file, length);
    let mut builder = Builder::new();
    let opened = builder.set_cache_size(CACHE_BYTES).create_with_backend(scratch);
    let is_whole = opened.and_then(|mut database| database.check_integrity());
    if !is_whole.map_err(StorageError::of)? {
        return Err(StorageError::damaged("a checksum does not match"));
    }
    Ok(())
}

fn number(header: &[u8; HEADER_BYTES], slot: usize) -> u64 {
    let at = SLOTS_AT + slot * SLOT_BYTES + NUMBER_AT;
    let bytes = header[at..].first_chunk().expect("a slot is longer than its number");
    u64::from_le_bytes(*bytes)
}

/// A file whose writes are kept in memory.
#[derive(Debug)]
struct Scratch {
    file: Box<dyn StorageBackend>,
    /// The length of the part of the file that is still visible, in bytes.
    file_length: AtomicU64,
    /// The length of the file with its writes, in bytes.
    length: AtomicU64,
    /// Blocks that were written, by their number.
    written: Mutex<BTreeMap<u64, Vec<u8>>>,
}

impl Scratch {
    fn over(file: Box<dyn StorageBackend>, length: u64) -> Self {
        let written = Mutex::default();
        let [file_length, length] = [length, length].map(AtomicU64::new);
        Self { file, file_length, length, written }
    }

    fn written(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<u8>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads from the file; beyond its end there are zeros.
    fn read_below(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let length = self.file_length.load(Ordering::Acquire);
        let there = length.saturating_sub(offset).min(out.len() as u64) as usize;
        out[there..].fill(0);
        if there == 0 { Ok(()) } else { self.file.read(offset, &mut out[..there]) }
    }
}

impl StorageBackend for Scratch {
    fn len(&self) -> io::Result<u64> {
        Ok(self.length.load(Ordering::Acquire))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(out.len() as u64);
        let end = end.filter(|end| *end <= self.length.load(Ordering::Acquire));
        let end = end.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        self.read_below(offset, out)?;
        for (number, block) in self.written().range(offset / BLOCK..end.div_ceil(BLOCK)) {
            let begin = number * BLOCK;
            let (from, to) = (offset.max(begin), end.min(begin + BLOCK));
            let found = &block[(from - begin) as usize..(to - begin) as usize];
            out[(from - offset) as usize..(to - offset) as usize].copy_from_slice(found);
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.length.store(length, Ordering::Release);
        self.file_length.fetch_min(length, Ordering::AcqRel);
        let mut written = self.written();
        written.split_off(&length.div_ceil(BLOCK));
        if let Some(block) = written.get_mut(&(length / BLOCK)) {
            block[(length % BLOCK) as usize..].fill(0);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let end = offset + data.len() as u64;
        for number in offset / BLOCK..end.div_ceil(BLOCK) {
            let begin = number * BLOCK;
            let mut written = self.written();
            let block = match written.entry(number) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let mut block = vec![0; BLOCK as usize];
                    self.read_below(begin, &mut block)?;
                    new.insert(block)
                }
            };
            let (from, to) = (offset.max(begin), end.min(begin + BLOCK));
            let found = &data[(from - offset) as usize..(to - offset) as usize];
            block[(from - begin) as usize..(to - begin) as usize].copy_from_slice(found);
        }
        Ok(())
    }
}
