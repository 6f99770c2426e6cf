//! Logs of replicas in a folder.
//!
//! What replicas want written waits here; a task writes all of it in one commit of the storage, then
//! says so. A log that has grown to several times what the replica holds is written anew, in the same
//! commit that removes it. Vectors alone wait for something else to be written: a replica that lost
//! them has all that they speak of, and finds that out again.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;

use mingle_geo::{DcId, Envelope, PartitionId, Persist, Record};

use super::driver::Signal;
use super::net::{Inner, Net};
use crate::core::Core;
use crate::storage::{Changes, Direction, StorageError, View};

/// A record takes rows of at most so many bytes.
const ROW_BYTES_MAX: usize = 1 << 20;

/// A log is not written anew before it has so many bytes.
const REWRITE_BYTES_MIN: usize = 4 << 20;

/// Nor before it has grown to so many times what it was when it was last written anew.
const REWRITE_GROWTH: usize = 3;

/// Whose log.
pub type Place = (DcId, PartitionId);

/// What waits to be written, and where logs stand.
pub struct Disk {
    /// Whom to wake when there is something to write.
    pub signal: Arc<Signal>,
    waiting: Vec<(Place, u32, Persist)>,
    /// What is being written.
    writing: Vec<Written>,
    /// Vectors that are not written.
    unwritten: BTreeMap<Place, Record>,
    logs: BTreeMap<Place, Log>,
    /// Data centers that begin anew, with empty logs but for these records: which incarnations.
    renewed: Vec<Renewed>,
    /// Counts what is to be written, what of that is being written, and what is.
    pushed: u64,
    taken: u64,
    done: u64,
}

/// A data center that begins anew.
struct Renewed {
    dc: DcId,
    incarnation: u32,
    record: Record,
}

/// What a log holds: records, in their order, or why it cannot be used.
pub type Loaded = Result<Vec<Record>, String>;

/// What is sent once it is written.
pub struct Written {
    /// By which replica.
    pub place: Place,
    /// Of which incarnation of its data center.
    pub incarnation: u32,
    /// The index of what was written.
    pub index: u64,
    /// What to send.
    pub then: Vec<Envelope>,
}

/// One log: rows of these numbers, from the first on and before the next.
#[derive(Clone, Copy, Debug, Default)]
struct Log {
    first: u64,
    next: u64,
    bytes: usize,
    /// How many bytes it had when it was written anew.
    base: usize,
}

impl Log {
    fn is_long(&self) -> bool {
        self.bytes > REWRITE_BYTES_MIN.max(self.base * REWRITE_GROWTH)
    }

    fn append(&mut self, place: Place, record: &Record, changes: &mut Changes) {
        let bytes = postcard::to_stdvec(record).expect("records have nothing that cannot be kept");
        self.bytes += bytes.len();
        let mut chunks = bytes.chunks(ROW_BYTES_MAX).peekable();
        while let Some(chunk) = chunks.next() {
            // The first byte says whether the record goes on in the next row.
            let mut row = vec![u8::from(chunks.peek().is_some())];
            row.extend_from_slice(chunk);
            changes.insert(key(place, self.next).into(), Some(row.into()));
            self.next += 1;
        }
    }

    fn clear(&mut self, place: Place, changes: &mut Changes) {
        for number in self.first..self.next {
            changes.insert(key(place, number).into(), None);
        }
        *self = Self { first: self.next, next: self.next, bytes: 0, base: 0 };
    }
}

fn prefix((dc, partition): Place) -> Vec<u8> {
    let mut prefix = vec![b'l', dc.0];
    prefix.extend(partition.0.to_be_bytes());
    prefix
}

/// The row that counts how often a data center began anew.
fn incarnation_key(dc: DcId) -> Vec<u8> {
    vec![b'n', dc.0]
}

fn key(place: Place, number: u64) -> Vec<u8> {
    let mut key = prefix(place);
    key.extend(number.to_be_bytes());
    key
}

