//! The configuration of a store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mingle_model::Name;
use mingle_store::Once;

/// A store has at most this many replicas.
pub const REPLICAS_MAX: usize = 64;

/// The links between replicas that are up now.
pub trait Links: Send + Sync {
    /// True if commits of the replica `from` can reach `to` now.
    fn is_up(&self, from: &str, to: &str) -> bool;
}

/// The replicas, the delays between them, and the way in which a later phase takes effect once.
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
    /// Names of the replicas; at least one.
    pub replicas: Vec<Name>,
    /// The time until an update reaches the other replicas.
    pub delay: Duration,
    /// The greatest deviation from the delay in either direction, drawn for each update and
    /// replica.
    pub jitter: Duration,
    /// The way in which a later phase takes effect once; anything but [`Once::Serial`].
    pub once: Once,
    /// True if the store declares that floors suffice
    /// ([`mingle_store::Capabilities::floor_suffices`]): allowed with [`Once::ById`] and one
    /// replica. Records of a phase are then kept, whichever of its copies counts.
    pub floor_suffices: bool,
    /// The links between replicas that are up; none stands for all.
    pub links: Option<Arc<dyn Links>>,
}

impl ReplayConfig {
    /// Creates this many replicas, named `r1`, `r2` and so on, which receive updates at once.
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

    /// Makes updates reach other replicas after `delay`, plus or minus `jitter`.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration, jitter: Duration) -> Self {
        self.delay = delay;
        self.jitter = jitter;
        self
    }

    /// Declares that a floor proves as much as a commit witness.
    #[must_use]
    pub fn with_floor_suffices(mut self) -> Self {
        self.floor_suffices = true;
        self
    }

    /// Sends updates only over links that are up.
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
