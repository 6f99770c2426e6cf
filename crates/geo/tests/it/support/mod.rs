//! A simulated world: replicas, their disks, links and clocks, and sessions.
//!
//! It is deterministic: each event is a function of the seed and of the script. Time is simulated, and
//! no real time is waited for.

#![allow(dead_code)]

pub mod check;
mod client;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mingle_geo::wire::{Parcel, VERSION, put_parcel, put_record, take_parcels, take_record};
use mingle_geo::{
    Address, Alarm, Config, DcId, Envelope, Event, Input, Key, Kind, Now, Output, PartitionId,
    Persist, Record, Replica, Session, State,
};
use mingle_model::Value;
use mingle_model::random::Random;

/// Simulated time begins here.
pub const EPOCH_US: u64 = 1_700_000_000_000_000;

/// The fate of a message in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Drop,
    Hold,
}

/// The network's delays, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    pub near_us: (u64, u64),
    pub far_us: (u64, u64),
    pub is_fifo: bool,
    /// One message in this many is lost, or arrives twice; 0 for none.
    pub lost_one_in: usize,
    pub twice_one_in: usize,
    pub disk_us: (u64, u64),
}

impl Network {
    /// A network without faults.
    pub const CALM: Self = Self {
        near_us: (200, 200),
        far_us: (20_000, 20_000),
        is_fifo: true,
        lost_one_in: 0,
        twice_one_in: 0,
        disk_us: (100, 100),
    };
}

fn bytes_of(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_record(&mut bytes, record);
    bytes
}

type Filter = Box<dyn FnMut(Address, &Envelope) -> Verdict>;

pub struct World {
    pub configs: BTreeMap<(u8, u16), Config>,
    pub nodes: BTreeMap<(u8, u16), Node>,
    pub sessions: BTreeMap<u64, Session>,
    pub events: VecDeque<(u64, Event)>,
    /// Messages to addresses without a session.
    pub inbox: Vec<(Address, Envelope)>,
    pub alarms: Vec<((u8, u16), Alarm)>,
    pub network: Network,
    pub random: Random,
    /// Links that are down, from data center to data center.
    pub down: BTreeSet<(u8, u8)>,
    pub held: Vec<(Address, Envelope)>,
    pub now_us: u64,
    filter: Option<Filter>,
    queue: BTreeMap<(u64, u64), Happening>,
    sequence: u64,
    last_on_link: BTreeMap<(Address, Address), u64>,
}

pub struct Node {
    pub replica: Option<Replica>,
    /// Encoded records, as on a real disk.
    pub disk: Vec<Vec<u8>>,
    pub unwritten: VecDeque<Persist>,
    pub is_disk_stuck: bool,
    pub skew_us: i64,
    life: u64,
}

#[derive(Debug)]
enum Happening {
    Deliver(Address, Envelope),
    Tick((u8, u16), u64),
    Written((u8, u16), u64),
    SessionTick(u64),
}

impl World {
    /// `dcs` data centers of `partitions` each.
    pub fn new(dcs: u8, partitions: u16, seed: u64) -> Self {
        Self::with(dcs, partitions, seed, |_| {})
    }

    /// Like `new`, with adjusted settings.
    pub fn with(dcs: u8, partitions: u16, seed: u64, adjust: impl Fn(&mut Config)) -> Self {
        let mut world = Self {
            configs: BTreeMap::new(),
            nodes: BTreeMap::new(),
            sessions: BTreeMap::new(),
            events: VecDeque::new(),
            inbox: Vec::new(),
            alarms: Vec::new(),
            network: Network::CALM,
            random: Random::new(seed),
            down: BTreeSet::new(),
            held: Vec::new(),
            now_us: 0,
            filter: None,
            queue: BTreeMap::new(),
            sequence: 0,
            last_on_link: BTreeMap::new(),
        };
        for dc in 0..dcs {
            for partition in 0..partitions {
                let at = (dc, partition);
                let mut config = Config::new(DcId(dc), dcs, PartitionId(partition), partitions);
                config.tick_idle_ms = config.tick_ms;
                adjust(&mut config);
                let replica = Some(Replica::new(config.clone()).expect("settings"));
                world.configs.insert(at, config);
                let node = Node {
                    replica,
                    disk: Vec::new(),
                    unwritten: VecDeque::new(),
                    is_disk_stuck: false,
                    skew_us: 0,
                    life: 0,
                };
                world.nodes.insert(at, node);
                world.schedule(0, Happening::Tick(at, 0));
            }
        }
        world
    }

    fn schedule(&mut self, after_us: u64, happening: Happening) {
        self.sequence += 1;
        self.queue.insert((self.now_us + after_us, self.sequence), happening);
    }

    fn draw(&mut self, (least, most): (u64, u64)) -> u64 {
        least + self.random.below((most - least + 1) as usize) as u64
    }

    pub fn now_of(&self, at: (u8, u16)) -> Now {
        let skew_us = self.nodes[&at].skew_us;
        let wall_us = (EPOCH_US + self.now_us).saturating_add_signed(skew_us);
        Now { wall_us, mono_us: self.now_us }
    }

