//! Groups over a network that loses and delays messages. Replicas crash and lose writes that are
//! not on disk, and coordinators vanish. The logs agree, acknowledged transactions stay, and
//! everything ends.

mod clients;
mod judge;

use std::collections::{BTreeMap, BTreeSet};

use mingle_geo::certify::{
    Access, CertifierConfig, Conflicts, Coordinator, Decision, Group, GroupConfig, GroupEnvelope,
    GroupInput, GroupMessage, GroupOutput, GroupRecord, Proposal,
};
use mingle_geo::replica::Delivery;
use mingle_geo::{Address, DcId, Now, PartitionId, Timestamp, Vector};
use mingle_model::TransactionId;
use mingle_model::random::Random;

use crate::certify::{id, proposal, touch};

const ITEMS: usize = 8;
const EPOCH_US: u64 = 1_000_000_000;

type Place = (u8, u16);

/// A replica's part in its group, and its disk.
struct Node {
    group: Option<Group>,
    disk: Vec<GroupRecord>,
    /// The deliveries to the partition's replica.
    delivered: Vec<Delivery>,
    /// The number of these that it announced, so that they are on its disk; a crash may lose the rest.
    announced: usize,
    /// Counts its lives.
    life: u64,
    /// The time at which the last write is on disk.
    written_us: u64,
    skew_us: i64,
}

/// A scheduled event.
enum Happening {
    Arrive {
        from: Address,
        envelope: GroupEnvelope,
        link: u64,
    },
    Written {
        at: Place,
        life: u64,
        index: u64,
        records: Vec<GroupRecord>,
        then: Vec<GroupEnvelope>,
    },
    Tick(Place, u64),
    Restart(Place),
    Heal(u8, u8),
    Client(u64),
}

struct Client {
    dc: u8,
    coordinator: Option<(Coordinator, TransactionId)>,
    again_us: u64,
    since_us: u64,
    /// The strong timestamp that a useful snapshot must reach.
    until: Timestamp,
}

#[derive(Debug, Default)]
struct Met {
    commits: usize,
    conflicts: usize,
    refused: usize,
    unknown: usize,
    restarts: usize,
    resets: usize,
    compacted: usize,
    behind: usize,
}

