//! Delays of bytes.

use std::time::Duration;

use mingle_model::random::Random;

/// The delay of bytes in one direction, evenly spread around a mean. Waits end on whole
/// milliseconds of tokio's clock, so about 1 ms is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// The average delay.
    pub mean: Duration,
    /// The maximum deviation from the mean; capped at the mean.
    pub jitter: Duration,
}

impl Delay {
    /// Creates a delay of `mean` ± `jitter`.
    pub fn new(mean: Duration, jitter: Duration) -> Self {
        Self { mean, jitter }
    }

    /// Returns half of this delay: one direction's part of a round trip.
    pub fn half(self) -> Self {
        Self { mean: self.mean / 2, jitter: self.jitter / 2 }
    }

    /// Returns a random delay for one chunk.
    pub(crate) fn sample(self, random: &mut Random) -> Duration {
        let jitter = self.jitter.min(self.mean);
        self.mean.saturating_sub(jitter) + jitter.mul_f64(2.0 * fraction(random))
    }
}

/// Returns a random number from 0 up to but without 1.
pub(crate) fn fraction(random: &mut Random) -> f64 {
    (random.bits() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_lie_around_their_mean() {
        let (mean, jitter) = (Duration::from_millis(40), Duration::from_millis(10));
        let mut random = Random::new(1);
        let samples: Vec<Duration> =
            (0..10_000).map(|_| Delay::new(mean, jitter).sample(&mut random)).collect();
        assert!(samples.iter().all(|sample| sample.abs_diff(mean) <= jitter));
        let average = samples.iter().sum::<Duration>() / 10_000;
        assert!(average.abs_diff(mean) < Duration::from_millis(1), "{average:?}");
        assert_eq!(Delay::default().sample(&mut random), Duration::ZERO);
        let wide = Delay::new(jitter, mean);
        assert!((0..1000).all(|_| wide.sample(&mut random) <= jitter * 2));
    }
}
