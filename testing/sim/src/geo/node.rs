//! One machine: a process with the replica of one partition, a clock, and a disk.
//!
//! The process is the shell that ships ([`mingle_geo_node`]). After a failed sync it is dropped, and
//! another is restored from the disk. A full disk delays syncs until there is room: messages that
//! depend on them wait too, so nothing is acknowledged, and reads of data on disk continue.

use mingle_geo::wire::Parcel;
use mingle_geo::{Now, StrongReplica};
use mingle_geo_node::{Journal, MemoryJournal, Node as Process, Outgoing, Time, Transport};

use super::reach::Seen;
use super::setup::Skew;
use super::world::World;

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

/// A machine.
pub(super) struct Node {
    pub dc: u8,
    pub partition: u16,
    /// The incarnation of the data center that runs here, or ran last.
    pub incarnation: u32,
    /// The process; `None` while it is down, and while it handles a call.
    pub process: Option<Process>,
    pub disk: MemoryJournal,
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
    /// The process of the start before, if it goes on (a planted mistake).
    pub earlier: Option<Earlier>,
    /// True while the earlier process runs in place of the other one.
    is_earlier: bool,
    /// True if the earlier process has begun a sync.
    is_earlier_syncing: bool,
}

/// A process that goes on after another one has taken its place.
pub(super) struct Earlier {
    process: Option<Process>,
    disk: MemoryJournal,
    started_us: u64,
    incarnation: u32,
}

impl Node {
    pub fn new(dc: u8, partition: u16, process: Process, skew: Skew) -> Self {
        Self {
            dc,
            partition,
            incarnation: 0,
            process: Some(process),
            disk: MemoryJournal::default(),
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
            earlier: None,
            is_earlier: false,
            is_earlier_syncing: false,
        }
    }

    /// Keeps a process that is to go on after the next start, with the disk as it is now.
    pub fn keep_earlier(&mut self, process: Process) {
        let (disk, started_us, incarnation) =
            (self.disk.clone(), self.started_us, self.incarnation);
        self.earlier = Some(Earlier { process: Some(process), disk, started_us, incarnation });
        // A sync may be under way. It ends with the first message.
        self.is_earlier_syncing = true;
    }

    fn exchange(&mut self, earlier: &mut Earlier) {
        std::mem::swap(&mut self.process, &mut earlier.process);
        std::mem::swap(&mut self.disk, &mut earlier.disk);
        std::mem::swap(&mut self.started_us, &mut earlier.started_us);
        self.is_earlier = !self.is_earlier;
    }

    pub fn now(&self, now_us: u64) -> Now {
        Now { wall_us: self.clock.wall_us(now_us), mono_us: now_us - self.started_us }
    }

    /// Returns the replica, unless it is down.
    pub fn replica(&self) -> Option<&StrongReplica> {
        self.process.as_ref()?.replicas().next()
    }
}

impl World<'_> {
    /// Gives a message to the earlier process of a machine, if there is one. Its disk is fast.
    pub fn on_earlier(&mut self, index: usize, parcel: Parcel) {
        let node = &mut self.nodes[index];
        let Some(mut earlier) = node.earlier.take_if(|it| it.incarnation == node.incarnation)
        else {
            return;
        };
        node.exchange(&mut earlier);
        self.on_process(index, |process, machine| {
            process.receive(parcel, machine);
            process.tick(machine);
        });
        while std::mem::take(&mut self.nodes[index].is_earlier_syncing) {
            self.nodes[index].disk.end();
            self.on_process(index, |process, machine| process.synced(machine));
        }
        self.nodes[index].exchange(&mut earlier);
        self.nodes[index].earlier = Some(earlier);
    }
}

/// The outside of a process that handles a call.
pub(super) struct Machine<'a, 'b> {
    pub world: &'a mut World<'b>,
    pub index: usize,
}

impl Time for Machine<'_, '_> {
    fn now(&self) -> Now {
        self.world.nodes[self.index].now(self.world.now_us)
    }
}

impl Transport for Machine<'_, '_> {
    fn send(&mut self, outgoing: Outgoing) {
        self.world.send_from_node(self.index, outgoing);
    }
}

impl Journal for Machine<'_, '_> {
    fn append(&mut self, entry: &[u8]) {
        self.world.nodes[self.index].disk.append(entry);
    }

    fn sync(&mut self) {
        let node = &mut self.world.nodes[self.index];
        node.disk.begin();
        if node.is_earlier {
            node.is_earlier_syncing = true;
        } else {
            self.world.write(self.index);
        }
    }

    fn length(&self) -> usize {
        self.world.nodes[self.index].disk.length()
    }

    fn replace(&mut self, entries: Vec<Vec<u8>>) {
        self.world.nodes[self.index].disk.replace(&entries);
        self.world.reach.saw(Seen::Checkpoint);
    }
}
