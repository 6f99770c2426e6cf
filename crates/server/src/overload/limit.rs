//! The limit on concurrent calls of one sort, computed from their durations. Pure: time is a
//! parameter.
//!
//! This is the gradient controller of Envoy's adaptive concurrency filter, as its documentation describes it ("Adaptive
//! Concurrency", sections "Calculating the minRTT" and "Updating the concurrency limit"):
//!
//! ```text
//! bound    = the longer of 1.25 * shortest and 20 ms
//! gradient = bound / median of the last window, within 0.5 and 2
//! limit    = limit * gradient + sqrt(limit)
//! ```
//!
//! While calls take as long as they do alone, the limit grows by its square root each window. Once
//! calls wait for each other, in a store, a pool or a lock, they take longer, and the limit falls.
//! With a store that runs `C` calls at a time the limit settles where `limit = 1.25 C +
//! sqrt(limit)`: little more than is needed to keep the store busy.
//!
//! The shortest time must be measured without other calls in the way. It is the median of a window
//! in which few calls ran. If the limit has been reached all the time, the limit is set to a
//! quarter for [`PROBE_CALLS`] calls every [`PROBE_EVERY`].
//!
//! Departures: a call shorter than [`QUICK`] never takes too long, because it waits for processors
//! more than for stores, unless conflicts made more than a quarter of the calls try again: then calls
//! hinder each other, however soon they end, and the limit does not grow by its square root. The limit grows only if at least half of it was in use; a
//! window is long enough for [`WINDOW_CALLS`] calls, so that slow calls count too; a failure that took
//! a shorter time than any call is ignored.

use std::time::Duration;

/// The shortest window.
pub const WINDOW: Duration = Duration::from_millis(100);

/// The minimum number of calls in a window.
pub const WINDOW_CALLS: usize = 8;

/// The maximum number of calls that are counted in a window.
const SAMPLES_MAX: usize = 1_000;

/// The interval at which the shortest time is measured again if the limit is always reached.
pub const PROBE_EVERY: Duration = Duration::from_secs(30);

/// The number of calls in such a measurement.
pub const PROBE_CALLS: usize = 16;

/// The longest duration of a call that never counts as too long.
pub const QUICK: Duration = Duration::from_millis(20);

/// If more than one of this many calls was tried again, quick calls count as too long, too.
const CONTENDED: usize = 4;

/// The smallest limit.
pub const LIMIT_MIN: usize = 3;

/// The limit before the first call has ended.
pub const LIMIT_FIRST: usize = 64;

/// The ending of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was done at the first try.
    Well,
    /// A store made it try again, or conflicts lasted until its deadline.
    Conflicted,
    Failed,
}

/// The limit and the measurements from which it is computed.
#[derive(Debug)]
pub struct Limit {
    calls: f64,
    most: usize,
    /// The duration of a call without other calls beside it, in seconds; none before the first
    /// window has ended.
    shortest: Option<f64>,
    /// The durations of the calls of this window, in seconds.
    samples: Vec<f64>,
    /// The number of calls of this window that were tried again.
    conflicted: usize,
    window_began: Duration,
    /// The maximum number of calls that ran at a time in this window.
    peak: usize,
    /// The time of the last measurement of the shortest time.
    measured: Duration,
    is_probing: bool,
}

impl Limit {
    /// Creates a limit of at most `most` calls.
    pub fn new(most: usize, now: Duration) -> Self {
        Self {
            calls: LIMIT_FIRST.min(most) as f64,
            most,
            shortest: None,
            samples: Vec::new(),
            conflicted: 0,
            window_began: now,
            peak: 0,
            measured: now,
            is_probing: false,
        }
    }

    /// Returns the number of calls that may run.
    pub fn get(&self) -> usize {
        let limit = if self.is_probing { self.calls / 4.0 } else { self.calls };
        (limit as usize).max(LIMIT_MIN).min(self.most)
    }

    /// Returns the duration of a call without other calls beside it, if it is known.
    #[cfg(test)]
    pub fn shortest(&self) -> Option<Duration> {
        self.shortest.map(Duration::from_secs_f64)
    }

    /// Records that `running` calls run now.
    pub fn runs(&mut self, running: usize) {
        self.peak = self.peak.max(running);
    }

    /// Records that a call has ended while `running` other calls were still running.
    pub fn ended(&mut self, now: Duration, took: Duration, ending: Ending, running: usize) {
        let took = took.as_secs_f64();
        if ending == Ending::Failed && self.shortest.is_none_or(|shortest| took <= shortest) {
            return;
        }
        if self.is_probing {
            self.probe(now, took, running);
            return;
        }
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(took);
            self.conflicted += usize::from(ending == Ending::Conflicted);
        }
        let is_over = now >= self.window_began.saturating_add(WINDOW);
        if is_over && self.samples.len() >= WINDOW_CALLS {
            self.end_window(now, running);
        }
    }

    fn probe(&mut self, now: Duration, took: f64, running: usize) {
        // Calls that began before the probe still delay each other.
        if self.samples.is_empty() && running >= self.get() {
            return;
        }
        self.samples.push(took);
        if self.samples.len() >= PROBE_CALLS {
            // The first half of the calls may have begun beside other calls, too.
            let shortest = median(&mut self.samples.split_off(PROBE_CALLS / 2));
            self.shortest = Some(shortest);
            self.is_probing = false;
            self.begin_window(now, running);
            self.measured = now;
        }
    }

    fn end_window(&mut self, now: Duration, running: usize) {
        let first = self.samples[0];
        let median = median(&mut self.samples);
        let few = self.peak * 4 <= self.get();
        let shortest = match self.shortest {
            // No call ran before the first call of all, so its duration counts too.
            None => first.min(median),
            Some(shortest) if few => shortest * 0.8 + median * 0.2,
            Some(shortest) => shortest.min(median),
        };
        self.shortest = Some(shortest);
        let is_contended = self.conflicted * CONTENDED > self.samples.len();
        let quick = if is_contended { 0.0 } else { QUICK.as_secs_f64() };
        let bound = (1.25 * shortest).max(quick);
        // Calls that do not take too long need no measurement.
        if few || median <= bound {
            self.measured = now;
        }
        let gradient = (bound / median.max(f64::EPSILON)).clamp(0.5, 2.0);
        let (least, most) = (LIMIT_MIN.min(self.most) as f64, self.most as f64);
        // More calls would only meet more conflicts.
        let growth = if is_contended { 0.0 } else { self.calls.sqrt() };
        let next = (self.calls * gradient + growth).clamp(least, most);
        if next < self.calls || self.peak * 2 >= self.get() {
            self.calls = next;
        }
        self.is_probing = now >= self.measured.saturating_add(PROBE_EVERY);
        self.begin_window(now, running);
    }

    fn begin_window(&mut self, now: Duration, running: usize) {
        self.samples.clear();
        self.conflicted = 0;
        (self.window_began, self.peak) = (now, running);
    }
}

fn median(samples: &mut [f64]) -> f64 {
    let middle = samples.len() / 2;
    *samples.select_nth_unstable_by(middle, f64::total_cmp).1
}
