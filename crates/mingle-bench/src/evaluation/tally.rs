//! What a run of the model counted.

use hdrhistogram::Histogram;

/// How finely commits are counted over time, in microseconds.
pub const SLICE_US: u64 = 100_000;

/// What was counted.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Whether what happens now counts, but for [`slices`](Self::slices).
    pub is_counted: bool,
    pub seconds: f64,
    /// Transactions that committed.
    pub committed: u64,
    /// Those of them that ran as strong ones.
    pub strong: u64,
    /// Strong ones that were aborted, and run again.
    pub aborted: u64,
    /// Calls that failed otherwise.
    pub failed: u64,
    /// How long transactions took, from the first try to the commit, in microseconds.
    pub latency_us: Histogram<u64>,
    pub causal_us: Histogram<u64>,
    /// By data center, of strong ones.
    pub strong_us: Vec<Histogram<u64>>,
    /// By data center: from the call of commit of a strong one to its answer, where it committed.
    pub commit_us: Vec<Histogram<u64>>,
    /// By server: how long it was busy.
    pub busy_ns: Vec<u64>,
    /// How long handlers really took, where they are timed.
    pub handled_ns: u64,
    /// By slice of time since clients began: commits of causal and of strong transactions.
    pub slices: Vec<[u64; 2]>,
    /// Of strong transactions that began after a data center was lost, when the first committed.
    pub first_strong_us: Option<u64>,
}

/// From 1 µs to 100 s with three digits.
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

    /// Transactions a second.
    pub fn throughput(&self) -> f64 {
        self.committed as f64 / self.seconds
    }

    /// In milliseconds, the mean of all.
    pub fn latency_ms(&self) -> f64 {
        self.latency_us.mean() / 1e3
    }

    /// Of strong transactions that were certified, those that were aborted, in percent.
    pub fn abort_percent(&self) -> f64 {
        self.aborted as f64 * 100.0 / (self.aborted + self.strong).max(1) as f64
    }

    /// The part of the time that a server was busy.
    pub fn utilisation(&self, server: usize) -> f64 {
        self.busy_ns[server] as f64 / 1e9 / self.seconds
    }

    /// That of the busiest.
    pub fn busiest(&self) -> (usize, f64) {
        let all = (0..self.busy_ns.len()).map(|server| (server, self.utilisation(server)));
        all.fold((0, 0.0), |most, each| if each.1 > most.1 { each } else { most })
    }

    /// Processor time of a transaction at all replicas, in microseconds, on the model's cores.
    pub fn core_us(&self) -> f64 {
        self.busy_ns.iter().sum::<u64>() as f64 / 1e3 / self.committed.max(1) as f64
    }

    /// What handlers really took for a transaction at all replicas, in microseconds of this machine.
    pub fn handled_us(&self) -> f64 {
        self.handled_ns as f64 / 1e3 / self.committed.max(1) as f64
    }

    /// Up to there nothing else committed, which counts too.
    pub fn last_until(&mut self, since_start_us: u64) {
        let slices = since_start_us.div_ceil(SLICE_US) as usize;
        if self.slices.len() < slices {
            self.slices.resize(slices, [0; 2]);
        }
    }

    /// Notes a transaction that committed.
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

/// How long a transaction took.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    pub all_us: u64,
    /// Of a strong one, the commit that succeeded.
    pub commit_us: Option<u64>,
}
