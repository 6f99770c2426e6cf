//! Logs of replicas in a folder.
//!
//! Records that replicas want written wait here. A task writes all of them in one commit of the
//! storage and then reports that. A log that has grown to several times the size of the replica's
//! state is written anew, in the commit that removes the old log. Records of vectors alone wait
//! until another record is written: a replica that lost its vectors still has the transactions they
//! describe, and computes the vectors again.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;

use mingle_geo::wire::{put_record, take_record};
use mingle_geo::{DcId, Envelope, PartitionId, Persist, Record};

use super::driver::Signal;
use super::net::{Inner, Net};
use crate::core::Core;
use crate::storage::{Changes, Direction, StorageError, View};

/// Maximal size of a row, in bytes; a longer record takes several rows.
const ROW_BYTES_MAX: usize = 1 << 20;

/// A log smaller than this, in bytes, is not written anew.
const REWRITE_BYTES_MIN: usize = 4 << 20;

/// A log is not written anew before it has grown by this factor since the last time.
const REWRITE_GROWTH: usize = 3;

/// A data center and a partition, which identify a replica and its log.
pub type Place = (DcId, PartitionId);

/// The records that wait to be written, and the state of each log.
pub struct Disk {
    /// Wakes the writer when there are records to write.
    pub signal: Arc<Signal>,
    waiting: Vec<(Place, u32, Persist)>,
    /// The records that are being written now.
    writing: Vec<Written>,
    /// The newest vectors of each replica that are not written.
    unwritten: BTreeMap<Place, Record>,
    logs: BTreeMap<Place, Log>,
    /// Data centers that start anew: each of their logs is replaced by one record.
    renewed: Vec<Renewed>,
    /// Numbers of writes: queued so far, of these taken by the writer, and of these finished.
    pushed: u64,
    taken: u64,
    done: u64,
}

/// A data center that starts anew.
struct Renewed {
    dc: DcId,
    incarnation: u32,
    record: Record,
}

/// The contents of a log: records in their order, or the reason why the log cannot be used.
pub type Loaded = Result<Vec<Record>, String>;

/// A finished write, and the messages to send after it.
pub struct Written {
    /// The replica that wrote it.
    pub place: Place,
    /// The incarnation of the replica's data center.
    pub incarnation: u32,
    /// The index of the written records.
    pub index: u64,
    /// The messages to send.
    pub then: Vec<Envelope>,
}

/// One log: rows with numbers from `first` on and below `next`.
#[derive(Clone, Copy, Debug, Default)]
struct Log {
    first: u64,
    next: u64,
    bytes: usize,
    /// Size in bytes when it was last written anew.
    base: usize,
}

impl Log {
    fn is_long(&self) -> bool {
        self.bytes > REWRITE_BYTES_MIN.max(self.base * REWRITE_GROWTH)
    }

    fn append(&mut self, place: Place, record: &Record, changes: &mut Changes) {
        let mut bytes = Vec::new();
        put_record(&mut bytes, record);
        self.bytes += bytes.len();
        let mut chunks = bytes.chunks(ROW_BYTES_MAX).peekable();
        while let Some(chunk) = chunks.next() {
            // The first byte says if the record continues in the next row.
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

/// Returns the key of the row that counts how often a data center started anew.
fn incarnation_key(dc: DcId) -> Vec<u8> {
    vec![b'n', dc.0]
}

fn key(place: Place, number: u64) -> Vec<u8> {
    let mut key = prefix(place);
    key.extend(number.to_be_bytes());
    key
}

impl Disk {
    /// Creates the state without any log; [`Disk::load`] adds logs.
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

    /// True if there is any log.
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

    /// Returns how often a data center started anew.
    ///
    /// # Errors
    ///
    /// When the disk fails, or the row was not written by this engine.
    pub fn incarnation(dc: DcId, view: &dyn View) -> Result<u32, StorageError> {
        let Some(row) = view.get(&incarnation_key(dc))? else { return Ok(0) };
        let bytes = (*row).try_into().map_err(|_| StorageError::new("a row of another version"))?;
        Ok(u32::from_be_bytes(bytes))
    }

    /// Reads the log of a replica.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn load(&mut self, place: Place, view: &dyn View) -> Result<Loaded, StorageError> {
        let prefix = prefix(place);
        let (mut records, mut bytes) = (Vec::new(), Vec::new());
        let mut log = Log::default();
        let (mut broken, mut count) = (None, 0);
        view.scan(&prefix, None, Direction::Forward, &mut |key, row| {
            count += 1;
            let number = key.last_chunk().map_or(0, |number| u64::from_be_bytes(*number));
            if log.next == 0 {
                log.first = number;
            }
            log.next = number + 1;
            let Some((goes_on, rest)) = row.split_first().filter(|_| broken.is_none()) else {
                // Visit all rows: replacing the log must remove every one.
                broken.get_or_insert_with(|| "a row is empty".to_owned());
                return true;
            };
            bytes.extend_from_slice(rest);
            log.bytes += rest.len();
            if *goes_on == 0 {
                match take_record(&bytes) {
                    Ok(record) => records.push(record),
                    Err(error) => broken = Some(error.to_string()),
                }
                bytes.clear();
            }
            true
        })?;
        log.base = log.bytes;
        let rows = log.next - log.first;
        self.logs.insert(place, log);
        // A missing row in the middle may have been a whole record.
        if !bytes.is_empty() || rows != count {
            broken.get_or_insert_with(|| format!("it has {count} of {rows} rows"));
        }
        if let Some(why) = broken {
            let partition = place.1.0;
            return Ok(Err(format!(
                "the log of its partition {partition} is corrupt, or of another version of this \
                 engine: {why}"
            )));
        }
        Ok(Ok(records))
    }

    /// Starts a data center anew: each of its logs is replaced by this record. Records that its
    /// replicas still wanted written are dropped.
    pub fn renew(&mut self, dc: DcId, incarnation: u32, record: Record) {
        self.waiting.retain(|(place, ..)| place.0 != dc);
        self.unwritten.retain(|place, _| place.0 != dc);
        self.renewed.push(Renewed { dc, incarnation, record });
        self.pushed += 1;
        self.signal.raise();
    }

    /// Returns the number of writes queued so far, and of these the finished ones.
    pub fn progress(&self) -> (u64, u64) {
        (self.pushed, self.done)
    }

    /// Queues records that a replica wants written; returns them if they need not be written.
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

    /// Takes the changes to write now; `checkpoint` returns records that restore a replica to its
    /// current state. None if there is nothing to write.
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
                // The checkpoint contains all records that still wait.
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

    /// Returns the approximate size of the logs in bytes.
    pub fn bytes(&self) -> usize {
        self.logs.values().map(|log| log.bytes).sum()
    }

    /// Takes the writes that have just finished.
    fn written(&mut self) -> Vec<Written> {
        self.done = self.taken;
        std::mem::take(&mut self.writing)
    }
}

/// Starts the writer, which runs until the store is dropped.
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

/// Commits the changes; returns true if they are on the disk.
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
