//! A group whose members are lost for good, with their disks, and replaced by others, over a
//! network that loses, repeats and reorders messages, while replicas crash and sleep. There is one
//! log, regardless of the members that agree on it. A decided entry stays, and a wanted one is
//! decided while there is a majority.

mod judge;
mod random;
mod scripts;

use std::collections::{BTreeMap, BTreeSet};

use mingle_geo::certify::{
    Access, CertifierConfig, Conflicts, Group, GroupConfig, GroupEnvelope, GroupInput,
    GroupMessage, GroupOutput, GroupRecord, Proposal, Vote,
};
use mingle_geo::flaw::Planted;
use mingle_geo::{Address, DcId, Now, PartitionId, Timestamp, Vector};
use mingle_model::TransactionId;
use mingle_model::random::Random;

use crate::certify::{id, proposal, touch};

const PARTITION: PartitionId = PartitionId(0);
const EPOCH_US: u64 = 1_000_000_000;
const TICK_US: u64 = 25_000;

/// The replica of a data center, and its disk.
#[derive(Default)]
struct Node {
    group: Option<Group>,
    incarnation: u32,
    disk: Vec<GroupRecord>,
    /// True if something was written to the current disk.
    has_written: bool,
    delivered: Timestamp,
    /// Counts its lives.
    life: u64,
    /// The time at which the last write is on disk.
    written_us: u64,
    /// The log position that it was seen to have reached in this life, and the configuration.
    seen: (usize, u32),
}

/// A scheduled event.
enum Happening {
    Arrive {
        from: u8,
        envelope: GroupEnvelope,
        link: Option<u64>,
    },
    Answer(u64, GroupMessage),
    Written {
        dc: u8,
        life: u64,
        index: u64,
        records: Vec<GroupRecord>,
        then: Vec<GroupEnvelope>,
    },
    Tick(u8, u64),
    Start(u8),
    /// The disk and its incarnation are lost.
    Lose(u8),
    Tell(u8),
    Heal(u8, u8),
    Client(u64),
}

#[derive(Default)]
struct Client {
    /// The transaction to certify, and the times of the next request and of giving up.
    asks: Option<(Proposal, u64, u64)>,
}

#[derive(Debug, Default)]
struct Met {
    votes: usize,
    restarts: usize,
    lost: usize,
    replaced: usize,
    moved: usize,
    skipped: usize,
    leaders_lost: usize,
}

struct World {
    random: Random,
    planted: Planted,
    keep_entries: usize,
    nodes: Vec<Node>,
    queue: BTreeMap<(u64, u64), Happening>,
    order: u64,
    now_us: u64,
    /// By link: the number of resets, and the arrival time of the last message.
    links: BTreeMap<(u8, u8), (u64, u64)>,
    cut: BTreeSet<(u8, u8)>,
    /// The wanted members of the group.
    wanted: BTreeMap<DcId, u32>,
    clients: Vec<Client>,
    next: u64,
    /// The votes reported to clients.
    told: BTreeMap<TransactionId, (u64, Vote)>,
    /// The first transaction delivered at each timestamp.
    agreed: BTreeMap<Timestamp, TransactionId>,
    /// A digest of the state, by the number of entries followed.
    states: BTreeMap<usize, u64>,
    met: Met,
}

impl World {
    fn new(seed: u64, dcs: u8, planted: Planted) -> Self {
        let mut random = Random::new(seed);
        let keep_entries = *random.pick(&[5, 20, 1_000]);
        let mut world = Self {
            random,
            planted,
            keep_entries,
            nodes: (0..dcs).map(|_| Node::default()).collect(),
            queue: BTreeMap::new(),
            order: 0,
            now_us: 0,
            links: BTreeMap::new(),
            cut: BTreeSet::new(),
            wanted: BTreeMap::new(),
            clients: Vec::new(),
            next: 1,
            told: BTreeMap::new(),
            agreed: BTreeMap::new(),
            states: BTreeMap::new(),
            met: Met::default(),
        };
        (0..dcs).for_each(|dc| world.start(dc));
        // Enough clients that an entry is always in flight when a configuration ends.
        for number in 0..16 {
            world.clients.push(Client::default());
            world.after(number * 1_000, Happening::Client(number));
        }
        world
    }

