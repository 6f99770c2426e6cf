//! Ports that a server can use again after it was killed.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};

use crate::error::Error;

/// The number of ports tried before the system chooses one.
const TRIES: u64 = 200;

/// The lowest port to choose.
const LOWEST: u64 = 10_000;

/// Returns two ports that are free at each of these addresses.
///
/// They are below the range that the system gives to clients. In that range, another process could
/// take the port while the server is down; and a client that tries to reach the server could itself
/// be given that port, and connect to itself.
pub(crate) fn free(hosts: &[Ipv4Addr]) -> Result<[u16; 2], Error> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first: u64 = range.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let width = first.saturating_sub(LOWEST);
    let tries = if width < 1000 { 0 } else { TRIES };
    // Used only to make two processes start at different ports.
    let start = RandomState::new().build_hasher().finish();
    let ports = (0..tries).map(|step| (LOWEST + start.wrapping_add(step * 7) % width) as u16);
    // Both are held until both are chosen, so that they differ.
    let ports = ports.map(Some).chain([None; 2]);
    let mut free = ports.filter_map(|port| hold(hosts, port.unwrap_or(0)));
    match (free.next(), free.next()) {
        (Some((port, _held)), Some((inner, _too))) => Ok([port, inner]),
        _ => Err(Error::new("no port is free")),
    }
}

/// Listens at a port of each of these addresses, if possible; with port 0 the system chooses the
/// port.
fn hold(hosts: &[Ipv4Addr], port: u16) -> Option<(u16, Vec<TcpListener>)> {
    let mut port = port;
    let mut held = Vec::new();
    for host in hosts {
        let listener = TcpListener::bind(SocketAddrV4::new(*host, port)).ok()?;
        port = listener.local_addr().ok()?.port();
        held.push(listener);
    }
    Some((port, held))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn ports_are_free_and_two() {
        let hosts = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)];
        for _ in 0..20 {
            let [one, other] = free(&hosts).unwrap();
            assert_ne!(one, other);
            // Another test that starts a process at this moment holds our sockets briefly.
            let deadline = Instant::now() + Duration::from_secs(10);
            let held = [one, other].map(|port| {
                loop {
                    match hold(&hosts, port) {
                        Some(held) => return held,
                        None => assert!(Instant::now() < deadline, "port {port} is not free"),
                    }
                }
            });
            assert!(hold(&hosts[1..], one).is_none());
            drop(held);
        }
    }
}
