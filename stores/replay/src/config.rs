//! How a store is set up.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mingle_model::Name;
use mingle_store::Once;

/// A store has at most this many replicas.
pub const REPLICAS_MAX: usize = 64;

/// Which replicas can hear each other now.
pub trait Links: Send + Sync {
    /// Whether what the replica `from` has committed can reach `to` now.
    fn is_up(&self, from: &str, to: &str) -> bool;
}

/// How many replicas there are, how far, and how a later phase takes effect once.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use mingle_store::Once;
/// use mingle_store_replay::ReplayConfig;
///
/// let config = ReplayConfig::new(3, Once::ById).with_delay(Duration::from_millis(40), Duration::ZERO);
/// assert_eq!(config.replicas, ["r1".into(), "r2".into(), "r3".into()]);
/// ```
#[derive(Clone)]
pub struct ReplayConfig {
    /// Names of the replicas; one at least.
    pub replicas: Vec<Name>,
    /// How long it takes until an update reaches the other replicas.
    pub delay: Duration,
    /// At most how much longer or shorter that takes, drawn for each update and replica.
    pub jitter: Duration,
    /// How a later phase takes effect once; anything but [`Once::Serial`].
    pub once: Once,
    /// Whether it says of itself that floors suffice
    /// ([`mingle_store::Capabilities::floor_suffices`]): one that is [`Once::ById`] and has one
    /// replica may. Records of a phase are then kept whichever of its copies counts.
    pub floor_suffices: bool,
    /// Which links between replicas are up; all of them if none.
    pub links: Option<Arc<dyn Links>>,
}

impl ReplayConfig {
    /// So many replicas, named `r1`, `r2` and so on, which hear of updates at once.
    pub fn new(replicas: usize, once: Once) -> Self {
        Self {
            replicas: (1..=replicas).map(|n| format!("r{n}").into()).collect(),
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            once,
            floor_suffices: false,
            links: None,
        }
    }

    /// Updates reach other replicas after `delay`, give or take `jitter`.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration, jitter: Duration) -> Self {
        self.delay = delay;
        self.jitter = jitter;
        self
    }

    /// A floor says as much as a commit witness would.
    #[must_use]
    pub fn with_floor_suffices(mut self) -> Self {
        self.floor_suffices = true;
        self
    }

    /// Updates go only over links that are up.
    #[must_use]
    pub fn with_links(mut self, links: Arc<dyn Links>) -> Self {
        self.links = Some(links);
        self
    }
}

impl fmt::Debug for ReplayConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayConfig")
            .field("replicas", &self.replicas)
            .field("delay", &self.delay)
            .field("jitter", &self.jitter)
            .field("once", &self.once)
            .field("floor_suffices", &self.floor_suffices)
            .finish_non_exhaustive()
    }
}
