//! A file whose bytes are compared with the bytes read or written before.
//!
//! redb has a checksum of each page in the page above it, and verifies them when a file is opened, but not when
//! a page is read later. A page that goes bad on the disk in between would be returned as if it had been written:
//! redb notices only bytes that make no sense as a page. So the sum of each block of the file is kept in memory:
//!
//! ```text
//!   opening   all pages in use are read, and verified by redb   ──► their sums are noted
//!   a write   ──► the sums of its blocks are noted
//!   a read    ──► a block whose sum is another is an error: the file is damaged
//! ```
//!
//! That takes 8 bytes for each 4 KiB of the file, 2 MiB for each gigabyte. Pages that redb has in its cache are
//! not read from the file: redb returns them as they were written, even if the file goes bad. When another process
//! opens the file, redb's checksums protect it: see `verify`.

use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use redb::{BackendError, StorageBackend};

/// The size of a block, in bytes. A page of redb is one or more blocks.
pub const BLOCK: u64 = 4096;

/// The sum that stands for a block with no known sum.
const UNKNOWN: u64 = 0;

/// The sums of a file's blocks; a file that is opened a second time shares them.
#[derive(Clone, Debug, Default)]
pub struct Sums(Arc<RwLock<Vec<AtomicU64>>>);

/// A file with the sums of its blocks.
#[derive(Debug)]
pub struct Guarded {
    file: Box<dyn StorageBackend>,
    sums: Sums,
}

impl Guarded {
    /// Wraps a file; `sums` has the known sums of its blocks.
    ///
    /// # Errors
    ///
    /// When the length of the file cannot be read.
    pub fn new(file: Box<dyn StorageBackend>, sums: Sums) -> io::Result<Self> {
        let count = file.len()?.div_ceil(BLOCK);
        let guarded = Self { file, sums };
        grow(&mut guarded.write_sums(), count);
        Ok(guarded)
    }

    fn write_sums(&self) -> RwLockWriteGuard<'_, Vec<AtomicU64>> {
        self.sums.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a block from the file, which may end within its last block.
    fn block(&self, number: u64, length: u64) -> io::Result<Vec<u8>> {
        let begin = number * BLOCK;
        let mut bytes = vec![0; length.saturating_sub(begin).min(BLOCK) as usize];
        if !bytes.is_empty() {
            self.file.read(begin, &mut bytes)?;
        }
        Ok(bytes)
    }
}

/// Makes room for the sums of `count` blocks.
fn grow(sums: &mut Vec<AtomicU64>, count: u64) {
    if (sums.len() as u64) < count {
        sums.resize_with(count as usize, || AtomicU64::new(UNKNOWN));
    }
}

/// Forgets the sum of the block in which a file ended or ends: its bytes change.
fn ends_elsewhere(sums: &mut [AtomicU64], end: u64) {
    let known = sums.get_mut((end / BLOCK) as usize).filter(|_| !end.is_multiple_of(BLOCK));
    if let Some(known) = known {
        *known.get_mut() = UNKNOWN;
    }
}

/// Compares a block with its sum, or notes the sum if there is none.
fn compare(sums: &[AtomicU64], number: u64, bytes: &[u8]) -> io::Result<()> {
    let Some(known) = sums.get(number as usize) else { return Ok(()) };
    let found = sum(bytes);
    // A concurrent reader of the same block notes the same sum.
    let before = known.compare_exchange(UNKNOWN, found, Ordering::AcqRel, Ordering::Acquire);
    match before {
        Err(before) if before != found => {
            let begin = number * BLOCK;
            let why = format!("bytes {begin} to {} are not as they were written", begin + BLOCK);
            Err(io::Error::new(io::ErrorKind::InvalidData, why))
        }
        _ => Ok(()),
    }
}

