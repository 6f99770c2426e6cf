//! The capacity model: the real replicas and sessions, in simulated time.
//!
//! Each replica is a server with one core and one queue, first come first served; `RedBlue`'s
//! service has a core of its own in each data center. An input waits until its server is free, is
//! handled by the real core, and keeps its server busy for its service time ([`Times`]); the
//! outputs leave then. Messages take half of a round trip; the distances between data centers are
//! those of Virginia, California and Frankfurt. Durable data is kept in memory. Clients run on
//! machines of their own, which take no time.
//!
//! So the model covers waiting for cores and for distance. The core makes all decisions.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use mingle_geo::record::Install;
use mingle_geo::{
    Address, Baseline, Config, DcId, Envelope, Input, Message, Now, Output, PartitionId, Record,
    Vector,
};
use mingle_model::random::Random;

use super::clients::Client;
use super::machine::{Machine, drain, machine, timed};
use super::tally::Tally;
use super::times::{Kind, Part, Samples, Times, size_in};
use super::workload::Workload;
use crate::geo::Distance;

/// The start of the clocks, in microseconds since 1970.
const EPOCH_US: u64 = 1_700_000_000_000_000;

/// The interval at which sessions are checked for overdue messages, in nanoseconds.
const SWEEP_NS: u64 = 100_000_000;

/// The time limit until all groups have leaders, in nanoseconds.
const ELECTION_NS: u64 = 20_000_000_000;

/// The modelled system.
#[derive(Clone, Debug)]
pub struct Setup {
    pub system: Baseline,
    pub dcs: u8,
    pub partitions: u16,
    /// The number of clients at each data center, each with one transaction at a time.
    pub clients: usize,
    /// The average think time of a client between two transactions.
    pub think_us: u64,
    /// The one-way delay within a data center.
    pub near_us: u64,
    pub times: Times,
    pub seed: u64,
    /// True if handlers are timed.
    pub is_sampled: bool,
}

impl Setup {
    /// Creates the usual setup: three data centers, with a round trip of 200 µs within each.
    pub fn new(system: Baseline, partitions: u16, times: Times) -> Self {
        Self {
            system,
            dcs: 3,
            partitions,
            clients: 16,
            think_us: 0,
            near_us: 100,
            times,
            seed: 1,
            is_sampled: false,
        }
    }

    pub(super) fn config(&self, dc: u8, partition: u16) -> Config {
        let config = Config::new(DcId(dc), self.dcs, PartitionId(partition), self.partitions);
        // With these limits versions are folded within a run at the steady rate.
        let config = Config { transaction_ms_max: 1_000, outcome_ms_max: 6_000, ..config };
        self.system.config(config)
    }

    fn part(&self, partition: u16) -> Part {
        match (self.system, partition) {
            (Baseline::RedBlue, 0) => Part::Service,
            (Baseline::RedBlue, _) => Part::Served,
            _ if self.system.has_groups() => Part::Own,
            _ => Part::None,
        }
    }
}

struct Node {
    machine: Machine,
    part: Part,
    dc: u8,
    partition: u16,
}

/// A core with its queue.
#[derive(Default)]
struct Server {
    queue: VecDeque<(usize, Input)>,
    is_busy: bool,
}

/// An event of the model.
pub(super) enum Happening {
    /// An input arrives at a replica.
    Arrive { node: usize, input: Input },
    /// A server has finished its current input.
    Free { server: usize },
    /// A message arrives at a client.
    Answer { client: usize, from: Address, message: Message },
    /// A client begins a transaction.
    Begin { client: usize },
    /// Sessions are checked for overdue messages.
    Sweep,
}

/// The running model.
pub struct Model {
    pub(super) setup: Setup,
    pub(super) workload: Box<dyn Workload>,
    pub(super) now_ns: u64,
    /// The start time of the clients.
    pub(super) started_ns: u64,
    order: BinaryHeap<Reverse<(u64, u64, usize)>>,
    sequence: u64,
    slots: Vec<Option<Happening>>,
    vacant: Vec<usize>,
    nodes: Vec<Node>,
    servers: Vec<Server>,
    /// The arrival time of the last message from each replica to each data center, because
    /// connections keep the order.
    arrives_ns: Vec<u64>,
    pub(super) clients: Vec<Client>,
    pub(super) random: Random,
    /// True if clients start no more transactions.
    pub(super) is_over: bool,
    /// The lost data center and the time of the loss.
    pub(super) lost: Option<(u8, u64)>,
    pub(super) tally: Tally,
    pub samples: Samples,
    outputs: Vec<Output>,
    sends: Vec<Envelope>,
}

