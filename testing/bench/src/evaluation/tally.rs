//! The counts of a model run.

use hdrhistogram::Histogram;

/// The width of a time slice for commit counts, in microseconds.
pub const SLICE_US: u64 = 100_000;

/// The counts of a run.
#[derive(Clone, Debug)]
pub struct Tally {
    /// True if events are counted now; [`slices`](Self::slices) always counts.
    pub is_counted: bool,
    pub seconds: f64,
    /// The number of committed transactions.
    pub committed: u64,
    /// The number of those that ran as strong transactions.
    pub strong: u64,
    /// The number of strong transactions that were aborted and run again.
    pub aborted: u64,
    /// The number of calls that failed otherwise.
    pub failed: u64,
    /// The latency from the first try to the commit, in microseconds.
    pub latency_us: Histogram<u64>,
    pub causal_us: Histogram<u64>,
    /// The latency of strong transactions, by data center.
    pub strong_us: Vec<Histogram<u64>>,
    /// The time from the commit call of a strong transaction to its successful answer, by data
    /// center.
    pub commit_us: Vec<Histogram<u64>>,
    /// The busy time of each server.
    pub busy_ns: Vec<u64>,
    /// The real time of the handlers, where they are timed.
    pub handled_ns: u64,
    /// The commits of causal and of strong transactions, by slice of time since the clients began.
    pub slices: Vec<[u64; 2]>,
    /// The first commit among strong transactions that began after a data center was lost.
    pub first_strong_us: Option<u64>,
}

/// Creates a histogram from 1 µs to 100 s with three digits.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 100_000_000, 3).expect("these bounds are sound")
}

impl Tally {
    pub fn new(dcs: usize, servers: usize) -> Self {
        Self {
            is_counted: false,
            seconds: 0.0,
            committed: 0,
            strong: 0,
            aborted: 0,
            failed: 0,
            latency_us: histogram(),
            causal_us: histogram(),
            strong_us: vec![histogram(); dcs],
            commit_us: vec![histogram(); dcs],
            busy_ns: vec![0; servers],
            handled_ns: 0,
            slices: Vec::new(),
            first_strong_us: None,
        }
    }

    /// Returns the transactions per second.
    pub fn throughput(&self) -> f64 {
        self.committed as f64 / self.seconds
    }

    /// Returns the mean latency of all transactions, in milliseconds.
    pub fn latency_ms(&self) -> f64 {
        self.latency_us.mean() / 1e3
    }

    /// Returns the aborted share of the certified strong transactions, in percent.
    pub fn abort_percent(&self) -> f64 {
        self.aborted as f64 * 100.0 / (self.aborted + self.strong).max(1) as f64
    }

    /// Returns the fraction of the time that a server was busy.
    pub fn utilisation(&self, server: usize) -> f64 {
        self.busy_ns[server] as f64 / 1e9 / self.seconds
    }

    /// Returns the busiest server and its utilisation.
    pub fn busiest(&self) -> (usize, f64) {
        let all = (0..self.busy_ns.len()).map(|server| (server, self.utilisation(server)));
        all.fold((0, 0.0), |most, each| if each.1 > most.1 { each } else { most })
    }

    /// Returns the processor time of a transaction at all replicas, in microseconds of the model's
    /// cores.
    pub fn core_us(&self) -> f64 {
        self.busy_ns.iter().sum::<u64>() as f64 / 1e3 / self.committed.max(1) as f64
    }

    /// Returns the real handler time of a transaction at all replicas, in microseconds of this
    /// machine.
    pub fn handled_us(&self) -> f64 {
        self.handled_ns as f64 / 1e3 / self.committed.max(1) as f64
    }

    /// Extends the slices to this time: slices without commits count too.
    pub fn last_until(&mut self, since_start_us: u64) {
        let slices = since_start_us.div_ceil(SLICE_US) as usize;
        if self.slices.len() < slices {
            self.slices.resize(slices, [0; 2]);
        }
    }

    /// Records a committed transaction.
    pub fn on_committed(&mut self, since_start_us: u64, dc: u8, took: &Took) {
        let slice = (since_start_us / SLICE_US) as usize;
        if self.slices.len() <= slice {
            self.slices.resize(slice + 1, [0; 2]);
        }
        self.slices[slice][usize::from(took.commit_us.is_some())] += 1;
        if !self.is_counted {
            return;
        }
        self.committed += 1;
        self.latency_us.saturating_record(took.all_us);
        if let Some(commit_us) = took.commit_us {
            self.strong += 1;
            self.strong_us[usize::from(dc)].saturating_record(took.all_us);
            self.commit_us[usize::from(dc)].saturating_record(commit_us);
        } else {
            self.causal_us.saturating_record(took.all_us);
        }
    }
}

/// The latencies of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    pub all_us: u64,
    /// The latency of the successful commit, for a strong transaction.
    pub commit_us: Option<u64>,
}