impl Disk {
    /// Logs that are empty, or as they were loaded.
    pub fn new() -> Self {
        Self {
            signal: Arc::default(),
            waiting: Vec::new(),
            writing: Vec::new(),
            unwritten: BTreeMap::new(),
            logs: BTreeMap::new(),
            renewed: Vec::new(),
            pushed: 0,
            taken: 0,
            done: 0,
        }
    }

    /// Whether there is any log.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn has_any(view: &dyn View) -> Result<bool, StorageError> {
        let mut found = false;
        view.scan(b"l", None, Direction::Forward, &mut |_, _| {
            found = true;
            false
        })?;
        Ok(found)
    }

    /// How often a data center began anew.
    ///
    /// # Errors
    ///
    /// When the disk fails, or the row is none of this engine's.
    pub fn incarnation(dc: DcId, view: &dyn View) -> Result<u32, StorageError> {
        let Some(row) = view.get(&incarnation_key(dc))? else { return Ok(0) };
        let bytes = (*row).try_into().map_err(|_| StorageError::new("a row of another version"))?;
        Ok(u32::from_be_bytes(bytes))
    }

    /// What the log of a replica holds.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn load(&mut self, place: Place, view: &dyn View) -> Result<Loaded, StorageError> {
        let prefix = prefix(place);
        let (mut records, mut bytes) = (Vec::new(), Vec::new());
        let mut log = Log::default();
        let (mut broken, mut count) = (false, 0);
        view.scan(&prefix, None, Direction::Forward, &mut |key, row| {
            count += 1;
            let number = key.last_chunk().map_or(0, |number| u64::from_be_bytes(*number));
            if log.next == 0 {
                log.first = number;
            }
            log.next = number + 1;
            let Some((goes_on, rest)) = row.split_first().filter(|_| !broken) else {
                // To the end, all the same: whoever gives the log up removes all of it.
                broken = true;
                return true;
            };
            bytes.extend_from_slice(rest);
            log.bytes += rest.len();
            if *goes_on == 0 {
                match postcard::from_bytes(&bytes) {
                    Ok(record) => records.push(record),
                    Err(_) => broken = true,
                }
                bytes.clear();
            }
            true
        })?;
        log.base = log.bytes;
        let rows = log.next - log.first;
        self.logs.insert(place, log);
        // A row in the middle that is gone may have been a whole record.
        if broken || !bytes.is_empty() || rows != count {
            let partition = place.1.0;
            return Ok(Err(format!(
                "the log of its partition {partition} is corrupt, or of another version of this engine"
            )));
        }
        Ok(Ok(records))
    }

    /// A data center begins anew: in place of its logs this record stands in each. What its replicas
    /// still wanted written is dropped.
    pub fn renew(&mut self, dc: DcId, incarnation: u32, record: Record) {
        self.waiting.retain(|(place, ..)| place.0 != dc);
        self.unwritten.retain(|place, _| place.0 != dc);
        self.renewed.push(Renewed { dc, incarnation, record });
        self.pushed += 1;
        self.signal.raise();
    }

    /// Counts what is to be written so far, and what of that is.
    pub fn progress(&self) -> (u64, u64) {
        (self.pushed, self.done)
    }

    /// Takes what a replica wants written; gives it back if nothing need be.
    pub fn push(&mut self, place: Place, incarnation: u32, persist: Persist) -> Option<Persist> {
        let is_busy = self.waiting.iter().any(|(of, ..)| *of == place)
            || self.writing.iter().any(|written| written.place == place);
        if !is_busy && persist.records.iter().all(|record| matches!(record, Record::Vectors(_))) {
            if let Some(vectors) = persist.records.last() {
                self.unwritten.insert(place, vectors.clone());
            }
            return Some(persist);
        }
        self.waiting.push((place, incarnation, persist));
        self.pushed += 1;
        self.signal.raise();
        None
    }

    /// What is to be written now; `checkpoint` gives records that make a replica as it is. None if
    /// there is nothing.
    fn take(&mut self, checkpoint: &dyn Fn(Place) -> Vec<Record>) -> Option<Changes> {
        if self.waiting.is_empty() && self.renewed.is_empty() {
            return None;
        }
        let mut changes = Changes::new();
        self.begin_anew(&mut changes);
        let mut renewed: Vec<Place> = Vec::new();
        for (place, incarnation, persist) in std::mem::take(&mut self.waiting) {
            let log = self.logs.entry(place).or_default();
            if log.is_long() && !renewed.contains(&place) {
                renewed.push(place);
                // All that still waits is part of it.
                log.clear(place, &mut changes);
                for record in checkpoint(place) {
                    log.append(place, &record, &mut changes);
                }
                log.base = log.bytes;
            }
            if !renewed.contains(&place) {
                let vectors = self.unwritten.remove(&place);
                for record in vectors.iter().chain(&persist.records) {
                    log.append(place, record, &mut changes);
                }
            }
            let Persist { index, then, .. } = persist;
            self.writing.push(Written { place, incarnation, index, then });
        }
        self.taken = self.pushed;
        Some(changes)
    }

    fn begin_anew(&mut self, changes: &mut Changes) {
        for Renewed { dc, incarnation, record } in std::mem::take(&mut self.renewed) {
            let row = incarnation.to_be_bytes().to_vec();
            changes.insert(incarnation_key(dc).into(), Some(row.into()));
            for (place, log) in self.logs.iter_mut().filter(|(place, _)| place.0 == dc) {
                log.clear(*place, changes);
                log.append(*place, &record, changes);
                log.base = log.bytes;
            }
        }
    }

    /// About how many bytes the logs have.
    pub fn bytes(&self) -> usize {
        self.logs.values().map(|log| log.bytes).sum()
    }

    /// What has been written.
    fn written(&mut self) -> Vec<Written> {
        self.done = self.taken;
        std::mem::take(&mut self.writing)
    }
}

