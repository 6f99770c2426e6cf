//! Clients in a closed loop, which cost as little as they can.
//!
//! A client sends a batch of requests, waits for all replies, and sends the next batch. Each reply of a
//! load has a known length, so nothing is parsed; a reply of another length or with another beginning ends
//! the measurement.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mingle_model::random::{Random, mix};

use crate::client::{Client, Reply, request};

/// The number of keys.
const KEYS: usize = 10_000;

/// The length of a value in bytes.
const VALUE_BYTES: usize = 64;

/// The time after which a missing reply ends the measurement.
const PATIENCE: Duration = Duration::from_secs(20);

/// The number of batches of the fill that are under way.
const FILL_BATCH: usize = 200;

/// Of this many transactions of the mixed load, one writes.
const MIXED_WRITES: usize = 10;

/// The requests of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Load {
    /// `GET` of a random key.
    Get,
    /// `SET` of a random key.
    Set,
    /// Reads of three random keys; one of ten in `MULTI`, with a write of one of them.
    Mixed,
}

/// The result of a measurement.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Requests, or transactions of the mixed load, in a second.
    pub per_second: f64,
    /// Their number.
    pub count: u64,
    /// The latencies of batches in microseconds.
    pub latency_us: Histogram<u64>,
    /// The processor time of the server.
    pub cpu: Duration,
}

fn key(number: usize) -> String {
    format!("key:{number:06}")
}

fn value(random: &mut Random) -> String {
    format!("{:0VALUE_BYTES$}", random.below(1_000_000))
}

/// The length of the reply to `GET`, and of each element of `MGET`.
const BULK_BYTES: usize = VALUE_BYTES + 7;

/// Appends a request; returns the length of its reply.
fn put(load: Load, random: &mut Random, out: &mut Vec<u8>) -> usize {
    let mut any = || key(random.below(KEYS));
    match load {
        Load::Get => {
            out.extend(request(&["GET", &any()]));
            BULK_BYTES
        }
        Load::Set => {
            let key = any();
            out.extend(request(&["SET", &key, &value(random)]));
            b"+OK\r\n".len()
        }
        Load::Mixed => {
            let keys = [any(), any(), any()];
            let [a, b, c] = &keys;
            let read = request(&["MGET", a, b, c]);
            let read_bytes = b"*3\r\n".len() + 3 * BULK_BYTES;
            if !random.one_in(MIXED_WRITES) {
                out.extend(read);
                return read_bytes;
            }
            out.extend(request(&["MULTI"]));
            out.extend(read);
            out.extend(request(&["SET", a, &value(random)]));
            out.extend(request(&["EXEC"]));
            let queued = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n".len();
            queued + read_bytes + b"+OK\r\n".len()
        }
    }
}

/// Runs a load on servers, to which the connections are spread, for some time.
pub fn run(
    addresses: &[SocketAddr],
    load: Load,
    connections: usize,
    depth: usize,
    time: Duration,
) -> Result<Measured, String> {
    let begin = Instant::now();
    let clients = (0..connections).map(|number| {
        let address = addresses[number % addresses.len()];
        std::thread::spawn(move || client(address, load, depth, number as u64, begin + time))
    });
    let clients: Vec<JoinHandle<Result<Histogram<u64>, String>>> = clients.collect();
    let mut all = histogram()?;
    for client in clients {
        let latencies = client.join().map_err(|_| "a client panicked")??;
        all.add(latencies).map_err(|error| error.to_string())?;
    }
    let count = all.len() * depth as u64;
    let per_second = count as f64 / begin.elapsed().as_secs_f64();
    Ok(Measured { per_second, count, latency_us: all, cpu: Duration::ZERO })
}

fn histogram() -> Result<Histogram<u64>, String> {
    Histogram::new_with_bounds(1, 60_000_000, 3).map_err(|error| error.to_string())
}

fn client(
    address: SocketAddr,
    load: Load,
    depth: usize,
    number: u64,
    until: Instant,
) -> Result<Histogram<u64>, String> {
    let fault = |error: std::io::Error| format!("{address}: {error}");
    let mut stream = TcpStream::connect(address).map_err(fault)?;
    stream.set_nodelay(true).map_err(fault)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(fault)?;
    let mut random = Random::new(mix(number + 1));
    let (mut latencies, mut requests, mut replies) = (histogram()?, Vec::new(), Vec::new());
    while Instant::now() < until {
        requests.clear();
        let bytes = (0..depth).map(|_| put(load, &mut random, &mut requests)).sum();
        replies.resize(bytes, 0);
        let begin = Instant::now();
        stream.write_all(&requests).map_err(fault)?;
        let mut read = 0;
        while read < bytes {
            let count = stream.read(&mut replies[read..]).map_err(fault)?;
            if count == 0 {
                return Err(format!("{address} has closed the connection"));
            }
            read += count;
            if replies[0] == b'-' {
                let error = String::from_utf8_lossy(&replies[..read]).into_owned();
                return Err(format!("{address} refuses a request: {}", error.trim_end()));
            }
        }
        if !replies.ends_with(b"\r\n") {
            return Err(format!("{address} gives replies of another length than expected"));
        }
        let latency = begin.elapsed().as_micros() as u64;
        latencies.saturating_record(latency.max(1));
    }
    Ok(latencies)
}

/// Sets all keys.
pub fn fill(address: SocketAddr) -> Result<(), String> {
    let fault = |error: std::io::Error| format!("{address}: {error}");
    let mut client = Client::connect(address, PATIENCE).map_err(fault)?;
    let mut random = Random::new(1);
    for batch in 0..KEYS / FILL_BATCH {
        let keys = (0..FILL_BATCH).map(|number| batch * FILL_BATCH + number);
        let words: Vec<String> =
            keys.map(|it| format!(" {} {}", key(it), value(&mut random))).collect();
        match client.ask(&format!("MSET{}", words.concat())).map_err(fault)? {
            Reply::Simple(_) => {}
            reply => return Err(format!("{address}: MSET answers {reply}")),
        }
    }
    Ok(())
}

/// Waits until another data center has all keys.
pub fn filled(address: SocketAddr) -> Result<(), String> {
    let fault = |error: std::io::Error| format!("{address}: {error}");
    let mut client = Client::connect(address, PATIENCE).map_err(fault)?;
    let deadline = Instant::now() + PATIENCE;
    while client.ask("DBSIZE").map_err(fault)?.number() != Some(KEYS as i64) {
        if Instant::now() > deadline {
            return Err(format!("{address} does not have all keys within {PATIENCE:?}"));
        }
        std::thread::sleep(PATIENCE / 1_000);
    }
    Ok(())
}
