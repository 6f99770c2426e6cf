//! One replica with its machine: its clock, and its disk.
//!
//! A shell has to decide what the core leaves to it; this one's decisions:
//!
//! - What is to be written while a write is under way goes with the next one, together.
//! - After a failed write nothing is known of what the log has, so the replica stops, and a restart reads
//!   what is there. It is not tried again on the same log.
//! - A full disk makes writes wait until there is room. What rests on them waits too, so nothing is
//!   acknowledged; reads of what is on disk go on. The replica need not know.
//! - A log is written anew, as a checkpoint, when it has grown long and nothing is on its way to it.

use std::collections::VecDeque;

use mingle_geo::{Now, Persist, Record, StrongReplica};

use super::setup::Skew;

/// Simulated time begins here: 2026-11-20.
pub(super) const EPOCH_US: u64 = 1_795_132_800_000_000;

/// A machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MachineClock {
    pub skew: Skew,
    pub stepped_us: i64,
}

impl MachineClock {
    pub fn wall_us(&self, now_us: u64) -> u64 {
        let drifted = (now_us as i64 / 1_000).saturating_mul(self.skew.drift_us) / 1_000;
        let by_us = self.skew.by_us + self.stepped_us + drifted;
        let wall_us = (EPOCH_US + now_us).saturating_add_signed(by_us);
        wall_us - wall_us % self.skew.grain_us
    }
}

/// A replica, its disk and its clock.
pub(super) struct Node {
    pub dc: u8,
    pub partition: u16,
    /// Which incarnation of its data center runs here, or ran last.
    pub incarnation: u32,
    /// None while it is down.
    pub replica: Option<StrongReplica>,
    /// What is on disk.
    pub log: Vec<Record>,
    /// What is to be written, in order; the first `writing` of it is being written.
    pub unwritten: VecDeque<Persist>,
    pub writing: usize,
    /// How many faults keep the disk full.
    pub full: u32,
    /// Whether a write is over as soon as there is room.
    pub is_stalled: bool,
    /// Whether the next write fails, and for how long the replica is down then.
    pub fails_next: Option<u64>,
    pub clock: MachineClock,
    /// Counts its starts; what was scheduled for an earlier one is void.
    pub life: u32,
    /// When it was last started: its monotonic clock counts from there.
    pub started_us: u64,
    /// How many faults keep it down.
    pub down: u32,
    /// Its disk has lost what it wrote.
    pub has_lost_disk: bool,
    /// It stands still until then.
    pub paused_until_us: u64,
    /// It handles everything so much later.
    pub slow_us: u64,
}

impl Node {
    pub fn new(dc: u8, partition: u16, replica: StrongReplica, skew: Skew) -> Self {
        Self {
            dc,
            partition,
            incarnation: 0,
            replica: Some(replica),
            log: Vec::new(),
            unwritten: VecDeque::new(),
            writing: 0,
            full: 0,
            is_stalled: false,
            fails_next: None,
            clock: MachineClock { skew, stepped_us: 0 },
            life: 0,
            started_us: 0,
            down: 0,
            has_lost_disk: false,
            paused_until_us: 0,
            slow_us: 0,
        }
    }

    pub fn now(&self, now_us: u64) -> Now {
        Now { wall_us: self.clock.wall_us(now_us), mono_us: now_us - self.started_us }
    }

    /// Takes what was being written off the queue.
    pub fn take_written(&mut self) -> Vec<Persist> {
        let count = std::mem::take(&mut self.writing);
        self.unwritten.drain(..count).collect()
    }
}
