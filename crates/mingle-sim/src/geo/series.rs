//! Seed after seed, on several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::{Flaw, Plan, Verdict, judged};
use crate::workload::promises::Broken;

/// Which seeds are run.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// The first.
    pub first: u64,
    /// How many, instead of a time.
    pub count: Option<u64>,
    /// Until when.
    pub until: Instant,
    /// On how many threads.
    pub jobs: usize,
    /// How long plans are, in percent of the usual.
    pub percent: usize,
    /// What is planted, if anything is.
    pub flaw: Option<Flaw>,
}

/// How a series ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// How many seeds were run.
    pub seeds: u64,
    /// All verdicts, added.
    pub sum: Verdict,
    /// The first seed that failed, with how it did.
    pub broken: Option<(u64, Broken)>,
}

impl Series {
    /// Runs seeds until one fails, or the series is over. On several threads, of two seeds that fail
    /// the lower one is told, whichever came first.
    pub fn run(&self) -> Ended {
        let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let ended = Mutex::new(Ended::default());
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| self.work(&next, &is_over, &ended));
            }
        });
        ended.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, next: &AtomicU64, is_over: &AtomicBool, ended: &Mutex<Ended>) {
        while !is_over.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let is_due = match self.count {
                Some(count) => index < count,
                None => Instant::now() < self.until,
            };
            if !is_due {
                return;
            }
            let seed = self.first + index;
            let judged = judged(&Plan::scaled(seed, self.percent).with(self.flaw));
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.seeds += 1;
            match judged {
                Ok(verdict) => ended.sum.add(verdict),
                Err(broken) => {
                    is_over.store(true, Ordering::Relaxed);
                    if ended.broken.as_ref().is_none_or(|(first, _)| seed < *first) {
                        ended.broken = Some((seed, broken));
                    }
                }
            }
        }
    }
}

impl Verdict {
    /// Adds what another run came to.
    pub fn add(&mut self, other: Self) {
        for (name, count) in other.covered {
            *self.covered.entry(name).or_default() += count;
        }
        self.committed += other.committed;
        self.read += other.read;
        self.faults += other.faults;
        self.events += other.events;
    }

    /// What was never reached.
    pub fn missed(&self) -> BTreeMap<&str, u64> {
        let missed = self.covered.iter().filter(|(_, count)| **count == 0);
        missed.map(|(name, count)| (name.as_str(), *count)).collect()
    }
}
