//! The client library of Eiger.

use std::collections::{BTreeMap, VecDeque};

use crate::clock::{Clock, NodeId};
use crate::column::{Cell, Content, Mutation, Slice};
use crate::config::{Config, Protocol};
use crate::deps::{Dep, OneHop};
use crate::flaw::Flaw;
use crate::message::{
    Address, ClientId, Event, Frame, Message, Output, Packet, Point, RequestId, Requested,
    SubRequest,
};

pub use crate::cops::client::ActorId;

/// A call of the library (thesis, Table 5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Mutations that appear one key after the other.
    BatchMutate(Vec<Mutation>),
    /// Mutations that appear together.
    AtomicMutate(Vec<Mutation>),
    /// A read-only transaction.
    MultigetSlice(Vec<Slice>),
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of the call.
    pub request: RequestId,
    /// The columns of each slice, without deleted ones.
    pub slices: Vec<Vec<Cell>>,
    /// The deleted columns of each slice.
    pub deleted: Vec<Vec<Cell>>,
    /// The operations of a write.
    pub written: Vec<Dep>,
    /// The rounds of messages to servers, without checks at coordinators.
    pub rounds: u32,
}

/// The answer to a slice that has arrived.
#[derive(Clone, Debug)]
struct Sliced {
    cells: Vec<Cell>,
    evt: u64,
    lvt: u64,
    is_pending: bool,
}

#[derive(Debug)]
struct Running {
    actor: ActorId,
    slices: Vec<Slice>,
    results: BTreeMap<usize, Sliced>,
    /// The slices of the second round, in the order of the requests.
    second: VecDeque<usize>,
    written: Vec<Dep>,
    missing: usize,
    rounds: u32,
    begun_us: u64,
}

/// A client: the library in one process, with a context for each actor.
///
/// # Examples
///
/// ```
/// use mingle_cops::column::{Column, Content, Family, Location, Mutation, Predicate, Slice, Update};
/// use mingle_cops::config::{Config, Protocol, keep_all};
/// use mingle_cops::eiger::client::{Answer, Call, Client};
/// use mingle_cops::locator::Locator;
/// use mingle_cops::message::{ClientId, Output};
/// use mingle_cops::server::Server;
///
/// let locator = Locator::new(1, 1).unwrap();
/// let (trans_time_us, retry_us) = (5_000_000, 100_000);
/// let (protocol, handler, flaw) = (Protocol::Eiger, keep_all as _, None);
/// let config = Config { protocol, locator, trans_time_us, retry_us, handler, flaw };
/// let mut server = Server::new(config, locator.server(0, 1));
/// let mut client = Client::new(config, ClientId { dc: 0, number: 0 });
/// let mut answer = |call| -> Answer {
///     client.call(0, 7, call).unwrap();
///     while let Some(Output::Send(packet)) = client.poll() {
///         server.handle(0, packet);
///     }
///     while let Some(output) = server.poll() {
///         if let Output::Send(packet) = output {
///             client.handle(0, packet);
///         }
///     }
///     client.answer().unwrap()
/// };
///
/// let (key, family, column) = (1, Family::Standard(0), Column::named(5));
/// let location = Location { key, family, column };
/// answer(Call::AtomicMutate(vec![Mutation { location, update: Update::Insert(42) }]));
/// let predicate = Predicate::Names(vec![column, Column::named(6)]);
/// let slices = answer(Call::MultigetSlice(vec![Slice { key, family, predicate }])).slices;
/// assert_eq!(slices[0].len(), 1, "column 6 is absent");
/// assert_eq!(slices[0][0].content, Content::Value(42));
/// ```
#[derive(Debug)]
pub struct Client {
    id: ClientId,
    config: Config,
    clock: Clock,
    contexts: BTreeMap<ActorId, OneHop>,
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
    ///
    /// # Errors
    ///
    /// If the call has no mutation or slice, or an update does not fit the family of its location.
    pub fn call(&mut self, now_us: u64, actor: ActorId, call: Call) -> Result<RequestId, String> {
        checked(&call)?;
        let request = self.next_request;
        self.next_request += 1;
        let deps = self.contexts.entry(actor).or_default().deps();
        let (slices, missing) = match call {
            Call::AtomicMutate(mutations) if self.config.protocol == Protocol::EventualColumns => {
                (Vec::new(), self.batch(request, mutations, &deps))
            }
            Call::BatchMutate(mutations) => (Vec::new(), self.batch(request, mutations, &deps)),
            Call::AtomicMutate(mutations) => {
                self.atomic(request, mutations, &deps);
                (Vec::new(), 1)
            }
            Call::MultigetSlice(slices) => {
                for (part, slice) in slices.iter().enumerate() {
                    self.slice(request, part, slice.clone(), None);
                }
                let missing = slices.len();
                (slices, missing)
            }
        };
        let running = Running {
            actor,
            slices,
            results: BTreeMap::new(),
            second: VecDeque::new(),
            written: Vec::new(),
            missing,
            rounds: 1,
            begun_us: now_us,
        };
        self.running.insert(request, running);
        Ok(request)
    }

