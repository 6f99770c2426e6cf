//! Which updates are on their way to which replica, and when they are due.
//!
//! The updates themselves are rows; only their numbers are kept here, and found again when the
//! store is opened.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_store::World;

use crate::config::EmbeddedConfig;
use crate::encoding::key;
use crate::storage::{Direction, StorageError, View};

/// The queues of all replicas.
pub struct Inbox {
    /// For each replica, when each update is due and its number.
    queues: Mutex<Vec<BTreeSet<(Duration, u64)>>>,
    delay: Duration,
    jitter: Duration,
}

impl Inbox {
    /// The queues as they were left. After a restart all updates are on their way anew.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn load(
        config: &EmbeddedConfig,
        view: &dyn View,
        world: &dyn World,
    ) -> Result<Self, StorageError> {
        let inbox = Self {
            queues: Mutex::new(vec![BTreeSet::new(); config.replicas.len()]),
            delay: config.delay,
            jitter: config.jitter,
        };
        for (replica, _) in config.replicas.iter().enumerate() {
            let replica = u8::try_from(replica).expect("replicas are bounded by REPLICAS_MAX");
            let mut numbers = Vec::new();
            let visit = &mut |key: &[u8], _: &[u8]| {
                numbers.push(key::number(key));
                true
            };
            view.scan(&key::queue(replica), None, Direction::Forward, visit)?;
            for number in numbers {
                inbox.send(replica, number, world);
            }
        }
        Ok(inbox)
    }

    fn queues(&self) -> MutexGuard<'_, Vec<BTreeSet<(Duration, u64)>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An update is on its way to a replica.
    pub fn send(&self, replica: u8, number: u64, world: &dyn World) {
        let mut due = world.elapsed() + self.delay;
        if !self.jitter.is_zero() {
            let range = u64::try_from(self.jitter.as_nanos() * 2).unwrap_or(u64::MAX);
            let drawn = Duration::from_nanos(world.random() % range.saturating_add(1).max(1));
            due = (due + drawn).saturating_sub(self.jitter);
        }
        self.queues()[usize::from(replica)].insert((due, number));
    }

    /// Whether any update is due at a replica.
    pub fn is_due(&self, replica: u8, now: Duration) -> bool {
        let queues = self.queues();
        let first = queues[usize::from(replica)].first();
        first.is_some_and(|(due, _)| *due <= now)
    }

    /// Whether more than this many updates are on their way to a replica, and the first is due.
    pub fn is_behind(&self, replica: u8, now: Duration, count: usize) -> bool {
        let length = self.queues()[usize::from(replica)].len();
        length > count && self.is_due(replica, now)
    }

    /// The updates that are due at a replica, in the order in which they came due.
    pub fn due(&self, replica: u8, now: Duration) -> Vec<(Duration, u64)> {
        let queues = self.queues();
        let queue = &queues[usize::from(replica)];
        queue.range(..=(now, u64::MAX)).copied().collect()
    }

    /// Updates have been applied.
    pub fn delivered(&self, replica: u8, updates: &[(Duration, u64)]) {
        let mut queues = self.queues();
        for update in updates {
            queues[usize::from(replica)].remove(update);
        }
    }
}
