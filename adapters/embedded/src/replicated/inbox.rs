//! Updates on their way to replicas, and the times at which they are due.
//!
//! The updates themselves are rows; only their numbers and origins are kept here, and restored when
//! the store is opened. An update that is due waits while the link from its origin is down.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_model::Name;
use mingle_store::World;

use super::update::Update;
use crate::config::{EmbeddedConfig, LinkTable};
use crate::encoding::key;
use crate::storage::{Direction, StorageError, View};

/// The queues of all replicas.
pub struct Inbox {
    /// For each replica: the origin of each update, by due time and number.
    queues: Mutex<Vec<BTreeMap<(Duration, u64), u8>>>,
    replicas: Vec<Name>,
    links: Option<LinkTable>,
    delay: Duration,
    jitter: Duration,
}

impl Inbox {
    /// Restores the queues from the rows. After a restart all updates are on their way anew.
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
            queues: Mutex::new(vec![BTreeMap::new(); config.replicas.len()]),
            replicas: config.replicas.clone(),
            links: config.links.clone(),
            delay: config.delay,
            jitter: config.jitter,
        };
        inbox.reload(view, world)?;
        Ok(inbox)
    }

    /// Replaces the queues by those restored from the rows.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn reload(&self, view: &dyn View, world: &dyn World) -> Result<(), StorageError> {
        for replica in 0..self.replicas.len() {
            self.queues()[replica].clear();
            let replica = u8::try_from(replica).expect("replicas are bounded by REPLICAS_MAX");
            let mut numbers = Vec::new();
            let visit = &mut |key: &[u8], _: &[u8]| {
                numbers.push(key::number(key));
                true
            };
            view.scan(&key::queue(replica), None, Direction::Forward, visit)?;
            for number in numbers {
                let update = view.get(&key::update(number))?;
                let update = update.expect(super::engine::KEPT);
                self.send(replica, number, Update::origin(&update), world);
            }
        }
        Ok(())
    }

    fn queues(&self) -> MutexGuard<'_, Vec<BTreeMap<(Duration, u64), u8>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an update to a replica from its origin.
    pub fn send(&self, replica: u8, number: u64, origin: u8, world: &dyn World) {
        let mut due = world.elapsed() + self.delay;
        if !self.jitter.is_zero() {
            let range = u64::try_from(self.jitter.as_nanos() * 2).unwrap_or(u64::MAX);
            let drawn = Duration::from_nanos(world.random() % range.saturating_add(1).max(1));
            due = (due + drawn).saturating_sub(self.jitter);
        }
        self.queues()[usize::from(replica)].insert((due, number), origin);
    }

    /// True if any update is due at a replica and its link is up.
    pub fn is_due(&self, replica: u8, now: Duration) -> bool {
        self.arrived(replica, now, |arrived| arrived.next().is_some())
    }

    /// True if more than this many updates are on their way to a replica, and the first is due.
    pub fn is_behind(&self, replica: u8, now: Duration, count: usize) -> bool {
        let length = self.queues()[usize::from(replica)].len();
        length > count && self.is_due(replica, now)
    }

    /// Returns the updates that are due at a replica and whose links are up, by due time.
    pub fn due(&self, replica: u8, now: Duration) -> Vec<(Duration, u64)> {
        self.arrived(replica, now, |arrived| arrived.collect())
    }

    /// Passes the updates that are due and whose links are up to `take`.
    fn arrived<T>(
        &self,
        replica: u8,
        now: Duration,
        take: impl FnOnce(&mut dyn Iterator<Item = (Duration, u64)>) -> T,
    ) -> T {
        let is_up: Option<Vec<bool>> = self.links.as_ref().map(|links| {
            let to = &self.replicas[usize::from(replica)];
            self.replicas.iter().map(|from| links.is_up(from, to)).collect()
        });
        let queues = self.queues();
        let due = queues[usize::from(replica)].range(..=(now, u64::MAX));
        let mut arrived = due
            .filter(|(_, origin)| is_up.as_ref().is_none_or(|up| up[usize::from(**origin)]))
            .map(|(update, _)| *update);
        take(&mut arrived)
    }

    /// Removes applied updates from the queue.
    pub fn delivered(&self, replica: u8, updates: &[(Duration, u64)]) {
        let mut queues = self.queues();
        for update in updates {
            queues[usize::from(replica)].remove(update);
        }
    }
}