    /// Sends the mutations of each key; returns the number of answers to wait for.
    fn batch(&mut self, request: RequestId, mutations: Vec<Mutation>, deps: &[Dep]) -> usize {
        let mut keys: BTreeMap<u32, Vec<Mutation>> = BTreeMap::new();
        for mutation in mutations {
            keys.entry(mutation.location.key).or_default().push(mutation);
        }
        let count = keys.len();
        for (key, mutations) in keys {
            let deps = deps.to_vec();
            self.send(key, Message::BatchMutate { request, mutations, deps });
        }
        count
    }

    /// Sends the part of each server; the coordinator answers.
    fn atomic(&mut self, request: RequestId, mutations: Vec<Mutation>, deps: &[Dep]) {
        let total = mutations.len();
        // Any of the keys will do; the thesis draws one.
        let place = request as usize % total;
        let coordinator_key = mutations[place].location.key;
        let transaction = Requested { client: self.id, request };
        let mut parts: BTreeMap<NodeId, Vec<Mutation>> = BTreeMap::new();
        for mutation in mutations {
            let server = self.config.locator.server(self.id.dc, mutation.location.key);
            parts.entry(server).or_default().push(mutation);
        }
        for mutations in parts.into_values() {
            let (key, deps) = (mutations[0].location.key, deps.to_vec());
            let part = SubRequest { transaction, coordinator_key, total, mutations, deps };
            self.send(key, Message::AtomicMutate(part));
        }
    }

