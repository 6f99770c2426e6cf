//! The settings of a replica.

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::flaw::Planted;
use crate::key::Key;
use crate::pattern;
use crate::timestamp::{DcId, PARTITIONS_MAX, PartitionId};
use crate::vector::DCS_MAX;

/// The way in which strong transactions are certified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Certification {
    /// Each partition certifies the transactions that use its items, with a log of its own (§6.3).
    #[default]
    Partitions,
    /// One service certifies for all partitions, with one log: see [`central`](crate::central).
    Central,
}

/// The identity of a replica in its system, and its settings.
///
/// # Examples
///
/// ```
/// use mingle_geo::{Config, DcId, PartitionId};
///
/// let config = Config::new(DcId(0), 3, PartitionId(0), 16);
/// assert_eq!(config.f, 1);
/// assert!(config.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The replica's data center.
    pub dc: DcId,
    /// The incarnation of the data center. A data center that lost a disk returns as the next
    /// incarnation, with empty disks.
    #[serde(default)]
    pub incarnation: u32,
    /// The number of data centers.
    pub dc_count: u8,
    /// The replica's partition.
    pub partition: PartitionId,
    /// The number of partitions.
    pub partition_count: u16,
    /// A transaction that `f + 1` data centers have is uniform. With 0, remote transactions are
    /// visible once this data center has them: the paper's baseline without uniformity (CureFT,
    /// §8.2).
    pub f: u8,
    /// Timestamps more than this ahead of the machine's clock are refused.
    pub clock_ahead_ms_max: u64,
    /// The step, in milliseconds, by which the clock's ceiling on disk is raised ahead.
    pub clock_ceiling_ms: u64,
    /// The interval of the shell's ticks while there is work.
    pub tick_ms: u64,
    /// The interval of the shell's ticks while there is none.
    pub tick_idle_ms: u64,
    /// A snapshot can be read for this long after it was handed out; later reads may be refused.
    pub transaction_ms_max: u64,
    /// A transaction that began longer ago is no longer accepted, and its outcome is forgotten.
    pub outcome_ms_max: u64,
    /// A read, a barrier or an attach waits at most this long.
    pub wait_ms_max: u64,
    /// A transaction that stays prepared for longer is resolved among its participants.
    pub resolve_after_ms: u64,
    /// Transactions that a data center lacks for longer are forwarded to it.
    pub forward_after_ms: u64,
    /// The maximum number of bytes of each origin's transactions that are kept for lagging data
    /// centers.
    pub forward_bytes_max: usize,
    /// Writes are refused while the operations that are not folded, or the own transactions kept
    /// for other data centers, take more than this many bytes.
    pub log_bytes_max: usize,
    /// Only strong transactions write keys whose names match one of these [patterns](crate::pattern):
    /// a causal write is refused. Over such keys strong transactions are strictly serializable. The
    /// list is the same at all replicas.
    pub strong_only: Vec<Vec<u8>>,
    /// The kind of certification; sessions must have the same setting.
    #[serde(default)]
    pub certification: Certification,
    /// A planted mistake; see [`flaw`](crate::flaw).
    #[serde(skip)]
    pub planted: Planted,
}

impl Config {
    /// Returns the usual settings, with the largest `f` for which `dc_count` is at least `2f + 1`.
    pub fn new(dc: DcId, dc_count: u8, partition: PartitionId, partition_count: u16) -> Self {
        Self {
            dc,
            incarnation: 0,
            dc_count,
            partition,
            partition_count,
            f: dc_count.saturating_sub(1) / 2,
            clock_ahead_ms_max: 5_000,
            clock_ceiling_ms: 3_000,
            tick_ms: 5,
            tick_idle_ms: 50,
            transaction_ms_max: 10_000,
            outcome_ms_max: 60_000,
            wait_ms_max: 5_000,
            resolve_after_ms: 500,
            forward_after_ms: 1_000,
            forward_bytes_max: 64 << 20,
            log_bytes_max: 1 << 30,
            strong_only: Vec::new(),
            certification: Certification::Partitions,
            planted: Planted::default(),
        }
    }

    /// Checks that these settings are within their bounds.
    ///
    /// # Errors
    ///
    /// The first setting out of bounds, with its bounds.
    pub fn check(&self) -> Result<(), ConfigError> {
        let within = |what, found: u64, least: u64, most: u64| {
            let is_within = least <= found && found <= most;
            if is_within { Ok(()) } else { Err(ConfigError { what, found, least, most }) }
        };
        within("dc_count", self.dc_count.into(), 1, DCS_MAX as u64)?;
        within("dc", self.dc.0.into(), 0, u64::from(self.dc_count) - 1)?;
        within("partition_count", self.partition_count.into(), 1, PARTITIONS_MAX as u64)?;
        within("partition", self.partition.0.into(), 0, u64::from(self.partition_count) - 1)?;
        within("f", self.f.into(), 0, u64::from(self.dc_count) - 1)?;
        within("tick_ms", self.tick_ms, 1, 60_000)?;
        within("tick_idle_ms", self.tick_idle_ms, self.tick_ms, 60_000)?;
        within("clock_ceiling_ms", self.clock_ceiling_ms, 1, u64::MAX >> 20)?;
        within("transaction_ms_max", self.transaction_ms_max, 1, u64::MAX >> 20)?;
        let least = self.transaction_ms_max;
        within("outcome_ms_max", self.outcome_ms_max, least, u64::MAX >> 20)?;
        within("resolve_after_ms", self.resolve_after_ms, 1, self.outcome_ms_max)
    }

    /// True if only strong transactions write this key.
    pub fn is_strong_only(&self, key: &Key) -> bool {
        self.strong_only.iter().any(|pattern| pattern::matches(pattern, &key.name))
    }

    /// Returns all data centers.
    pub fn dcs(&self) -> impl Iterator<Item = DcId> + Clone + use<> {
        (0..self.dc_count).map(DcId)
    }

    /// Returns the other data centers.
    pub fn others(&self) -> impl Iterator<Item = DcId> + Clone + use<> {
        let own = self.dc;
        self.dcs().filter(move |dc| *dc != own)
    }

    /// Returns all partitions.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionId> + use<> {
        (0..self.partition_count).map(PartitionId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_out_of_bounds_is_named() {
        let good = Config::new(DcId(2), 3, PartitionId(1), 2);
        for (bad, expected) in [
            (Config { dc_count: 8, ..good.clone() }, "dc_count is 8, expected 1 to 7"),
            (Config { dc: DcId(3), ..good.clone() }, "dc is 3, expected 0 to 2"),
            (Config { f: 3, ..good.clone() }, "f is 3, expected 0 to 2"),
            (Config { tick_ms: 0, ..good.clone() }, "tick_ms is 0, expected 1 to 60000"),
        ] {
            assert_eq!(bad.check().unwrap_err().to_string(), expected);
        }
        assert_eq!(good.check(), Ok(()));
        assert_eq!(Config::new(DcId(0), 2, PartitionId(0), 1).f, 0);
        assert_eq!(Config::new(DcId(0), 5, PartitionId(0), 1).f, 2);
    }
}
