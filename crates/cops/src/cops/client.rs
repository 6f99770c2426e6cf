//! The client library of the COPS family.

use std::collections::{BTreeMap, VecDeque};

use crate::clock::{Clock, Timestamp};
use crate::config::{Config, Protocol};
use crate::deps::{Dep, Graph, OneHop};
use crate::flaw::Flaw;
use crate::message::{
    Address, ClientId, Event, Frame, Message, Output, Packet, Point, RequestId, Value,
};

/// A thread of execution in a client, with a context of its own.
pub type ActorId = u32;

/// A call of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Reads a key.
    Read(u32),
    /// Reads keys together; in COPS-RT consistently.
    ReadTrans(Vec<u32>),
    /// Writes a value to a key.
    Write(u32, u64),
}

/// The result of reading a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The key.
    pub key: u32,
    /// Its value; empty if it was never written.
    pub value: Value,
    /// The timestamps of the versions in the value.
    pub versions: Vec<Timestamp>,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of the call.
    pub request: RequestId,
    /// The results of reads, in the order of the keys.
    pub found: Vec<Found>,
    /// The operation of a write.
    pub written: Option<Dep>,
    /// The rounds of messages to servers.
    pub rounds: u32,
}

/// A result that has arrived.
#[derive(Clone, Debug)]
struct Result {
    value: Value,
    versions: Vec<Timestamp>,
    deps: Vec<Dep>,
    never_depend: bool,
}

impl Result {
    fn newest(&self) -> Timestamp {
        self.versions.iter().copied().max().unwrap_or_default()
    }
}

#[derive(Debug)]
struct Running {
    actor: ActorId,
    call: Call,
    keys: Vec<u32>,
    results: BTreeMap<u32, Result>,
    missing: usize,
    rounds: u32,
    begun_us: u64,
}

/// A client: the library in one process, with a context for each actor.
///
/// # Examples
///
/// ```
/// use mingle_cops::config::{Config, Protocol, keep_all};
/// use mingle_cops::cops::client::{Call, Client};
/// use mingle_cops::locator::Locator;
/// use mingle_cops::message::{ClientId, Output};
/// use mingle_cops::server::Server;
///
/// let locator = Locator::new(1, 1).unwrap();
/// let (trans_time_us, retry_us) = (5_000_000, 100_000);
/// let (protocol, handler, flaw) = (Protocol::Cops, keep_all as _, None);
/// let config = Config { protocol, locator, trans_time_us, retry_us, handler, flaw };
/// let mut server = Server::new(config, locator.server(0, 1));
/// let mut client = Client::new(config, ClientId { dc: 0, number: 0 });
///
/// client.call(0, 7, Call::Write(1, 42));
/// while let Some(Output::Send(packet)) = client.poll() {
///     server.handle(0, packet);
/// }
/// while let Some(output) = server.poll() {
///     if let Output::Send(packet) = output {
///         client.handle(0, packet);
///     }
/// }
/// assert!(client.answer().unwrap().written.is_some());
/// ```
#[derive(Debug)]
pub struct Client {
    id: ClientId,
    config: Config,
    clock: Clock,
    contexts: BTreeMap<ActorId, OneHop>,
    graphs: BTreeMap<ActorId, Graph>,
    running: BTreeMap<RequestId, Running>,
    next_request: RequestId,
    /// The global checkpoint time.
    checkpoint: u64,
    outputs: VecDeque<Output>,
    answers: VecDeque<Answer>,
}

impl Client {
    /// Creates a client with empty contexts.
    pub fn new(config: Config, id: ClientId) -> Self {
        Self {
            id,
            config,
            clock: Clock::default(),
            contexts: BTreeMap::new(),
            graphs: BTreeMap::new(),
            running: BTreeMap::new(),
            next_request: 0,
            checkpoint: 0,
            outputs: VecDeque::new(),
            answers: VecDeque::new(),
        }
    }

    /// Tells the client the global checkpoint time (thesis §6.1): operations up to this logical time are
    /// applied in all data centers, so that no operation that is read later depends on them.
    pub fn set_checkpoint(&mut self, time: u64) {
        self.checkpoint = time;
    }

    /// Begins a call for an actor, which must have no other, and returns its number.
    pub fn call(&mut self, now_us: u64, actor: ActorId, call: Call) -> RequestId {
        let request = self.next_request;
        self.next_request += 1;
        let mut keys = match &call {
            Call::Read(key) => vec![*key],
            Call::ReadTrans(keys) => keys.clone(),
            Call::Write(..) => Vec::new(),
        };
        keys.sort_unstable();
        keys.dedup();
        if let Call::Write(key, value) = call {
            self.write(request, actor, (key, value));
        }
        let running = Running {
            actor,
            call,
            missing: keys.len(),
            keys: keys.clone(),
            results: BTreeMap::new(),
            rounds: 1,
            begun_us: now_us,
        };
        self.running.insert(request, running);
        for key in keys {
            self.read(request, key, None);
        }
        request
    }

    fn write(&mut self, request: RequestId, actor: ActorId, (key, value): (u32, u64)) {
        let (deps, nearest) = match self.config.protocol {
            Protocol::CopsRt => {
                let graph = self.graphs.entry(actor).or_default();
                (graph.all(), graph.nearest())
            }
            _ => {
                let deps = self.contexts.entry(actor).or_default().deps();
                (deps.clone(), deps)
            }
        };
        self.send(key, Message::WriteAfter { request, key, value, deps, nearest });
    }

