//! A transaction of dependent reads at a distant store: executed whole beside the store, or read by
//! read.
//!
//! Both use one proxy, which adds the link's delay, to one `mingle serve --worker` in this process.
//! The read-by-read side has a counting layer before the store, and sends no phases.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use mingle::{Binding, Database, Session, TokioWorld};
use mingle_proxy::{Delay, Proxy};
use mingle_server::{Config, Server, WorkerBounds};
use mingle_store::DataStore;
use mingle_store::wrap::count::CountingStore;
use mingle_store::wrap::distance::Distance;

/// The size of the measurements.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The number of calls of each kind, alternating.
    #[arg(long, default_value_t = 20)]
    calls: usize,
    /// The number of reads, each of an object that the previous one names.
    #[arg(long, default_value_t = 20)]
    reads: usize,
    /// Round trip to the store (MixT §8.1).
    #[arg(long, default_value = "85ms")]
    distance: Distance,
}

/// Runs the benchmark.
pub fn run(options: &Options) -> Result<(), String> {
    if options.reads == 0 || options.calls == 0 {
        return Err("there must be at least one call and one read".into());
    }
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(measure(options))
}

fn program(reads: usize) -> String {
    let chain = ".next".repeat(reads - 1);
    format!(
        "store bank: linearizable;
        object Node in bank {{ key k: string; next: ref Node; n: int; }}
        transaction link(a: ref Node, b: ref Node) {{ a.next = b; }}
        transaction fill(a: ref Node, n: int) {{ a.n = n; }}
        transaction walk(a: ref Node) -> int {{ return a{chain}.n; }}"
    )
}

async fn measure(options: &Options) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let program = mingle::compile(&program(options.reads))?;
    let opened = Database::open(program.clone(), &Binding::default(), None).await;
    let beside = Arc::new(opened.map_err(|error| text(&error))?);
    for at in 1..options.reads {
        let (a, b) = (format!("n{at}"), format!("n{}", at + 1));
        call(&beside, "link", &[("a", &a), ("b", &b)]).await?;
    }
    call(&beside, "fill", &[("a", &format!("n{}", options.reads)), ("n", "7")]).await?;

    let config = Config { worker: Some(WorkerBounds::default()), ..Config::default() };
    let address = "127.0.0.1:0".parse().map_err(|error| text(&error))?;
    let server = Server::bind(beside, address, config).await.map_err(|error| text(&error))?;
    let proxy = Proxy::start(server.address(), 1).await.map_err(|error| text(&error))?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    let binding = format!("[stores.bank]\nworker = \"http://{}\"\n", proxy.address());
    let binding = Binding::parse(&binding).map_err(|error| text(&error))?;
    let whole = Database::open(program.clone(), &binding, None).await;
    let whole = whole.map_err(|error| text(&error))?;
    let world = Arc::new(TokioWorld::new());
    let count =
        |_: &str, store: Arc<dyn DataStore>| -> Arc<dyn DataStore> { CountingStore::new(store).0 };
    let pieces = Database::open_wrapped(program, &binding, None, world, count).await;
    let pieces = pieces.map_err(|error| text(&error))?;
    let Distance { mean, jitter } = options.distance;
    for database in [&whole, &pieces] {
        call(database, "walk", &[("a", "n1")]).await?;
    }
    proxy.set_round_trip(Delay::new(mean, jitter));
    let (mut fast, mut slow) = (Vec::new(), Vec::new());
    for _ in 0..options.calls {
        fast.push(call(&whole, "walk", &[("a", "n1")]).await?);
        slow.push(call(&pieces, "walk", &[("a", "n1")]).await?);
    }
    report(options, fast, slow);
    drop((whole, pieces, stop));
    served.await.map_err(|error| text(&error))?;
    Ok(())
}

fn report(options: &Options, fast: Vec<(Duration, u32)>, slow: Vec<(Duration, u32)>) {
    let Options { reads, calls, distance } = options;
    println!("{reads} dependent reads at {distance}, {calls} calls each, medians:");
    let (fast, slow) = (median(fast), median(slow));
    for (name, (time, trips)) in [("beside the store", fast), ("read by read", slow)] {
        let (ms, parts) =
            (time.as_secs_f64() * 1e3, time.as_secs_f64() / distance.mean.as_secs_f64());
        println!("  {name:<17} {ms:>8.1} ms, {parts:>5.2} distances, {trips:>2} round trips");
    }
    println!("  ratio             {:>8.1}", slow.0.as_secs_f64() / fast.0.as_secs_f64());
}

fn median(mut all: Vec<(Duration, u32)>) -> (Duration, u32) {
    all.sort();
    all[all.len() / 2]
}

/// Measures the time of a call and its round trips.
async fn call(
    database: &Database,
    transaction: &str,
    arguments: &[(&str, &str)],
) -> Result<(Duration, u32), String> {
    let arguments = database.arguments(transaction, arguments.iter().copied());
    let arguments = arguments.map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let called = database.call(transaction, arguments, Session::default()).await;
    let report = called.map_err(|error| error.to_string())?;
    let trips = report.phases.iter().map(|phase| phase.round_trips).sum();
    Ok((begun.elapsed(), trips))
}
