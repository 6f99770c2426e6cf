//! One replica with its machine: its clock, and its disk.
//!
//! The core leaves some decisions to its shell; this shell decides as follows:
//!
//! - Writes that arrive while a write is under way go together into the next one.
//! - After a failed write the contents of the log are unknown, so the replica stops, and a restart
//!   reads the log. The write is not retried on the same log.
//! - A full disk delays writes until there is room. Outputs that depend on them wait too, so
//!   nothing is acknowledged; reads of data on disk continue. The replica need not know.
//! - A log is rewritten as a checkpoint when it has grown long and no write to it is under way.

use std::collections::VecDeque;

use mingle_geo::{Now, Persist, Record, StrongReplica};

use super::setup::Skew;

/// The start of simulated time: 2026-11-20.
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

/// A replica with its disk and its clock.
pub(super) struct Node {
    pub dc: u8,
    pub partition: u16,
    /// The incarnation of the data center that runs here, or ran last.
    pub incarnation: u32,
    /// The replica; `None` while it is down.
    pub replica: Option<StrongReplica>,
    /// The records on disk.
    pub log: Vec<Record>,
    /// The queue of writes; the first `writing` of them are being written.
    pub unwritten: VecDeque<Persist>,
    pub writing: usize,
    /// The number of faults that keep the disk full.
    pub full: u32,
    /// True if the current write ends as soon as there is room.
    pub is_stalled: bool,
    /// The down time after the next write, if that write is to fail.
    pub fails_next: Option<u64>,
    pub clock: MachineClock,
    /// The number of starts; events scheduled for an earlier start are void.
    pub life: u32,
    /// The time of the last start: the monotonic clock counts from there.
    pub started_us: u64,
    /// The number of faults that keep the replica down.
    pub down: u32,
    /// True if the disk has lost its data.
    pub has_lost_disk: bool,
    /// The time until which the replica stands still.
    pub paused_until_us: u64,
    /// The delay with which the replica handles every input, in microseconds.
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

    /// Removes the finished writes from the queue.
    pub fn take_written(&mut self) -> Vec<Persist> {
        let count = std::mem::take(&mut self.writing);
        self.unwritten.drain(..count).collect()
    }
}