    fn read(&mut self, request: RequestId, key: u32, ts: Option<Timestamp>) {
        self.send(key, Message::ReadByTime { request, key, ts });
    }

    fn send(&mut self, key: u32, message: Message) {
        let to = Address::Server(self.config.locator.server(self.id.dc, key));
        let (from, time) = (Address::Client(self.id), self.clock.now());
        let frame = Frame::Plain(message);
        self.outputs.push_back(Output::Send(Packet { from, to, time, frame }));
    }

    /// Takes a packet of a server.
    pub fn handle(&mut self, now_us: u64, packet: Packet) {
        self.clock.witness(packet.time);
        match packet.frame {
            Frame::Plain(Message::ReadResult {
                request,
                key,
                value,
                versions,
                deps,
                never_depend,
            }) => self.on_result(
                now_us,
                request,
                (key, Result { value, versions, deps, never_depend }),
            ),
            Frame::Plain(Message::Written { request, dep }) => self.on_written(request, dep),
            // The other messages are for servers.
            _ => {}
        }
    }

    fn on_written(&mut self, request: RequestId, dep: Dep) {
        let Some(running) = self.running.remove(&request) else { return };
        match self.config.protocol {
            Protocol::CopsRt => self.graphs.entry(running.actor).or_default().wrote(dep),
            _ if self.config.protocol.is_tracked() => {
                self.contexts.entry(running.actor).or_default().wrote([dep]);
            }
            _ => {}
        }
        let (found, written, rounds) = (Vec::new(), Some(dep), 1);
        self.answers.push_back(Answer { request, found, written, rounds });
    }

    fn on_result(&mut self, now_us: u64, request: RequestId, (key, result): (u32, Result)) {
        let Some(running) = self.running.get_mut(&request) else { return };
        running.results.insert(key, result);
        running.missing -= 1;
        if running.missing > 0 {
            return;
        }
        let is_late = now_us > running.begun_us + self.config.trans_time_us;
        if self.config.protocol == Protocol::CopsRt && is_late && running.keys.len() > 1 {
            self.restart(now_us, request);
            return;
        }
        let second = match (self.config.protocol, running.rounds) {
            (Protocol::CopsRt, 1) if !self.config.has(Flaw::OneRound) => {
                second_round(&running.results)
            }
            _ => Vec::new(),
        };
        if second.is_empty() {
            self.finish(request);
            return;
        }
        running.rounds = 2;
        running.missing = second.len();
        self.outputs.push_back(Output::Event(Event::Reached(Point::SecondRound)));
        for (key, ts) in second {
            self.read(request, key, Some(ts));
        }
    }

    /// Begins a read-only transaction again that took longer than `trans_time`.
    fn restart(&mut self, now_us: u64, request: RequestId) {
        let Some(running) = self.running.remove(&request) else { return };
        self.outputs.push_back(Output::Event(Event::Reached(Point::Restarted)));
        let keys = running.keys.clone();
        let again = Running {
            missing: keys.len(),
            results: BTreeMap::new(),
            rounds: 1,
            begun_us: now_us,
            ..running
        };
        self.running.insert(request, again);
        for key in keys {
            self.read(request, key, None);
        }
    }

    fn finish(&mut self, request: RequestId) {
        let Some(running) = self.running.remove(&request) else { return };
        let Running { actor, call, results, rounds, .. } = running;
        if self.config.protocol.is_tracked() && !self.config.has(Flaw::ReadForgotten) {
            for (key, result) in &results {
                self.note(actor, *key, result);
            }
        }
        let keys = match call {
            Call::Read(key) => vec![key],
            Call::ReadTrans(keys) => keys,
            Call::Write(..) => Vec::new(),
        };
        let found = keys.into_iter().filter_map(|key| {
            let Result { value, versions, .. } = results.get(&key)?.clone();
            Some(Found { key, value, versions })
        });
        let found = found.collect();
        self.answers.push_back(Answer { request, found, written: None, rounds });
    }

    /// Adds a result to the context of an actor.
    fn note(&mut self, actor: ActorId, key: u32, result: &Result) {
        let versions = result.versions.iter().filter(|ts| ts.time() > self.checkpoint);
        let read = versions.map(|ts| Dep { key, ts: *ts });
        if self.config.protocol != Protocol::CopsRt {
            let context = self.contexts.entry(actor).or_default();
            read.for_each(|dep| context.read(dep));
            return;
        }
        let graph = self.graphs.entry(actor).or_default();
        for dep in read {
            if result.never_depend {
                graph.never_depend(dep);
            } else {
                graph.add(dep, &result.deps);
            }
        }
    }

    /// Returns the next packet or event.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns the next answer.
    pub fn answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }
}

/// Computes the causally correct versions (thesis, Figure 4.3), and returns the keys whose result is
/// older, each with the timestamp to read.
fn second_round(results: &BTreeMap<u32, Result>) -> Vec<(u32, Timestamp)> {
    let mut correct: BTreeMap<u32, Timestamp> = BTreeMap::new();
    for dep in results.values().flat_map(|result| &result.deps) {
        if results.contains_key(&dep.key) {
            let ts = correct.entry(dep.key).or_default();
            *ts = dep.ts.max(*ts);
        }
    }
    let is_older = |(key, ts): &(u32, Timestamp)| results[key].newest() < *ts;
    correct.into_iter().filter(is_older).collect()
}
