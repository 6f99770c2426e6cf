//! The hybrid logical clock of one replica, and its ceiling on disk.

use crate::limits::CEILING_STEP_US;
use crate::timestamp::{PartitionId, Timestamp};

/// A clock that never goes back, even if the machine's clock does. After a restart it continues
/// above every timestamp that it ever sent, because it stays below a ceiling stored on disk.
///
/// # Examples
///
/// ```
/// use mingle_geo::{Clock, PartitionId, Timestamp};
///
/// let mut clock = Clock::new(PartitionId(0), Timestamp::ZERO);
/// let first = clock.next(1_000, Timestamp::ZERO);
/// // The machine's clock stepped back.
/// assert!(clock.next(400, Timestamp::ZERO) > first);
/// ```
#[derive(Clone, Debug)]
pub struct Clock {
    partition: PartitionId,
    /// The highest timestamp that was given out, announced or met.
    last: Timestamp,
    /// The ceiling that is on disk, or will be on disk before any message that depends on it is
    /// sent.
    ceiling: Timestamp,
}

impl Clock {
    /// Creates a clock that continues above `ceiling`, the ceiling read from disk.
    pub fn new(partition: PartitionId, ceiling: Timestamp) -> Self {
        Self { partition, last: ceiling, ceiling }
    }

    /// Returns a new timestamp, above all that this clock gave, announced or met, and above
    /// `floor`.
    pub fn next(&mut self, wall_us: u64, floor: Timestamp) -> Timestamp {
        let above = self.last.max(floor);
        let mut next = Timestamp::new(wall_us.max(above.micros()), self.partition);
        if next <= above {
            next = Timestamp::new(above.micros() + 1, self.partition);
        }
        self.last = next;
        next
    }

    /// Returns a timestamp that may be announced: every timestamp given out later is above it.
    pub fn announce(&mut self, wall_us: u64) -> Timestamp {
        self.last = self.last.max(Timestamp::new(wall_us, self.partition));
        self.last
    }

    /// Advances the clock to a received timestamp.
    pub fn observe(&mut self, met: Timestamp) {
        self.last = self.last.max(met);
    }

    /// Returns the highest timestamp that was given out, announced or met.
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// Returns the ceiling that is on disk, or on its way there.
    pub fn ceiling(&self) -> Timestamp {
        self.ceiling
    }

    /// Returns a new ceiling if it has to be raised. It must reach the disk before any later
    /// message leaves. It is `ahead_us` above the machine's clock, so raises are rare.
    ///
    /// If this clock is ahead of the machine's clock, it advances only by events, and a small step
    /// is enough. A larger step would put the clock further ahead at each restart, since a restart
    /// continues above the ceiling, until other replicas refuse its timestamps.
    pub fn raise_ceiling(&mut self, wall_us: u64, ahead_us: u64) -> Option<Timestamp> {
        if self.last < self.ceiling {
            return None;
        }
        let least_us = self.last.micros().saturating_add(ahead_us.clamp(1, CEILING_STEP_US));
        let to_us = least_us.max(wall_us.saturating_add(ahead_us));
        self.ceiling = Timestamp::new(to_us, self.partition);
        Some(self.ceiling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_is_above_what_was_announced_and_met() {
        let mut clock = Clock::new(PartitionId(5), Timestamp::ZERO);
        let announced = clock.announce(700);
        let next = clock.next(700, Timestamp::ZERO);
        assert!(next > announced);
        clock.observe(Timestamp::new(900, PartitionId(9)));
        assert!(clock.next(1, Timestamp::ZERO) > Timestamp::new(900, PartitionId(9)));
        assert!(clock.next(1, Timestamp(u64::MAX >> 4)) > Timestamp(u64::MAX >> 4));
    }

    #[test]
    fn a_restart_begins_above_all_that_was_said() {
        let mut clock = Clock::new(PartitionId(0), Timestamp::ZERO);
        let said = clock.next(5_000, Timestamp::ZERO);
        let ceiling = clock.raise_ceiling(5_000, 1_000).expect("the first ceiling");
        assert!(ceiling > said);
        assert_eq!(clock.raise_ceiling(5_000, 1_000), None);
        let mut restarted = Clock::new(PartitionId(0), ceiling);
        assert!(restarted.next(0, Timestamp::ZERO) > ceiling);
    }
}
