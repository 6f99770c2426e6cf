//! The simulated world: servers and clients, and the packets between them.

use std::collections::{BTreeMap, VecDeque};

use mingle_cops::clock::NodeId;
use mingle_cops::column::Content as Column;
use mingle_cops::message::{Address, ClientId, Output, Packet};
use mingle_cops::server::Server;
use mingle_model::random::{Random, mix};

use super::columns;
use super::library::{Answer, Client};
use super::plan::{Fault, LASTS_US, Plan};
use super::record::{self, Content, Record, Sum};
use crate::workload::promises::Broken;

/// The time between two ticks of a server, in microseconds.
const TICK_US: u64 = 10_000;

/// The time after which everything must have come to rest, in microseconds.
const REST_US: u64 = LASTS_US + 3_000_000;

enum Due {
    Packet(Packet),
    Tick,
    Step(usize),
    Lose(u8),
}

struct World<'p> {
    plan: &'p Plan,
    random: Random,
    now_us: u64,
    sequence: u64,
    due: BTreeMap<(u64, u64), Due>,
    servers: BTreeMap<NodeId, Server>,
    clients: BTreeMap<ClientId, Client>,
    /// The calls of each actor that have not begun.
    queues: BTreeMap<(u8, u32), VecDeque<usize>>,
    /// The actor and the step of each call that runs.
    busy: BTreeMap<(u8, u64), (u32, usize)>,
    record: Record,
}

/// Runs a plan to the end.
pub(super) fn run(plan: &Plan) -> Result<Record, Broken> {
    let mut world = World::new(plan);
    while let Some(((at_us, _), due)) = world.due.pop_first() {
        world.now_us = at_us;
        world.step(due)?;
    }
    let lost = world.record.lost.clone();
    let open = |call: &&record::Call| call.end_us.is_none() && !lost.contains(&call.dc);
    let left = world.queues.iter().find(|((dc, _), steps)| !lost.contains(dc) && !steps.is_empty());
    if let Some(call) = world.record.calls.iter().find(open) {
        return Err(Broken { promise: "calls are answered", how: format!("{call:?}") });
    }
    if let Some(((dc, actor), _)) = left {
        let how = format!("actor {actor} of data center {dc} waits in the end");
        return Err(Broken { promise: "calls are answered", how });
    }
    world.contents();
    Ok(world.record)
}

impl<'p> World<'p> {
    fn new(plan: &'p Plan) -> Self {
        let locator = plan.config.locator;
        let nodes = locator.dcs().flat_map(|dc| locator.servers(dc));
        let client = |dc| ClientId { dc, number: 0 };
        let clients = locator.dcs().map(|dc| (client(dc), Client::new(plan.config, client(dc))));
        let mut world = Self {
            plan,
            random: Random::new(mix(plan.seed ^ 0x00de_1a75)),
            now_us: 0,
            sequence: 0,
            due: BTreeMap::new(),
            servers: nodes.map(|node| (node, Server::new(plan.config, node))).collect(),
            clients: clients.collect(),
            queues: BTreeMap::new(),
            busy: BTreeMap::new(),
            record: Record::default(),
        };
        for (index, step) in plan.steps.iter().enumerate() {
            world.later(step.at_us, Due::Step(index));
        }
        for fault in &plan.faults {
            if let Fault::Lose { dc, at_us } = fault {
                world.later(*at_us, Due::Lose(*dc));
            }
        }
        world.later(TICK_US, Due::Tick);
        world
    }

    fn later(&mut self, at_us: u64, due: Due) {
        self.sequence += 1;
        self.due.insert((at_us, self.sequence), due);
    }

    fn step(&mut self, due: Due) -> Result<(), Broken> {
        match due {
            Due::Packet(packet) => self.deliver(packet)?,
            Due::Tick => {
                let nodes: Vec<NodeId> = self.servers.keys().copied().collect();
                for node in nodes {
                    self.record.trace.timer();
                    if let Some(server) = self.servers.get_mut(&node) {
                        server.tick(self.now_us);
                    }
                    self.drain_server(node);
                    self.record.trace.ends();
                }
                if self.now_us < REST_US {
                    self.later(self.now_us + TICK_US, Due::Tick);
                }
            }
            Due::Step(index) => {
                let step = &self.plan.steps[index];
                self.queues.entry((step.dc, step.actor)).or_default().push_back(index);
                self.begin(step.dc, step.actor)?;
            }
            Due::Lose(dc) => {
                self.record.lost.push(dc);
                self.record.reached("data center lost");
                self.servers.retain(|node, _| node.dc() != dc);
                self.clients.retain(|client, _| client.dc != dc);
                let is_from =
                    |due: &Due| matches!(due, Due::Packet(packet) if packet.from.dc() == dc);
                self.due.retain(|_, due| !is_from(due));
            }
        }
        Ok(())
    }

