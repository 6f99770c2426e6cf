//! The work of clients: jobs that a workload draws, and their tally.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use mingle_model::random::Random;

/// A row of a job, or of the initial contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub key: u32,
    /// The number of its columns, whose names are 1 to this. Systems without columns have one.
    pub columns: u32,
    /// The size of each value in bytes.
    pub bytes: usize,
}

/// The kind of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads the rows together, as consistently as the system does.
    Read,
    /// Writes the rows; where the system can, each one by itself.
    Write,
    /// Writes the rows in one transaction, where the system has transactions.
    Atomic,
}

/// A call of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub kind: Kind,
    pub rows: Vec<Row>,
}

/// A source of jobs.
pub trait Workload: Send + Sync {
    /// Returns the initial contents.
    fn rows(&self) -> Vec<Row>;

    /// Draws the next job of an actor.
    fn draw(&self, actor: usize, random: &mut Random) -> Job;
}

/// The kind of an answered call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answered {
    /// A read of one round.
    Read,
    /// A read of two rounds.
    TwoRounds,
    /// A read of two rounds, during which a server asked a coordinator.
    Indirected,
    /// A write.
    Write,
    /// A write of several rows in one transaction.
    Atomic,
}

impl Answered {
    pub const COUNT: usize = 5;
}

/// The answered calls of a client while they count.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The latencies in nanoseconds, by [`Answered`].
    pub latencies_ns: Vec<Histogram<u64>>,
    pub keys: u64,
    pub columns: u64,
    /// The calls that failed, and one reason.
    pub failed: u64,
    pub why: Option<String>,
}

impl Default for Tally {
    fn default() -> Self {
        // From 1 ns to 100 s with three digits.
        let histogram = || Histogram::new_with_bounds(1, 100_000_000_000, 3);
        let latencies_ns =
            (0..Answered::COUNT).map(|_| histogram().expect("these bounds are sound")).collect();
        Self { latencies_ns, keys: 0, columns: 0, failed: 0, why: None }
    }
}

impl Tally {
    /// Returns the latencies of a kind.
    pub fn of(&self, kind: Answered) -> &Histogram<u64> {
        &self.latencies_ns[kind as usize]
    }

    /// Returns the number of calls.
    pub fn calls(&self) -> u64 {
        self.latencies_ns.iter().map(Histogram::len).sum()
    }

    /// Adds a call.
    pub fn record(&mut self, kind: Answered, took: Duration, (keys, columns): (u64, u64)) {
        self.latencies_ns[kind as usize].saturating_record(took.as_nanos() as u64);
        self.keys += keys;
        self.columns += columns;
    }
}

/// The state that a measurement shares with its clients and servers.
#[derive(Debug, Default)]
pub struct Control {
    /// True if clients begin calls.
    pub runs: AtomicBool,
    /// True if calls count.
    pub is_counted: AtomicBool,
    /// The number of calls that run.
    pub running: AtomicU64,
    /// The number of questions to coordinators so far.
    pub indirections: AtomicU64,
    /// The dependencies in the writes that servers have sent to other data centers, and these writes.
    pub deps: AtomicU64,
    pub replicated: AtomicU64,
    tally: Mutex<Tally>,
}

impl Control {
    /// Returns the tally of all clients.
    pub fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
