//! The reference protocols as processes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use mingle_cops::clock::NodeId;
use mingle_cops::column::{Column, Family, Location, Mutation, Predicate, Slice, Update};
use mingle_cops::config::Config;
use mingle_cops::cops::client as cops;
use mingle_cops::eiger::client as eiger;
use mingle_cops::message::{
    Address, ClientId, Event, Frame, Message, Output, Packet, Point, RequestId,
};
use mingle_cops::server::Server;
use mingle_cops::wire::{put_frame, sized, take_frame};
use mingle_model::random::{Random, mix};

use super::hub::{Outbox, Process};
use super::job::{Answered, Control, Job, Kind, Row, Workload};
use super::topology::Topology;

/// The family of all columns.
const FAMILY: Family = Family::Standard(0);

/// A server as a process.
pub struct ServerProcess {
    pub server: Server,
    pub id: NodeId,
    pub topology: Topology,
    pub control: Arc<Control>,
}

impl Process for ServerProcess {
    fn take(&mut self, now_us: u64, from: usize, message: &[u8]) -> Result<(), String> {
        let (time, frame) = take_frame(message).map_err(|error| error.to_string())?;
        let (from, to) = (self.topology.address(from), Address::Server(self.id));
        self.server.handle(now_us, Packet { from, to, time, frame });
        Ok(())
    }

    fn tick(&mut self, now_us: u64) {
        self.server.tick(now_us);
    }

    fn drain(&mut self, _now_us: u64, outbox: &mut Outbox) {
        while let Some(output) = self.server.poll() {
            match output {
                Output::Send(packet) => {
                    count_deps(&packet, &self.control);
                    let to = self.topology.process(packet.to);
                    outbox.message(to, |out| put_frame(out, packet.time, &packet.frame));
                }
                Output::Event(Event::Reached(Point::Indirection)) => {
                    self.control.indirections.fetch_add(1, Ordering::Relaxed);
                }
                Output::Event(_) => {}
            }
        }
    }

    fn digest(&self) -> u64 {
        let contents = self.server.contents().into_iter().map(|(key, values, _)| (key, 0, values));
        let columns = self
            .server
            .columns()
            .into_iter()
            .map(|(location, cell)| (location.key, location.column.name, vec![cell.ts.bits()]));
        contents.chain(columns).fold(0, |digest, (key, column, values)| {
            let place = mix(u64::from(key) << 32 | u64::from(column));
            digest ^ values.iter().fold(place, |hash, value| mix(hash ^ value))
        })
    }
}

/// Counts the dependencies of a write to another data center.
fn count_deps(packet: &Packet, control: &Control) {
    let Frame::Numbered(_, message) = &packet.frame else { return };
    let count = match message {
        Message::ReplicatedWrite { deps, nearest, .. } => deps.len().max(nearest.len()),
        Message::ReplicatedMutation { deps, .. } => deps.len(),
        Message::ReplicatedTransaction { part, .. } => part.deps.len(),
        _ => return,
    };
    control.deps.fetch_add(count as u64, Ordering::Relaxed);
    control.replicated.fetch_add(1, Ordering::Relaxed);
}

/// A client library of any protocol.
enum Library {
    Cops(cops::Client),
    Columns(eiger::Client),
}

impl Library {
    fn new(config: Config, id: ClientId, checkpoint: u64) -> Self {
        if config.protocol.has_columns() {
            let mut client = eiger::Client::new(config, id);
            client.set_checkpoint(checkpoint);
            return Self::Columns(client);
        }
        let mut client = cops::Client::new(config, id);
        client.set_checkpoint(checkpoint);
        Self::Cops(client)
    }

    /// Begins a job; `value` numbers the values that it writes.
    fn call(&mut self, now_us: u64, actor: u32, job: &Job, value: u64) -> Result<u64, String> {
        match self {
            Self::Cops(client) => Ok(client.call(now_us, actor, call_of(job, value)?)),
            Self::Columns(client) => client.call(now_us, actor, columns_call(job, value)),
        }
    }

    fn handle(&mut self, now_us: u64, packet: Packet) {
        match self {
            Self::Cops(client) => client.handle(now_us, packet),
            Self::Columns(client) => client.handle(now_us, packet),
        }
    }