    fn dcs(&self) -> u8 {
        self.nodes.len() as u8
    }

    fn after(&mut self, delay_us: u64, happening: Happening) {
        self.order += 1;
        self.queue.insert((self.now_us + delay_us, self.order), happening);
    }

    fn now(&self) -> Now {
        Now { wall_us: EPOCH_US + self.now_us, mono_us: self.now_us }
    }

    fn config(&self, dc: u8) -> GroupConfig {
        let mut certifier = CertifierConfig::new(PARTITION, Conflicts::default());
        certifier.planted = self.planted;
        let node = &self.nodes[usize::from(dc)];
        GroupConfig {
            incarnation: node.incarnation,
            is_new: !node.has_written,
            keep_entries: self.keep_entries,
            ..GroupConfig::new(DcId(dc), self.dcs(), certifier)
        }
    }

    fn start(&mut self, dc: u8) {
        let config = self.config(dc);
        let now_us = self.now_us;
        let node = &mut self.nodes[usize::from(dc)];
        if node.group.is_some() {
            return;
        }
        node.life += 1;
        (node.seen, node.written_us) = ((0, 0), now_us);
        node.group = Some(Group::restore(config, &node.disk, node.delivered).expect("settings"));
        let life = node.life;
        self.after(1, Happening::Tick(dc, life));
        for other in (0..self.dcs()).filter(|other| *other != dc) {
            self.reset(dc, other);
        }
        // It has forgotten the wanted members.
        let delay_us = self.random.below(200_000) as u64;
        self.after(delay_us, Happening::Tell(dc));
    }

    fn reset(&mut self, one: u8, other: u8) {
        for (from, to) in [(one, other), (other, one)] {
            let link = self.links.entry((from, to)).or_default();
            *link = (link.0 + 1, 0);
        }
        for (at, of) in [(one, other), (other, one)] {
            self.give(at, GroupInput::Reconnected { dc: DcId(of) });
        }
    }

    /// Ends the process; writes that are not on disk are lost.
    fn crash(&mut self, dc: u8) {
        let node = &mut self.nodes[usize::from(dc)];
        if node.group.take().is_some() {
            node.life += 1;
            self.met.restarts += 1;
        }
    }

    /// Loses the disk too. Its successor is another incarnation.
    fn lose(&mut self, dc: u8) {
        let was_leader = self.leads(dc);
        self.crash(dc);
        let node = &mut self.nodes[usize::from(dc)];
        let (life, incarnation) = (node.life, node.incarnation + 1);
        *node = Node { incarnation, life, ..Node::default() };
        self.met.lost += 1;
        self.met.leaders_lost += usize::from(was_leader);
    }

    /// Tells the replicas, one after the other, that this incarnation is a wanted member.
    fn replace(&mut self, dc: u8, incarnation: u32) {
        self.wanted.insert(DcId(dc), incarnation);
        for other in 0..self.dcs() {
            let delay_us = self.random.below(400_000) as u64;
            self.after(delay_us, Happening::Tell(other));
        }
    }

    fn leads(&self, dc: u8) -> bool {
        self.nodes[usize::from(dc)].group.as_ref().is_some_and(Group::is_leader)
    }

    fn leader(&self) -> Option<u8> {
        (0..self.dcs()).find(|dc| self.leads(*dc))
    }

    fn cut(&mut self, one: u8, other: u8) {
        self.cut.insert((one.min(other), one.max(other)));
    }

    fn is_cut(&self, one: u8, other: u8) -> bool {
        self.cut.contains(&(one.min(other), one.max(other)))
    }