    pub fn now(&self) -> Now {
        Now { wall_us: EPOCH_US + self.now_us, mono_us: self.now_us }
    }

    pub fn replica(&self, dc: u8, partition: u16) -> &Replica {
        self.nodes[&(dc, partition)].replica.as_ref().expect("it runs")
    }

    pub fn replica_mut(&mut self, dc: u8, partition: u16) -> &mut Replica {
        let node = self.nodes.get_mut(&(dc, partition)).expect("it is one");
        node.replica.as_mut().expect("it runs")
    }

    /// Sets the filter that decides about every message from now on.
    pub fn filter(&mut self, filter: impl FnMut(Address, &Envelope) -> Verdict + 'static) {
        self.filter = Some(Box::new(filter));
    }

    pub fn no_filter(&mut self) {
        self.filter = None;
    }

    /// Sends the held messages.
    pub fn release(&mut self) {
        for (from, envelope) in std::mem::take(&mut self.held) {
            self.schedule(0, Happening::Deliver(from, envelope));
        }
    }

    pub fn send(&mut self, from: Address, envelope: Envelope) {
        match self.filter.as_mut().map(|filter| filter(from, &envelope)) {
            Some(Verdict::Drop) => return,
            Some(Verdict::Hold) => return self.held.push((from, envelope)),
            _ => {}
        }
        let is_far = match (from, envelope.to) {
            (Address::Replica(from, _), Address::Replica(to, _)) => from != to,
            _ => false,
        };
        let lost_one_in = self.network.lost_one_in;
        if lost_one_in > 0 && self.random.one_in(lost_one_in) {
            return;
        }
        let delay = self.draw(if is_far { self.network.far_us } else { self.network.near_us });
        let mut at_us = self.now_us + delay;
        if self.network.is_fifo {
            let last = self.last_on_link.entry((from, envelope.to)).or_default();
            at_us = at_us.max(*last);
            *last = at_us;
        }
        let twice_one_in = self.network.twice_one_in;
        if twice_one_in > 0 && self.random.one_in(twice_one_in) {
            let again = Happening::Deliver(from, envelope.clone());
            self.schedule(at_us - self.now_us + delay, again);
        }
        self.schedule(at_us - self.now_us, Happening::Deliver(from, envelope));
    }

    fn is_down(&self, from: Address, to: Address) -> bool {
        match (from, to) {
            (Address::Replica(from, _), Address::Replica(to, _)) => {
                self.down.contains(&(from.0, to.0))
            }
            _ => false,
        }
    }

    /// Cuts a data center off from the others, in both directions.
    pub fn isolate(&mut self, dc: u8) {
        for other in self.configs.keys().map(|(other, _)| *other).collect::<BTreeSet<_>>() {
            if other != dc {
                self.down.extend([(dc, other), (other, dc)]);
            }
        }
    }

    pub fn heal(&mut self) {
        self.down.clear();
    }

