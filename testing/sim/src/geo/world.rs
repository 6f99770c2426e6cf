//! The world of one run: replicas with disks and clocks, links between them, clients.
//!
//! The next event is a function of the plan. Time is simulated; nothing waits in real time.

use std::collections::{BTreeMap, BTreeSet};

use mingle_checker::geo::{FaultKind, Item};
use mingle_geo::flaw::Flaw;
use mingle_geo::message::RaiseFloor;
use mingle_geo::session::Floor;
use mingle_geo::wire::{VERSION, put_parcel, take_parcels};
use mingle_geo::{Address, DcId, Message, PartitionId, Record};
use mingle_geo_node::{Node as Process, Outgoing, take_entry};
use mingle_model::random::Random;

use super::client::Client;
use super::fault::{Event, Fault, Kept};
use super::links::{Links, Trip};
use super::live::Blame;
use super::node::{Machine, Node};
use super::plan::Plan;
use super::queue::Queue;
use super::reach::{Met, Reach, Seen};
use super::record::Recorder;
use super::rejoin::Rejoin;
use super::script::HELPED;
use super::setup::{Setup, within};
use super::told::Told;
use crate::workload::promises::Broken;

/// An event of the simulation.
pub(super) enum Happening {
    /// A message arrives, if the connection on which it was sent still exists.
    Deliver { epoch: u32, parcel: Parcel },
    /// A replica's tick.
    Tick { node: usize, life: u32 },
    /// A disk write ends.
    Written { node: usize, life: u32 },
    /// A replica restarts.
    Restart { node: usize },
    /// A client's think time or a session's timer ends.
    Wake { client: usize, session: u64 },
    /// A fault of the schedule begins.
    Begin { fault: usize },
    /// A fault of the schedule ends.
    End { fault: usize },
    /// The world takes a periodic sample.
    Sample,
    /// Floors of operation ids are raised.
    RaiseFloors,
    /// The request to give up a data center is repeated.
    Fence { dc: u8 },
    /// The progress of an admission is checked.
    Admit { dc: u8 },
    /// A message of an earlier incarnation arrives.
    Late,
}

/// A message on its way, as bytes.
#[derive(Clone)]
pub(super) struct Parcel {
    pub from: usize,
    pub to: usize,
    /// The session of the client, if one sends or receives the message.
    pub session: u64,
    pub is_ordered: bool,
    pub frame: Vec<u8>,
}

/// The promise that all bytes are understood.
pub(super) const UNDERSTOOD: &str = "what was written can be read";

/// The promise that a journal has everything that has left its process.
const KEPT: &str = "no other data center knows more than a journal";

/// The address of the process that raises floors; no session has it.
pub(super) const KEEPER: u64 = u64::MAX - 1;

/// The interval of the samples of visible data, in microseconds.
const SAMPLE_US: u64 = 40_000;

pub(super) struct World<'a> {
    pub plan: &'a Plan,
    pub setup: &'a Setup,
    pub now_us: u64,
    pub queue: Queue<Happening>,
    pub random: Random,
    pub nodes: Vec<Node>,
    pub clients: Vec<Client>,
    /// For each process and data center, as recorded: what it has acknowledged.
    pub floors: BTreeMap<(u64, u8), Floor>,
    pub links: Links,
    pub recorder: Recorder,
    pub reach: Reach,
    /// The lost data centers, as bits.
    pub lost: u8,
    /// The data centers that are being given up, until the others agree, as bits.
    pub fencing: u8,
    /// The data centers of `fencing` whose cut was seen to settle, as bits.
    pub settling: u8,
    pub rejoin: Rejoin,
    /// True if faults are over.
    /// Items that a replica does not remember in the end.
    pub forgotten: BTreeSet<Item>,
    pub is_healed: bool,
    pub events: u64,
    /// The counts of committed updating transactions, read-only transactions and faults.
    pub committed: u64,
    pub read: u64,
    pub struck: u64,
    /// The highest helped transaction with an executed operation.
    pub helped_most: u64,
    pub blame: Blame,
    /// By data center.
    pub told: Vec<Told>,
    /// The counters of replicas that are gone.
    pub met: Met,
    /// The recorded faults of each fault in the schedule.
    pub noted: BTreeMap<usize, Vec<usize>>,
    /// The sum of the absolute clock steps, in microseconds.
    pub stepped_most_us: u64,
    /// The first promise that was seen not to hold.
    pub broken: Option<Broken>,
    /// The events, line by line, if a trace is wanted.
    pub trace: Option<Vec<String>>,
}

