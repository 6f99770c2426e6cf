//! Networks that part, over virtual time.
//!
//! The ends of a link have names: `inboxes/r2` is a replica of a store, `accounts` a store of one
//! copy, `p1` a process. A cut at `inboxes` cuts off all its replicas, and `*` matches every end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_model::Name;
use mingle_model::random::Random;
use mingle_store::World;

mod store;
#[cfg(test)]
mod tests;

pub use store::PartitionedStore;

/// A time in which no message gets from one end to the other. The reverse direction needs its own
/// cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The sender of the lost messages.
    pub from: Name,
    /// The receiver that they do not reach.
    pub to: Name,
    /// The begin, in the world's elapsed time.
    pub since: Duration,
    /// The end.
    pub until: Duration,
}

/// A time in which the calls of a process to a store, and their answers, take longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    /// The name of the process.
    pub process: Name,
    /// The name of the store; all its replicas are as slow.
    pub store: Name,
    /// The begin, in the world's elapsed time.
    pub since: Duration,
    /// The end.
    pub until: Duration,
    /// The additional time in each direction.
    pub by: Duration,
}

/// The rates of a network's partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionRates {
    /// The ends of each link that may be cut.
    pub links: Vec<(Name, Name)>,
    /// The number of partitions.
    pub count: usize,
    /// The time within which they begin.
    pub within: Duration,
    /// The maximum duration of one.
    pub longest: Duration,
    /// The number of partitions in 1,000 that cut one direction alone.
    pub one_way: u16,
}

impl PartitionRates {
    /// Draws the cuts of a seed, in order of their begin.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use mingle_sim::process::PartitionRates;
    ///
    /// let rates = PartitionRates {
    ///     links: vec![("p1".into(), "accounts".into())],
    ///     count: 3,
    ///     within: Duration::from_secs(10),
    ///     longest: Duration::from_secs(2),
    ///     one_way: 0,
    /// };
    /// assert_eq!(rates.draw(7).len(), 6);
    /// ```
    pub fn draw(&self, seed: u64) -> Vec<Cut> {
        let mut random = Random::new(seed);
        let mut cuts = Vec::new();
        let most = |duration: Duration| usize::try_from(duration.as_micros()).unwrap_or(usize::MAX);
        if self.links.is_empty() {
            return cuts;
        }
        for _ in 0..self.count {
            let (one, other) = random.pick(&self.links).clone();
            let since = Duration::from_micros(random.below(most(self.within).max(1)) as u64);
            let lasts = Duration::from_micros(1 + random.below(most(self.longest).max(1)) as u64);
            let until = since + lasts;
            let is_one_way = (random.below(1000) as u16) < self.one_way;
            let (from, to) = if random.one_in(2) { (one, other) } else { (other, one) };
            if !is_one_way {
                cuts.push(Cut { from: to.clone(), to: from.clone(), since, until });
            }
            cuts.push(Cut { from, to, since, until });
        }
        cuts.sort_by_key(|cut| cut.since);
        cuts
    }
}

/// All cuts of a network.
pub struct Partitions {
    world: Arc<dyn World>,
    cuts: Mutex<Vec<Cut>>,
    slows: Mutex<Vec<Slow>>,
}

impl Partitions {
    /// Creates the partitions from these cuts, on the time of this world.
    pub fn new(world: Arc<dyn World>, cuts: Vec<Cut>) -> Arc<Self> {
        Arc::new(Self { world, cuts: Mutex::new(cuts), slows: Mutex::default() })
    }

    /// Creates the partitions that a seed draws.
    pub fn seeded(world: Arc<dyn World>, seed: u64, rates: &PartitionRates) -> Arc<Self> {
        Self::new(world, rates.draw(seed))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Cut>> {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a cut.
    pub fn cut(&self, cut: Cut) {
        self.lock().push(cut);
    }

    fn slows(&self) -> MutexGuard<'_, Vec<Slow>> {
        self.slows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a slow time of a link.
    pub fn slow(&self, slow: Slow) {
        self.slows().push(slow);
    }

    /// Mends all links and prevents further cuts and slow times.
    pub fn heal(&self) {
        self.lock().clear();
        self.slows().clear();
    }

    /// Returns the additional time that a message between a process and a store takes now.
    pub fn slowness(&self, process: &str, store: &str) -> Duration {
        let now = self.world.elapsed();
        let slows = self.slows();
        let of_link = slows.iter().filter(|slow| {
            (slow.since..slow.until).contains(&now)
                && is_within(process, &slow.process)
                && is_within(store, &slow.store)
        });
        of_link.map(|slow| slow.by).max().unwrap_or_default()
    }

    /// Returns how long the current cut from one end to the other still lasts.
    pub fn down_for(&self, from: &str, to: &str) -> Duration {
        let now = self.world.elapsed();
        let cuts = self.lock();
        let now_down = cuts.iter().filter(|cut| {
            (cut.since..cut.until).contains(&now)
                && is_within(from, &cut.from)
                && is_within(to, &cut.to)
        });
        now_down.map(|cut| cut.until.saturating_sub(now)).max().unwrap_or_default()
    }

    /// True if some link of this end is cut now, in either direction.
    pub fn has_cut(&self, end: &str) -> bool {
        let now = self.world.elapsed();
        let cuts = self.lock();
        let is_own = |cut: &Cut| is_within(end, &cut.from) || is_within(end, &cut.to);
        cuts.iter().any(|cut| (cut.since..cut.until).contains(&now) && is_own(cut))
    }

    /// True if some link of this process is slow now.
    pub fn has_slow(&self, process: &str) -> bool {
        let now = self.world.elapsed();
        let slows = self.slows();
        let is_own = |slow: &Slow| is_within(process, &slow.process);
        slows.iter().any(|slow| (slow.since..slow.until).contains(&now) && is_own(slow))
    }

    /// True if messages get from one end to the other now.
    pub fn is_up(&self, from: &str, to: &str) -> bool {
        let now = self.world.elapsed();
        let cuts = self.lock();
        !cuts.iter().any(|cut| {
            (cut.since..cut.until).contains(&now)
                && is_within(from, &cut.from)
                && is_within(to, &cut.to)
        })
    }

    /// Returns the links between the replicas of this store.
    pub fn links(self: &Arc<Self>, store: impl Into<Name>) -> Arc<StoreLinks> {
        Arc::new(StoreLinks { partitions: Arc::clone(self), store: store.into() })
    }
}

/// True if a cut at `end` includes `node`.
fn is_within(node: &str, end: &str) -> bool {
    end == "*"
        || node.strip_prefix(end).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the name of a replica's end; the end of a store with one copy has the store's name.
fn node(store: &str, replica: Option<&str>) -> String {
    replica.map_or_else(|| store.to_owned(), |replica| format!("{store}/{replica}"))
}

/// The links between the replicas of one store.
pub struct StoreLinks {
    partitions: Arc<Partitions>,
    store: Name,
}

impl StoreLinks {
    fn is_up(&self, from: &str, to: &str) -> bool {
        let (from, to) = (node(&self.store, Some(from)), node(&self.store, Some(to)));
        self.partitions.is_up(&from, &to)
    }
}

impl mingle_store_replay::Links for StoreLinks {
    fn is_up(&self, from: &str, to: &str) -> bool {
        self.is_up(from, to)
    }
}

impl mingle_store_embedded::config::Links for StoreLinks {
    fn is_up(&self, from: &str, to: &str) -> bool {
        self.is_up(from, to)
    }
}
