//! Interleaved rounds of cases.

use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};

use super::Options;
use super::hub::Span;
use super::job::{Answered, Workload};
use super::site::{Plan, Reading, Site};
use crate::rounds::Rounds;

/// A system under a workload.
#[derive(Clone)]
pub struct Case {
    pub name: String,
    pub plan: Plan,
    pub workload: Arc<dyn Workload>,
}

/// The latencies of a kind of calls at the quantiles of the thesis, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latency {
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub count: u64,
}

/// The figures of a case in one round.
#[derive(Clone, Debug)]
pub struct Sample {
    pub calls_per_s: f64,
    pub keys_per_s: f64,
    pub columns_per_s: f64,
    /// The processor time of a call with all that it causes, in microseconds.
    pub cpu_us: f64,
    pub capacity: f64,
    pub deps: f64,
    /// The bytes of a call between client and servers, within a data center, and between data centers.
    pub bytes: [f64; 3],
    latencies: [Latency; Answered::COUNT],
}

impl Sample {
    fn new(reading: &Reading) -> Self {
        let latencies = [
            Answered::Read,
            Answered::TwoRounds,
            Answered::Indirected,
            Answered::Write,
            Answered::Atomic,
        ];
        let latency = |kind| {
            let all = reading.tally.of(kind);
            let at = |quantile| all.value_at_quantile(quantile) as f64 / 1e3;
            let (p50, p90, p95, p99, p999) = (at(0.5), at(0.9), at(0.95), at(0.99), at(0.999));
            Latency { p50, p90, p95, p99, p999, count: all.len() }
        };
        Self {
            calls_per_s: reading.throughput(),
            keys_per_s: reading.tally.keys as f64 / reading.seconds,
            columns_per_s: reading.tally.columns as f64 / reading.seconds,
            cpu_us: reading.cpu_us(),
            capacity: reading.capacity(),
            deps: reading.deps(),
            bytes: [Span::Client, Span::Near, Span::Far].map(|span| reading.bytes_per_call(span)),
            latencies: latencies.map(latency),
        }
    }

    /// Returns the latencies of a kind of calls.
    pub fn latency(&self, kind: Answered) -> &Latency {
        &self.latencies[kind as usize]
    }
}

/// The figures of a case in all rounds.
#[derive(Clone, Debug, Default)]
pub struct Samples(pub Vec<Sample>);

impl Samples {
    /// Returns a figure by round.
    pub fn rounds(&self, of: impl Fn(&Sample) -> f64) -> Rounds {
        let mut rounds = Rounds::default();
        self.0.iter().for_each(|sample| rounds.push(of(sample)));
        rounds
    }

    /// Returns a latency by round, of rounds that have calls of this kind, in microseconds.
    pub fn latency(&self, kind: Answered, of: impl Fn(&Latency) -> f64) -> Rounds {
        let mut rounds = Rounds::default();
        let latencies = self.0.iter().map(|sample| sample.latency(kind));
        latencies.filter(|one| one.count > 0).for_each(|one| rounds.push(of(one)));
        rounds
    }

    /// Returns the processor time of a call, by round.
    pub fn cpu_us(&self) -> Rounds {
        self.rounds(|sample| sample.cpu_us)
    }

    /// Returns the fraction of its calls that a system loses against a baseline with the same
    /// processor time, by round.
    pub fn overhead(&self, baseline: &Self) -> Rounds {
        baseline.cpu_us().by(&self.cpu_us()).map(|ratio| 1.0 - ratio)
    }
}

/// Runs all cases in each round, forwards and backwards in turn; returns the figures of each. In the first
/// round both data centers must have the same contents in the end.
///
/// # Errors
///
/// If a system fails, or its data centers do not agree.
pub fn measure(title: &str, cases: &[Case], options: &Options) -> Result<Vec<Samples>, String> {
    let progress = ProgressBar::new((options.rounds * cases.len()) as u64);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {eta} {msg}");
    progress.set_style(style.map_err(|error| error.to_string())?);
    let mut samples = vec![Samples::default(); cases.len()];
    for round in 0..options.rounds {
        let mut order: Vec<usize> = (0..cases.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let Case { name, plan, workload } = &cases[index];
            progress.set_message(format!("{title}: {name}"));
            let seed = options.seed.wrapping_add(round as u64);
            let site = Site::start(&Plan { seed, ..*plan }, workload)?;
            let mut reading = site.count(options.warm_up(), options.time());
            if round == 0 {
                // Reading all contents takes longer than a measurement.
                reading = reading.and_then(|reading| site.settle().map(|_| reading));
            }
            site.end();
            let reading = reading.map_err(|why| format!("{title}: {name}, seed {seed}: {why}"))?;
            samples[index].0.push(Sample::new(&reading));
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    Ok(samples)
}
