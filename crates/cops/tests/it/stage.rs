//! A system whose packets a test delivers one by one.

use std::collections::BTreeMap;

use mingle_cops::clock::NodeId;
use mingle_cops::config::{Config, Handler, Protocol, keep_all};
use mingle_cops::cops::client as cops;
use mingle_cops::deps::Dep;
use mingle_cops::eiger::client as eiger;
use mingle_cops::flaw::Flaw;
use mingle_cops::locator::Locator;
use mingle_cops::message::{Address, ClientId, Event, Frame, Message, Output, Packet, Point};
use mingle_cops::server::Server;

/// The time after which messages are sent again, in microseconds.
pub const RETRY_US: u64 = 25_000;

/// The longest time of a read-only transaction, in microseconds.
pub const TRANS_TIME_US: u64 = 30_000;

/// A client library.
pub trait Library {
    type Call;
    type Answer;

    fn new(config: Config, id: ClientId) -> Self;
    fn call(&mut self, now_us: u64, actor: u32, call: Self::Call) -> u64;
    fn handle(&mut self, now_us: u64, packet: Packet);
    fn poll(&mut self) -> Option<Output>;
    fn answer(&mut self) -> Option<Self::Answer>;
}

impl Library for cops::Client {
    type Call = cops::Call;
    type Answer = cops::Answer;

    fn new(config: Config, id: ClientId) -> Self {
        Self::new(config, id)
    }

    fn call(&mut self, now_us: u64, actor: u32, call: cops::Call) -> u64 {
        self.call(now_us, actor, call)
    }

    fn handle(&mut self, now_us: u64, packet: Packet) {
        self.handle(now_us, packet);
    }

    fn poll(&mut self) -> Option<Output> {
        self.poll()
    }

    fn answer(&mut self) -> Option<cops::Answer> {
        self.answer()
    }
}

impl Library for eiger::Client {
    type Call = eiger::Call;
    type Answer = eiger::Answer;

    fn new(config: Config, id: ClientId) -> Self {
        Self::new(config, id)
    }

    fn call(&mut self, now_us: u64, actor: u32, call: eiger::Call) -> u64 {
        self.call(now_us, actor, call).expect("scripts make valid calls")
    }

    fn handle(&mut self, now_us: u64, packet: Packet) {
        self.handle(now_us, packet);
    }

    fn poll(&mut self) -> Option<Output> {
        self.poll()
    }

    fn answer(&mut self) -> Option<eiger::Answer> {
        self.answer()
    }
}

/// Servers, one client in each data center, and the packets that wait to be delivered.
pub struct Scene<C> {
    pub locator: Locator,
    pub now_us: u64,
    servers: BTreeMap<NodeId, Server>,
    clients: BTreeMap<u8, C>,
    packets: Vec<Packet>,
    reached: Vec<Point>,
}

/// A system of the COPS family.
pub type Stage = Scene<cops::Client>;

/// A system of Eiger.
pub type EigerStage = Scene<eiger::Client>;

impl Stage {
    /// Writes, and returns the operation.
    pub fn write(&mut self, dc: u8, actor: u32, key: u32, value: u64) -> Dep {
        let call = cops::Call::Write(key, value);
        self.call(dc, actor, call).written.expect("a write has an operation")
    }

    /// Reads a key.
    pub fn read(&mut self, dc: u8, actor: u32, key: u32) -> Vec<u64> {
        self.call(dc, actor, cops::Call::Read(key)).found[0].value.clone()
    }
}

impl<C: Library> Scene<C> {
    pub fn new(protocol: Protocol, dcs: u8, flaw: Option<Flaw>) -> Self {
        Self::with_handler(protocol, dcs, flaw, keep_all)
    }

    /// Creates a system with this conflict handler.
    pub fn with_handler(protocol: Protocol, dcs: u8, flaw: Option<Flaw>, handler: Handler) -> Self {
        let locator = Locator::new(dcs, 3).unwrap();
        let (trans_time_us, retry_us) = (TRANS_TIME_US, RETRY_US);
        let config = Config { protocol, locator, trans_time_us, retry_us, handler, flaw };
        let nodes = locator.dcs().flat_map(|dc| locator.servers(dc));
        let client = |dc| (dc, C::new(config, ClientId { dc, number: 0 }));
        Self {
            locator,
            now_us: 0,
            servers: nodes.map(|node| (node, Server::new(config, node))).collect(),
            clients: locator.dcs().map(client).collect(),
            packets: Vec::new(),
            reached: Vec::new(),
        }
    }

    /// Returns keys whose servers differ in each data center.
    pub fn keys_apart(&self, count: usize) -> Vec<u32> {
        let mut keys: Vec<u32> = Vec::new();
        for key in 0..1_000 {
            let is_apart = |other: &u32| {
                let differs = |dc| self.locator.server(dc, key) != self.locator.server(dc, *other);
                self.locator.dcs().all(differs)
            };
            if keys.len() < count && keys.iter().all(is_apart) {
                keys.push(key);
            }
        }
        assert_eq!(keys.len(), count, "no {count} keys of different servers");
        keys
    }

