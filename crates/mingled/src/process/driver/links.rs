//! The connections of the driver.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use mingle_geo::wire::{Hello, VERSION, take_parcels};
use mingle_geo::{Address, DcId, Now};
use mingle_geo_node::Time as _;
use mingle_geo_node::link::{
    Closed, Code, Connection, Event as LinkEvent, Peers, Refused, Settings as LinkSettings,
};

use super::super::sockets::{self, Socket};
use super::super::wire::Wire;
use super::super::{Settings, Stopped};
use super::{Driver, Event};
use crate::access::Tls;
use crate::random;

/// The maximum length of bytes that a writer gets at once, unless a frame is longer.
const WRITE_BYTES: usize = 256 << 10;

/// The maximum number of connections; further ones are closed at once.
const LINKS_MAX: usize = 64;

/// The maximum time for the last bytes of a closed connection, in microseconds.
const CLOSE_US: u64 = 1_000_000;

/// A connection and its socket.
#[derive(Debug)]
struct Link {
    connection: Connection,
    socket: Socket,
    /// The data center that was dialed, or that has been met.
    dc: Option<DcId>,
    /// The data centers that its certificate names; `None` without TLS.
    names: Option<Vec<DcId>>,
    was_dialed: bool,
    /// True once the greeting of the other end has come. Nothing but the own one is sent before.
    is_greeted: bool,
    /// The address of the other end.
    address: String,
    /// The time at which it is dropped, once it is closed.
    ends_us: Option<u64>,
}

/// The end of a connection.
#[derive(Debug)]
pub struct Ended {
    number: u64,
    dc: Option<DcId>,
    was_dialed: bool,
    address: String,
    why: String,
    closed: Option<Closed>,
}

/// All connections.
#[derive(Debug)]
pub struct Links {
    pub peers: Peers,
    settings: LinkSettings,
    hello: Hello,
    addresses: BTreeMap<DcId, SocketAddr>,
    tls: Option<Arc<Tls>>,
    events: Sender<Event>,
    all: BTreeMap<u64, Link>,
    count: u64,
    /// The data centers that are connected to another start of this process, with the time of their first
    /// refusal and their words.
    suspended: BTreeMap<DcId, (u64, Refused)>,
    /// The repeated frames of connections that have ended.
    replayed: u64,
}

impl Links {
    pub fn new(settings: &Settings, hello: Hello, events: Sender<Event>) -> Self {
        let own = settings.dc;
        let others = (0..settings.dc_count).map(DcId).filter(|dc| *dc != own);
        Self {
            peers: Peers::new(own, others),
            settings: settings.link,
            hello,
            addresses: settings.peers.clone(),
            tls: settings.tls.clone(),
            events,
            all: BTreeMap::new(),
            count: 0,
            suspended: BTreeMap::new(),
            replayed: 0,
        }
    }

    pub fn connected(&self) -> Vec<DcId> {
        let all = self.all.values().filter(|link| link.connection.is_open());
        let mut connected: Vec<DcId> = all.filter_map(|link| link.dc).collect();
        connected.sort();
        connected
    }

    pub fn replayed(&self) -> u64 {
        self.replayed + self.all.values().map(|link| link.connection.replayed).sum::<u64>()
    }

    /// Returns the reason why this process may not serve its clients: two processes of one data center
    /// would give out the same timestamps.
    pub fn suspended(&self) -> Option<String> {
        self.suspended.iter().next().map(|(by, (_, why))| format!("{by} says that {why}"))
    }

    /// Returns a refusal that has lasted for so long that the other start must be alive: the connection of
    /// a dead process is closed after a silence.
    pub fn replaced(&self, now_us: u64) -> Option<Stopped> {
        let lasts_us = 2 * self.settings.silent_ms * 1_000;
        let mut suspended = self.suspended.iter();
        let (by, (_, why)) = suspended.find(|(_, (since, _))| since + lasts_us <= now_us)?;
        Some(Stopped::Replaced { by: *by, why: why.clone() })
    }

    pub fn on_written(&mut self, number: u64) {
        if let Some(link) = self.all.get_mut(&number) {
            link.socket.is_writing = false;
        }
    }

