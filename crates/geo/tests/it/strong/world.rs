//! Replicas with their disks, connections and clocks, and sessions.

use std::collections::{BTreeMap, BTreeSet};

use mingle_geo::certify::{CertifierConfig, Conflicts, GroupConfig};
use mingle_geo::session::SessionOutput;
use mingle_geo::{
    Address, Config, DcId, Envelope, Event, Input, Now, Output, PartitionId, Record, Session,
    SessionConfig, StrongReplica,
};
use mingle_model::Origin;
use mingle_model::random::Random;

use crate::strong::clients::Client;

pub const EPOCH_US: u64 = 1_000_000_000_000;

pub type Place = (u8, u16);

/// A replica and its disk.
pub struct Node {
    pub replica: Option<StrongReplica>,
    disk: Vec<Record>,
    /// Counts its lives.
    life: u64,
    /// The time at which the last write is on disk.
    written_us: u64,
    skew_us: i64,
}

enum Happening {
    Arrive { from: Address, envelope: Envelope, link: u64 },
    Written { at: Place, life: u64, index: u64, records: Vec<Record>, then: Vec<Envelope> },
    Tick(Place, u64),
    Restart(Place),
    Heal(u8, u8),
    Client(u64),
}

/// Counts of the cases that a run reached.
#[derive(Debug, Default)]
pub struct Met {
    pub strong: usize,
    pub causal: usize,
    pub conflicts: usize,
    pub unknown: usize,
    pub crashes: usize,
    pub resets: usize,
    pub losses: usize,
    pub refused_withdrawals: usize,
}