    /// Begins a call; its packets wait.
    pub fn begin(&mut self, dc: u8, actor: u32, call: C::Call) -> u64 {
        let now_us = self.now_us;
        let request = self.clients.get_mut(&dc).unwrap().call(now_us, actor, call);
        self.drain();
        request
    }

    /// Makes a call and delivers within its data center until it is answered.
    pub fn call(&mut self, dc: u8, actor: u32, call: C::Call) -> C::Answer {
        self.begin(dc, actor, call);
        self.within(dc);
        self.answer(dc).expect("the call is answered by its own data center")
    }

    pub fn answer(&mut self, dc: u8) -> Option<C::Answer> {
        self.clients.get_mut(&dc).unwrap().answer()
    }

    /// Delivers all packets within a data center.
    pub fn within(&mut self, dc: u8) {
        self.deliver(|packet| packet.from.dc() == dc && packet.to.dc() == dc);
    }

    /// Delivers all packets.
    pub fn all(&mut self) {
        self.deliver(|_| true);
    }

    /// Delivers the packets that `is_due` accepts, and those that follow from them.
    pub fn deliver(&mut self, is_due: impl Fn(&Packet) -> bool) {
        while let Some(place) = self.packets.iter().position(&is_due) {
            let packet = self.packets.remove(place);
            match packet.to {
                Address::Server(node) => {
                    if let Some(server) = self.servers.get_mut(&node) {
                        server.handle(self.now_us, packet);
                    }
                }
                Address::Client(ClientId { dc, .. }) => {
                    if let Some(client) = self.clients.get_mut(&dc) {
                        client.handle(self.now_us, packet);
                    }
                }
            }
            self.drain();
        }
    }

    /// Adds a packet to those that wait, as of a client that the scene does not have.
    pub fn send(&mut self, packet: Packet) {
        self.packets.push(packet);
    }

    /// Takes away the packets that `is_taken` accepts.
    pub fn take(&mut self, is_taken: impl Fn(&Packet) -> bool) -> Vec<Packet> {
        self.packets.extract_if(.., |packet| is_taken(packet)).collect()
    }

    /// Loses the packets that `is_lost` accepts, and returns their number.
    pub fn lose(&mut self, is_lost: impl Fn(&Packet) -> bool) -> usize {
        let before = self.packets.len();
        self.packets.retain(|packet| !is_lost(packet));
        before - self.packets.len()
    }

    /// Loses a data center for good, with all its packets.
    pub fn lose_dc(&mut self, dc: u8) {
        self.servers.retain(|node, _| node.dc() != dc);
        self.clients.remove(&dc);
        self.lose(|packet| packet.from.dc() == dc || packet.to.dc() == dc);
    }

    /// Lets time pass, in steps of a tenth of [`RETRY_US`].
    pub fn wait(&mut self, us: u64) {
        let until_us = self.now_us + us;
        while self.now_us < until_us {
            self.now_us += RETRY_US / 10;
            for server in self.servers.values_mut() {
                server.tick(self.now_us);
            }
            self.drain();
        }
    }

    pub fn count(&self, point: Point) -> usize {
        self.reached.iter().filter(|reached| **reached == point).count()
    }

    fn drain(&mut self) {
        let servers =
            self.servers.values_mut().flat_map(|server| std::iter::from_fn(|| server.poll()));
        let mut outputs: Vec<Output> = servers.collect();
        let clients = self.clients.values_mut();
        outputs.extend(clients.flat_map(|client| std::iter::from_fn(|| client.poll())));
        for output in outputs {
            match output {
                Output::Send(packet) => {
                    crate::wire::check(&packet);
                    self.packets.push(packet);
                }
                Output::Event(Event::Reached(point)) => self.reached.push(point),
                Output::Event(_) => {}
            }
        }
    }
}

/// Returns the message of a packet, if it has one.
pub fn message(packet: &Packet) -> Option<&Message> {
    match &packet.frame {
        Frame::Plain(message) | Frame::Numbered(_, message) => Some(message),
        Frame::Arrived(_) => None,
    }
}

/// True if the packet replicates this operation, or a part of it, to data center `dc`, or is within it.
pub fn replicates(packet: &Packet, wanted: Dep, dc: u8) -> bool {
    let is_it = match message(packet) {
        Some(Message::ReplicatedWrite { dep, .. } | Message::ReplicatedMutation { dep, .. }) => {
            *dep == wanted
        }
        Some(Message::ReplicatedTransaction { ts, .. }) => *ts == wanted.ts,
        _ => false,
    };
    packet.to.dc() == dc && (is_it || packet.from.dc() == dc)
}