/// Returns the sum of a block. Two blocks that differ in only one word of 8 bytes have different sums.
fn sum(bytes: &[u8]) -> u64 {
    let mut sum = 0x9e37_79b9_7f4a_7c15_u64 ^ bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    for word in words.iter().chain([&last]) {
        sum = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(0x9fb2_1c65_1e98_df25);
        sum ^= sum >> 32;
    }
    if sum == UNKNOWN { 1 } else { sum }
}

/// Returns the numbers of the blocks that a stretch of a file touches and that have sums. The first block has
/// no sum: it is the header. redb reads it when it opens the file and then writes it whole from memory with each
/// commit, which repairs damage there.
fn blocks(offset: u64, end: u64) -> std::ops::Range<u64> {
    (offset / BLOCK).max(1)..end.div_ceil(BLOCK)
}

/// Returns the part within one block of a stretch that begins at `offset`: its place there, and its bytes.
fn part(offset: u64, length: usize, number: u64) -> (usize, std::ops::Range<usize>) {
    let (begin, end) = (number * BLOCK, offset + length as u64);
    let (from, to) = (offset.max(begin), end.min(begin + BLOCK));
    ((from - begin) as usize, (from - offset) as usize..(to - offset) as usize)
}

impl StorageBackend for Guarded {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        // No block is written while it is read.
        let sums = self.sums.0.read().unwrap_or_else(PoisonError::into_inner);
        self.file.read(offset, out)?;
        for number in blocks(offset, offset + out.len() as u64) {
            let (place, range) = part(offset, out.len(), number);
            if range.len() as u64 == BLOCK {
                compare(&sums, number, &out[range])?;
                continue;
            }
            let bytes = self.block(number, self.file.len()?)?;
            compare(&sums, number, &bytes)?;
            let length = range.len();
            out[range].copy_from_slice(&bytes[place..place + length]);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut sums = self.write_sums();
        let end = offset + data.len() as u64;
        grow(&mut sums, end.div_ceil(BLOCK));
        let length = self.file.len()?;
        let mut noted = Vec::new();
        for number in blocks(offset, end) {
            let (place, range) = part(offset, data.len(), number);
            let data = &data[range];
            if data.len() as u64 == BLOCK {
                noted.push((number, sum(data)));
                continue;
            }
            // Only a part of the block is written: the rest stays, and must be as it was written.
            let mut bytes = self.block(number, length)?;
            compare(&sums, number, &bytes)?;
            bytes.resize(bytes.len().max(place + data.len()), 0);
            bytes[place..place + data.len()].copy_from_slice(data);
            noted.push((number, sum(&bytes)));
        }
        if end > length {
            ends_elsewhere(&mut sums, length);
        }
        // A failed write may have been done in part.
        let written = self.file.write(offset, data);
        for (number, sum) in noted {
            let sum = if written.is_ok() { sum } else { UNKNOWN };
            *sums[number as usize].get_mut() = sum;
        }
        written
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut sums = self.write_sums();
        let before = self.file.len()?;
        self.file.set_len(length)?;
        sums.resize_with(length.div_ceil(BLOCK) as usize, || AtomicU64::new(UNKNOWN));
        ends_elsewhere(&mut sums, before);
        ends_elsewhere(&mut sums, length);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use mingle_store::random::next_random;

    use super::*;

    /// A file in memory that the test changes without the knowledge of the guard.
    #[derive(Clone, Debug, Default)]
    struct Bytes(Arc<Mutex<Vec<u8>>>);

    impl Bytes {
        fn with<T>(&self, work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
            work(&mut self.0.lock().expect("no test panics while it has it"))
        }
    }

    impl StorageBackend for Bytes {
        fn len(&self) -> io::Result<u64> {
            Ok(self.with(|bytes| bytes.len() as u64))
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            let found = self.with(|bytes| {
                let found = bytes.get(offset as usize..offset as usize + out.len());
                found.map(|found| out.copy_from_slice(found))
            });
            found.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        }

        fn set_len(&self, length: u64) -> io::Result<()> {
            self.with(|bytes| bytes.resize(length as usize, 0));
            Ok(())
        }

        fn sync_data(&self) -> io::Result<()> {
            Ok(())
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            let end = offset as usize + data.len();
            self.with(|bytes| {
                bytes.resize(bytes.len().max(end), 0);
                bytes[offset as usize..end].copy_from_slice(data);
            });
            Ok(())
        }
    }

    fn is_damage(found: io::Result<()>) -> bool {
        found.is_err_and(|error| error.kind() == io::ErrorKind::InvalidData)
    }

    #[test]
    fn reads_give_what_was_written_anywhere() {
        let (file, mut random) = (Bytes::default(), 7);
        let guarded =
            Guarded::new(Box::new(file.clone()), Sums::default()).expect("it has a length");
        let mut expected = Vec::new();
        for round in 0..2000_u64 {
            let mut draw = |most: u64| next_random(&mut random) % most;
            let (offset, length) = (draw(20_000), draw(9_000) as usize);
            match draw(10) {
                0 => {
                    expected.resize(offset as usize, 0);
                    guarded.set_len(offset).expect("it is resized");
                }
                1..6 => {
                    let data: Vec<u8> = (0..length).map(|_| draw(256) as u8).collect();
                    let end = offset as usize + length;
                    expected.resize(expected.len().max(end), 0);
                    expected[offset as usize..end].copy_from_slice(&data);
                    guarded.write(offset, &data).expect("it is written");
                }
                _ => {
                    let mut out = vec![0; length];
                    let there = expected.get(offset as usize..offset as usize + length);
                    let read = guarded.read(offset, &mut out);
                    assert_eq!(read.is_ok().then_some(&*out), there, "round {round}");
                }
            }
        }
        assert_eq!(file.with(|bytes| bytes.clone()), expected);
    }

    #[test]
    fn a_bit_that_changes_is_noticed_wherever_it_was_read_or_written() {
        let (file, sums) = (Bytes::default(), Sums::default());
        let guarded = Guarded::new(Box::new(file.clone()), sums.clone()).expect("a length");
        let length = 3 * BLOCK as usize + 100;
        guarded.write(0, &vec![5; length]).expect("it is written");
        let mut out = vec![0; length];
        let mut random = 9;
        for round in 0..300 {
            let first = BLOCK as usize;
            let at = first + next_random(&mut random) as usize % (length - first);
            let bit = 1 << (next_random(&mut random) % 8);
            // Two files share the sums: one has written, the other reads.
            let other = Guarded::new(Box::new(file.clone()), sums.clone()).expect("a length");
            other.read(0, &mut out).expect("nothing is damaged");
            file.with(|bytes| bytes[at] ^= bit);
            assert!(is_damage(other.read(0, &mut out)), "round {round}: bit {bit} at {at}");
            assert!(is_damage(other.read(at as u64, &mut [0])), "a part, round {round}");
            // A write beside the damage does not hide it.
            assert!(is_damage(other.write(at as u64 / BLOCK * BLOCK, &[5; 7])), "round {round}");
            file.with(|bytes| bytes[at] ^= bit);
        }
        // A rewritten block is sound again.
        file.with(|bytes| bytes[2 * BLOCK as usize] ^= 1);
        guarded.write(2 * BLOCK, &[6; BLOCK as usize]).expect("it is written");
        guarded.read(2 * BLOCK, &mut out[..BLOCK as usize]).expect("nothing is damaged");
    }

    #[test]
    fn sums_tell_blocks_apart_that_differ_in_one_word() {
        let block = vec![0xa5_u8; BLOCK as usize];
        for at in 0..block.len() {
            let mut other = block.clone();
            other[at] = 0;
            assert_ne!(sum(&block), sum(&other), "{at}");
        }
        assert_ne!(sum(&[0; 16]), sum(&[0; 24]));
    }
}
