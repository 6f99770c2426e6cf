//! Group commit: one batch at a time per data center, written and synced by a separate thread.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{JoinHandle, Thread};

/// The bytes that the threads want written, with the last ticket of each.
#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    tickets: Vec<(usize, u64)>,
}

/// The log of one data center.
#[derive(Debug)]
pub struct Log {
    waiting: Mutex<Waiting>,
    bell: Condvar,
    is_over: AtomicBool,
    /// The ticket of each thread up to which everything is on disk.
    durable: Vec<AtomicU64>,
    /// The number of syncs.
    pub syncs: AtomicU64,
}

impl Log {
    pub fn new(threads: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            bell: Condvar::new(),
            is_over: AtomicBool::new(false),
            durable: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            syncs: AtomicU64::new(0),
        }
    }

    /// Hands over the bytes that `thread` wants written; empties `bytes`.
    pub fn write(&self, thread: usize, ticket: u64, bytes: &mut Vec<u8>) {
        let mut waiting = self.waiting.lock().expect("no thread panics");
        if waiting.bytes.is_empty() {
            std::mem::swap(&mut waiting.bytes, bytes);
        } else {
            waiting.bytes.append(bytes);
        }
        waiting.tickets.push((thread, ticket));
        self.bell.notify_one();
    }

    /// Returns the ticket up to which the data of `thread` is on disk.
    pub fn durable(&self, thread: usize) -> u64 {
        self.durable[thread].load(Ordering::Acquire)
    }

    /// Ends the writer.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        let _waiting = self.waiting.lock().expect("no thread panics");
        self.bell.notify_one();
    }

    /// Starts the writer; it wakes `threads` when their data is on disk.
    pub fn start(
        self: &Arc<Self>,
        path: &Path,
        threads: Arc<Vec<Thread>>,
    ) -> std::io::Result<JoinHandle<std::io::Result<()>>> {
        let (log, mut file) = (self.clone(), File::create(path)?);
        std::thread::Builder::new().name("log".into()).spawn(move || {
            let mut batch = Waiting::default();
            while log.take(&mut batch) {
                file.write_all(&batch.bytes)?;
                file.sync_data()?;
                log.syncs.fetch_add(1, Ordering::Relaxed);
                batch.bytes.clear();
                for (thread, ticket) in batch.tickets.drain(..) {
                    log.durable[thread].store(ticket, Ordering::Release);
                    threads[thread].unpark();
                }
            }
            Ok(())
        })
    }

    fn take(&self, batch: &mut Waiting) -> bool {
        let mut waiting = self.waiting.lock().expect("no thread panics");
        while waiting.tickets.is_empty() {
            if self.is_over.load(Ordering::Acquire) {
                return false;
            }
            waiting = self.bell.wait(waiting).expect("no thread panics");
        }
        std::mem::swap(&mut *waiting, batch);
        true
    }
}