    fn slice(&mut self, request: RequestId, part: usize, slice: Slice, at: Option<u64>) {
        self.send(slice.key, Message::MultigetSlice { request, slice, part, at });
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
            Frame::Plain(Message::SliceResult { request, part, cells, evt, lvt, is_pending }) => {
                self.on_result(now_us, (request, part), Sliced { cells, evt, lvt, is_pending });
            }
            Frame::Plain(Message::Mutated { request, dep }) => {
                let Some(running) = self.running.get_mut(&request) else { return };
                running.written.push(dep);
                running.missing -= 1;
                if running.missing == 0 {
                    self.finish(request);
                }
            }
            // The other messages are COPS's, or for servers.
            _ => {}
        }
    }

    fn on_result(&mut self, now_us: u64, (request, part): (RequestId, usize), result: Sliced) {
        let Some(running) = self.running.get_mut(&request) else { return };
        let by_position = running.second.pop_front().unwrap_or(part);
        let part = if self.config.has(Flaw::MatchedByPosition) { by_position } else { part };
        running.results.insert(part, result);
        running.missing -= 1;
        if running.missing > 0 {
            return;
        }
        if now_us > running.begun_us + self.config.trans_time_us {
            self.restart(now_us, request);
            return;
        }
        if running.rounds == 1 && self.config.protocol == Protocol::Eiger {
            let (at, second) = second_round(&self.config, &running.results);
            if !second.is_empty() {
                running.rounds = 2;
                running.missing = second.len();
                running.second = second.iter().copied().collect();
                let slices = running.slices.clone();
                self.outputs.push_back(Output::Event(Event::Reached(Point::SecondRound)));
                for part in second {
                    self.slice(request, part, slices[part].clone(), Some(at));
                }
                return;
            }
        }
        self.finish(request);
    }

    /// Begins a read-only transaction again that took longer than `trans_time`.
    fn restart(&mut self, now_us: u64, request: RequestId) {
        let Some(running) = self.running.get_mut(&request) else { return };
        self.outputs.push_back(Output::Event(Event::Reached(Point::Restarted)));
        running.results.clear();
        running.second.clear();
        running.missing = running.slices.len();
        (running.rounds, running.begun_us) = (1, now_us);
        for (part, slice) in running.slices.clone().into_iter().enumerate() {
            self.slice(request, part, slice, None);
        }
    }

    fn finish(&mut self, request: RequestId) {
        let Some(running) = self.running.remove(&request) else { return };
        let Running { actor, results, written, rounds, .. } = running;
        let context = self.contexts.entry(actor).or_default();
        let (mut slices, mut deleted) = (Vec::new(), Vec::new());
        for result in results.into_values() {
            let is_deleted = |cell: &Cell| cell.content == Content::Deleted;
            let (gone, cells): (Vec<Cell>, Vec<Cell>) =
                result.cells.into_iter().partition(is_deleted);
            let is_tracked = self.config.protocol.is_tracked();
            let is_noted = is_tracked && !self.config.has(Flaw::ReadForgotten);
            let are_gone_noted = is_noted && !self.config.has(Flaw::TombstoneForgotten);
            let deps = cells.iter().filter(|_| is_noted).flat_map(|cell| &cell.deps);
            let gone_deps = gone.iter().filter(|_| are_gone_noted).flat_map(|cell| &cell.deps);
            let is_recent = |dep: &&Dep| dep.ts.time() > self.checkpoint;
            for dep in deps.chain(gone_deps).filter(is_recent) {
                context.read(*dep);
            }
            if !gone.is_empty() {
                self.outputs.push_back(Output::Event(Event::Reached(Point::TombstoneRead)));
            }
            slices.push(cells);
            deleted.push(gone);
        }
        if !written.is_empty() && self.config.protocol.is_tracked() {
            context.wrote(written.iter().copied());
        }
        self.answers.push_back(Answer { request, slices, deleted, written, rounds });
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

/// Checks a call before it begins.
fn checked(call: &Call) -> Result<(), String> {
    let mutations = match call {
        Call::BatchMutate(mutations) | Call::AtomicMutate(mutations) => mutations,
        Call::MultigetSlice(slices) if slices.is_empty() => {
            return Err("no slices, expected at least one".to_owned());
        }
        Call::MultigetSlice(_) => return Ok(()),
    };
    if mutations.is_empty() {
        return Err("no mutations, expected at least one".to_owned());
    }
    match mutations.iter().find(|mutation| !mutation.fits()) {
        None => Ok(()),
        Some(Mutation { location, update }) => Err(format!(
            "{update:?} at {location}, expected an insert or delete in a standard family, or an \
             addition in a counter family"
        )),
    }
}

/// Chooses the effective time (thesis, Figure 5.5), and returns the slices to read again at it.
fn second_round(config: &Config, results: &BTreeMap<usize, Sliced>) -> (u64, Vec<usize>) {
    let is_counted = |result: &&Sliced| {
        let is_empty = result.cells.is_empty() && !result.is_pending;
        !(is_empty && config.has(Flaw::EmptySliceWithoutInterval))
    };
    let largest_evt = results.values().map(|result| result.evt).max().unwrap_or_default();
    let is_valid = |lvt: &u64| {
        *lvt > largest_evt || *lvt == largest_evt && !config.has(Flaw::StrictLargestEvt)
    };
    let times = results.values().filter(is_counted).map(|result| result.lvt);
    let Some(effective) = times.filter(is_valid).min() else {
        return (0, Vec::new());
    };
    let is_open =
        |result: &Sliced| result.is_pending || is_counted(&result) && result.lvt < effective;
    let second = results.iter().filter(|(_, result)| is_open(result));
    (effective, second.map(|(part, _)| *part).collect())
}