pub struct World {
    pub random: Random,
    pub dcs: u8,
    pub partitions: u16,
    pub nodes: BTreeMap<Place, Node>,
    queue: BTreeMap<(u64, u64), Happening>,
    order: u64,
    pub now_us: u64,
    /// By connection: the number of losses, and the arrival time of the last message.
    links: BTreeMap<(Address, Address), (u64, u64)>,
    cut: BTreeSet<(u8, u8)>,
    pub lost: Option<u8>,
    pub clients: Vec<Client>,
    pub is_over: bool,
    pub met: Met,
    pub books: crate::strong::clients::Books,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x57_0126);
        let (dcs, partitions) = (*random.pick(&[1, 3, 3, 3]), 1 + random.below(3) as u16);
        let mut world = Self {
            random,
            dcs,
            partitions,
            nodes: BTreeMap::new(),
            queue: BTreeMap::new(),
            order: 0,
            now_us: 0,
            links: BTreeMap::new(),
            cut: BTreeSet::new(),
            lost: None,
            clients: Vec::new(),
            is_over: false,
            met: Met::default(),
            books: crate::strong::clients::Books::default(),
        };
        let places = (0..dcs).flat_map(|dc| (0..partitions).map(move |partition| (dc, partition)));
        for place in places.clone() {
            let skew_us = world.random.below(200_000) as i64 - 100_000;
            let (replica, disk) = (None, Vec::new());
            world.nodes.insert(place, Node { replica, disk, life: 0, written_us: 0, skew_us });
        }
        places.for_each(|place| world.start(place));
        for number in 0..6 {
            let dc = DcId(number as u8 % dcs);
            let mut config = SessionConfig::new(Origin(u128::from(number) + 1), dc, partitions);
            config.retry_ms = 400;
            config.deadline_ms = 6_000;
            world.clients.push(Client::new(Session::new(config)));
            world.after(100_000 + number * 7_000, Happening::Client(number));
        }
        world
    }

    fn after(&mut self, delay_us: u64, happening: Happening) {
        self.order += 1;
        self.queue.insert((self.now_us + delay_us, self.order), happening);
    }

    fn now(&self, skew_us: i64) -> Now {
        let wall_us = (EPOCH_US + self.now_us).saturating_add_signed(skew_us);
        Now { wall_us, mono_us: self.now_us }
    }

    fn start(&mut self, place: Place) {
        let (dc, partition) = (DcId(place.0), PartitionId(place.1));
        let conflicts = Conflicts::new([("withdraw", "withdraw")]);
        let mut group = GroupConfig::new(dc, self.dcs, CertifierConfig::new(partition, conflicts));
        group.keep_entries = 50;
        let mut config = Config::new(dc, self.dcs, partition, self.partitions);
        config.forward_after_ms = 300;
        config.resolve_after_ms = 200;
        let node = self.nodes.get_mut(&place).expect("it is there");
        node.life += 1;
        let records = node.disk.clone();
        let replica = StrongReplica::restore(config, group, records).expect("settings");
        node.replica = Some(replica);
        let life = node.life;
        self.after(1, Happening::Tick(place, life));
        for other in (0..self.dcs).filter(|other| *other != place.0) {
            self.reset(place, (other, place.1));
        }
    }

    fn reset(&mut self, one: Place, other: Place) {
        let address = |(dc, partition): Place| Address::Replica(DcId(dc), PartitionId(partition));
        for (from, to) in [(one, other), (other, one)] {
            let link = self.links.entry((address(from), address(to))).or_default();
            *link = (link.0 + 1, 0);
        }
        for (at, of) in [(one, other), (other, one)] {
            self.give(at, Input::Reconnected { dc: DcId(of.0) });
        }
    }

    fn crash(&mut self, place: Place) {
        let node = self.nodes.get_mut(&place).expect("it is there");
        if node.replica.take().is_some() {
            node.life += 1;
            self.met.crashes += 1;
            let pause_us = 10_000 + self.random.below(2_000_000) as u64;
            self.after(pause_us, Happening::Restart(place));
        }
    }

    fn send(&mut self, from: Address, envelope: Envelope) {
        let clients = &self.clients;
        let dc_of = |address: &Address| match address {
            Address::Replica(dc, _) => dc.0,
            Address::Client(client) => clients[*client as usize].session.dc().0,
        };
        let (one, other) = (dc_of(&from), dc_of(&envelope.to));
        let delay_us = if one == other {
            200 + self.random.below(2_000) as u64
        } else {
            20_000 + self.random.below(30_000) as u64
        };
        let link = self.links.entry((from, envelope.to)).or_default();
        link.1 = link.1.max(self.now_us + delay_us);
        let (link, delay_us) = (link.0, link.1 - self.now_us);
        if !self.cut.contains(&(one.min(other), one.max(other))) {
            self.after(delay_us, Happening::Arrive { from, envelope, link });
        }
    }

    fn give(&mut self, place: Place, input: Input) {
        let now = self.now(self.nodes[&place].skew_us);
        let node = self.nodes.get_mut(&place).expect("it is there");
        let Some(replica) = &mut node.replica else { return };
        let mut out = Vec::new();
        replica.handle(now, input, &mut out);
        let (life, from) = (node.life, replica.address());
        for output in out {
            match output {
                Output::Send(envelope) => self.send(from, envelope),
                Output::Persist(persist) => {
                    let written_us = self.now_us + 100 + self.random.below(6_000) as u64;
                    let node = self.nodes.get_mut(&place).expect("it is there");
                    node.written_us = node.written_us.max(written_us);
                    let (at, delay_us) = (place, node.written_us - self.now_us);
                    let (index, records, then) = (persist.index, persist.records, persist.then);
                    self.after(delay_us, Happening::Written { at, life, index, records, then });
                }
                Output::Alarm(alarm) => panic!("{place:?}: {alarm:?}"),
            }
        }
    }

    /// Runs a call of a session and sends its messages.
    pub fn call<T>(
        &mut self,
        number: u64,
        call: impl FnOnce(&mut Session, Now, &mut Vec<SessionOutput>) -> T,
    ) -> T {
        let now = self.now(0);
        let mut out = Vec::new();
        let result = call(&mut self.clients[number as usize].session, now, &mut out);
        self.take(number, out);
        result
    }

    fn take(&mut self, number: u64, out: Vec<SessionOutput>) {
        let mut events: Vec<Event> = Vec::new();
        for output in out {
            match output {
                SessionOutput::Send(envelope) => self.send(Address::Client(number), envelope),
                SessionOutput::Event(event) => events.push(event),
            }
        }
        for event in events {
            self.on_event(number, event);
        }
    }

    pub fn step(&mut self) {
        let Some(((at_us, _), happening)) = self.queue.pop_first() else {
            panic!("nothing is left to happen");
        };
        self.now_us = at_us;
        match happening {
            Happening::Arrive { from, envelope, link } => {
                if self.links.get(&(from, envelope.to)).is_none_or(|known| known.0 != link) {
                    return;
                }
                match envelope.to {
                    Address::Replica(dc, partition) => {
                        let message = envelope.message;
                        self.give((dc.0, partition.0), Input::Message { from, message });
                    }
                    Address::Client(number) => self.call(number, |session, now, out| {
                        session.handle(now, from, envelope.message, out);
                    }),
                }
            }
            Happening::Written { at, life, index, records, then } => {
                let node = self.nodes.get_mut(&at).expect("it is there");
                if node.life == life {
                    node.disk.extend(records);
                    let from = Address::Replica(DcId(at.0), PartitionId(at.1));
                    for envelope in then {
                        self.send(from, envelope);
                    }
                    self.give(at, Input::Persisted { index });
                }
            }
            Happening::Tick(place, life) if self.nodes[&place].life == life => {
                self.give(place, Input::Tick);
                if self.random.one_in(300) {
                    self.write_anew(place);
                }
                self.after(10_000, Happening::Tick(place, life));
            }
            Happening::Tick(..) => {}
            Happening::Restart(place) if self.lost != Some(place.0) => self.start(place),
            Happening::Restart(_) => {}
            Happening::Heal(one, other) => {
                self.cut.remove(&(one, other));
                (0..self.partitions).for_each(|at| self.reset((one, at), (other, at)));
            }
            Happening::Client(number) => {
                self.call(number, Session::tick);
                self.act(number);
                self.after(20_000, Happening::Client(number));
            }
        }
    }

    /// Replaces the disk's log by a shorter one, if no write is in flight.
    fn write_anew(&mut self, place: Place) {
        let node = self.nodes.get_mut(&place).expect("it is there");
        if let Some(replica) = &node.replica
            && node.written_us < self.now_us
        {
            node.disk = replica.checkpoint();
        }
    }

    fn strike(&mut self) {
        let place = (
            self.random.below(usize::from(self.dcs)) as u8,
            self.random.below(usize::from(self.partitions)) as u16,
        );
        let other = self.random.below(usize::from(self.dcs)) as u8;
        let pair = (other.min(place.0), other.max(place.0));
        match self.random.below(4) {
            0 => self.crash(place),
            1 if self.random.one_in(3) => {
                (0..self.partitions).for_each(|partition| self.crash((place.0, partition)));
            }
            2 if other != place.0 && self.cut.is_empty() => {
                self.cut.insert(pair);
                let pause_us = 100_000 + self.random.below(3_000_000) as u64;
                self.after(pause_us, Happening::Heal(pair.0, pair.1));
            }
            _ if other != place.0 && !self.cut.contains(&pair) => {
                self.met.resets += 1;
                self.reset(place, (other, place.1));
            }
            _ => {}
        }
    }

    fn lose(&mut self, dc: u8) {
        self.lost = Some(dc);
        self.met.losses += 1;
        for partition in 0..self.partitions {
            let node = self.nodes.get_mut(&(dc, partition)).expect("it is there");
            node.replica = None;
            node.life += 1;
        }
    }

    pub fn play(mut self) -> Met {
        let mut strike_us = 1_500_000;
        let must_lose = self.dcs > 1 && self.random.one_in(2);
        let lost_at_us = 5_000_000 + self.random.below(8_000_000) as u64;
        while self.now_us < 18_000_000 {
            self.step();
            if self.now_us > strike_us {
                strike_us += self.random.below(700_000) as u64;
                if self.lost.is_none() {
                    self.strike();
                }
            }
            if must_lose && self.lost.is_none() && self.now_us > lost_at_us {
                let dc = self.random.below(usize::from(self.dcs)) as u8;
                self.lose(dc);
            }
        }
        let before = self.met.strong;
        while self.now_us < 30_000_000 {
            self.step();
        }
        assert!(self.met.strong > before, "no strong commit although nothing goes wrong any more");
        self.is_over = true;
        while self.now_us < 45_000_000 {
            self.step();
        }
        self.check();
        self.met
    }
}
