//! The bound up to which versions are folded.
//!
//! A snapshot that was handed out can be read for `transaction_ms_max`, and no message reports its
//! use. So each replica announces as its floor the snapshot that it handed out that long ago,
//! limited to the uniform part (with `stable_vec` for strong transactions). `H` is the minimum of
//! these floors over the replicas of this data center; snapshots of other data centers do not
//! matter. A later reader is refused, and may begin again with the vectors in the refusal. The
//! folded snapshot contains every transaction that its entries reach (see
//! [`OpLog::closed`](crate::oplog::OpLog)), so two states that were folded separately can be
//! joined.

use std::collections::VecDeque;

use super::Replica;
use crate::flaw::Flaw;
use crate::timestamp::{DcId, Now, Timestamp};
use crate::types::{Mark, OpId};
use crate::vector::Vector;

/// Items wait at least this long, in microseconds, before strong transactions are asked to advance
/// for them.
const STRONG_LAG_US: u64 = 250_000;

/// The resolution of snapshot ages: `transaction_ms_max` is divided into this many parts.
const PARTS: u64 = 16;

/// The snapshots that were handed out, and the folded snapshot.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    /// Snapshots with the times from which they were handed out, oldest first; each covers the one
    /// before.
    handed_out: VecDeque<(u64, Vector)>,
    /// Snapshots handed out before a restart are unknown; until this time no floor is announced.
    silent_until_us: Option<u64>,
    /// `H`, as last computed.
    folded: Vector,
}

impl Pins {
    /// Creates the state after a restart.
    pub fn after_restart() -> Self {
        Self { silent_until_us: Some(u64::MAX), ..Self::default() }
    }

    /// Returns `H` as last computed.
    pub fn folded(&self) -> Vector {
        self.folded
    }

    /// Raises the folded snapshot to `to`, after a state transfer.
    pub fn raise_folded(&mut self, to: &Vector) {
        self.folded.join(to);
    }

    /// Lowers all entries of one data center to at most a cut.
    pub fn clip(&mut self, dc: DcId, cut: Timestamp) {
        let handed_out = self.handed_out.iter_mut().map(|(_, snapshot)| snapshot);
        handed_out.chain([&mut self.folded]).for_each(|vector| vector.clip(dc, cut));
    }

    /// Returns the lowest snapshot that was handed out within the last `kept_us`.
    fn floor(&mut self, mono_us: u64, kept_us: u64, current: Vector) -> Option<Vector> {
        let is_due = |(since_us, _): &(u64, Vector)| {
            mono_us >= since_us.saturating_add((kept_us / PARTS).max(1))
        };
        if self.handed_out.is_empty() {
            // Snapshots handed out before the first tick are unknown.
            self.handed_out.push_back((mono_us, Vector::ZERO));
        }
        if self.handed_out.back().is_none_or(is_due) {
            self.handed_out.push_back((mono_us, current));
        }
        // The first snapshot is in use until the second has been handed out for `kept_us`.
        while let Some((since_us, _)) = self.handed_out.get(1)
            && since_us.saturating_add(kept_us) <= mono_us
        {
            self.handed_out.pop_front();
        }
        if self.silent_until_us == Some(u64::MAX) {
            self.silent_until_us = Some(mono_us.saturating_add(kept_us));
        }
        let is_silent = self.silent_until_us.is_some_and(|until_us| mono_us < until_us);
        (!is_silent).then(|| self.handed_out[0].1)
    }
}

impl Replica {
    pub(super) fn update_snapshot_floor(&mut self, now: Now) {
        let kept_us = self.config.transaction_ms_max * 1_000;
        let current = self.handout().causal_snapshot(self.config.dc);
        let Some(mut floor) = self.pins.floor(now.mono_us, kept_us, current) else { return };
        let strong = self.stable_vec[DcId::STRONG];
        floor.meet(&self.uniform_vec.with(DcId::STRONG, strong));
        self.local_matrix[usize::from(self.config.partition.0)].snapshot_floor.join(&floor);
    }