    /// Performs the next scheduled event; returns false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(((at_us, _), happening)) = self.queue.pop_first() else { return false };
        self.now_us = self.now_us.max(at_us);
        match happening {
            Happening::Deliver(from, envelope) => {
                if !self.is_down(from, envelope.to) {
                    self.deliver(from, envelope);
                }
            }
            Happening::Tick(at, life) => {
                if self.nodes[&at].life == life && self.nodes[&at].replica.is_some() {
                    self.input(at, Input::Tick);
                    let tick_ms = self.replica(at.0, at.1).tick_in_ms();
                    self.schedule(tick_ms * 1_000, Happening::Tick(at, life));
                }
            }
            Happening::Written(at, life) => {
                if self.nodes[&at].life == life && !self.nodes[&at].is_disk_stuck {
                    self.write_one(at);
                }
            }
            Happening::SessionTick(client) => {
                let now = self.now();
                let mut out = Vec::new();
                if let Some(session) = self.sessions.get_mut(&client) {
                    session.tick(now, &mut out);
                }
                self.perform(client, out);
            }
        }
        true
    }

    fn deliver(&mut self, from: Address, envelope: Envelope) {
        match envelope.to {
            Address::Replica(dc, partition) => {
                let at = (dc.0, partition.0);
                if self.nodes[&at].replica.is_some() {
                    // The message goes over the wire: its content survives its encoding.
                    let mut frame = Vec::new();
                    put_parcel(&mut frame, from, envelope.to, &envelope.message);
                    let mut parcels = Vec::new();
                    take_parcels(VERSION, &frame, |parcel| parcels.push(parcel))
                        .expect("it decodes");
                    for Parcel { from, message, .. } in parcels {
                        self.input(at, Input::Message { from, message });
                    }
                }
            }
            Address::Client(client) => {
                let now = self.now();
                let mut out = Vec::new();
                match self.sessions.get_mut(&client) {
                    Some(session) => session.handle(now, from, envelope.message, &mut out),
                    None => self.inbox.push((from, envelope)),
                }
                self.perform(client, out);
            }
        }
    }

    pub fn input(&mut self, at: (u8, u16), input: Input) {
        let now = self.now_of(at);
        let mut outputs = Vec::new();
        let node = self.nodes.get_mut(&at).expect("a node");
        let Some(replica) = &mut node.replica else { return };
        replica.handle(now, input, &mut outputs);
        let from = replica.address();
        for output in outputs {
            match output {
                Output::Send(envelope) => self.send(from, envelope),
                Output::Persist(persist) => {
                    self.nodes.get_mut(&at).expect("a node").unwritten.push_back(persist);
                    let life = self.nodes[&at].life;
                    let delay = self.draw(self.network.disk_us);
                    self.schedule(delay, Happening::Written(at, life));
                }
                Output::Alarm(alarm) => self.alarms.push((at, alarm)),
            }
        }
    }

    fn write_one(&mut self, at: (u8, u16)) {
        let node = self.nodes.get_mut(&at).expect("a node");
        let Some(persist) = node.unwritten.pop_front() else { return };
        for record in &persist.records {
            node.disk.push(bytes_of(record));
        }
        let from = Address::Replica(DcId(at.0), PartitionId(at.1));
        for envelope in persist.then {
            self.send(from, envelope);
        }
        self.input(at, Input::Persisted { index: persist.index });
    }

    /// From now on nothing reaches this disk.
    pub fn stick_disk(&mut self, dc: u8, partition: u16) {
        self.nodes.get_mut(&(dc, partition)).expect("a node").is_disk_stuck = true;
    }

    /// Performs the waiting writes.
    pub fn free_disk(&mut self, dc: u8, partition: u16) {
        let at = (dc, partition);
        self.nodes.get_mut(&at).expect("a node").is_disk_stuck = false;
        for _ in 0..self.nodes[&at].unwritten.len() {
            self.write_one(at);
        }
    }

    /// Stops a replica; records that are not on disk yet are lost, unless `is_clean`.
    pub fn crash(&mut self, dc: u8, partition: u16, is_clean: bool) {
        let at = (dc, partition);
        if is_clean {
            self.free_disk(dc, partition);
        }
        let node = self.nodes.get_mut(&at).expect("a node");
        node.replica = None;
        node.unwritten.clear();
        node.is_disk_stuck = false;
        node.life += 1;
    }

    pub fn restart(&mut self, dc: u8, partition: u16) {
        let at = (dc, partition);
        let records: Vec<Record> = self.records(at);
        let replica = Replica::restore(self.configs[&at].clone(), records).expect("settings");
        let node = self.nodes.get_mut(&at).expect("a node");
        node.replica = Some(replica);
        let life = node.life;
        self.schedule(0, Happening::Tick(at, life));
    }

    /// Returns the records on a disk.
    pub fn records(&self, at: (u8, u16)) -> Vec<Record> {
        let disk = self.nodes[&at].disk.iter();
        disk.map(|record| take_record(record).expect("it decodes")).collect()
    }

    /// Writes a disk anew, as short as it can be. The replica must have nothing on its way to it.
    pub fn compact(&mut self, dc: u8, partition: u16) {
        self.free_disk(dc, partition);
        let records = self.replica(dc, partition).checkpoint();
        let disk = records.iter().map(bytes_of).collect();
        self.nodes.get_mut(&(dc, partition)).expect("a node").disk = disk;
    }

    /// A data center is gone, with all that it did not send.
    pub fn lose(&mut self, dc: u8) {
        for at in self.configs.keys().copied().filter(|at| at.0 == dc).collect::<Vec<_>>() {
            self.crash(at.0, at.1, false);
        }
        self.isolate(dc);
    }

    pub fn run_ms(&mut self, ms: u64) {
        let until_us = self.now_us + ms * 1_000;
        while self.queue.first_key_value().is_some_and(|((at, _), _)| *at <= until_us) {
            self.step();
        }
        self.now_us = until_us;
    }

    /// Runs until `done`, which must come within a minute.
    pub fn run_until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let until_us = self.now_us + 60_000_000;
        while !done(self) {
            assert!(self.now_us < until_us && self.step(), "{what} did not come to pass");
        }
    }
}

/// The number in a register.
pub fn number(state: &State) -> Option<i64> {
    state.as_register().expect("a register").value().and_then(Value::as_int)
}

pub fn register(name: &str) -> Key {
    Key::new(Kind::Register, name)
}

/// A register of this partition.
pub fn register_of(partition: u16, partitions: u16, name: &str) -> Key {
    key_of(Kind::Register, partition, partitions, name)
}

/// A key of this partition.
pub fn key_of(kind: Kind, partition: u16, partitions: u16, name: &str) -> Key {
    let keys = (0..10_000).map(|index| Key::new(kind, format!("{name}{index}")));
    let mut of_partition = keys.filter(|key| key.partition(partitions) == PartitionId(partition));
    of_partition.next().expect("some name hashes there")
}
