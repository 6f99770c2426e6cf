//! Ports that a server can have again after it was killed.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};

use crate::error::Error;

/// How often a port is tried before the system is asked for one.
const TRIES: u64 = 200;

/// A port that is free at each of these addresses.
///
/// It lies below those that the system gives to clients. Among them, another process could have it
/// while the server is down; and whoever tries to reach the server then could be given that very
/// port, and reach itself.
pub(crate) fn free(hosts: &[Ipv4Addr]) -> Result<u16, Error> {
    let is_free = |port: u16| {
        hosts.iter().all(|host| TcpListener::bind(SocketAddrV4::new(*host, port)).is_ok())
    };
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first: u64 = range.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let lowest = 10_000;
    if let Some(width @ 1000..) = first.checked_sub(lowest) {
        // Its only use is that two processes try different ports first.
        let start = RandomState::new().build_hasher().finish();
        let ports = (0..TRIES).map(|step| lowest + (start.wrapping_add(step * 7)) % width);
        if let Some(port) = ports.map(|port| port as u16).find(|port| is_free(*port)) {
            return Ok(port);
        }
    }
    let listener = TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(Error::of("no port is free"))
}
