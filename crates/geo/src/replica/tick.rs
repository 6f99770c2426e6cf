//! Periodic work.

use super::{Input, Replica};
use crate::record::Record;
use crate::timestamp::Now;

impl Replica {
    pub(super) fn on_tick(&mut self, now: Now) {
        if self.is_over() {
            return;
        }
        self.come_up(now);
        self.ask_for_what_is_left(now);
        self.recompute_known(now);
        self.recompute_stable(now);
        self.update_snapshot_floor(now);
        self.replicate_local(now);
        self.broadcast_vecs(now);
        self.forward_lagging(now);
        self.prune_committed();
        self.resolve_stale(now);
        self.wake(now);
        self.wake_attaching(now);
        self.fold_some();
        self.raise_age_floor();
        self.go_on_with_transfer(now);
    }

    /// Returns the time until the shell's next [`Input::Tick`], in milliseconds. It is shorter
    /// while there is work.
    pub fn tick_in_ms(&self) -> u64 {
        let is_busy = !self.is_over() && self.has_work();
        if is_busy { self.config.tick_ms } else { self.config.tick_idle_ms }
    }

    fn has_work(&self) -> bool {
        self.waiting_count() > 0
            || !self.prepared_causal.is_empty()
            || self.transfer.is_busy()
            || self.committed_causal.iter().any(|committed| committed.bytes() > 0)
            || self.op_log.bytes() > 0
    }

    /// Raises the floor on the age of transactions, at most once per eighth of the maximum age.
    fn raise_age_floor(&mut self) {
        let age_us = self.config.outcome_ms_max.saturating_mul(1_000);
        let floor_us = self.clock.last().micros().saturating_sub(age_us);
        if floor_us <= self.outcomes.floor_us().saturating_add(age_us / 8) {
            return;
        }
        // The record is written before any later message is sent.
        self.write(Record::AgeFloor(floor_us));
        let own = self.config.dc;
        self.outcomes.raise_floor(floor_us, own, self.stable_vec[own]);
    }
}

impl Input {
    /// True if the input can be delayed while there is other work.
    pub fn is_background(&self) -> bool {
        matches!(self, Self::Tick)
    }
}
