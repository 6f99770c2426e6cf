//! A server of any protocol.

use crate::clock::{NodeId, Timestamp};
use crate::column::{Cell, Location};
use crate::config::Config;
use crate::cops;
use crate::eiger;
use crate::message::{Output, Packet};
use crate::net::Net;

/// A server: it takes packets and the time, and gives packets and events.
///
/// # Examples
///
/// See [`Client`](crate::cops::client::Client) for the COPS family, and
/// [`Client`](crate::eiger::client::Client) for Eiger.
#[derive(Debug)]
pub struct Server {
    net: Net,
    state: State,
}

#[derive(Debug)]
enum State {
    Cops(cops::server::State),
    Eiger(Box<eiger::server::State>),
}

impl Server {
    /// Creates an empty server.
    pub fn new(config: Config, id: NodeId) -> Self {
        let state = match config.protocol {
            protocol if protocol.has_columns() => State::Eiger(Box::default()),
            _ => State::Cops(cops::server::State::default()),
        };
        Self { net: Net::new(config, id), state }
    }

    /// Takes a packet that arrived at `now_us`, in microseconds.
    pub fn handle(&mut self, now_us: u64, packet: Packet) {
        let Some((from, message)) = self.net.received(now_us, packet) else { return };
        match &mut self.state {
            State::Cops(state) => state.on_message(&mut self.net, from, message),
            State::Eiger(state) => state.on_message(&mut self.net, from, message),
        }
    }

    /// Sends messages without an answer again and collects dependencies, as due at `now_us`. To be called every
    /// few milliseconds.
    pub fn tick(&mut self, now_us: u64) {
        self.net.tick(now_us);
        match &mut self.state {
            State::Cops(state) => state.tick(&mut self.net),
            State::Eiger(state) => state.tick(&mut self.net),
        }
    }

    /// Returns the next packet or event.
    pub fn poll(&mut self) -> Option<Output> {
        self.net.poll()
    }

    /// Returns the server's logical time: all that it has accepted or applied came before.
    pub fn time(&self) -> u64 {
        self.net.clock.now()
    }

    /// Returns for each key its value and the timestamps of the versions in it; in Eiger nothing.
    pub fn contents(&self) -> Vec<(u32, Vec<u64>, Vec<Timestamp>)> {
        match &self.state {
            State::Cops(state) => state.contents(&self.net),
            State::Eiger(_) => Vec::new(),
        }
    }

    /// Returns the column in each location that was ever written, in Eiger.
    pub fn columns(&self) -> Vec<(Location, Cell)> {
        match &self.state {
            State::Cops(_) => Vec::new(),
            State::Eiger(state) => state.contents(&self.net),
        }
    }
}
