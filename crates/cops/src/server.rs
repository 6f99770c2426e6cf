//! A server of any protocol.

use crate::clock::{NodeId, Timestamp};
use crate::config::Config;
use crate::cops::server::State;
use crate::message::{Output, Packet};
use crate::net::Net;

/// A server: it takes packets and the time, and gives packets and events.
///
/// # Examples
///
/// See [`Client`](crate::cops::client::Client).
#[derive(Debug)]
pub struct Server {
    net: Net,
    state: State,
}

impl Server {
    /// Creates an empty server.
    pub fn new(config: Config, id: NodeId) -> Self {
        Self { net: Net::new(config, id), state: State::default() }
    }

    /// Takes a packet that arrived at `now_us`, in microseconds.
    pub fn handle(&mut self, now_us: u64, packet: Packet) {
        let Some((from, message)) = self.net.received(now_us, packet) else { return };
        self.state.on_message(&mut self.net, from, message);
    }

    /// Sends messages without an answer again and collects dependencies, as due at `now_us`. To be called every
    /// few milliseconds.
    pub fn tick(&mut self, now_us: u64) {
        self.net.tick(now_us);
        self.state.tick(&mut self.net);
    }

    /// Returns the next packet or event.
    pub fn poll(&mut self) -> Option<Output> {
        self.net.poll()
    }

    /// Returns for each key its value and the timestamps of the versions in it.
    pub fn contents(&self) -> Vec<(u32, Vec<u64>, Vec<Timestamp>)> {
        self.state.contents(&self.net)
    }
}