impl Model {
    /// Creates the replicas with the workload's initial contents; no client runs yet.
    ///
    /// # Errors
    ///
    /// The core's objection to the settings.
    pub fn new(setup: Setup, workload: Box<dyn Workload>) -> Result<Self, String> {
        let mut installs = vec![Vec::new(); usize::from(setup.partitions)];
        for (key, state) in workload.filling() {
            installs[usize::from(key.partition(setup.partitions).0)].push((key, state));
        }
        let mut nodes = Vec::new();
        for dc in 0..setup.dcs {
            for partition in 0..setup.partitions {
                let install = Record::Install(Install {
                    at: Vector::ZERO,
                    states: installs[usize::from(partition)].clone(),
                    suffix: Vec::new(),
                    known_vec: Vector::ZERO,
                    cut: Vector::ZERO,
                    forward: Vec::new(),
                });
                let machine = machine(&setup, workload.as_ref(), dc, partition, install)?;
                nodes.push(Node { machine, part: setup.part(partition), dc, partition });
            }
        }
        let dcs = usize::from(setup.dcs);
        let server_count = nodes.len() + dcs;
        let mut model = Self {
            now_ns: 0,
            started_ns: 0,
            order: BinaryHeap::new(),
            sequence: 0,
            slots: Vec::new(),
            vacant: Vec::new(),
            servers: (0..server_count).map(|_| Server::default()).collect(),
            arrives_ns: vec![0; nodes.len() * dcs],
            nodes,
            clients: Vec::new(),
            random: Random::new(setup.seed),
            is_over: false,
            lost: None,
            tally: Tally::new(dcs, server_count),
            samples: Samples::default(),
            outputs: Vec::new(),
            sends: Vec::new(),
            setup,
            workload,
        };
        for node in 0..model.nodes.len() {
            let at_ns = model.random.below(5_000_000) as u64;
            model.push(at_ns, Happening::Arrive { node, input: Input::Tick });
        }
        model.push(SWEEP_NS, Happening::Sweep);
        Ok(model)
    }

    pub(super) fn push(&mut self, at_ns: u64, happening: Happening) {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(happening);
        self.sequence += 1;
        self.order.push(Reverse((at_ns, self.sequence, slot)));
    }

    pub(super) fn now(&self) -> Now {
        let us = self.now_ns / 1_000;
        Now { wall_us: EPOCH_US + us, mono_us: us }
    }