    /// Sends pings, ends silent connections, and dials.
    pub fn tick(&mut self, now: Now) {
        for link in self.all.values_mut() {
            link.connection.tick(now);
        }
        for dc in self.peers.due(now.mono_us) {
            match self.addresses.get(&dc) {
                Some(address) => sockets::dial(dc, *address, self.tls.clone(), self.events.clone()),
                None => self.peers.not_dialed(now.mono_us, dc),
            }
        }
    }

    /// Sends a message to a data center; it is lost if there is no connection. The error is the length
    /// of a message that is too long.
    pub fn send(&mut self, now: Now, dc: DcId, message: &[u8]) -> Result<(), usize> {
        let number = self.peers.connection(dc);
        match number.and_then(|number| self.all.get_mut(&number)) {
            Some(link) if link.is_greeted => link.connection.send(now, message),
            _ => Ok(()),
        }
    }

    /// Gives bytes to idle writers; returns the connections that have ended.
    pub fn pump(&mut self, now_us: u64) -> Vec<Ended> {
        let mut ended = Vec::new();
        for (number, link) in &mut self.all {
            if !link.socket.is_writing {
                let bytes = link.connection.take(WRITE_BYTES);
                if !bytes.is_empty() {
                    link.socket.write(bytes);
                }
            }
            if link.connection.closed().is_some() {
                let ends_us = *link.ends_us.get_or_insert(now_us + CLOSE_US);
                if !link.socket.is_writing || ends_us <= now_us {
                    ended.push(*number);
                }
            }
        }
        let ended = ended.into_iter().filter_map(|number| self.end(number, None));
        ended.collect()
    }

    /// Drops a connection.
    fn end(&mut self, number: u64, why: Option<&str>) -> Option<Ended> {
        let link = self.all.remove(&number)?;
        self.replayed += link.connection.replayed;
        let closed = link.connection.closed().cloned();
        let why = match (&closed, why) {
            (Some(closed), _) => closed.to_string(),
            (None, why) => why.unwrap_or_default().to_owned(),
        };
        let Link { dc, was_dialed, address, .. } = link;
        Some(Ended { number, dc, was_dialed, address, why, closed })
    }
}

impl Driver {
    /// Begins a connection.
    pub(super) fn on_stream(&mut self, wire: Wire, dialed: Option<DcId>) {
        let (now, links) = (self.machine.now(), &mut self.links);
        let address = wire.tcp.peer_addr().map_or_else(|_| "?".into(), |it| it.to_string());
        if dialed.is_none() && links.all.len() >= LINKS_MAX {
            return self
                .note(format!("{address} is one connection too many, {LINKS_MAX} may be open"));
        }
        links.count += 1;
        let names = wire.names.clone();
        match Socket::start(wire, links.count, self.settings.delay, &self.events) {
            Ok(socket) => {
                let connection =
                    Connection::new(links.settings, links.hello, random(), dialed, now);
                let was_dialed = dialed.is_some();
                let link = Link {
                    connection,
                    socket,
                    dc: dialed,
                    names,
                    was_dialed,
                    is_greeted: false,
                    address,
                    ends_us: None,
                };
                links.all.insert(links.count, link);
            }
            Err(error) => {
                if let Some(dc) = dialed {
                    links.peers.not_dialed(now.mono_us, dc);
                }
                self.note(format!("no connection with {address}: {error}"));
            }
        }
    }

    /// Handles bytes of a connection.
    pub(super) fn on_bytes(&mut self, number: u64, bytes: &[u8]) {
        let (now, mut events) = (self.machine.now(), Vec::new());
        let Some(link) = self.links.all.get_mut(&number) else { return };
        link.connection.receive(now, bytes, &mut events);
        link.socket.allow();
        // A connection that is accepted may have more to read.
        while !events.is_empty() {
            for event in std::mem::take(&mut events) {
                match event {
                    LinkEvent::Hello(hello) => self.meet(number, &hello, &mut events),
                    LinkEvent::Message(message) => self.on_message(number, &message),
                }
            }
        }
    }