    /// Begins the next call of an actor, if it has none.
    fn begin(&mut self, dc: u8, actor: u32) -> Result<(), Broken> {
        let id = ClientId { dc, number: 0 };
        if self.busy.iter().any(|((of, _), (busy, _))| (*of, *busy) == (dc, actor)) {
            return Ok(());
        }
        let Some(client) = self.clients.get_mut(&id) else { return Ok(()) };
        let queue = self.queues.entry((dc, actor)).or_default();
        let Some(index) = queue.pop_front() else { return Ok(()) };
        let call = &self.plan.steps[index].call;
        let begin_us = self.now_us;
        let request = client
            .call(begin_us, actor, call.clone())
            .map_err(|how| Broken { promise: "calls are accepted", how })?;
        let noted = record::Call {
            dc,
            actor,
            begin_us,
            end_us: None,
            reads: Vec::new(),
            sums: Vec::new(),
            writes: call.writes(),
            is_divided: call.is_divided(self.plan.config.protocol),
            rounds: 0,
        };
        self.record.begin(id, request, noted);
        self.busy.insert((dc, request), (actor, index));
        self.drain_client(id)
    }

    fn deliver(&mut self, packet: Packet) -> Result<(), Broken> {
        self.record.trace.arrives(&packet);
        match packet.to {
            Address::Server(node) => {
                let Some(server) = self.servers.get_mut(&node) else { return Ok(()) };
                server.handle(self.now_us, packet);
                self.drain_server(node);
                self.record.trace.ends();
                Ok(())
            }
            Address::Client(id) => {
                if let Some(client) = self.clients.get_mut(&id) {
                    client.handle(self.now_us, packet);
                }
                self.drain_client(id)
            }
        }
    }

    fn drain_server(&mut self, node: NodeId) {
        while let Some(output) = self.servers.get_mut(&node).and_then(Server::poll) {
            self.output(output);
        }
    }

    fn drain_client(&mut self, id: ClientId) -> Result<(), Broken> {
        while let Some(output) = self.clients.get_mut(&id).and_then(Client::poll) {
            self.output(output);
        }
        while let Some(answer) = self.clients.get_mut(&id).and_then(Client::answer) {
            self.answered(id, answer)?;
        }
        Ok(())
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Event(event) => self.record.event(event),
            Output::Send(packet) => {
                let trans_time_us = self.plan.config.trans_time_us;
                self.record.trace.sends(self.now_us, trans_time_us, &packet);
                if self.is_lost(&packet) {
                    self.record.reached("packet lost");
                    return;
                }
                let is_slow = self.plan.is_slow && self.random.one_in(6);
                let longest = match self.plan.delay_us(packet.from.dc(), packet.to.dc()) {
                    longest if is_slow => longest + 8_000,
                    longest => longest,
                };
                let delay_us = longest / 3 + self.random.below(longest as usize) as u64;
                self.later(self.now_us + delay_us, Due::Packet(packet));
            }
        }
    }

    fn is_lost(&self, packet: &Packet) -> bool {
        let (from, to) = (packet.from.dc(), packet.to.dc());
        let are_servers =
            matches!((packet.from, packet.to), (Address::Server(_), Address::Server(_)));
        let is_within = |us: (u64, u64)| us.0 <= self.now_us && self.now_us < us.1;
        self.plan.faults.iter().any(|fault| match *fault {
            Fault::Cut { between: (one, other), us } => {
                is_within(us) && [(one, other), (other, one)].contains(&(from, to))
            }
            Fault::Break { dc, us } => is_within(us) && are_servers && (from, to) == (dc, dc),
            Fault::Lose { .. } => false,
        })
    }

    fn answered(&mut self, id: ClientId, answer: Answer) -> Result<(), Broken> {
        let request = answer.request();
        let Some((actor, index)) = self.busy.remove(&(id.dc, request)) else { return Ok(()) };
        if let Some(noted) = self.record.call(id, request) {
            noted.end_us = Some(self.now_us);
            answer.note(&self.plan.steps[index].call, noted);
        }
        self.begin(id.dc, actor)
    }

    fn contents(&mut self) {
        for (node, server) in &self.servers {
            let dc = node.dc();
            for (key, values, versions) in server.contents() {
                self.record.contents.insert((dc, key), Content { values, versions });
            }
            for (location, cell) in server.columns() {
                let key = columns::key(location);
                let values = match cell.content {
                    Column::Value(value) => vec![value],
                    Column::Deleted => Vec::new(),
                    Column::Sum(sum) => {
                        self.record.sums.push((dc, Sum { counter: key, sum }));
                        continue;
                    }
                };
                let versions = vec![cell.ts];
                self.record.contents.insert((dc, key), Content { values, versions });
            }
        }
    }
}
