//! Liveness of the run: the permitted reasons and times of waiting.

use mingle_checker::geo::{FaultKind, What};
use mingle_geo::{DcId, Timestamp, Vector};

use super::fault::Fault;
use super::setup::Setup;
use super::world::World;

/// The longest time that any step may take without a fault to blame, in microseconds.
pub(super) const PROGRESS_US: u64 = 5_000_000;

/// The longest time that a strong transaction may take without a fault to blame, in microseconds.
const STRONG_US: u64 = 10_000_000;

/// The time after its end for which a fault may still be blamed, in microseconds.
const AFTER_US: u64 = 2_500_000;

/// Clock differences above this count as a fault, in microseconds.
const SPREAD_US: u64 = 4_000_000;

/// The times until which faults may be blamed.
#[derive(Debug, Default)]
pub(super) struct Blame {
    /// The time for each data center's own work.
    near_until_us: Vec<u64>,
    /// The time for the joint work of data centers.
    far_until_us: u64,
    /// The time for joint work, without the faults that take whole data centers away.
    common_until_us: u64,
    /// The data centers that are away (as bits), with the begin and end of the time in which they
    /// may be blamed.
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

    /// Returns the time until which a data center may blame a fault for joint work that can proceed
    /// without `f` of the others.
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

    /// True if other data centers have been away for so long that strong transactions here must
    /// proceed without them.
    pub fn has_others_apart(&self, dc: u8, now_us: u64) -> bool {
        self.away.iter().any(|(set, from_us, until_us)| {
            set >> dc & 1 == 0 && from_us + STRONG_US <= now_us && now_us + AFTER_US < *until_us
        })
    }
}

impl World<'_> {
    /// Records the faults of the setup that last for the whole run.
    pub fn note_setup(&mut self) {
        let until_us = self.blame.far_until_us;
        if until_us == u64::MAX {
            let dcs = (0..self.setup.config.dc_count).collect();
            let name = "clocks far apart, or small limits".to_owned();
            self.recorder.wrong(FaultKind::Other { name, dcs }, 0);
        }
    }

    /// Lets work that depends on the fault wait until `until_us`.
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

    /// Checks that clients make progress. Reads and commits need one data center only, so another's
    /// faults do not excuse waiting.
    pub fn check_progress(&mut self) {
        let now_us = self.now_us;
        for slot in 0..self.clients.len() {
            let client = &self.clients[slot];
            let (id, dc) = (client.id, client.dc());
            let mut near_us = self.blame.near_until_us[usize::from(dc)];
            if self.asks_elsewhere(slot) {
                // Only the data center that was asked first may know the outcome.
                near_us = near_us.max(self.blame.far_until_us);
            }
            if client.session.past_vec()[DcId::STRONG] > Timestamp::ZERO {
                // The client may wait for the strong part of its past, and that part for other data
                // centers.
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
                // Faults that keep the data center from getting the missing data are an excuse too.
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
            // Data centers that are given up or coming up do not count among the `f` that may be
            // missing.
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

    /// True if the client asks for a commit at another data center than the first one that it
    /// asked.
    fn asks_elsewhere(&self, slot: usize) -> bool {
        let client = &self.clients[slot];
        let call = client.unanswered.map(|call| &client.record.calls[call].what);
        let dc = self.recorder.dc_of(&client.session);
        matches!(call, Some(What::Transaction(transaction)) if transaction.dc != dc)
    }

    /// True if all replicas of a data center have the state that any of them was brought up to; a
    /// state transfer brings up one partition after the other.
    fn is_whole(&self, dc: u8) -> bool {
        let of_dc = self.nodes.iter().filter(|node| node.dc == dc);
        let replicas: Vec<_> = of_dc.filter_map(|node| node.replica()).collect();
        let mut brought_up = Vector::ZERO;
        for replica in &replicas {
            brought_up.join(&replica.replica().folded_vec());
        }
        replicas.iter().all(|replica| replica.replica().known_vec().covers(&brought_up))
    }

    /// True if a data center may blame a fault for its own work.
    pub fn is_blamed(&self, dc: u8) -> bool {
        self.now_us < self.blame.near_until_us[usize::from(dc)]
    }

    /// Excuses every wait for a data center that is given up.
    pub fn blame_for_ever(&mut self, dc: u8) {
        self.blame.near_until_us[usize::from(dc)] = u64::MAX;
    }

    /// Ends the excuse of a data center that is back.
    pub fn blame_no_longer(&mut self, dc: u8) {
        self.blame.near_until_us[usize::from(dc)] = self.blame.far_until_us;
    }

    /// Treats the healing as a fault that may be blamed: held messages have to arrive first.
    pub fn blame_healing(&mut self) {
        let until_us = self.now_us + AFTER_US;
        for near_until_us in &mut self.blame.near_until_us {
            *near_until_us = until_us.max(*near_until_us);
        }
        self.blame.far_until_us = until_us.max(self.blame.far_until_us);
        self.blame.common_until_us = until_us.max(self.blame.common_until_us);
    }
}