    fn meet(&mut self, number: u64, hello: &Hello, events: &mut Vec<LinkEvent>) {
        let now = self.machine.now();
        let names = self.links.all.get(&number).and_then(|link| link.names.as_ref());
        if let Some(names) = names.filter(|names| !names.contains(&hello.dc)) {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let found = if names.is_empty() { "no data center".into() } else { names.join(", ") };
            let why = format!("it says that it is {}, and its certificate names {found}", hello.dc);
            return self.drop_link(number, &why);
        }
        let met = self.links.peers.meet(hello, number);
        let Some(link) = self.links.all.get_mut(&number) else { return };
        match met {
            Ok(replaced) => {
                link.dc = Some(hello.dc);
                link.connection.accept(now, events);
                // A greeting has ten bytes for each partition.
                let _ = link.connection.send(now, &self.node.greeting(hello.dc));
                self.links.suspended.remove(&hello.dc);
                if let Some(replaced) = replaced
                    && let Some(ended) =
                        self.links.end(replaced, Some("the other process has connected anew"))
                {
                    self.on_end(ended);
                }
            }
            Err(refused) => link.connection.refuse(refused),
        }
    }

    /// Gives a message of another data center to the node.
    fn on_message(&mut self, number: u64, message: &[u8]) {
        let Some(link) = self.links.all.get_mut(&number) else { return };
        let Some(dc) = link.dc else { return };
        if !std::mem::replace(&mut link.is_greeted, true) {
            if let Err(why) = self.node.greeted(dc, message) {
                return self.drop_link(number, why);
            }
            if !self.is_outdated() {
                self.node.reconnected(dc, &mut self.machine);
            }
            return;
        }
        let mut parcels = Vec::new();
        let taken = take_parcels(VERSION, message, |parcel| parcels.push(parcel));
        for parcel in parcels {
            match parcel.from {
                Address::Replica(from, _) if from == dc => {
                    self.node.receive(parcel, &mut self.machine);
                    if self.is_outdated() {
                        return;
                    }
                }
                from => return self.drop_link(number, &format!("{dc} sent a message of {from:?}")),
            }
        }
        if let Err(why) = taken {
            self.drop_link(number, &format!("a message of {dc} cannot be read: {why}"));
        }
    }

    /// Stops the process if its journal lacks what another data center knows: nothing that rests on it
    /// may leave.
    fn is_outdated(&mut self) -> bool {
        let outdated = self.node.outdated();
        if let Some(outdated) = outdated {
            self.machine.outgoing.clear();
            self.stopped = Some(Stopped::Outdated(outdated));
        }
        outdated.is_some()
    }

    fn drop_link(&mut self, number: u64, why: &str) {
        if let Some(ended) = self.links.end(number, Some(why)) {
            self.on_end(ended);
        }
    }

    /// Handles the end of a socket.
    pub(super) fn on_lost(&mut self, number: u64, why: &str) {
        self.drop_link(number, why);
    }

    pub(super) fn on_end(&mut self, ended: Ended) {
        let Ended { number, dc, was_dialed, address, why, closed } = ended;
        let now_us = self.machine.now().mono_us;
        let stood = self.links.peers.closed(now_us, number);
        if let (None, Some(dc), true) = (stood, dc, was_dialed)
            && self.links.peers.connection(dc).is_none()
        {
            self.links.peers.not_dialed(now_us, dc);
        }
        let with = dc.map_or(address.clone(), |dc| format!("{dc} at {address}"));
        // The attempts go on, and end in the same way again and again.
        if self.centers.ends.insert(dc, why.clone()).as_ref() != Some(&why) {
            self.note(format!("the connection with {with} has ended: {why}"));
        }
        match (closed, dc) {
            (Some(Closed::Refused(why)), Some(by)) if why.code.is_final() => {
                self.stopped = Some(Stopped::Replaced { by, why });
            }
            (Some(Closed::Refused(why)), Some(by)) if why.code == Code::Running => {
                self.links.suspended.entry(by).or_insert((now_us, why));
            }
            _ => {}
        }
    }
}
