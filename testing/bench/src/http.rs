//! The overhead of the HTTP layer for a call, and the number of calls that one core serves.
//!
//! The latency of a call over loopback is compared with that of the same call made in the process,
//! one after the other in the same run. The throughput is measured with a public load generator
//! (wrk) and divided by the processor time of the server's process: on a shared machine, calls per
//! second of processor time show the capacity of one core.

pub mod overload;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use mingle::{Binding, Database, Session};
use mingle_server::{Config, Server};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::cpu;

const TEXT: &str = "store stock: linearizable;
    object Item in stock { key name: string; count: int; }
    transaction look(item: ref Item) -> int { return item.count; }
    transaction add(item: ref Item, count: int) -> int {
        item.count += count;
        return item.count;
    }
    transaction spin(n: int) -> int { var i = 0; while i < n { i += 1; } return i; }";

/// The number of endless computing calls that run while others are timed.
const COMPUTING: usize = 20;

/// The number of requests timed beside them, and the time limit, before which none of the computing
/// calls ends.
const TAIL_CALLS: usize = 2_000;
const TAIL_WITHIN: Duration = Duration::from_secs(7);

/// The names that calls use: `add` uses each in turn, so that its calls do not conflict.
const ITEMS: usize = 64;

/// The maximum recorded duration of a call: one minute.
const NANOS_MAX: u64 = 60_000_000_000;

#[derive(Args)]
pub struct Options {
    /// The number of timed calls of each kind.
    #[arg(long, default_value_t = 5_000)]
    calls: usize,
    /// Seconds that the load generator runs for each kind of call.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// The number of connections of the load generator.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Measures only the timely answers at ten times the load.
    #[arg(long)]
    overload: bool,
}

/// Runs the benchmark.
///
/// # Errors
///
/// If the server cannot be started, or gives an unexpected answer.
pub fn run(options: &Options) -> Result<(), String> {
    if options.overload {
        return overload::run(options.seconds);
    }
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let program = mingle::compile(TEXT)?;
    let opened = runtime.block_on(Database::open(program, &Binding::default(), None));
    let database = Arc::new(opened.map_err(|error| error.to_string())?);
    let address = "127.0.0.1:0".parse().expect("it is an address");
    let server = runtime.block_on(Server::bind(database.clone(), address, Config::default()));
    let server = server.map_err(|error| error.to_string())?;
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let served = runtime.spawn(server.run(async {
        let _ = stopped.await;
    }));
    println!("{:>6}{:>14}{:>14}{:>14}", "call", "in process", "over HTTP", "added");
    for name in ["look", "add"] {
        let (direct, http) = latencies(&runtime, &database, address, name, options.calls)?;
        let added = (http - direct).max(0.0);
        println!(
            "{name:>6}{direct:>11.1} µs{http:>11.1} µs{added:>11.1} µs  (medians; bar 300 µs)"
        );
    }
    load(address, options)?;
    beside_computation(&runtime, &database, options)?;
    drop(stop);
    let ended = runtime.block_on(served).map_err(|error| error.to_string())?;
    if ended { Ok(()) } else { Err("calls were still running at the end".into()) }
}

/// Measures the median times of a call in the process and over HTTP, in microseconds.
fn latencies(
    runtime: &Runtime,
    database: &Arc<Database>,
    address: SocketAddr,
    name: &str,
    calls: usize,
) -> Result<(f64, f64), String> {
    let mut client = Client::connect(address)?;
    let mut times = [(); 2].map(|()| {
        Histogram::<u64>::new_with_bounds(1, NANOS_MAX, 3).expect("the bounds are sound")
    });
    // The first calls run with cold caches.
    for round in 0..calls + calls / 10 {
        let item = format!("i{}", round % ITEMS);
        let begin = Instant::now();
        let mut given = vec![("item", item.as_str())];
        given.extend((name == "add").then_some(("count", "1")));
        let arguments = database.arguments(name, given).map_err(|error| error.to_string())?;
        let report = runtime.block_on(database.call(name, arguments, Session::default()));
        report.map_err(|error| error.to_string())?;
        let direct = begin.elapsed();
        let begin = Instant::now();
        client.call(name, &body(name, &item))?;
        if round >= calls / 10 {
            for (histogram, time) in times.iter_mut().zip([direct, begin.elapsed()]) {
                histogram.saturating_record(time.as_nanos() as u64);
            }
        }
    }
    let [direct, http] = times.map(|histogram| histogram.value_at_quantile(0.5) as f64 / 1e3);
    Ok((direct, http))
}

/// Measures the 99th percentiles of short calls, alone and beside calls that compute until their
/// deadline.
fn beside_computation(
    runtime: &Runtime,
    database: &Arc<Database>,
    options: &Options,
) -> Result<(), String> {
    // This is a separate server: the computing calls end with it.
    let address = "127.0.0.1:0".parse().expect("it is an address");
    let server = runtime.block_on(Server::bind(database.clone(), address, Config::default()));
    let server = server.map_err(|error| error.to_string())?;
    let address = server.address();
    let served = runtime.spawn(server.run(std::future::pending()));
    let look = body("look", "i1");
    let requests = [
        ("healthz", "GET", "/healthz", ""),
        ("metrics", "GET", "/metrics", ""),
        ("look", "POST", "/v1/transactions/look", look.as_str()),
    ];
    let tails = || -> Result<Vec<f64>, String> {
        requests
            .iter()
            .map(|(_, method, path, body)| tail(address, options, (method, path, body)))
            .collect()
    };
    let alone = tails()?;
    let spin = format!("{{\"n\":{}}}", i64::MAX);
    let mut computing = Vec::new();
    for _ in 0..COMPUTING {
        let mut client = Client::connect(address)?;
        client.send("POST", "/v1/transactions/spin?deadline_ms=30000", &spin)?;
        computing.push(client);
    }
    let beside = tails()?;
    println!("{:>8}{:>14}{:>26}", "at p99", "alone", "beside 20 that compute");
    for (((name, ..), alone), beside) in requests.iter().zip(alone).zip(beside) {
        println!("{name:>8}{alone:>11.2} ms{beside:>23.2} ms  (bar 50 ms)");
    }
    for client in &computing {
        client.stream.set_nonblocking(true).map_err(|error| error.to_string())?;
        if client.stream.peek(&mut [0]).is_ok() {
            return Err("a call ended that should have computed meanwhile".into());
        }
    }
    served.abort();
    Ok(())
}