    fn poll(&mut self) -> Option<Output> {
        match self {
            Self::Cops(client) => client.poll(),
            Self::Columns(client) => client.poll(),
        }
    }

    /// Returns the number of the next answer and the rounds that it took.
    fn answer(&mut self) -> Option<(RequestId, u32)> {
        match self {
            Self::Cops(client) => client.answer().map(|answer| (answer.request, answer.rounds)),
            Self::Columns(client) => client.answer().map(|answer| (answer.request, answer.rounds)),
        }
    }
}

/// Returns a job as a call of the COPS family.
fn call_of(job: &Job, value: u64) -> Result<cops::Call, String> {
    match (job.kind, job.rows.as_slice()) {
        (Kind::Read, [row]) => Ok(cops::Call::Read(row.key)),
        (Kind::Read, rows) => Ok(cops::Call::ReadTrans(rows.iter().map(|row| row.key).collect())),
        (_, [row]) => Ok(cops::Call::Write(row.key, sized(value, row.bytes))),
        (_, rows) => Err(format!("a write of {} keys, expected one", rows.len())),
    }
}

/// Returns a job as a call of Eiger.
fn columns_call(job: &Job, value: u64) -> eiger::Call {
    let slice = |row: &Row| {
        let (start, stop) = (Column::named(1), Column::named(row.columns));
        let predicate = Predicate::Range { start, stop, count: row.columns as usize };
        Slice { key: row.key, family: FAMILY, predicate }
    };
    let mutations = || job.rows.iter().flat_map(|row| mutations(row, value)).collect();
    match job.kind {
        Kind::Read => eiger::Call::MultigetSlice(job.rows.iter().map(slice).collect()),
        Kind::Write => eiger::Call::BatchMutate(mutations()),
        Kind::Atomic => eiger::Call::AtomicMutate(mutations()),
    }
}

/// Returns an insert into each column of a row.
fn mutations(row: &Row, value: u64) -> impl Iterator<Item = Mutation> + use<> {
    let Row { key, columns, bytes } = *row;
    (1..=columns).map(move |name| {
        let location = Location { key, family: FAMILY, column: Column::named(name) };
        Mutation { location, update: Update::Insert(sized(value, bytes)) }
    })
}

/// A call that runs.
struct Running {
    actor: usize,
    kind: Kind,
    /// The numbers of keys and columns.
    counts: (u64, u64),
    began: Instant,
    /// The number of questions to coordinators before it.
    indirections: u64,
}

/// A client process: a library with actors, each with one call after the other.
pub struct ClientProcess {
    id: ClientId,
    library: Library,
    topology: Topology,
    control: Arc<Control>,
    workload: Arc<dyn Workload>,
    randoms: Vec<Random>,
    running: BTreeMap<RequestId, Running>,
    idle: Vec<usize>,
    values: u64,
}

impl ClientProcess {
    /// Creates a client whose actors have the numbers from `first` on.
    pub fn new(
        config: Config,
        (id, checkpoint): (ClientId, u64),
        topology: Topology,
        control: Arc<Control>,
        workload: Arc<dyn Workload>,
        randoms: Vec<Random>,
    ) -> Self {
        let idle = (0..randoms.len()).collect();
        let library = Library::new(config, id, checkpoint);
        let (running, values) = (BTreeMap::new(), 0);
        Self { id, library, topology, control, workload, randoms, running, idle, values }
    }

