//! A demonstration: three data centers with a distance between them, a load that goes on, one of them
//! killed, given up, and admitted again. At the end each acknowledged write is looked for.
//!
//! Causal clients add to counters of their own, so a write that is lost or doubled shows in the sum. Those
//! of the data center that is killed ask for `uniform` durability, and move to another one with a token.
//! Strong clients take numbers from one counter, so no number may be taken twice.

mod judge;
mod library;
mod load;
mod story;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use crate::center::Cluster;
use crate::client::{Client, Reply};
use judge::judge;
use load::Load;
use story::Story;

/// The options of the demonstration.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The program mingled.
    #[arg(long, value_name = "FILE")]
    mingled: PathBuf,
    /// Milliseconds that a message takes from one data center to another.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(0..=100))]
    one_way_ms: u64,
    /// Seconds of load in each of three parts: before the loss, while it is away, and after its return.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=8))]
    seconds: u64,
}

/// The data center that is killed.
const LOST: usize = 2;

/// The number of data centers.
pub const CENTERS: usize = 3;

/// The maximum time for something that must happen.
const PATIENCE: Duration = Duration::from_secs(15);

/// The interval at which it is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the demonstration; returns an error if a write is lost or doubled.
pub fn run(options: &Options) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no folder: {error}"))?;
    let delay = format!("{}ms", options.one_way_ms);
    let more = ["--delay", &delay, "--strong-only", "strong:*"];
    let mut story = Story::begin();
    let mut cluster = Cluster::start(&options.mingled, folder.path(), CENTERS, &more)?;
    let told = play(options, &mut cluster, &mut story);
    // The processes are stopped in any case.
    let stopped = cluster.stop();
    story.tell("all processes are stopped");
    told.and(stopped)
}

fn play(options: &Options, cluster: &mut Cluster, story: &mut Story) -> Result<(), String> {
    for dc in 0..CENTERS {
        connected(cluster, dc, CENTERS - 1)?;
    }
    let one_way = options.one_way_ms;
    story.tell(format!("three data centers run, {one_way} ms apart each way; the load begins"));
    let part = Duration::from_secs(options.seconds);
    let load = Load::begin(&(0..CENTERS).filter_map(|dc| cluster.address(dc)).collect::<Vec<_>>());
    std::thread::sleep(part);
    story.tell(format!("so far: {}", load.shown()));
    library::try_out(cluster, story)?;

    let mut d0 = ask_of(cluster, 0)?;
    let killed = Instant::now();
    cluster.running[LOST].take().ok_or("it runs")?.kill()?;
    story.tell("d2 is killed with -9");
    let first = load.first_strong_after(killed, PATIENCE)?;
    story.tell(format!("first strong commit elsewhere, {} ms after the kill", first.as_millis()));
    wait("d0 sees the loss", || Ok(state(&mut d0, LOST)? == "away"))?;
    let since = Instant::now();
    let cut = asked(&mut d0, "FENCE d2")?;
    story.tell(format!(
        "FENCE d2 at d0: given up for good after {} ms; d0 and d1 agree on what stays of it",
        since.elapsed().as_millis()
    ));
    if cut.field("incarnation") != Some(&Reply::Integer(0)) {
        return Err(format!("FENCE d2 answers {cut}, expected incarnation 0"));
    }
    let fenced = Instant::now();
    let first = load.first_strong_after(fenced, PATIENCE)?;
    story.tell(format!("first strong commit after that, {} ms later", first.as_millis()));
    std::thread::sleep(part);
    story.tell(format!("without d2: {}", load.shown()));
    bring_back(cluster, &mut d0, story)?;
    std::thread::sleep(part);
    story.tell(format!("with d2 again: {}", load.shown()));
    let counts = load.end();
    judge(cluster, &counts, story)
}

fn bring_back(cluster: &mut Cluster, d0: &mut Client, story: &mut Story) -> Result<(), String> {
    let admitted = asked(d0, "ADMIT d2")?;
    if admitted.field("incarnation") != Some(&Reply::Integer(1)) {
        return Err(format!("ADMIT d2 answers {admitted}, expected incarnation 1"));
    }
    let since = Instant::now();
    cluster.run(LOST, &["--incarnation", "1"])?;
    let mut back = ask_of(cluster, LOST)?;
    wait("d2 serves again", || {
        Ok(!matches!(back.ask("GET strong:number"), Ok(Reply::Error(_)) | Err(_)))
    })?;
    story.tell(format!(
        "ADMIT d2, and its process starts with an empty folder: it has copied all data and serves {} ms \
         later",
        since.elapsed().as_millis()
    ));
    connected(cluster, 0, CENTERS - 1)
}

/// Waits until a data center is connected with as many others.
fn connected(cluster: &Cluster, dc: usize, others: usize) -> Result<(), String> {
    let mut client = ask_of(cluster, dc)?;
    wait("all are connected", || {
        let states = (0..CENTERS).map(|other| state(&mut client, other));
        let states: Vec<String> = states.collect::<Result<_, _>>()?;
        Ok(states.iter().filter(|state| *state == "connected").count() == others)
    })
}

/// Returns the state of a data center, as another one sees it.
fn state(client: &mut Client, dc: usize) -> Result<String, String> {
    let Reply::Array(all) = asked(client, "DATACENTERS")? else {
        return Err("DATACENTERS has no list".into());
    };
    let state = all.get(dc).and_then(|center| center.field("state"));
    state.map(Reply::to_string).ok_or_else(|| format!("DATACENTERS has no d{dc}"))
}

/// Connects to a data center.
pub fn ask_of(cluster: &Cluster, dc: usize) -> Result<Client, String> {
    let address = cluster.address(dc).ok_or_else(|| format!("d{dc} does not run"))?;
    // A change of the data centers may take 20 s.
    let connected = Client::connect(address, 2 * PATIENCE);
    connected.map_err(|error| format!("d{dc} at {address}: {error}"))
}

/// Asks, and returns the reply, if it is no error.
pub fn asked(client: &mut Client, line: &str) -> Result<Reply, String> {
    match client.ask(line) {
        Ok(Reply::Error(error)) => Err(format!("{line}: {error}")),
        Ok(reply) => Ok(reply),
        Err(error) => Err(format!("{line}: {error}")),
    }
}

/// Waits until a condition holds.
pub fn wait(what: &str, mut condition: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    while !condition()? {
        if Instant::now() > deadline {
            return Err(format!("not within {PATIENCE:?}: {what}"));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