impl<'a> World<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let setup = &plan.setup;
        let (dcs, partitions) = (setup.config.dc_count, setup.config.partition_count);
        let places = (0..dcs).flat_map(|dc| (0..partitions).map(move |at| (dc, at)));
        let nodes: Vec<Node> = places
            .zip(&setup.skews)
            .map(|((dc, partition), skew)| {
                Node::new(dc, partition, plan.process((dc, partition, 0), [], true), *skew)
            })
            .collect();
        let mut world = Self {
            plan,
            setup,
            now_us: 0,
            queue: Queue::new(),
            random: Random::new(plan.seed ^ 0x0060_b0a1),
            links: Links::new(nodes.len(), setup.clients, &setup.network),
            nodes,
            clients: Vec::new(),
            floors: BTreeMap::new(),
            recorder: Recorder::new(setup, &plan.schedule),
            reach: Reach::default(),
            lost: 0,
            fencing: 0,
            settling: 0,
            rejoin: Rejoin::new(plan.seed, setup, &plan.schedule),
            forgotten: BTreeSet::new(),
            is_healed: false,
            events: 0,
            committed: 0,
            read: 0,
            struck: 0,
            helped_most: 0,
            blame: Blame::new(setup),
            told: vec![None; usize::from(dcs)],
            met: Met::default(),
            noted: BTreeMap::new(),
            stepped_most_us: 0,
            broken: None,
            trace: None,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        self.note_setup();
        for node in 0..self.nodes.len() {
            let at_us = within(&mut self.random, (0, self.setup.config.tick_ms * 1_000));
            self.queue.push(at_us, Happening::Tick { node, life: 0 });
        }
        let mut acts: Vec<Vec<usize>> = vec![Vec::new(); self.setup.clients];
        for (index, event) in self.plan.schedule.iter().enumerate() {
            match event {
                Event::Fault { at_us, .. } => {
                    self.queue.push(*at_us, Happening::Begin { fault: index });
                }
                Event::Act { client, index } => acts[*client].push(*index),
            }
        }
        for (slot, mut acts) in acts.into_iter().enumerate() {
            acts.reverse();
            self.open_client(slot, acts);
        }
        self.queue.push(SAMPLE_US, Happening::Sample);
        if self.setup.floor_every_us > 0 {
            self.queue.push(self.setup.floor_every_us, Happening::RaiseFloors);
        }
    }

    /// Raises the floors. The process that runs the helped transactions announces which of them are
    /// over. It repeats this each time with the current state, so it ignores the answers.
    fn raise_floors(&mut self) {
        let sequence = self.helped_most.saturating_sub(self.setup.floor_lag);
        for node in 0..self.nodes.len() {
            let raise = RaiseFloor { origin: HELPED, sequence };
            self.send(self.nodes.len(), node, KEEPER, &Message::RaiseFloor(raise));
        }
        self.queue.push(self.now_us + self.setup.floor_every_us, Happening::RaiseFloors);
    }

    pub fn index_of(&self, dc: u8, partition: u16) -> usize {
        usize::from(dc) * usize::from(self.setup.config.partition_count) + usize::from(partition)
    }

    pub fn is_lost(&self, dc: u8) -> bool {
        self.lost >> dc & 1 == 1
    }

    /// Returns the data centers that are not lost.
    pub fn living(&self) -> impl Iterator<Item = u8> + use<> {
        let lost = self.lost;
        (0..self.setup.config.dc_count).filter(move |dc| lost >> dc & 1 == 0)
    }

    /// Adds a line to the trace, if one is wanted.
    pub fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>12} {}", self.now_us, line()));
        }
    }

    pub fn breaks(&mut self, promise: &'static str, how: String) {
        self.broken.get_or_insert(Broken { promise, how });
    }

    /// Handles the next event; false if none is left or a promise was broken.
    pub fn step(&mut self) -> bool {
        let Some((at_us, happening)) = self.queue.pop() else { return false };
        self.now_us = at_us;
        self.events += 1;
        match happening {
            Happening::Deliver { epoch, parcel } => self.deliver(epoch, parcel),
            Happening::Tick { node, life } => self.tick(node, life),
            Happening::Written { node, life } => self.on_written(node, life),
            Happening::Restart { node } => self.restart(node),
            Happening::Wake { client, session } => self.wake_client(client, session),
            Happening::Begin { fault } => self.begin(fault),
            Happening::End { fault } => self.end(fault),
            Happening::Sample => {
                self.sample();
                self.queue.push(self.now_us + SAMPLE_US, Happening::Sample);
            }
            Happening::RaiseFloors => self.raise_floors(),
            Happening::Fence { dc } => self.ask_for_fence(dc),
            Happening::Admit { dc } => self.go_on_admitting(dc),
            Happening::Late => self.come_late(),
        }
        self.broken.is_none()
    }

    /// Runs until `until_us` or until a promise is broken.
    pub fn run_until(&mut self, until_us: u64) {
        while self.queue.next_us().is_some_and(|at_us| at_us <= until_us) {
            if !self.step() {
                return;
            }
        }
        self.now_us = until_us;
    }

    fn deliver(&mut self, epoch: u32, parcel: Parcel) {
        let Parcel { from, to, session, .. } = parcel;
        let takes_replayed = self.plan.flaw == Some(Flaw::FrameReplayed);
        if self.links.epoch(from, to) != epoch && !takes_replayed {
            self.reach.saw(Seen::LostInFlight);
            return;
        }
        if let Some(node) = self.nodes.get(to) {
            if node.process.is_none() {
                return;
            }
            if node.paused_until_us > self.now_us {
                let at_us = node.paused_until_us;
                return self.queue.push(at_us, Happening::Deliver { epoch, parcel });
            }
        }
        let mut taken = Vec::new();
        if let Err(error) = take_parcels(VERSION, &parcel.frame, |parcel| taken.push(parcel)) {
            return self.breaks(UNDERSTOOD, error.to_string());
        }
        for parcel in taken {
            if to < self.nodes.len() {
                self.receive(to, parcel);
            } else {
                let slot = to - self.nodes.len();
                self.on_message_to_client(slot, session, parcel.from, parcel.message);
            }
        }
    }

    /// Handles a message that has arrived at a process.
    fn receive(&mut self, to: usize, parcel: mingle_geo::wire::Parcel) {
        self.see_message(&parcel.message);
        self.see_late(to, &parcel.message);
        if self.trace.is_some() && is_telling(&parcel.message) {
            let node = &self.nodes[to];
            let (dc, partition) = (node.dc, node.partition);
            let (from, message) = (parcel.from, &parcel.message);
            self.tell(|| format!("{from:?} to d{dc} p{partition}: {message:?}"));
        }
        if self.nodes[to].earlier.is_some() {
            self.on_earlier(to, parcel.clone());
        }
        self.on_process(to, |process, machine| process.receive(parcel, machine));
    }

    fn tick(&mut self, index: usize, life: u32) {
        let node = &self.nodes[index];
        if node.life != life || node.process.is_none() {
            return;
        }
        if node.paused_until_us > self.now_us {
            let at_us = node.paused_until_us;
            return self.queue.push(at_us, Happening::Tick { node: index, life });
        }
        self.on_process(index, |process, machine| process.tick(machine));
        let node = &self.nodes[index];
        let Some(tick_us) = node.process.as_ref().and_then(Process::tick_at_us) else { return };
        let at_us = node.started_us + tick_us + node.slow_us;
        self.queue.push(at_us, Happening::Tick { node: index, life });
    }

    /// Calls a process, unless it is down.
    pub fn on_process(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut Process, &mut Machine<'_, '_>),
    ) {
        let Some(mut process) = self.nodes[index].process.take() else { return };
        call(&mut process, &mut Machine { world: self, index });
        let (alarms, outdated) = (process.take_alarms(), process.outdated());
        self.nodes[index].process = Some(process);
        if let Some(outdated) = outdated.filter(|_| !self.nodes[index].has_lost_disk) {
            self.breaks(KEPT, outdated.to_string());
        }
        for (_, alarm) in alarms {
            self.on_alarm(index, &alarm);
        }
    }

    /// Begins to write the appended entries to the disk of a machine.
    pub fn write(&mut self, index: usize) {
        let node = &self.nodes[index];
        let (life, slow_us) = (node.life, node.slow_us);
        let takes_us = within(&mut self.random, self.setup.network.disk_us);
        let at_us = self.now_us + takes_us + slow_us;
        self.queue.push(at_us, Happening::Written { node: index, life });
    }

    fn on_written(&mut self, index: usize, life: u32) {
        let node = &mut self.nodes[index];
        if node.life != life || node.process.is_none() {
            return;
        }
        if node.paused_until_us > self.now_us {
            let at_us = node.paused_until_us;
            return self.queue.push(at_us, Happening::Written { node: index, life });
        }
        if node.full > 0 {
            node.is_stalled = true;
            self.reach.saw(Seen::DiskFull);
            return;
        }
        if let Some(down_us) = node.fails_next.take() {
            self.reach.saw(Seen::WriteFailed);
            let (dc, partition) = (node.dc, node.partition);
            let noted = self.recorder.wrong(FaultKind::Down { dc, partition }, self.now_us);
            self.recorder.put_right(noted, self.now_us + down_us);
            self.blame(Fault::FailedWrite { dc, partition }, self.now_us + down_us);
            self.stop(index, Kept::Torn);
            self.nodes[index].down += 1;
            return self.queue.push(self.now_us + down_us, Happening::Restart { node: index });
        }
        self.finish_write(index);
    }

    /// Handles the end of a write: the entries are on disk.
    fn finish_write(&mut self, index: usize) {
        let entries = self.nodes[index].disk.end();
        self.see_entries(index, &entries);
        self.on_process(index, |process, machine| process.synced(machine));
    }

    /// Records the entries that have reached a disk.
    pub fn see_entries(&mut self, index: usize, entries: &[Vec<u8>]) {
        for entry in entries {
            let record = match take_entry(entry) {
                Ok((_, record)) => record,
                Err(error) => return self.breaks(UNDERSTOOD, error.to_string()),
            };
            let node = &self.nodes[index];
            let (dc, partition) = (node.dc, node.partition);
            self.recorder.on_record((dc, node.incarnation), partition, &record);
            if self.trace.is_some() && !matches!(record, Record::Vectors(_)) {
                self.tell(|| format!("d{dc} p{partition} wrote {record:?}"));
            }
        }
    }

    /// Sends a message of a process.
    pub fn send_from_node(&mut self, from: usize, outgoing: Outgoing) {
        let Outgoing { to, is_ordered, frame } = outgoing;
        let (to, session) = match to {
            Address::Replica(dc, partition) => (self.index_of(dc.0, partition.0), 0),
            Address::Client(session) => {
                let slot = (session % self.setup.clients as u64) as usize;
                (self.nodes.len() + slot, session)
            }
        };
        self.carry(Parcel { from, to, session, is_ordered, frame });
    }

    /// Sends a message of a client to a replica.
    pub fn send(&mut self, from: usize, to: usize, session: u64, message: &Message) {
        let node = &self.nodes[to];
        let address = Address::Replica(DcId(node.dc), PartitionId(node.partition));
        let mut frame = Vec::new();
        put_parcel(&mut frame, Address::Client(session), address, message);
        self.carry(Parcel { from, to, session, is_ordered: false, frame });
    }

    /// Gives a message to the network.
    fn carry(&mut self, parcel: Parcel) {
        self.keep_for_late(&parcel);
        let Parcel { from, to, is_ordered, .. } = parcel;
        let is_far = self.is_far(from, to);
        let slow_us = self.nodes.get(to).map_or(0, |node| node.slow_us);
        let trip = Trip { from, to, is_far, slow_us, is_ordered };
        let ways = self.links.ways(&mut self.random, self.now_us, &trip);
        for _ in 1..ways.count {
            self.reach.saw(Seen::Repeated);
        }
        let epoch = self.links.epoch(from, to);
        if is_ordered && self.plan.flaw == Some(Flaw::FrameReplayed) {
            let at_us = self.now_us + within(&mut self.random, (0, 3_000_000));
            self.queue.push(at_us, Happening::Deliver { epoch, parcel: parcel.clone() });
        }
        if ways.count > 1 {
            let parcel = parcel.clone();
            self.queue.push(ways.at_us[1], Happening::Deliver { epoch, parcel });
        }
        if ways.count > 0 {
            self.queue.push(ways.at_us[0], Happening::Deliver { epoch, parcel });
        }
    }

    /// True if a message goes between data centers; a client is at its session's data center.
    fn is_far(&self, from: usize, to: usize) -> bool {
        let dc = |at: usize| match self.nodes.get(at) {
            Some(node) => node.dc,
            None => self.clients[at - self.nodes.len()].dc(),
        };
        dc(from) != dc(to)
    }
}

/// True if a message carries more than progress vectors.
fn is_telling(message: &Message) -> bool {
    match message {
        Message::KnownVecLocal(_) | Message::UniformVecLocal(_) | Message::SiblingVecs(_) => false,
        Message::Replicate(replicate) => !replicate.transactions.is_empty(),
        _ => true,
    }
}