/// Returns the 99th percentile of consecutive requests on one connection, in milliseconds.
fn tail(
    address: SocketAddr,
    options: &Options,
    (method, path, body): (&str, &str, &str),
) -> Result<f64, String> {
    let mut client = Client::connect(address)?;
    let mut times =
        Histogram::<u64>::new_with_bounds(1, NANOS_MAX, 3).expect("the bounds are sound");
    let started = Instant::now();
    for _ in 0..options.calls.min(TAIL_CALLS) {
        let begin = Instant::now();
        client.send(method, path, body)?;
        client.receive()?;
        times.saturating_record(begin.elapsed().as_nanos() as u64);
        if started.elapsed() > TAIL_WITHIN {
            break;
        }
    }
    Ok(times.value_at_quantile(0.99) as f64 / 1e6)
}

fn body(name: &str, item: &str) -> String {
    match name {
        "add" => format!("{{\"item\":\"{item}\",\"count\":1}}"),
        _ => format!("{{\"item\":\"{item}\"}}"),
    }
}

/// A persistent connection.
struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
        let set = stream.set_nodelay(true);
        set.and_then(|()| stream.set_read_timeout(Some(Duration::from_secs(30))))
            .map_err(|error| error.to_string())?;
        Ok(Self { stream, buffer: vec![0; 8_192] })
    }

    /// Makes a call and reads its answer.
    fn call(&mut self, name: &str, body: &str) -> Result<(), String> {
        self.send("POST", &format!("/v1/transactions/{name}"), body)?;
        self.receive()
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Result<(), String> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).map_err(|error| error.to_string())
    }

    /// Reads a complete answer of status 200.
    fn receive(&mut self) -> Result<(), String> {
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                self.buffer.resize(2 * filled, 0);
            }
            let count = self.stream.read(&mut self.buffer[filled..]);
            match count.map_err(|error| error.to_string())? {
                0 => return Err("the server closed the connection".into()),
                count => filled += count,
            }
            let text = String::from_utf8_lossy(&self.buffer[..filled]);
            if !text.starts_with("HTTP/1.1 200") {
                return Err(format!("expected 200, found {text}"));
            }
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return Ok(());
            }
        }
    }
}

/// Runs the load generator, if it is installed.
fn load(address: SocketAddr, options: &Options) -> Result<(), String> {
    if Command::new("wrk").arg("--version").output().is_err() {
        println!(
            "wrk is not installed (Debian's package of that name): throughput is not measured"
        );
        return Ok(());
    }
    println!("{:>6}{:>14}{:>22}{:>12}", "call", "calls/s", "per second of a core", "at p99");
    for name in ["look", "add"] {
        let script = Script::write(name)?;
        let begin = cpu::used();
        let started = Instant::now();
        let output = Command::new("wrk")
            .args(["--threads", "1", "--latency"])
            .args(["--connections", &options.connections.to_string()])
            .args(["--duration", &format!("{}s", options.seconds)])
            .arg("--script")
            .arg(&script.0)
            .arg(format!("http://{address}/v1/transactions/{name}"))
            .output()
            .map_err(|error| format!("wrk: {error}"))?;
        let (busy, took) = (cpu::used() - begin, started.elapsed().as_secs_f64());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() || text.contains("Non-2xx") {
            return Err(format!("wrk: {text}{}", String::from_utf8_lossy(&output.stderr)));
        }
        let field = |name: &str, place: usize| {
            let line = text.lines().find(|line| line.contains(name))?;
            line.split_whitespace().nth(place).map(str::to_owned)
        };
        let calls = field(" requests in ", 0).and_then(|count| count.parse::<f64>().ok());
        let calls =
            calls.ok_or_else(|| format!("wrk did not say how many calls it made: {text}"))?;
        let p99 = field("99%", 1).unwrap_or_default();
        println!(
            "{name:>6}{:>14.0}{:>22.0}{p99:>12}  (bar 10,000 by core)",
            calls / took,
            calls / busy
        );
    }
    Ok(())
}

/// The load generator's script, in a file that is deleted on drop.
struct Script(PathBuf);

impl Script {
    fn write(name: &str) -> Result<Self, String> {
        let file = format!("mingle-bench-http-{}-{name}.lua", std::process::id());
        let path = std::env::temp_dir().join(file);
        let count = if name == "add" { ",\"count\":1" } else { "" };
        let text = format!(
            "wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\n\
             local n = 0\nrequest = function()\n  n = n + 1\n  \
             local body = string.format('{{\"item\":\"i%d\"{count}}}', n % {ITEMS})\n  \
             return wrk.format(nil, nil, nil, body)\nend\n"
        );
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
