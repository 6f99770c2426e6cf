//! Forwarding of other data centers' transactions (2:19-22), and the time for which they are kept.
//!
//! The loss of a data center and the loss of one link are handled in the same way: a sibling that
//! lacks a transaction which this replica has had for `forward_after_ms` gets it.

use super::Replica;
use crate::flaw::Flaw;
use crate::limits::BATCHES_PER_TICK_MAX;
use crate::timestamp::{DcId, Now, Timestamp};

/// The transactions of an origin that a data center is expected to have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lag {
    /// The known timestamp of this replica at `since_us`.
    expected: Timestamp,
    since_us: u64,
}

impl Replica {
    /// FORWARD_REMOTE_TXS (2:19-22), to the data centers that lag.
    pub(super) fn forward_lagging(&mut self, now: Now) {
        if self.makes(Flaw::NoForwarding) {
            return;
        }
        let own = self.config.dc;
        let after_us = self.config.forward_after_ms * 1_000;
        for dc in self.others_in() {
            for origin in self.config.dcs().filter(|origin| *origin != dc && *origin != own) {
                let known = self.known_vec[origin];
                let have = self.global_matrix[usize::from(dc.0)][origin];
                let lag = &mut self.lags[usize::from(dc.0)][usize::from(origin.0)];
                if have >= lag.expected {
                    *lag = Lag { expected: known, since_us: now.mono_us };
                } else if now.mono_us >= lag.since_us.saturating_add(after_us) {
                    lag.since_us = now.mono_us;
                    self.forward(dc, origin, have);
                }
            }
        }
    }

    fn forward(&mut self, dc: DcId, origin: DcId, have: Timestamp) {
        let mut from = have;
        for _ in 0..BATCHES_PER_TICK_MAX {
            let to = self.send_range(dc, origin, from);
            if to <= from {
                return;
            }
            self.counters.forwards += 1;
            from = to;
        }
    }

    /// Drops transactions that all data centers have (end of §5.5). Beyond `forward_bytes_max` it
    /// also drops the oldest uniform ones; a data center that lacks them returns by state transfer.
    pub(super) fn prune_committed(&mut self) {
        for origin in self.config.dcs() {
            let others = self.others_in().filter(|dc| *dc != origin);
            let had = others.map(|dc| self.global_matrix[usize::from(dc.0)][origin]);
            let (had, best) = (had.clone().min(), had.max().unwrap_or_default());
            let known = self.known_vec[origin];
            let must_drop = self.makes(Flaw::ForwardLogDropped);
            let committed = &mut self.committed_causal[usize::from(origin.0)];
            if must_drop {
                committed.forget(self.uniform_vec[origin]);
            }
            // If no other data center needs them, none are kept.
            committed.prune(had.unwrap_or(known).min(known));
            // A transaction that no other data center has must be kept, even if one data center
            // makes it uniform (`f = 0`).
            let elsewhere = if origin == self.config.dc { best } else { known };
            let safe = self.uniform_vec[origin].min(elsewhere);
            committed.bound(self.config.forward_bytes_max, safe);
        }
    }
}
