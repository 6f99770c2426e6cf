//! The processes of a system, and the connections between them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use mingle_cops::clock::NodeId;
use mingle_cops::message::{Address, ClientId};
use tokio::net::{TcpListener, TcpStream};

use super::hub::{Hub, Peer, Process, Span};

/// The number of connections by other programs that are refused before a system gives up.
const STRANGERS_MAX: usize = 16;

/// The numbers of processes: first all servers, data center by data center, then the clients, which
/// are all at the first data center.
#[derive(Clone, Copy, Debug)]
pub struct Topology {
    pub dcs: u8,
    /// The servers of each data center.
    pub servers: u16,
    /// The client processes.
    pub clients: u16,
    /// The one-way delay between data centers.
    pub delay_us: u64,
}

impl Topology {
    /// Returns the number of all servers.
    pub fn server_count(&self) -> usize {
        usize::from(self.dcs) * usize::from(self.servers)
    }

    /// Returns the number of all processes.
    pub fn len(&self) -> usize {
        self.server_count() + usize::from(self.clients)
    }

    /// Returns the process of a server.
    pub fn server(&self, dc: u8, server: u16) -> usize {
        usize::from(dc) * usize::from(self.servers) + usize::from(server)
    }

    /// Returns the data center of a process.
    pub fn dc(&self, process: usize) -> u8 {
        if process < self.server_count() { (process / usize::from(self.servers)) as u8 } else { 0 }
    }

    /// Returns the process with an address of the reference protocols.
    pub fn process(&self, address: Address) -> usize {
        match address {
            Address::Server(node) => self.server(node.dc(), node.server()),
            Address::Client(client) => self.server_count() + usize::from(client.number),
        }
    }

    /// Returns the address of a process in the reference protocols.
    pub fn address(&self, process: usize) -> Address {
        match process.checked_sub(self.server_count()) {
            Some(number) => Address::Client(ClientId { dc: 0, number: number as u16 }),
            None => {
                let server = process % usize::from(self.servers);
                Address::Server(NodeId::new(self.dc(process), server as u16))
            }
        }
    }

    /// Returns the ends of a connection between two processes, if they have one.
    pub fn span(&self, one: usize, other: usize) -> Option<Span> {
        let is_client = |process| process >= self.server_count();
        match (is_client(one) || is_client(other), self.dc(one) == self.dc(other)) {
            _ if one == other => None,
            (true, true) if is_client(one) && is_client(other) => None,
            (true, true) => Some(Span::Client),
            (true, false) => None,
            (false, true) => Some(Span::Near),
            (false, false) => Some(Span::Far),
        }
    }

    /// Connects processes over loopback, and returns their hub.
    ///
    /// # Errors
    ///
    /// If a port cannot be opened or a connection made.
    pub async fn connect(&self, processes: Vec<Box<dyn Process>>) -> io::Result<Arc<Hub>> {
        let mut peers: Vec<Vec<Option<Peer>>> =
            (0..self.len()).map(|_| (0..self.len()).map(|_| None).collect()).collect();
        for one in 0..self.server_count() {
            let port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listener = TcpListener::bind(port).await?;
            for other in one + 1..self.len() {
                let Some(span) = self.span(one, other) else { continue };
                let delay_us = if span == Span::Far { self.delay_us } else { 0 };
                let ends = pair(&listener).await?;
                for ((from, to), stream) in [(one, other), (other, one)].into_iter().zip(ends) {
                    stream.set_nodelay(true)?;
                    peers[from][to] = Some(Peer::new(Arc::new(stream), span, delay_us));
                }
            }
        }
        Ok(Arc::new(Hub::new(processes.into_iter().zip(peers).collect())))
    }
}

/// Makes a connection to a listener, and returns both ends.
async fn pair(listener: &TcpListener) -> io::Result<[TcpStream; 2]> {
    let there = TcpStream::connect(listener.local_addr()?).await?;
    for _ in 0..STRANGERS_MAX {
        let (here, from) = listener.accept().await?;
        // Any program of this machine can connect to the port.
        if from == there.local_addr()? {
            return Ok([here, there]);
        }
    }
    Err(io::Error::other(format!("{STRANGERS_MAX} connections of other programs")))
}