    /// Begins the next call of an actor.
    fn begin(&mut self, now_us: u64, actor: usize) -> Result<(), String> {
        let number = usize::from(self.id.number) * self.randoms.len() + actor;
        let job = self.workload.draw(number, &mut self.randoms[actor]);
        self.values += 1;
        let indirections = self.control.indirections.load(Ordering::Relaxed);
        let began = Instant::now();
        let request = self.library.call(now_us, actor as u32, &job, self.values)?;
        let columns = job.rows.iter().map(|row| u64::from(row.columns)).sum();
        let counts = (job.rows.len() as u64, columns);
        let running = Running { actor, kind: job.kind, counts, began, indirections };
        self.running.insert(request, running);
        self.control.running.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Records an answer, and begins the next call of its actor.
    fn on_answer(&mut self, now_us: u64, request: RequestId, rounds: u32) -> Result<(), String> {
        let Some(running) = self.running.remove(&request) else { return Ok(()) };
        self.control.running.fetch_sub(1, Ordering::AcqRel);
        if self.control.is_counted.load(Ordering::Relaxed) {
            let indirections = self.control.indirections.load(Ordering::Relaxed);
            let answered = match running.kind {
                Kind::Read if rounds == 1 => Answered::Read,
                Kind::Read if indirections > running.indirections => Answered::Indirected,
                Kind::Read => Answered::TwoRounds,
                Kind::Write => Answered::Write,
                Kind::Atomic => Answered::Atomic,
            };
            self.control.tally().record(answered, running.began.elapsed(), running.counts);
        }
        if self.control.runs.load(Ordering::Relaxed) {
            return self.begin(now_us, running.actor);
        }
        self.idle.push(running.actor);
        Ok(())
    }
}

impl Process for ClientProcess {
    fn take(&mut self, now_us: u64, from: usize, message: &[u8]) -> Result<(), String> {
        let (time, frame) = take_frame(message).map_err(|error| error.to_string())?;
        let (from, to) = (self.topology.address(from), Address::Client(self.id));
        self.library.handle(now_us, Packet { from, to, time, frame });
        while let Some((request, rounds)) = self.library.answer() {
            self.on_answer(now_us, request, rounds)?;
        }
        Ok(())
    }

    fn tick(&mut self, now_us: u64) {
        if !self.control.runs.load(Ordering::Relaxed) {
            return;
        }
        for actor in std::mem::take(&mut self.idle) {
            if let Err(why) = self.begin(now_us, actor) {
                let mut tally = self.control.tally();
                tally.failed += 1;
                tally.why.get_or_insert(why);
            }
        }
    }

    fn drain(&mut self, _now_us: u64, outbox: &mut Outbox) {
        while let Some(output) = self.library.poll() {
            if let Output::Send(packet) = output {
                let to = self.topology.process(packet.to);
                outbox.message(to, |out| put_frame(out, packet.time, &packet.frame));
            }
        }
    }
}

/// Creates the servers of a system with its initial contents: written at the first data center, and
/// replicated. Returns them with the logical time up to which all that is in them was done.
pub fn filled(config: Config, rows: &[Row]) -> (BTreeMap<NodeId, Server>, u64) {
    let nodes = config.locator.dcs().flat_map(|dc| config.locator.servers(dc));
    let mut servers: BTreeMap<NodeId, Server> =
        nodes.map(|node| (node, Server::new(config, node))).collect();
    let client = ClientId { dc: 0, number: u16::MAX };
    for (number, row) in rows.iter().enumerate() {
        let (request, key, deps) = (number as u64, row.key, Vec::new());
        let message = if config.protocol.has_columns() {
            let mutations = mutations(row, request).collect();
            Message::BatchMutate { request, mutations, deps }
        } else {
            let (value, nearest) = (sized(request, row.bytes), Vec::new());
            Message::WriteAfter { request, key, value, deps, nearest }
        };
        let (from, to) = (Address::Client(client), Address::Server(config.locator.server(0, key)));
        let packet = Packet { from, to, time: 0, frame: Frame::Plain(message) };
        deliver(&mut servers, packet);
    }
    let time = servers.values().map(Server::time).max().unwrap_or_default();
    (servers, time)
}

/// Delivers a packet, and all that follow from it between servers.
fn deliver(servers: &mut BTreeMap<NodeId, Server>, packet: Packet) {
    let mut packets = VecDeque::from([packet]);
    while let Some(packet) = packets.pop_front() {
        let Address::Server(node) = packet.to else { continue };
        let Some(server) = servers.get_mut(&node) else { continue };
        server.handle(0, packet);
        packets.extend(std::iter::from_fn(|| server.poll()).filter_map(|output| match output {
            Output::Send(packet) => Some(packet),
            Output::Event(_) => None,
        }));
    }
}
