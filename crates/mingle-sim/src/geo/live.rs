//! Whether the run goes on: what may be waited for, and for how long.

use mingle_checker::geo::{FaultKind, What};
use mingle_geo::{DcId, Timestamp, Vector};

use super::fault::Fault;
use super::setup::Setup;
use super::world::World;

/// Without a fault to blame, nothing takes longer than this, in microseconds.
const PROGRESS_US: u64 = 5_000_000;

/// Without a fault to blame, a strong transaction is over in this time, in microseconds.
const STRONG_US: u64 = 10_000_000;

/// A fault may be felt so much longer than it lasts.
const AFTER_US: u64 = 2_500_000;

/// Clocks that differ by more than this are a fault of their own.
const SPREAD_US: u64 = 4_000_000;

/// Until when faults may be blamed.
#[derive(Debug, Default)]
pub(super) struct Blame {
    /// By data center, for what it has to do by itself.
    near_until_us: Vec<u64>,
    /// For what data centers have to do together.
    far_until_us: u64,
    /// The same, but for data centers that are away as a whole.
    common_until_us: u64,
    /// These, as bits, from when on and until when they may be blamed.
    away: Vec<(u8, u64, u64)>,
}

impl Blame {
    pub fn new(setup: &Setup) -> Self {
        let (by_us, drift_us) = setup.spread_us();
        let after = setup.lasts_us / 1_000 * drift_us / 1_000;
        let until_us =
            if by_us + after > SPREAD_US || setup.has_small_limits() { u64::MAX } else { 0 };
        let near_until_us = vec![until_us; usize::from(setup.config.dc_count)];
        let (far_until_us, common_until_us, away) = (until_us, until_us, Vec::new());
        Self { near_until_us, far_until_us, common_until_us, away }
    }

    /// Until when a data center may blame a fault for what it has to do with the others, if it can do
    /// that without `f` of them.
    fn most_until_us(&self, dc: u8, f: u8) -> u64 {
        let mut until_us = self.common_until_us.max(self.near_until_us[usize::from(dc)]);
        loop {
            let still = self.away.iter().filter(|(_, _, away_us)| *away_us > until_us);
            let gone = still.clone().fold(0, |gone, (set, ..)| gone | set);
            if gone.count_ones() <= u32::from(f) && gone >> dc & 1 == 0 {
                return until_us;
            }
            until_us = still.map(|(_, _, away_us)| *away_us).min().unwrap_or(until_us);
        }
    }

    /// Whether others have been away for so long that strong transactions here go on without them.
    pub fn has_others_apart(&self, dc: u8, now_us: u64) -> bool {
        self.away.iter().any(|(set, from_us, until_us)| {
            set >> dc & 1 == 0 && from_us + STRONG_US <= now_us && now_us + AFTER_US < *until_us
        })
    }
}