struct World {
    random: Random,
    dcs: u8,
    partitions: u16,
    conflicts: Conflicts,
    keep_entries: usize,
    nodes: BTreeMap<Place, Node>,
    queue: BTreeMap<(u64, u64), Happening>,
    order: u64,
    now_us: u64,
    /// By link: the number of resets, and the arrival time of the last message.
    links: BTreeMap<(Address, Address), (u64, u64)>,
    cut: BTreeSet<(u8, u8)>,
    clients: Vec<Client>,
    next: u64,
    all: BTreeMap<TransactionId, Vec<Proposal>>,
    acknowledged: BTreeMap<TransactionId, Vector>,
    aborted: BTreeSet<TransactionId>,
    /// The first delivery of each partition, by timestamp: all others must deliver the same.
    agreed: BTreeMap<(u16, Timestamp), TransactionId>,
    is_healing: bool,
    met: Met,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let dcs = *random.pick(&[1, 3, 3, 3, 5]);
        let partitions = 1 + random.below(3) as u16;
        let conflicts = match random.below(2) {
            0 => Conflicts::default(),
            _ => Conflicts::new([("a", "a"), ("a", "b")]),
        };
        let keep_entries = *random.pick(&[5, 20, 1_000]);
        let mut world = Self {
            random,
            dcs,
            partitions,
            conflicts,
            keep_entries,
            nodes: BTreeMap::new(),
            queue: BTreeMap::new(),
            order: 0,
            now_us: 0,
            links: BTreeMap::new(),
            cut: BTreeSet::new(),
            clients: Vec::new(),
            next: 1,
            all: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            aborted: BTreeSet::new(),
            agreed: BTreeMap::new(),
            is_healing: false,
            met: Met::default(),
        };
        let places = (0..dcs).flat_map(|dc| (0..partitions).map(move |partition| (dc, partition)));
        for place in places.clone() {
            let skew_us = world.random.below(200_000) as i64 - 100_000;
            let (disk, delivered) = (Vec::new(), Vec::new());
            let (announced, life, written_us) = (0, 0, 0);
            let node = Node { group: None, disk, delivered, announced, life, written_us, skew_us };
            world.nodes.insert(place, node);
        }
        places.for_each(|place| world.start(place));
        for number in 0..6 {
            let dc = number as u8 % dcs;
            let (coordinator, until) = (None, Timestamp::ZERO);
            world.clients.push(Client { dc, coordinator, again_us: 0, since_us: 0, until });
            world.after(number * 10_000, Happening::Client(number));
        }
        world
    }

    fn after(&mut self, delay_us: u64, happening: Happening) {
        self.order += 1;
        self.queue.insert((self.now_us + delay_us, self.order), happening);
    }

    fn now(&self, place: Place) -> Now {
        let skew_us = self.nodes[&place].skew_us;
        let wall_us = (EPOCH_US + self.now_us).saturating_add_signed(skew_us);
        Now { wall_us, mono_us: self.now_us }
    }

    fn config(&self, (dc, partition): Place) -> GroupConfig {
        let mut certifier = CertifierConfig::new(PartitionId(partition), self.conflicts.clone());
        certifier.keep_max = 5_000;
        let mut config = GroupConfig::new(DcId(dc), self.dcs, certifier);
        config.keep_entries = self.keep_entries;
        config
    }

    fn start(&mut self, place: Place) {
        let config = self.config(place);
        let node = self.nodes.get_mut(&place).expect("it is there");
        node.life += 1;
        let up_to = node.delivered.last().map_or(Timestamp::ZERO, |delivery| delivery.to);
        node.group = Some(Group::restore(config, &node.disk, up_to).expect("settings"));
        let life = node.life;
        self.after(1, Happening::Tick(place, life));
        // The connections are new: messages in flight in either direction are lost.
        for other in (0..self.dcs).filter(|other| *other != place.0) {
            self.reset(place, (other, place.1));
        }
    }

    fn reset(&mut self, one: Place, other: Place) {
        self.met.resets += 1;
        let address = |(dc, partition): Place| Address::Replica(DcId(dc), PartitionId(partition));
        for (from, to) in [(one, other), (other, one)] {
            let link = self.links.entry((address(from), address(to))).or_default();
            *link = (link.0 + 1, 0);
        }
        for (at, of) in [(one, other), (other, one)] {
            self.give(at, GroupInput::Reconnected { dc: DcId(of.0) });
        }
    }

    fn crash(&mut self, place: Place) {
        let forgets = self.random.below(3);
        let node = self.nodes.get_mut(&place).expect("it is there");
        if node.group.take().is_none() {
            return;
        }
        node.life += 1;
        let kept = node.delivered.len().saturating_sub(forgets);
        node.delivered.truncate(kept.max(node.announced));
        self.met.restarts += 1;
        let pause_us = 10_000 + self.random.below(3_000_000) as u64;
        self.after(pause_us, Happening::Restart(place));
    }

    fn send(&mut self, from: Address, envelope: GroupEnvelope) {
        let dc_of = |address: &Address| match address {
            Address::Replica(dc, _) => Some(dc.0),
            Address::Client(client) => Some(self.clients[*client as usize].dc),
        };
        let (Some(one), Some(other)) = (dc_of(&from), dc_of(&envelope.to)) else { return };
        let delay_us = if one == other {
            200 + self.random.below(2_000) as u64
        } else {
            20_000 + self.random.below(40_000) as u64
        };
        let link = self.links.entry((from, envelope.to)).or_default();
        // Messages arrive in order, as on a connection.
        link.1 = link.1.max(self.now_us + delay_us);
        let (number, at_us) = *link;
        if self.cut.contains(&(one.min(other), one.max(other))) {
            return;
        }
        let delay_us = at_us - self.now_us;
        self.after(delay_us, Happening::Arrive { from, envelope, link: number });
    }

    fn give(&mut self, place: Place, input: GroupInput) {
        let now = self.now(place);
        let node = self.nodes.get_mut(&place).expect("it is there");
        let Some(group) = &mut node.group else { return };
        let mut out = Vec::new();
        group.handle(now, input, &mut out);
        let (life, from) = (node.life, Address::Replica(DcId(place.0), PartitionId(place.1)));
        for output in out {
            match output {
                GroupOutput::Send(envelope) => self.send(from, envelope),
                GroupOutput::Persist { index, records, then } => {
                    let written_us = self.now_us + 100 + self.random.below(8_000) as u64;
                    let node = self.nodes.get_mut(&place).expect("it is there");
                    node.written_us = node.written_us.max(written_us);
                    let (at, delay_us) = (place, node.written_us - self.now_us);
                    self.after(delay_us, Happening::Written { at, life, index, records, then });
                }
                GroupOutput::Deliver(delivery) => self.deliver(place, delivery),
                GroupOutput::Behind => self.met.behind += 1,
                GroupOutput::Alarm(alarm) => panic!("{place:?}: {alarm:?}"),
            }
        }
    }

    fn deliver(&mut self, place: Place, delivery: Delivery) {
        for transaction in &delivery.transactions {
            let timestamp = transaction.timestamp();
            let first = self.agreed.entry((place.1, timestamp)).or_insert(transaction.id);
            assert_eq!(*first, transaction.id, "{place:?} delivers another one at {timestamp}");
        }
        let node = self.nodes.get_mut(&place).expect("it is there");
        let before = node.delivered.last().map_or(Timestamp::ZERO, |delivery| delivery.to);
        assert!(delivery.transactions.iter().all(|one| one.timestamp() > before));
        node.delivered.push(delivery);
    }

    fn delivered(&self, place: Place) -> Timestamp {
        self.nodes[&place].delivered.last().map_or(Timestamp::ZERO, |delivery| delivery.to)
    }

    /// Returns the timestamp up to which all partitions of a data center have delivered.
    fn stable(&self, dc: u8) -> Timestamp {
        let partitions = (0..self.partitions).map(|partition| self.delivered((dc, partition)));
        partitions.min().unwrap_or_default()
    }

    fn step(&mut self) -> bool {
        let Some(((at_us, _), happening)) = self.queue.pop_first() else { return false };
        self.now_us = at_us;
        match happening {
            Happening::Arrive { from, envelope, link } => self.arrive(from, envelope, link),
            Happening::Written { at, life, index, records, then } => {
                let node = self.nodes.get_mut(&at).expect("it is there");
                if node.life != life {
                    return true;
                }
                node.disk.extend(records);
                let from = Address::Replica(DcId(at.0), PartitionId(at.1));
                for envelope in then {
                    self.send(from, envelope);
                }
                self.give(at, GroupInput::Persisted { index });
            }
            Happening::Tick(place, life) if self.nodes[&place].life == life => {
                self.tick(place);
                self.after(25_000, Happening::Tick(place, life));
            }
            Happening::Tick(..) => {}
            Happening::Restart(place) => self.start(place),
            Happening::Heal(one, other) => {
                self.cut.remove(&(one, other));
                for partition in 0..self.partitions {
                    self.reset((one, partition), (other, partition));
                }
            }
            Happening::Client(number) => {
                self.act(number);
                self.after(20_000, Happening::Client(number));
            }
        }
        true
    }

    fn tick(&mut self, place: Place) {
        for node in self.nodes.values_mut() {
            node.announced = node.delivered.len();
        }
        let stable = self.stable(place.0);
        let delivered = (0..self.dcs).map(|dc| self.delivered((dc, place.1)));
        let mut delivered: Vec<Timestamp> = delivered.collect();
        delivered.sort_unstable();
        let everywhere = delivered.first().copied().unwrap_or_default();
        // With an odd number of data centers, a majority has reached the median.
        let uniform = delivered.get(delivered.len() / 2).copied().unwrap_or_default();
        self.give(place, GroupInput::Delivered { stable, everywhere, uniform });
        self.give(place, GroupInput::Tick);
        if self.random.one_in(400) {
            // The disk's log is replaced by a checkpoint.
            let node = self.nodes.get_mut(&place).expect("it is there");
            if let Some(group) = &node.group {
                let config = group.certifier().config().clone();
                let group_config = GroupConfig {
                    certifier: config,
                    ..GroupConfig::new(DcId(place.0), self.dcs, group.certifier().config().clone())
                };
                let disk = Group::restore(group_config, &node.disk, Timestamp::ZERO);
                node.disk = vec![disk.expect("settings").checkpoint()];
                self.met.compacted += 1;
            }
        }
    }

    fn arrive(&mut self, from: Address, envelope: GroupEnvelope, link: u64) {
        if self.links.get(&(from, envelope.to)).is_none_or(|(number, _)| *number != link) {
            return;
        }
        match envelope.to {
            Address::Replica(dc, partition) => {
                let message = envelope.message;
                self.give((dc.0, partition.0), GroupInput::Message { from, message });
            }
            Address::Client(number) => {
                let GroupMessage::Voted(voted) = envelope.message else { return };
                let client = &mut self.clients[number as usize];
                let Some((coordinator, id)) = &mut client.coordinator else { return };
                let (mut out, id) = (Vec::new(), *id);
                let ended = coordinator.on_voted(&voted, &mut out);
                for envelope in out {
                    self.send(Address::Client(number), envelope);
                }
                if let Some(ended) = ended {
                    self.ended(number, id, ended);
                }
            }
        }
    }

    fn strike(&mut self) {
        let place = (
            self.random.below(usize::from(self.dcs)) as u8,
            self.random.below(usize::from(self.partitions)) as u16,
        );
        let other = self.random.below(usize::from(self.dcs)) as u8;
        match self.random.below(4) {
            0 => self.crash(place),
            1 if self.random.one_in(3) => {
                (0..self.partitions).for_each(|partition| self.crash((place.0, partition)));
            }
            2 if other != place.0 && self.cut.len() < 2 => {
                let pair = (other.min(place.0), other.max(place.0));
                if self.cut.insert(pair) {
                    let pause_us = 100_000 + self.random.below(4_000_000) as u64;
                    self.after(pause_us, Happening::Heal(pair.0, pair.1));
                }
            }
            _ => {
                let pair = (other.min(place.0), other.max(place.0));
                if other != place.0 && !self.cut.contains(&pair) {
                    self.reset(place, (other, place.1));
                }
            }
        }
    }

    fn run_until(&mut self, until_us: u64) {
        while self.now_us < until_us && self.step() {}
    }

    fn play(mut self) -> Met {
        let mut strike_us = 1_500_000;
        while self.now_us < 20_000_000 {
            assert!(self.step());
            if self.now_us > strike_us {
                strike_us += self.random.below(600_000) as u64;
                self.strike();
            }
        }
        self.is_healing = true;
        let before = self.met.commits;
        self.run_until(32_000_000);
        assert!(self.met.commits > before, "nothing commits although all is healed");
        // All coordinators vanish.
        self.clients.iter_mut().for_each(|client| client.coordinator = None);
        self.queue.retain(|_, happening| !matches!(happening, Happening::Client(_)));
        self.queue.retain(|_, happening| {
            !matches!(happening, Happening::Arrive { from: Address::Client(_), .. })
        });
        self.run_until(45_000_000);
        self.check();
        self.met
    }
}

