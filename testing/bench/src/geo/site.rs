//! The data centers of one block: the threads, their shared state, and the readings.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mingle_geo::session::Floor;
use mingle_geo::{Address, Envelope, Key, State};

use super::client::Probe;
use super::disk::Log;
use super::plan::{Disk, Plan};
use super::worker::Worker;
use crate::cpu;

/// Messages with their senders.
pub type Parcel = Vec<(Address, Envelope)>;

/// The state shared by all threads.
#[derive(Debug)]
pub struct Shared {
    pub plan: Plan,
    pub started: Instant,
    /// The time added to all clocks.
    pub ahead_us: AtomicU64,
    pub is_over: AtomicBool,
    /// True if latencies and delays are recorded, which is not the case during the warm-up.
    pub is_counted: AtomicBool,
    /// The flags of each data center: it runs, and its clients run.
    pub runs: Vec<AtomicBool>,
    pub has_clients: Vec<AtomicBool>,
    /// The time until which each data center's replicas tick as if all had work, in µs.
    pub busy_until_us: Vec<AtomicU64>,
    pub inboxes: Vec<Mutex<Parcel>>,
    /// The acknowledged writes of each data center.
    pub floors: Vec<Mutex<Floor>>,
    pub threads: OnceLock<Arc<Vec<Thread>>>,
    pub counts: Vec<Counts>,
    /// The log of each data center.
    pub logs: Vec<Arc<Log>>,
    pub probes: Vec<Arc<Probe>>,
    pub keys: Arc<Vec<Key>>,
    /// The initial contents of all replicas, by partition.
    pub filling: Vec<Vec<(Key, Arc<State>)>>,
}

impl Shared {
    /// Returns what a data center has acknowledged.
    pub fn floor(&self, dc: usize) -> MutexGuard<'_, Floor> {
        self.floors[dc].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counts of a thread so far; only that thread writes them.
#[derive(Debug, Default)]
pub struct Counts {
    /// The transactions of each data center.
    pub transactions: [AtomicU64; 7],
    pub writes: AtomicU64,
    pub failed: AtomicU64,
    pub reads: AtomicU64,
    pub waited: AtomicU64,
    pub refused: AtomicU64,
    pub alarms: AtomicU64,
    pub link_bytes: AtomicU64,
    pub link_frames: AtomicU64,
    pub log_bytes: AtomicU64,
    /// The number of clients that are not stopped.
    pub running: AtomicU64,
    /// The completed state transfers of each data center.
    pub transfers: [AtomicU64; 7],
    /// The time up to which the thread's replicas at each data center know the others, in
    /// microseconds since the clocks began.
    pub known_us: [AtomicU64; 7],
}

/// The counts of a block between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// The transactions of each data center.
    pub transactions: [u64; 7],
    pub writes: u64,
    pub failed: u64,
    pub reads: u64,
    pub waited: u64,
    pub refused: u64,
    pub alarms: u64,
    pub link_bytes: u64,
    pub link_frames: u64,
    pub log_bytes: u64,
    pub syncs: u64,
}

impl Reading {
    /// Returns the difference between this reading and an earlier one.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            seconds: self.seconds - earlier.seconds,
            cpu_seconds: self.cpu_seconds - earlier.cpu_seconds,
            transactions: std::array::from_fn(|dc| {
                self.transactions[dc] - earlier.transactions[dc]
            }),
            writes: self.writes - earlier.writes,
            failed: self.failed - earlier.failed,
            reads: self.reads - earlier.reads,
            waited: self.waited - earlier.waited,
            refused: self.refused - earlier.refused,
            alarms: self.alarms - earlier.alarms,
            link_bytes: self.link_bytes - earlier.link_bytes,
            link_frames: self.link_frames - earlier.link_frames,
            log_bytes: self.log_bytes - earlier.log_bytes,
            syncs: self.syncs - earlier.syncs,
        }
    }

    /// Returns the sum of both.
    pub fn and(&self, other: &Self) -> Self {
        Self {
            seconds: self.seconds + other.seconds,
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            transactions: std::array::from_fn(|dc| self.transactions[dc] + other.transactions[dc]),
            writes: self.writes + other.writes,
            failed: self.failed + other.failed,
            reads: self.reads + other.reads,
            waited: self.waited + other.waited,
            refused: self.refused + other.refused,
            alarms: self.alarms + other.alarms,
            link_bytes: self.link_bytes + other.link_bytes,
            link_frames: self.link_frames + other.link_frames,
            log_bytes: self.log_bytes + other.log_bytes,
            syncs: self.syncs + other.syncs,
        }
    }

    /// Returns all transactions.
    pub fn total(&self) -> u64 {
        self.transactions.iter().sum()
    }

    /// Returns the transactions per second.
    pub fn throughput(&self) -> f64 {
        self.total() as f64 / self.seconds
    }

    /// Returns the processor time per transaction in microseconds, for the whole process.
    pub fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.total().max(1) as f64
    }
}