impl World<'_> {
    /// Writes down what is wrong from the start to the end of a run.
    pub fn note_setup(&mut self) {
        let until_us = self.blame.far_until_us;
        if until_us == u64::MAX {
            let dcs = (0..self.setup.config.dc_count).collect();
            let name = "clocks far apart, or small limits".to_owned();
            self.recorder.wrong(FaultKind::Other { name, dcs }, 0);
        }
    }

    /// What has to wait for a fault may do so until then.
    pub fn blame(&mut self, fault: Fault, until_us: u64) {
        let until_us = until_us + AFTER_US;
        if let Some(set) = fault.takes_away(self.setup.config.dc_count) {
            self.blame.away.push((set, self.now_us, until_us));
        } else {
            self.blame.common_until_us = until_us.max(self.blame.common_until_us);
        }
        let near = match fault {
            Fault::Crash { place, .. } | Fault::Pause { place } | Fault::Step { place, .. } => {
                Some(place.dc())
            }
            Fault::FailedWrite { dc, .. } | Fault::FullDisk { dc, .. } | Fault::Slow { dc, .. } => {
                Some(dc)
            }
            Fault::Reconnect { a, b } => (a == b).then_some(a),
            Fault::Cut { shape, .. } => shape.inside(),
            Fault::Delay { .. } | Fault::Vanish { .. } => None,
            Fault::Lossy { .. }
            | Fault::Lose { .. }
            | Fault::Fence { .. }
            | Fault::Admit { .. }
            | Fault::LoseDisk { .. }
            | Fault::Unplug { .. } => {
                for near_until_us in &mut self.blame.near_until_us {
                    *near_until_us = until_us.max(*near_until_us);
                }
                None
            }
        };
        if let Some(dc) = near {
            let near_until_us = &mut self.blame.near_until_us[usize::from(dc)];
            *near_until_us = until_us.max(*near_until_us);
        }
        self.blame.far_until_us = until_us.max(self.blame.far_until_us);
    }

    /// Reads and commits need one data center only: another's faults are no reason to wait.
    pub fn check_progress(&mut self) {
        let now_us = self.now_us;
        for slot in 0..self.clients.len() {
            let client = &self.clients[slot];
            let (id, dc) = (client.id, client.dc());
            let mut near_us = self.blame.near_until_us[usize::from(dc)];
            if self.asks_elsewhere(slot) {
                // What came of it only the data center may know that was asked for it.
                near_us = near_us.max(self.blame.far_until_us);
            }
            if client.session.past_vec()[DcId::STRONG] > Timestamp::ZERO {
                // It may have to wait for what is strong in its past, and that for other data centers.
                near_us = near_us.max(self.blame.far_until_us);
                near_us = near_us.saturating_add(STRONG_US - PROGRESS_US);
            }
            let is_stuck = |since_us: Option<u64>, blame_us: u64| {
                since_us.is_some_and(|since_us| {
                    now_us > since_us.max(blame_us).saturating_add(PROGRESS_US)
                })
            };
            let is_near = client.waits_far_since_us.is_none() && !self.is_left(slot);
            let is_excused = |near_us: u64| {
                // By faults that keep its data center from having the rest, too.
                !self.is_whole(dc)
                    && !is_stuck(client.waits_since_us, near_us.max(self.blame.far_until_us))
            };
            if is_near && is_stuck(client.waits_since_us, near_us) && !is_excused(near_us) {
                let how =
                    format!("session {id} at d{dc} waits for a read or commit, {:?}", client.stage);
                self.breaks("without a fault to blame reads and commits go on", how);
                return;
            }
            let client = &self.clients[slot];
            let far_us = self.blame.far_until_us.max(near_us);
            let is_late = |from_us: u64| {
                let since_us = client.waits_strong_since_us.map(|at_us| at_us.max(from_us));
                since_us.is_some_and(|at_us| now_us > at_us.saturating_add(STRONG_US))
            };
            // Those that are given up, or coming up, are no part of what goes on without `f`.
            let is_attached = client.waits_far_since_us.is_none() && !client.must_attach;
            let is_without = is_attached && self.lost | self.fencing == 0 && !self.is_admitting();
            let most_us = self.blame.most_until_us(dc, self.setup.config.f);
            let without_us = most_us.max(client.attached_us);
            if is_late(far_us) || is_without && is_late(without_us) {
                let how = format!("session {id} at d{dc}, {:?}", client.stage);
                self.breaks("without a fault to blame strong transactions go on", how);
                return;
            }
            if is_stuck(client.waits_far_since_us, far_us) && self.lost == 0 {
                let how = format!("session {id} at d{dc}, {:?}", client.stage);
                self.breaks("without a fault to blame barriers and attaches end", how);
                return;
            }
        }
    }

    /// Whether it asks for a commit at another data center than it was asked for at first.
    fn asks_elsewhere(&self, slot: usize) -> bool {
        let client = &self.clients[slot];
        let call = client.unanswered.map(|call| &client.record.calls[call].what);
        let dc = self.recorder.dc_of(&client.session);
        matches!(call, Some(What::Transaction(transaction)) if transaction.dc != dc)
    }

    /// Whether all replicas of a data center have what any of them was brought up to: a state transfer
    /// brings one partition after the other.
    fn is_whole(&self, dc: u8) -> bool {
        let of_dc = self.nodes.iter().filter(|node| node.dc == dc);
        let replicas: Vec<_> = of_dc.filter_map(|node| node.replica.as_ref()).collect();
        let mut brought_up = Vector::ZERO;
        for replica in &replicas {
            brought_up.join(&replica.replica().folded_vec());
        }
        replicas.iter().all(|replica| replica.replica().known_vec().covers(&brought_up))
    }

    /// Whether a fault may be blamed for what is waited for at a data center by itself.
    pub fn is_blamed(&self, dc: u8) -> bool {
        self.now_us < self.blame.near_until_us[usize::from(dc)]
    }

    /// From now on nobody need wait for a data center that is given up.
    pub fn blame_for_ever(&mut self, dc: u8) {
        self.blame.near_until_us[usize::from(dc)] = u64::MAX;
    }

    /// It is there again.
    pub fn blame_no_longer(&mut self, dc: u8) {
        self.blame.near_until_us[usize::from(dc)] = self.blame.far_until_us;
    }

    /// Healing is a fault to blame too: what was held back has to come first.
    pub fn blame_healing(&mut self) {
        let until_us = self.now_us + AFTER_US;
        for near_until_us in &mut self.blame.near_until_us {
            *near_until_us = until_us.max(*near_until_us);
        }
        self.blame.far_until_us = until_us.max(self.blame.far_until_us);
        self.blame.common_until_us = until_us.max(self.blame.common_until_us);
    }
}
