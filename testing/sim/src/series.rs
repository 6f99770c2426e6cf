//! Seed after seed, on several threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::workload::promises::Broken;

/// The seeds of a series.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// The first seed.
    pub first: u64,
    /// The number of seeds, instead of a time.
    pub count: Option<u64>,
    /// The end of the series.
    pub until: Instant,
    /// The number of threads.
    pub jobs: usize,
}

/// The result of a series.
#[derive(Debug, Default)]
pub struct Ended<S> {
    /// The number of seeds that were run.
    pub seeds: u64,
    /// The sum of all verdicts.
    pub sum: S,
    /// The first seed that failed, with its failure.
    pub broken: Option<(u64, Broken)>,
}

impl Series {
    /// Runs seeds until one fails or the series is over; adds the verdict of `judged` for each. If
    /// two seeds fail on different threads, the lower one is reported, in any order of failure.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// use mingle_sim::series::{Ended, Series};
    ///
    /// let series = Series { first: 5, count: Some(3), until: Instant::now(), jobs: 2 };
    /// let ended: Ended<u64> = series.run(|seed| Ok(seed), |sum, seed| *sum += seed);
    /// assert_eq!((ended.seeds, ended.sum), (3, 5 + 6 + 7));
    /// ```
    pub fn run<V, S: Default + Send>(
        &self,
        judged: impl Fn(u64) -> Result<V, Broken> + Sync,
        add: impl Fn(&mut S, V) + Sync,
    ) -> Ended<S> {
        let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let ended = Mutex::<Ended<S>>::default();
        let work = || {
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
                let verdict = judged(seed);
                let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                ended.seeds += 1;
                match verdict {
                    Ok(verdict) => add(&mut ended.sum, verdict),
                    Err(broken) => {
                        is_over.store(true, Ordering::Relaxed);
                        if ended.broken.as_ref().is_none_or(|(first, _)| seed < *first) {
                            ended.broken = Some((seed, broken));
                        }
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(work);
            }
        });
        ended.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn broken() -> Broken {
        Broken { promise: "P3", how: "half done".into() }
    }

    #[test]
    fn each_seed_is_run_once_by_however_many() {
        for jobs in 0..4 {
            let series = Series { first: 10, count: Some(100), until: Instant::now(), jobs };
            let mut ended: Ended<Vec<u64>> = series.run(Ok, Vec::push);
            ended.sum.sort_unstable();
            assert_eq!(ended.sum, (10..110).collect::<Vec<_>>(), "jobs: {jobs}");
            assert_eq!(ended.seeds, 100);
            assert!(ended.broken.is_none());
        }
    }

    #[test]
    fn it_ends_with_a_seed_that_fails_or_with_its_time() {
        let fails = |seed| if seed < 13 { Ok(1) } else { Err(broken()) };
        let series = Series { first: 10, count: None, until: Instant::now(), jobs: 1 };
        let count = |sum: &mut u64, one: u64| *sum += one;
        assert_eq!(series.run(fails, count).seeds, 0);
        let ended = Series { count: Some(100), ..series }.run(fails, count);
        assert_eq!((ended.seeds, ended.sum), (4, 3));
        assert_eq!(ended.broken.map(|(seed, _)| seed), Some(13));
    }

    #[test]
    fn of_two_that_fail_together_the_lower_one_is_told() {
        let together = Barrier::new(2);
        let fails = |_| {
            together.wait();
            Err::<(), _>(broken())
        };
        let series = Series { first: 7, count: Some(2), until: Instant::now(), jobs: 2 };
        let ended: Ended<()> = series.run(fails, |(), ()| ());
        assert_eq!((ended.seeds, ended.broken.map(|(seed, _)| seed)), (2, Some(7)));
    }
}
