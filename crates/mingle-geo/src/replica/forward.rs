//! Forwarding of other data centers' transactions (2:19-22), and how long they are kept.
//!
//! Whether a data center is lost, or its link to another, makes no difference: what counts is that
//! a sibling has lacked for `forward_after_ms` what this replica has.

use super::Replica;
use crate::flaw::Flaw;
use crate::limits::BATCHES_PER_TICK_MAX;
use crate::timestamp::{DcId, Now, Timestamp};

/// What a data center is expected to have of an origin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lag {
    /// What this replica had at `since_us`.
    expected: Timestamp,
    since_us: u64,
}

impl Replica {
    /// FORWARD_REMOTE_TXS (2:19-22), to whom it concerns.
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

    /// Drops transactions that all data centers have (end of §5.5), and beyond `forward_bytes_max`
    /// the oldest, if they are uniform: who lacks them returns by state transfer.
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
            // With nobody else to need them, nothing is kept.
            committed.prune(had.unwrap_or(known).min(known));
            // What nobody else has must be kept, even where one data center is enough to be uniform.
            let elsewhere = if origin == self.config.dc { best } else { known };
            let safe = self.uniform_vec[origin].min(elsewhere);
            committed.bound(self.config.forward_bytes_max, safe);
        }
    }
}