/// Every replica that has followed the log knows the decision.
#[test]
fn one_data_center_needs_nobody_to_agree() {
    let mut certifier = CertifierConfig::new(PartitionId(0), Conflicts::default());
    certifier.index_max = 10;
    let config = GroupConfig::new(DcId(0), 1, certifier);
    let mut group = Group::restore(config.clone(), [], Timestamp::ZERO).expect("settings");
    let part = proposal(1, &[0], vec![touch("x", Access::Write, "")]);
    let now = Now { wall_us: 5_000, mono_us: 0 };
    let (from, message) = (Address::Client(1), GroupMessage::Certify(part));
    let mut out = Vec::new();
    group.handle(now, GroupInput::Message { from, message }, &mut out);
    let Some(GroupOutput::Persist { index, records, .. }) = out.pop() else { panic!("{out:?}") };
    // Nothing is reported before the entry is on disk.
    assert_eq!(group.certifier().outcome(&id(1)), None);
    group.handle(now, GroupInput::Persisted { index }, &mut out);
    assert!(matches!(group.certifier().outcome(&id(1)), Some(Decision::Commit(_))));
    assert!(matches!(out[0], GroupOutput::Deliver(_)), "{out:?}");
    let restarted = Group::restore(config, &records, Timestamp::ZERO).expect("settings");
    assert_eq!(restarted.certifier(), group.certifier());
}

#[test]
fn whatever_crashes_logs_agree_and_everything_ends() {
    let mut all = Met::default();
    for seed in 0..24 {
        let outcome = std::panic::catch_unwind(|| World::new(seed).play());
        let met = outcome.unwrap_or_else(|_| panic!("seed {seed}"));
        all.commits += met.commits;
        all.conflicts += met.conflicts;
        all.refused += met.refused;
        all.unknown += met.unknown;
        all.restarts += met.restarts;
        all.resets += met.resets;
        all.compacted += met.compacted;
        all.behind += met.behind;
    }
    let Met { commits, conflicts, refused, unknown, restarts, resets, compacted, behind } = all;
    let counts = [commits, conflicts, refused, unknown, restarts, resets, compacted];
    assert!(counts.iter().all(|count| *count > 3), "{all:?}");
    assert_eq!(behind, 0, "everything is kept in these runs");
}