/// Begins to write, until the store is dropped.
pub fn start(net: &Arc<Net>, core: &Arc<Core>, signal: Arc<Signal>) {
    core.world.spawn(Box::pin(write(Arc::downgrade(net), Arc::downgrade(core), signal)));
}

async fn write(net: Weak<Net>, core: Weak<Core>, signal: Arc<Signal>) {
    loop {
        poll_fn(
            |context| {
                if signal.take(context.waker()) { Poll::Ready(()) } else { Poll::Pending }
            },
        )
        .await;
        loop {
            let (Some(net), Some(core)) = (net.upgrade(), core.upgrade()) else { return };
            let take = |inner: &mut Inner| {
                inner.is_written_by(&signal).then(|| inner.with_disk(Disk::take).flatten())
            };
            let Some(changes) = net.with(take) else { return };
            let Some(changes) = changes else { break };
            let is_safe = commit(&core, changes).await;
            let goes_on = net.with(|inner| {
                if !inner.is_written_by(&signal) {
                    return false;
                }
                if !is_safe {
                    inner.stop();
                    return false;
                }
                let written = inner.with_disk(|disk, _| disk.written()).unwrap_or_default();
                for written in written {
                    inner.on_written(written);
                }
                true
            });
            if !goes_on {
                return;
            }
        }
    }
}

/// Whether the changes stand on the disk.
async fn commit(core: &Arc<Core>, changes: Changes) -> bool {
    let is_safe = Arc::new(AtomicBool::new(false));
    let (done, writer) = (Arc::clone(&is_safe), Arc::clone(core));
    let work = Box::new(move || match writer.storage.commit(changes) {
        Ok(()) => done.store(true, Ordering::Release),
        Err(error) => {
            writer.fail(&error);
        }
    });
    core.world.run_blocking(work).await;
    is_safe.load(Ordering::Acquire)
}
