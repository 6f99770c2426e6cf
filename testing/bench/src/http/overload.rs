//! Timely answers at the load with the most of them, and at ten times that load.
//!
//! Callers call without a pause, and soon again after a refusal. Work that a store does for a
//! caller that has left is lost; the goodput is the number of answers within the deadline. One run
//! admits calls by their duration, another by their number alone.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mingle::{Binding, Database};
use mingle_server::{Config, Server};
use mingle_services::Engine;
use mingle_store::wrap::layer::{Layer, Layered, Request, Work};
use mingle_store::{DataStore, StoreError};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};

const TEXT: &str = "store stock: linearizable;
    object Item in stock { key name: string; count: int; }
    transaction add(item: ref Item) -> int { item.count += 1; return item.count; }
    transaction look(item: ref Item) -> int { return item.count; }";

/// The number of concurrent requests of the limited store, and the duration of each.
const SLOTS: usize = 8;
const SERVICE: Duration = Duration::from_millis(10);

/// The time after which a refused caller calls again, although it was told one second.
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The numbers of concurrent callers among which the highest goodput is searched.
const LOADS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// The calls of a workload.
#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    transaction: &'static str,
    /// The number of objects that the calls use.
    items: usize,
    /// The deadline; later answers are of no use.
    deadline_ms: u64,
    is_limited: bool,
}

const WORKLOADS: [Workload; 2] = [
    Workload {
        name: "a store that serves 8 at a time, 10 ms each",
        transaction: "look",
        items: 64,
        deadline_ms: 200,
        is_limited: true,
    },
    Workload {
        name: "PostgreSQL, four rows that all calls change",
        transaction: "add",
        items: 4,
        deadline_ms: 1_000,
        is_limited: false,
    },
];

/// A store that executes all requests in turn, even for callers that no longer wait.
#[derive(Clone)]
struct Limited(Arc<Semaphore>);

impl Layer for Limited {
    async fn call<T: Send>(
        &self,
        request: Request<'_>,
        work: Work<'_, T>,
    ) -> Result<T, StoreError> {
        if matches!(request, Request::Read(_)) {
            let slots = self.0.clone();
            let serving = tokio::spawn(async move {
                let slot = slots.acquire().await;
                tokio::time::sleep(SERVICE).await;
                drop(slot);
            });
            // The task ends in any case.
            let _ = serving.await;
        }
        work().await
    }
}

/// Measures, and prints a line for each workload and mode of admission.
///
/// # Errors
///
/// If a server cannot be started, or gives an unexpected answer.
pub fn run(seconds: u64) -> Result<(), String> {
    let time = Duration::from_secs(seconds.max(1));
    println!(
        "{:>10}{:>12}{:>14}{:>12}{:>14}{:>10}{:>12}",
        "admission", "connections", "calls/s", "ten times", "calls/s", "ratio", "refused/s"
    );
    for workload in WORKLOADS {
        println!("{}", workload.name);
        for (name, is_adaptive) in [("latency", true), ("count", false)] {
            let Some(bench) = Bench::start(workload, is_adaptive)? else {
                println!("PostgreSQL is not here: it is left out");
                break;
            };
            let (mut peak, mut connections) = (0.0, 1);
            for load in LOADS {
                let found = bench.measure(load, time)?.goodput;
                if found > peak {
                    (peak, connections) = (found, load);
                }
            }
            let ten = bench.measure(10 * connections, time)?;
            let ratio = ten.goodput / f64::max(peak, f64::EPSILON);
            println!(
                "{name:>10}{connections:>12}{peak:>14.1}{:>12}{:>14.1}{ratio:>10.2}{:>12.1}",
                10 * connections,
                ten.goodput,
                ten.refused
            );
            bench.stop()?;
        }
    }
    Ok(())
}

/// A server under test.
struct Bench {
    runtime: Runtime,
    address: SocketAddr,
    workload: Workload,
    stop: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<bool>,
}

/// The results of a measurement, per second.
struct Found {
    goodput: f64,
    refused: f64,
}

#[derive(Default)]
struct Counts {
    in_time: AtomicU64,
    refused: AtomicU64,
}

