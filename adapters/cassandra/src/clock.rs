//! Timestamps of writes, in microseconds, later than all that this process has written or seen.
//!
//! This is a hybrid logical clock (Kulkarni et al., "Logical Physical Clocks", OPODIS 2014), with
//! the counter in the digits below the millisecond that the world's clock gives.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use mingle_store::World;

/// The clock of one store in one process.
pub struct Clock {
    world: Arc<dyn World>,
    last: AtomicI64,
}

impl Clock {
    /// Creates a clock that has seen no timestamp yet.
    pub fn new(world: Arc<dyn World>) -> Self {
        Self { world, last: AtomicI64::new(0) }
    }

    /// Notes the timestamp of another writer.
    pub fn saw(&self, time: i64) {
        self.last.fetch_max(time, Ordering::Relaxed);
    }

    /// Returns a timestamp that is new in this process and later than all timestamps seen.
    pub fn next(&self) -> i64 {
        let now = self.world.now().micros().max(1);
        let step = |last: i64| Some(last.saturating_add(1).max(now));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        last.unwrap_or_else(|last| last).saturating_add(1).max(now)
    }
}

#[cfg(test)]
mod tests {
    use mingle_store::TestWorld;

    use super::*;

    #[test]
    fn timestamps_rise_and_pass_what_was_seen() {
        let clock = Clock::new(TestWorld::new(1));
        let first = clock.next();
        assert!(first < clock.next());
        clock.saw(first + 1_000_000_000_000);
        assert_eq!(clock.next(), first + 1_000_000_000_001);
        clock.saw(5);
        assert_eq!(clock.next(), first + 1_000_000_000_002);
    }
}