    /// Runs the model for a given time.
    pub fn run_for(&mut self, ns: u64) {
        let until_ns = self.now_ns + ns;
        while let Some(Reverse((at_ns, _, slot))) = self.order.peek().copied()
            && at_ns <= until_ns
        {
            self.order.pop();
            self.now_ns = at_ns;
            self.vacant.push(slot);
            if let Some(happening) = self.slots[slot].take() {
                self.happen(happening);
            }
        }
        self.now_ns = until_ns;
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrive { node, input } => self.arrive(node, input),
            Happening::Free { server } => {
                self.servers[server].is_busy = false;
                self.serve(server);
            }
            Happening::Answer { client, from, message } => self.answer(client, from, message),
            Happening::Begin { client } => self.begin(client),
            Happening::Sweep => {
                self.sweep();
                self.push(self.now_ns + SWEEP_NS, Happening::Sweep);
            }
        }
    }

    pub(super) fn is_lost(&self, dc: u8) -> bool {
        self.lost.is_some_and(|(lost, _)| lost == dc)
    }

    /// Returns the server that handles an input: the service's certification has its own core.
    fn server_of(&self, node: usize, input: &Input) -> usize {
        let is_service = self.nodes[node].part == Part::Service;
        let is_certified =
            matches!(input, Input::Message { message: Message::Group(_) | Message::Held(_), .. });
        if is_service && is_certified {
            return self.nodes.len() + usize::from(self.nodes[node].dc);
        }
        node
    }

    fn arrive(&mut self, node: usize, input: Input) {
        if self.is_lost(self.nodes[node].dc) {
            return;
        }
        let server = self.server_of(node, &input);
        self.servers[server].queue.push_back((node, input));
        if !self.servers[server].is_busy {
            self.serve(server);
        }
    }

    /// Handles the next input in a server's queue.
    fn serve(&mut self, server: usize) {
        let Some((index, input)) = self.servers[server].queue.pop_front() else { return };
        let now = self.now();
        let node = &mut self.nodes[index];
        let (kind, is_tick) = (Kind::of(&input, node.part), matches!(input, Input::Tick));
        let size_before = size_in(&input);
        let mut size = size_before;
        if self.setup.is_sampled {
            let ns;
            (ns, size) = timed(&mut node.machine, now, input, &mut self.outputs, &mut self.sends);
            size += size_before;
            if self.tally.is_counted {
                self.samples.push(kind, size, ns);
                self.tally.handled_ns += ns;
            }
        } else {
            node.machine.handle(now, input, &mut self.outputs);
            size += drain(&mut node.machine, now, &mut self.outputs, &mut self.sends, |_| {});
        }
        let takes_ns = self.setup.times.cost_ns(kind, size);
        if self.tally.is_counted {
            self.tally.busy_ns[server] += takes_ns;
        }
        let done_ns = self.now_ns + takes_ns;
        self.servers[server].is_busy = true;
        self.push(done_ns, Happening::Free { server });
        let tick_ms = self.nodes[index].machine.replica().tick_in_ms();
        let mut sends = std::mem::take(&mut self.sends);
        for envelope in sends.drain(..) {
            self.send(index, done_ns, envelope);
        }
        self.sends = sends;
        if is_tick {
            let at_ns = self.now_ns + tick_ms * 1_000_000;
            self.push(at_ns, Happening::Arrive { node: index, input: Input::Tick });
        }
    }

    fn send(&mut self, from: usize, at_ns: u64, envelope: Envelope) {
        let Node { dc, partition, .. } = self.nodes[from];
        let source = Address::Replica(DcId(dc), PartitionId(partition));
        let near_ns = self.setup.near_us * 1_000;
        match envelope.to {
            Address::Client(client) => {
                let (client, message) = (client as usize, envelope.message);
                self.push(at_ns + near_ns, Happening::Answer { client, from: source, message });
            }
            Address::Replica(to, partition) => {
                let node = self.index_of(to.0, partition.0);
                let input = Input::Message { from: source, message: envelope.message };
                if to.0 == dc {
                    let way_ns = if node == from { 0 } else { near_ns };
                    return self.push(at_ns + way_ns, Happening::Arrive { node, input });
                }
                let way_ns = Distance::Continents.one_way_us(dc, to.0) * 1_000;
                let last =
                    &mut self.arrives_ns[from * usize::from(self.setup.dcs) + usize::from(to.0)];
                *last = (*last).max(at_ns + way_ns);
                let arrives_ns = *last;
                self.push(arrives_ns, Happening::Arrive { node, input });
            }
        }
    }

    pub(super) fn index_of(&self, dc: u8, partition: u16) -> usize {
        usize::from(dc) * usize::from(self.setup.partitions) + usize::from(partition)
    }

    /// Runs until all groups are led from the first data center and all replicas know each other.
    ///
    /// # Errors
    ///
    /// If this state is not reached.
    pub fn elect(&mut self) -> Result<(), String> {
        while self.now_ns < ELECTION_NS {
            self.run_for(50_000_000);
            let is_led = |node: &Node| match &node.machine {
                Machine::Strong(replica) if node.dc == 0 && node.part != Part::Served => {
                    replica.group().is_leader()
                }
                _ => true,
            };
            let is_known = |node: &Node| {
                let uniform = node.machine.replica().uniform_vec();
                (0..self.setup.dcs).all(|dc| uniform[DcId(dc)].micros() > EPOCH_US)
            };
            if self.nodes.iter().all(|node| is_led(node) && is_known(node)) {
                return Ok(());
            }
        }
        Err(format!(
            "after {} s groups are not led from the first data center",
            ELECTION_NS / 1_000_000_000
        ))
    }

    /// Loses a data center with its clients.
    pub fn lose(&mut self, dc: u8) {
        self.lost = Some((dc, self.now_ns));
    }

    /// Starts counting.
    pub fn count(&mut self) {
        self.tally.is_counted = true;
    }

    /// Returns the counts of the given number of seconds.
    pub fn counted(&mut self, seconds: f64) -> Tally {
        self.tally.seconds = seconds;
        let mut tally = self.tally.clone();
        tally.last_until((self.now_ns - self.started_ns) / 1_000);
        tally
    }

    /// Returns the state of an item at a data center as far as everything is uniform.
    #[cfg(test)]
    pub fn shown(&self, dc: u8, key: &mingle_geo::Key) -> std::sync::Arc<mingle_geo::State> {
        let node = self.index_of(dc, key.partition(self.setup.partitions).0);
        let replica = self.nodes[node].machine.replica();
        replica.inspect(key, &replica.known_vec()).expect("what a replica has can be read")
    }
}