impl Bench {
    fn start(workload: Workload, is_adaptive: bool) -> Result<Option<Self>, String> {
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        let mut binding = "[stores.stock]\n".to_owned();
        if !workload.is_limited {
            let shared = runtime.block_on(mingle_services::shared(Engine::Postgres));
            let Some(server) = shared else { return Ok(None) };
            let schema = format!("overload_{}_{is_adaptive}", std::process::id());
            let url = server.url();
            let _ =
                writeln!(binding, "engine = \"postgres\"\nurl = \"{url}\"\nschema = \"{schema}\"");
        }
        let binding = Binding::parse(&binding).map_err(|error| error.to_string())?;
        let program = mingle::compile(TEXT)?;
        let limited = Limited(Arc::new(Semaphore::new(SLOTS)));
        let wrap = |_: &str, store: Arc<dyn DataStore>| -> Arc<dyn DataStore> {
            if workload.is_limited { Layered::around(store, limited.clone()) } else { store }
        };
        let opened = runtime.block_on(async {
            let world = Arc::new(mingle::TokioWorld::new());
            Database::open_wrapped(program, &binding, None, world, wrap).await
        });
        let database = Arc::new(opened.map_err(|error| error.to_string())?);
        let address = "127.0.0.1:0".parse().expect("it is an address");
        let config = Config { is_adaptive, ..Config::default() };
        let server = runtime.block_on(Server::bind(database, address, config));
        let server = server.map_err(|error| error.to_string())?;
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let served = runtime.spawn(server.run(async {
            let _ = stopped.await;
        }));
        Ok(Some(Self { runtime, address, workload, stop, served }))
    }

    /// Runs this many callers, after a warm-up that does not count.
    fn measure(&self, callers: usize, time: Duration) -> Result<Found, String> {
        let (stop, counts) = (Arc::new(AtomicBool::new(false)), Arc::new(Counts::default()));
        let caller = |number: usize| {
            let (address, workload) = (self.address, self.workload);
            let (stop, counts) = (stop.clone(), counts.clone());
            std::thread::spawn(move || call_until(address, workload, number, &stop, &counts))
        };
        let callers: Vec<_> = (0..callers).map(caller).collect();
        std::thread::sleep(time);
        let taken =
            || (counts.in_time.load(Ordering::Relaxed), counts.refused.load(Ordering::Relaxed));
        let (began, before) = (Instant::now(), taken());
        std::thread::sleep(time);
        let (took, after) = (began.elapsed().as_secs_f64(), taken());
        stop.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.join().map_err(|_| "a caller panicked".to_owned())??;
        }
        Ok(Found {
            goodput: (after.0 - before.0) as f64 / took,
            refused: (after.1 - before.1) as f64 / took,
        })
    }

    fn stop(self) -> Result<(), String> {
        let _ = self.stop.send(());
        let ended = self.runtime.block_on(self.served).map_err(|error| error.to_string())?;
        if ended { Ok(()) } else { Err("calls were still running at the end".into()) }
    }
}

fn call_until(
    address: SocketAddr,
    workload: Workload,
    number: usize,
    stop: &AtomicBool,
    counts: &Counts,
) -> Result<(), String> {
    let body = format!("{{\"item\":\"i{}\"}}", number % workload.items);
    let request = format!(
        "POST /v1/transactions/{}?deadline_ms={} HTTP/1.1\r\nhost: 127.0.0.1\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        workload.transaction,
        workload.deadline_ms,
        body.len()
    );
    let mut stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
    let within = Some(Duration::from_secs(30));
    stream
        .set_nodelay(true)
        .and_then(|()| stream.set_read_timeout(within))
        .map_err(|error| error.to_string())?;
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
        let answer = receive(&mut stream)?;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        match status {
            "200" if began.elapsed() <= Duration::from_millis(workload.deadline_ms) => {
                counts.in_time.fetch_add(1, Ordering::Relaxed);
            }
            // Too late, or in conflict with each other.
            "200" | "202" | "409" | "504" => {}
            "503" => {
                let is_refused = answer.contains("\"overloaded\"");
                counts.refused.fetch_add(u64::from(is_refused), Ordering::Relaxed);
                std::thread::sleep(AGAIN_AFTER);
            }
            _ => return Err(format!("an answer that was not expected: {answer}")),
        }
    }
    Ok(())
}

/// Returns the body of an HTTP answer; none while a part of it is missing.
pub fn body_of(answer: &str) -> Option<&str> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    (body.len() >= length).then_some(body)
}

/// Receives one complete answer.
fn receive(stream: &mut TcpStream) -> Result<String, String> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4_096]);
    loop {
        let count = stream.read(&mut buffer).map_err(|error| error.to_string())?;
        if count == 0 {
            return Err("the server closed the connection".into());
        }
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        if body_of(&text).is_some() {
            return Ok(text.into_owned());
        }
    }
}
