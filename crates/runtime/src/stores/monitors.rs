//! Latency monitors: how soon each store answered at each of its levels (IPA, section 5.2).
//!
//! A monitor is a histogram that decays, so that it tells of the last seconds. A read that must be
//! answered within a bound asks it whether the store's own level is likely to answer in time.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_model::Name;

/// The weight of a sample halves after this time.
const HALF_LIFE: Duration = Duration::from_secs(5);

/// An answer is likely in time if at least this share of the samples was.
const LIKELY: f64 = 0.8;

/// Of the reads of a store at most one in this number is sent at two levels.
const DUPLICATED_ONE_IN: u64 = 10;

/// The store's own level is probed this often while it is too slow.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// The number of buckets: each is a fourth longer than the one before.
const BUCKETS: usize = 96;

/// The monitors of one process, by store, replica and level.
#[derive(Default)]
pub(crate) struct Monitors(Mutex<State>);

#[derive(Default)]
struct State {
    latencies: BTreeMap<Place, Histogram>,
    /// The time of the last probe, by store.
    probed: BTreeMap<usize, Duration>,
    /// The number of reads and of duplicated ones, by store.
    sent: BTreeMap<usize, (u64, u64)>,
}

/// A store, a replica, and whether the answer is of a weaker level than the store's.
pub(crate) type Place = (usize, Option<Name>, bool);

/// A histogram of latencies that decays.
struct Histogram {
    weights: [f64; BUCKETS],
    decayed: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { weights: [0.0; BUCKETS], decayed: Duration::ZERO }
    }
}

/// The bucket of a latency: buckets begin at 50 microseconds.
fn bucket(latency: Duration) -> usize {
    let ratio = latency.as_secs_f64() / 50e-6;
    if ratio <= 1.0 { 0 } else { ((ratio.ln() / 1.25_f64.ln()) as usize + 1).min(BUCKETS - 1) }
}

/// The longest latency of a bucket.
fn longest(bucket: usize) -> Duration {
    Duration::from_secs_f64(50e-6 * 1.25_f64.powi(i32::try_from(bucket).unwrap_or(0)))
}

impl Histogram {
    fn add(&mut self, latency: Duration, now: Duration) {
        let halvings = now.saturating_sub(self.decayed).as_secs_f64() / HALF_LIFE.as_secs_f64();
        if halvings > 0.02 {
            let factor = 0.5_f64.powf(halvings);
            self.weights.iter_mut().for_each(|weight| *weight *= factor);
            self.decayed = now;
        }
        self.weights[bucket(latency)] += 1.0;
    }

    fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// The share of samples within a bound; none if nothing is known.
    fn share_within(&self, bound: Duration) -> Option<f64> {
        let total = self.total();
        let within: f64 = self.weights[..=bucket(bound)].iter().sum();
        (total > 1e-3).then(|| within / total)
    }

    /// The latency that this share of the samples does not exceed.
    fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = self.total() * share;
        let mut sum = 0.0;
        let found = self.weights.iter().position(|weight| {
            sum += weight;
            sum > 0.0 && sum >= wanted
        });
        found.map(longest)
    }
}

impl Monitors {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an answer took this long, or that it had not come by then.
    pub(crate) fn note(&self, place: &Place, latency: Duration, now: Duration) {
        self.state().latencies.entry(place.clone()).or_default().add(latency, now);
    }

    /// True if an answer is likely to come within a bound, or nothing is known.
    pub(crate) fn is_likely(&self, place: &Place, bound: Duration) -> bool {
        let state = self.state();
        let share = state.latencies.get(place).and_then(|known| known.share_within(bound));
        share.is_none_or(|share| share >= LIKELY)
    }

    /// The latency that 99 % of the answers do not exceed, if any is known.
    pub(crate) fn slowest(&self, place: &Place) -> Option<Duration> {
        self.state().latencies.get(place).and_then(|known| known.quantile(0.99))
    }

    /// Counts a read of a store; true if it may be sent at a second level too.
    pub(crate) fn may_duplicate(&self, store: usize) -> bool {
        let mut state = self.state();
        let (reads, duplicated) = state.sent.entry(store).or_default();
        *reads += 1;
        *duplicated * DUPLICATED_ONE_IN <= *reads
    }

    /// Counts a read that was sent at a second level.
    pub(crate) fn note_duplicate(&self, store: usize) {
        self.state().sent.entry(store).or_default().1 += 1;
    }

    /// True if the store's own level is to be probed now; then it is noted as probed.
    pub(crate) fn probes(&self, store: usize, now: Duration) -> bool {
        let mut state = self.state();
        let is_due = state.probed.get(&store).is_none_or(|last| now >= *last + PROBE_EVERY);
        if is_due {
            state.probed.insert(store, now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn place() -> Place {
        (0, None, false)
    }

    #[test]
    fn an_empty_monitor_tells_nothing() {
        let monitors = Monitors::default();
        assert!(monitors.is_likely(&place(), MS));
        assert_eq!(monitors.slowest(&place()), None);
    }

    #[test]
    fn slow_answers_are_unlikely_in_time_until_they_are_forgotten() {
        let monitors = Monitors::default();
        for at in 0..50 {
            monitors.note(&place(), 80 * MS, at * MS);
        }
        assert!(!monitors.is_likely(&place(), 20 * MS));
        assert!(monitors.is_likely(&place(), 200 * MS));
        let slowest = monitors.slowest(&place()).expect("it is known");
        assert!(slowest >= 80 * MS && slowest <= 110 * MS, "{slowest:?}");
        for at in 60_000..60_050 {
            monitors.note(&place(), MS, at * MS);
        }
        assert!(monitors.is_likely(&place(), 20 * MS), "a minute later nothing is left of them");
    }

    #[test]
    fn one_read_in_ten_is_duplicated() {
        let monitors = Monitors::default();
        let mut duplicated = 0;
        for _ in 0..1_000 {
            if monitors.may_duplicate(7) {
                monitors.note_duplicate(7);
                duplicated += 1;
            }
        }
        assert!((95..=105).contains(&duplicated), "{duplicated}");
    }

    #[test]
    fn a_slow_level_is_probed_once_a_second() {
        let monitors = Monitors::default();
        let probes = (0..5_000).filter(|at| monitors.probes(1, *at * MS)).count();
        assert_eq!(probes, 5);
    }
}
