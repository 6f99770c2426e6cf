//! The measurements of a Message Groups load.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::groups::MIX;

/// The calls, by transaction of the mix.
#[derive(Clone)]
pub struct Measured {
    /// The latencies in µs.
    latencies: Vec<Histogram<u64>>,
    /// The number of failed calls.
    pub failed: u64,
    /// The reason of the first failure.
    pub why: Option<String>,
    /// The number of attempts after the first.
    pub again: u64,
    /// The duration in seconds.
    pub seconds: f64,
}

impl Measured {
    pub fn new() -> Result<Self, String> {
        // From 1 µs to 10 minutes with three digits.
        let histogram = || Histogram::new_with_bounds(1, 600_000_000, 3);
        let latencies: Result<_, _> = MIX.iter().map(|_| histogram()).collect();
        Ok(Self {
            latencies: latencies.map_err(|error| error.to_string())?,
            failed: 0,
            why: None,
            again: 0,
            seconds: 0.0,
        })
    }

    /// Records a successful call.
    pub fn record(&mut self, transaction: usize, latency: Duration) {
        self.latencies[transaction].saturating_record(latency.as_micros() as u64);
    }

    /// Adds the calls and the time of another measurement.
    pub fn add(&mut self, other: &Self) -> Result<(), String> {
        for (all, one) in self.latencies.iter_mut().zip(&other.latencies) {
            all.add(one).map_err(|error| error.to_string())?;
        }
        self.failed += other.failed;
        self.again += other.again;
        self.why = self.why.take().or_else(|| other.why.clone());
        self.seconds += other.seconds;
        Ok(())
    }

    /// Returns the transactions per second.
    pub fn throughput(&self) -> f64 {
        self.latencies.iter().map(Histogram::len).sum::<u64>() as f64 / self.seconds
    }

    /// Returns the calls of each transaction.
    pub fn counts(&self) -> Vec<u64> {
        self.latencies.iter().map(Histogram::len).collect()
    }

    /// Returns the mean latency of all calls, in ms.
    pub fn mean_ms(&self) -> f64 {
        let sum: f64 =
            self.latencies.iter().map(|latency| latency.mean() * latency.len() as f64).sum();
        sum / 1e3 / self.counts().iter().sum::<u64>().max(1) as f64
    }

    /// Returns the attempts after the first, per 1,000 calls.
    #[cfg_attr(not(feature = "benchmarks"), allow(dead_code, reason = "benchmarks use it"))]
    pub fn again_per_thousand(&self) -> f64 {
        self.again as f64 * 1e3 / self.counts().iter().sum::<u64>().max(1) as f64
    }

    /// Returns a quantile of one transaction's latency, in ms.
    pub fn quantile_ms(&self, transaction: usize, quantile: f64) -> f64 {
        self.latencies[transaction].value_at_quantile(quantile) as f64 / 1e3
    }
}