    /// Folds a bounded number of items up to `H`.
    pub(super) fn fold_some(&mut self) {
        let floors = self.local_matrix.iter().map(|row| row.snapshot_floor);
        let least = floors.reduce(|mut least, floor| {
            least.meet(&floor);
            least
        });
        let mut least = least.unwrap_or(Vector::ZERO);
        if let Some(pinned) = self.transfer.pinned() {
            least.meet(&pinned);
        }
        if !self.makes(Flaw::FoldNotClosed) {
            least = self.op_log.closed(least);
        }
        if self.makes(Flaw::FoldAboveH) {
            least = self.handout().causal_snapshot(self.config.dc);
        }
        self.pins.raise_folded(&least);
        let folded = self.pins.folded();
        self.raise_horizon(&folded);
        let (floors, dcs, everywhere) =
            (&self.op_floors, self.accepting(&folded), self.known_everywhere());
        let is_past = |id: &OpId, runs: &[Mark]| {
            floors.is_settled(dcs.clone(), &folded, id) && are_known(&everywhere, runs)
        };
        let count = self.op_log.fold_some(&folded, is_past);
        let is_pinned = !folded.covers(&self.uniform_vec);
        self.counters.folds_pinned += if is_pinned { count } else { 0 };
    }

    /// Raises the horizon of items to the time that all entries of a folded snapshot have reached.
    pub(super) fn raise_horizon(&mut self, folded: &Vector) {
        let horizon_us = self.horizon_us_of(folded);
        let above_us = if self.makes(Flaw::SettledAboveHorizon) { 1_000_000 } else { 0 };
        self.op_log.raise_horizon(horizon_us.saturating_add(above_us));
    }

    /// Returns the time that all entries of a folded snapshot have reached, in microseconds.
    pub(super) fn horizon_us_of(&self, folded: &Vector) -> u64 {
        if self.makes(Flaw::HorizonOfOwnEntry) {
            return folded[self.config.dc].micros();
        }
        let causal_us = self.causal_horizon_us(folded);
        if self.makes(Flaw::HorizonWithoutStrong) {
            return causal_us;
        }
        causal_us.min(folded[DcId::STRONG].micros())
    }

    /// Returns the time that the entries of all data centers have reached, in microseconds.
    fn causal_horizon_us(&self, folded: &Vector) -> u64 {
        let entries = self.accepting(folded).map(|dc| folded[dc].micros());
        entries.min().unwrap_or_default()
    }

    /// Returns a strong timestamp that this partition should reach, because items wait for the
    /// horizon and only the entry of strong transactions holds it back.
    pub fn strong_wanted(&self) -> Option<Timestamp> {
        let folded = self.pins.folded();
        let causal_us = self.causal_horizon_us(&folded);
        let due_us = self.op_log.first_due_us()?;
        let is_held_back = folded[DcId::STRONG].micros() < due_us
            && due_us.saturating_add(STRONG_LAG_US) <= causal_us;
        is_held_back.then(|| Timestamp::new(causal_us, self.config.partition))
    }

    /// Returns the transactions that the replicas of this partition at all member data centers have
    /// reported.
    pub(super) fn known_everywhere(&self) -> Vector {
        let others = self.others_in().map(|dc| self.global_matrix[usize::from(dc.0)]);
        let least = others.reduce(|mut least, known_vec| {
            least.meet(&known_vec);
            least
        });
        least.unwrap_or(self.known_vec)
    }
}

/// True if all these runs of an operation are known, or there is only one.
pub(super) fn are_known(known_vec: &Vector, runs: &[Mark]) -> bool {
    // A single run carries no information about another one.
    let are_several = runs.len() > 1;
    let mut versions = runs.iter().map(|run| run.version);
    !are_several || versions.all(|version| version.timestamp <= known_vec[version.origin])
}