    fn heal(&mut self, one: u8, other: u8) {
        if self.cut.remove(&(one.min(other), one.max(other))) {
            self.reset(one, other);
        }
    }

    fn send(&mut self, from: u8, envelope: GroupEnvelope) {
        let dc = match envelope.to {
            Address::Client(number) => {
                return self.after(300, Happening::Answer(number, envelope.message));
            }
            Address::Replica(dc, _) => dc.0,
        };
        if self.is_cut(from, dc) {
            return;
        }
        let delay_us = 20_000 + self.random.below(40_000) as u64;
        if matches!(envelope.message, GroupMessage::Consensus(_)) {
            // Messages arrive in order, as on a connection.
            let now_us = self.now_us;
            let link = self.links.entry((from, dc)).or_default();
            link.1 = link.1.max(now_us + delay_us);
            let (number, at_us) = *link;
            let arrive = Happening::Arrive { from, envelope, link: Some(number) };
            return self.after(at_us - now_us, arrive);
        }
        for _ in 0..*self.random.pick(&[1, 1, 1, 1, 1, 1, 0, 2]) {
            let delay_us = delay_us + self.random.below(300_000) as u64;
            let envelope = envelope.clone();
            self.after(delay_us, Happening::Arrive { from, envelope, link: None });
        }
    }

    fn give(&mut self, dc: u8, input: GroupInput) {
        let now = self.now();
        let node = &mut self.nodes[usize::from(dc)];
        let Some(group) = &mut node.group else { return };
        let mut out = Vec::new();
        group.handle(now, input, &mut out);
        let life = node.life;
        for output in out {
            match output {
                GroupOutput::Send(envelope) => self.send(dc, envelope),
                GroupOutput::Persist { index, records, then } => {
                    let written_us = self.now_us + 100 + self.random.below(8_000) as u64;
                    let node = &mut self.nodes[usize::from(dc)];
                    node.written_us = node.written_us.max(written_us);
                    let delay_us = node.written_us - self.now_us;
                    self.after(delay_us, Happening::Written { dc, life, index, records, then });
                }
                GroupOutput::Deliver(delivery) => {
                    for one in &delivery.transactions {
                        let first = self.agreed.entry(one.timestamp()).or_insert(one.id);
                        assert_eq!(*first, one.id, "d{dc} delivers another one");
                    }
                    self.nodes[usize::from(dc)].delivered = delivery.to;
                }
                GroupOutput::Behind => panic!("d{dc}: everything is kept in these runs"),
                GroupOutput::Alarm(alarm) => panic!("d{dc}: {alarm:?}"),
            }
        }
        self.look(dc);
    }

    fn step(&mut self) {
        let ((at_us, _), happening) = self.queue.pop_first().expect("clients go on for ever");
        self.now_us = at_us;
        match happening {
            Happening::Arrive { from, envelope, link } => {
                let Address::Replica(to, _) = envelope.to else { return };
                let (now, _) = self.links.get(&(from, to.0)).copied().unwrap_or_default();
                if link.is_none_or(|number| number == now) {
                    let (from, message) =
                        (Address::Replica(DcId(from), PARTITION), envelope.message);
                    self.met.moved += usize::from(matches!(message, GroupMessage::Moved(_)));
                    self.give(to.0, GroupInput::Message { from, message });
                }
            }
            Happening::Answer(number, message) => self.answered(number, &message),
            Happening::Written { dc, life, index, records, then } => {
                let node = &mut self.nodes[usize::from(dc)];
                if node.life != life {
                    return;
                }
                node.has_written |= !records.is_empty();
                node.disk.extend(records);
                for envelope in then {
                    self.send(dc, envelope);
                }
                self.give(dc, GroupInput::Persisted { index });
            }
            Happening::Tick(dc, life) if self.nodes[usize::from(dc)].life == life => {
                self.tick(dc);
                self.after(TICK_US, Happening::Tick(dc, life));
            }
            Happening::Tick(..) => {}
            Happening::Start(dc) => self.start(dc),
            Happening::Lose(dc) => self.lose(dc),
            Happening::Tell(dc) => {
                let wanted: Vec<_> = self.wanted.iter().map(|(dc, last)| (*dc, *last)).collect();
                let now = self.now();
                if let Some(group) = &mut self.nodes[usize::from(dc)].group {
                    group.reconfigure(now, &wanted);
                }
            }
            Happening::Heal(one, other) => self.heal(one, other),
            Happening::Client(number) => {
                self.act(number);
                self.after(10_000, Happening::Client(number));
            }
        }
    }

