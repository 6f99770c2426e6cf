//! A replica, which takes part in certification if its store is strong.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use mingle_geo::certify::{CertifierConfig, GroupConfig};
use mingle_geo::derive::Derive;
use mingle_geo::{Config, Input, Now, Output, Record, Replica, StrongReplica};

use crate::geo::config::GeoConfig;
use crate::geo::relation;

/// The replica of one partition in one data center.
pub enum Node {
    /// A replica of a causal store.
    Causal(Box<Replica>),
    /// A replica of a store with strong transactions.
    Strong(Box<StrongReplica>),
}

impl Node {
    /// Restores the replica that wrote these records, or creates a new one from no records. A
    /// replica of a strong store that has no records and is not new has lost them, and does
    /// nothing.
    ///
    /// # Errors
    ///
    /// The setting that is out of bounds.
    pub fn new(
        config: Config,
        geo: &GeoConfig,
        records: Vec<Record>,
        is_new: bool,
    ) -> Result<Self, String> {
        if geo.is_certifying() {
            let group = GroupConfig { is_new, ..group(&config, geo) };
            return Ok(Self::Strong(Box::new(StrongReplica::restore(config, group, records)?)));
        }
        let replica = if records.is_empty() {
            Replica::new(config)
        } else {
            Replica::restore(config, records)
        };
        replica.map(|replica| Self::Causal(Box::new(replica))).map_err(|error| error.to_string())
    }

    /// Handles one input.
    pub fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Output>) {
        match self {
            Self::Causal(replica) => replica.handle(now, input, out),
            Self::Strong(replica) => replica.handle(now, input, out),
        }
    }

    /// Keeps an index from now on.
    pub fn derive(&mut self, by: &Arc<dyn Derive>) {
        match self {
            Self::Causal(replica) => replica.derive(by),
            Self::Strong(replica) => replica.derive(by),
        }
    }

    /// True if it has its incarnation's initial state and, in a strong store, takes part in
    /// certification.
    pub fn is_member(&self) -> bool {
        let is_certifying = match self {
            Self::Causal(_) => true,
            Self::Strong(replica) => replica.group().is_member(),
        };
        is_certifying && !self.is_coming_up()
    }

    /// Returns records that restore a replica to the state of this one.
    pub fn checkpoint(&self) -> Vec<Record> {
        match self {
            Self::Causal(replica) => replica.checkpoint(),
            Self::Strong(replica) => replica.checkpoint(),
        }
    }
}

impl Deref for Node {
    type Target = Replica;

    fn deref(&self) -> &Replica {
        match self {
            Self::Causal(replica) => replica,
            Self::Strong(replica) => replica.replica(),
        }
    }
}

/// Creates the settings of the group: an earlier data center in the list has a higher priority to
/// lead.
fn group(config: &Config, geo: &GeoConfig) -> GroupConfig {
    let certifier = CertifierConfig::new(config.partition, relation::conflicts());
    let usual = GroupConfig::new(config.dc, config.dc_count, certifier);
    let tick_ms = u64::try_from(geo.farthest().as_millis()).unwrap_or(u64::MAX);
    let priority = u32::from(config.dc_count - config.dc.0);
    GroupConfig {
        incarnation: config.incarnation,
        tick_ms: usual.tick_ms.max(tick_ms.saturating_add(tick_ms / 4)),
        priority,
        ..usual
    }
}

/// Longest time between ticks in a strong store, so that the loss of a leader is noticed.
pub const PAUSE_MAX_STRONG: Duration = Duration::from_millis(100);