/// The running data centers.
pub struct Site {
    pub shared: Arc<Shared>,
    workers: Vec<JoinHandle<Worker>>,
    logs: Vec<JoinHandle<std::io::Result<()>>>,
    paths: Vec<PathBuf>,
}

/// The results at the end of a block.
pub struct Rest {
    /// The visibility delays of writes at the first data center, by data center, in nanoseconds.
    pub delays_ns: Vec<Histogram<u64>>,
    /// The latencies of transactions, in microseconds.
    pub latencies_us: Histogram<u64>,
    workers: Vec<Worker>,
}

impl Rest {
    /// Returns the number of items that differ between data centers.
    pub fn differing(&self) -> usize {
        self.workers.iter().map(Worker::differing).sum()
    }
}

/// The time limit until all finished work has reached every data center.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until `is_over`; after the limit it fails with a text that contains `what`.
fn wait(began: Instant, what: &str, is_over: impl Fn() -> bool) -> Result<(), String> {
    while !is_over() {
        if began.elapsed() > PATIENCE {
            return Err(format!("{what} {PATIENCE:?} after the clients were stopped"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Creates a histogram from 1 to 100 s, in microseconds or nanoseconds, with three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("these bounds are sound")
}

impl Site {
    /// Starts the data centers; clients start on request.
    pub fn start(plan: &Plan) -> Result<Self, String> {
        let keys: Vec<Key> = (0..plan.keys).map(|index| plan.key(index)).collect();
        let dcs = usize::from(plan.dcs);
        let flags = |is: bool| (0..dcs).map(|_| AtomicBool::new(is)).collect();
        let shared = Arc::new(Shared {
            plan: plan.clone(),
            started: Instant::now(),
            ahead_us: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            is_counted: AtomicBool::new(false),
            runs: flags(true),
            has_clients: flags(false),
            busy_until_us: (0..dcs).map(|_| AtomicU64::new(0)).collect(),
            inboxes: (0..plan.threads).map(|_| Mutex::default()).collect(),
            floors: (0..dcs).map(|_| Mutex::default()).collect(),
            threads: OnceLock::new(),
            counts: (0..plan.threads).map(|_| Counts::default()).collect(),
            logs: (0..dcs).map(|_| Arc::new(Log::new(plan.threads))).collect(),
            probes: (0..plan.probes).map(|i| Arc::new(Probe::new(i, plan.dcs))).collect(),
            filling: plan.filling(&keys),
            keys: Arc::new(keys),
        });
        let mut workers = Vec::new();
        for index in 0..plan.threads {
            let worker = Worker::new(shared.clone(), index)?;
            let builder = std::thread::Builder::new().name(format!("worker{index}"));
            let spawned = builder.spawn(move || worker.run());
            workers.push(spawned.map_err(|error| error.to_string())?);
        }
        let threads: Vec<Thread> = workers.iter().map(|worker| worker.thread().clone()).collect();
        let threads = Arc::new(threads);
        let (mut logs, mut paths) = (Vec::new(), Vec::new());
        if plan.disk == Disk::File {
            for (dc, log) in shared.logs.iter().enumerate() {
                let name = format!("mingle-geo-{}-{dc}.log", std::process::id());
                let path = plan.logs.join(name);
                let started = log.start(&path, threads.clone());
                logs.push(started.map_err(|error| format!("{}: {error}", path.display()))?);
                paths.push(path);
            }
        }
        shared.threads.set(threads).expect("it is set once");
        Ok(Self { shared, workers, logs, paths })
    }

    /// Starts the clients of a data center, or stops them after their transactions.
    pub fn let_clients(&self, dc: u8, run: bool) {
        self.shared.has_clients[usize::from(dc)].store(run, Ordering::Relaxed);
    }

    /// Starts all clients.
    pub fn let_all_clients(&self) {
        (0..self.shared.plan.dcs).for_each(|dc| self.let_clients(dc, true));
    }

    /// Stops all clients after their transactions.
    pub fn stop_clients(&self) {
        (0..self.shared.plan.dcs).for_each(|dc| self.let_clients(dc, false));
    }

    /// Cuts off and stops a data center, or lets it continue.
    pub fn let_run(&self, dc: u8, run: bool) {
        self.shared.runs[usize::from(dc)].store(run, Ordering::Release);
    }

    /// Reads all counters.
    pub fn read(&self) -> Reading {
        let mut reading = Reading {
            seconds: self.shared.started.elapsed().as_secs_f64(),
            cpu_seconds: cpu::used(),
            ..Reading::default()
        };
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        for counts in &self.shared.counts {
            for (sum, count) in reading.transactions.iter_mut().zip(&counts.transactions) {
                *sum += of(count);
            }
            reading.writes += of(&counts.writes);
            reading.failed += of(&counts.failed);
            reading.reads += of(&counts.reads);
            reading.waited += of(&counts.waited);
            reading.refused += of(&counts.refused);
            reading.alarms += of(&counts.alarms);
            reading.link_bytes += of(&counts.link_bytes);
            reading.link_frames += of(&counts.link_frames);
            reading.log_bytes += of(&counts.log_bytes);
        }
        reading.syncs = self.shared.logs.iter().map(|log| of(&log.syncs)).sum();
        reading
    }

    /// Stops all clients, and waits until their work has reached every data center.
    pub fn settle(&self) -> Result<(), String> {
        let began = Instant::now();
        self.stop_clients();
        wait(began, "clients go on", || {
            let running = self.shared.counts.iter();
            running.map(|counts| counts.running.load(Ordering::Acquire)).sum::<u64>() == 0
        })?;
        // Clocks may be slightly ahead of real time.
        let stopped = Instant::now() + Duration::from_millis(20);
        wait(began, "something is not everywhere", || {
            (0..self.shared.plan.dcs).all(|dc| self.lag(dc) < stopped.elapsed())
        })
    }

    /// Returns the lag of a data center's worst replica behind the others.
    pub fn lag(&self, dc: u8) -> Duration {
        let counts = self.shared.counts.iter();
        let known_us =
            counts.map(|counts| counts.known_us[usize::from(dc)].load(Ordering::Relaxed));
        let ahead_us = self.shared.ahead_us.load(Ordering::Relaxed);
        let now_us = self.shared.started.elapsed().as_micros() as u64 + ahead_us;
        Duration::from_micros(now_us.saturating_sub(known_us.min().unwrap_or(0)))
    }

    /// Returns the number of completed state transfers to a data center.
    pub fn transfers(&self, dc: u8) -> u64 {
        let counts = self.shared.counts.iter();
        counts.map(|counts| counts.transfers[usize::from(dc)].load(Ordering::Relaxed)).sum()
    }

    /// Advances all clocks by a jump.
    pub fn jump(&self, by: Duration) {
        self.shared.ahead_us.fetch_add(by.as_micros() as u64, Ordering::Relaxed);
    }

    /// Returns the counts of the next `time`.
    pub fn count(&self, time: Duration) -> Reading {
        let before = self.read();
        self.shared.is_counted.store(true, Ordering::Relaxed);
        std::thread::sleep(time);
        self.read().since(&before)
    }

    /// Stops everything.
    pub fn end(self) -> Result<Rest, String> {
        self.shared.is_over.store(true, Ordering::Release);
        for thread in self.shared.threads.get().expect("it was set").iter() {
            thread.unpark();
        }
        let mut delays_ns: Vec<_> = (0..self.shared.plan.dcs).map(|_| histogram()).collect();
        let mut latencies_us = histogram();
        let mut workers = Vec::new();
        for worker in self.workers {
            let worker = worker.join().map_err(|_| "a thread of the benchmark panicked")?;
            worker.collect(&mut delays_ns, &mut latencies_us);
            workers.push(worker);
        }
        for log in &self.shared.logs {
            log.end();
        }
        for log in self.logs {
            let written = log.join().map_err(|_| "a log's thread panicked")?;
            written.map_err(|error| error.to_string())?;
        }
        for path in &self.paths {
            std::fs::remove_file(path).map_err(|error| error.to_string())?;
        }
        Ok(Rest { delays_ns, latencies_us, workers })
    }
}