    fn tick(&mut self, dc: u8) {
        let stable = self.nodes[usize::from(dc)].delivered;
        let (everywhere, uniform) = (Timestamp::ZERO, Timestamp::ZERO);
        self.give(dc, GroupInput::Delivered { stable, everywhere, uniform });
        self.give(dc, GroupInput::Tick);
        if self.random.one_in(200) {
            // The disk's log is replaced by a checkpoint.
            let config = self.config(dc);
            let node = &mut self.nodes[usize::from(dc)];
            let disk = Group::restore(config, &node.disk, node.delivered).expect("settings");
            if node.has_written {
                node.disk = vec![disk.checkpoint()];
            }
        }
    }

    fn run(&mut self, for_us: u64) {
        let until_us = self.now_us + for_us;
        while self.now_us < until_us {
            self.step();
        }
    }

    /// Runs until a condition holds, with a time limit.
    fn run_until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let until_us = self.now_us + 30_000_000;
        while !is_so(self) {
            let groups = || self.nodes.iter().map(|node| node.group.as_ref());
            let configurations = || groups().map(|group| group.map(Group::configuration));
            let found = || (configurations().collect::<Vec<_>>(), &self.wanted, self.leader());
            assert!(self.now_us < until_us, "not within half a minute: {what}: {:?}", found());
            self.step();
        }
    }
}

/// Clients that certify one transaction after the other, at any data center.
impl World {
    fn act(&mut self, number: u64) {
        let now_us = self.now_us;
        let at = self.random.below(self.nodes.len()) as u8;
        let client = &mut self.clients[number as usize];
        if client.asks.as_ref().is_some_and(|(_, _, until_us)| *until_us < now_us) {
            client.asks = None;
        }
        if client.asks.is_none() {
            let sequence = self.next;
            self.next += 1;
            let item = format!("k{}", self.random.below(4));
            let access = *self.random.pick(&[Access::Read, Access::Write]);
            let stable = self.nodes[usize::from(at)].delivered;
            let snap_vec = Vector::ZERO.with(DcId::STRONG, stable);
            let part = proposal(sequence, &[PARTITION.0], vec![touch(&item, access, "")]);
            let part = Proposal { snap_vec, begun_us: EPOCH_US + now_us, ..part };
            self.clients[number as usize].asks = Some((part, now_us, now_us + 8_000_000));
        }
        let Some((part, again_us, _)) = &mut self.clients[number as usize].asks else { return };
        if *again_us <= now_us {
            *again_us = now_us + 600_000;
            let message = GroupMessage::Certify(part.clone());
            self.give(at, GroupInput::Message { from: Address::Client(number), message });
        }
    }

    fn answered(&mut self, number: u64, message: &GroupMessage) {
        let GroupMessage::Voted(voted) = message else { return };
        let Some(vote) = voted.vote else { return };
        let Some((part, ..)) = &self.clients[number as usize].asks else { return };
        if part.id != voted.id {
            return;
        }
        self.told.insert(voted.id, (part.begun_us, vote));
        self.met.votes += 1;
        self.clients[number as usize].asks = None;
    }

    fn last(&self) -> TransactionId {
        id(self.next)
    }
}
