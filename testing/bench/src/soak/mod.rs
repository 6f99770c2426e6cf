//! A soak over real servers: two `mingle serve` over PostgreSQL, Redis and Cassandra in three data centers, under a
//! steady load, while processes are killed and stopped and connections are cut.
//!
//! Afterwards the stores are read in SQL, CQL and commands of Redis, and not through Mingle. Each acknowledged
//! call must be there exactly once in every store that it writes; each refused call nowhere; each call with an
//! unknown outcome wholly or not at all. Any violation is an error. Missed bars are an error with `--strict`.
//!
//! - [`plan`]: faults and their times, from a seed.
//! - [`world`]: the servers, the program over them, and the look from outside.
//! - [`serve`]: a `mingle serve` that can be killed and stopped.
//! - [`load`]: calls at a fixed rate over HTTP.
//! - [`judge`]: the invariants.
//! - [`report`], [`page`]: phases and bars, as text and as plots.

mod judge;
mod load;
mod page;
mod plan;
mod report;
mod serve;
mod world;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use mingle_services::Engine;

use judge::{Answer, Sort, Verdict, judge};
use load::{Outcome, RATE, Target};
use plan::{Engines, Fault, Kind};
use report::{Run, Sample};
use serve::{Launch, Serve};
use world::World;

/// The longest time to finish leftovers after the load has ended and all servers run.
const SETTLED_WITHIN: Duration = Duration::from_mins(1);

/// The interval between two looks at the stores until then.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The number of violations that are printed.
const SHOWN: usize = 20;

/// The duration and the stores of a run.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Duration of the load in minutes, at least 2.
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// Seed of the calls and of the faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Engines to leave out.
    #[arg(long, value_enum)]
    without: Vec<Without>,
    /// The command line tool [default: `mingle` beside this program].
    #[arg(long)]
    mingle: Option<PathBuf>,
    /// Folder for the page, the program, its binding and the logs.
    #[arg(long, default_value = "target/soak")]
    folder: PathBuf,
    /// Missed bars are an error.
    #[arg(long)]
    strict: bool,
    /// Succeed at once if a server that it needs was not fetched.
    #[arg(long)]
    skip_missing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Without {
    Redis,
    Cassandra,
}

/// Runs the soak.
///
/// # Errors
///
/// When something cannot be started, an invariant is violated, or, with `--strict`, a bar is missed.
pub fn run(options: &Options) -> Result<(), String> {
    if !(2.0..=24.0 * 60.0).contains(&options.minutes) {
        return Err(format!(
            "--minutes {}: at least 2 and at most 1440 are possible",
            options.minutes
        ));
    }
    let missing = missing(engines(options))?;
    if options.skip_missing && !missing.is_empty() {
        println!(
            "skipped: {} not fetched; `cargo xtask services fetch` does it",
            missing.join(", ")
        );
        return Ok(());
    }
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        tokio::select! {
            result = soak(options) => result,
            // On return, all started servers end, because their owners are dropped.
            _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
        }
    })
}

/// Returns the engines that the soak uses.
fn engines(options: &Options) -> Engines {
    let redis = !options.without.contains(&Without::Redis);
    Engines { redis, cassandra: redis && !options.without.contains(&Without::Cassandra) }
}

/// Returns the names of the engines that were not fetched.
fn missing(engines: Engines) -> Result<Vec<&'static str>, String> {
    let home = mingle_services::Home::find().map_err(|error| error.to_string())?;
    let mut needed = vec![Engine::Postgres];
    needed.extend(engines.redis.then_some(Engine::Redis));
    needed.extend(engines.cassandra.then_some(Engine::Cassandra));
    let missing = needed.into_iter().filter(|engine| !engine.is_fetched(&home));
    Ok(missing.map(Engine::name).collect())
}

async fn soak(options: &Options) -> Result<(), String> {
    let engines = engines(options);
    let seconds = (options.minutes * 60.0).round();
    let faults = plan::faults(seconds, engines, options.seed);
    println!("{seconds:.0} s, {RATE:.0} calls a second, seed {}", options.seed);
    for fault in &faults {
        println!("  {:>5.1} s to {:>5.1} s: {fault}", fault.begin, fault.end);
    }
    let world = Arc::new(World::start(engines, options.seed).await?);
    let servers = start(options, &world, engines)?;
    println!(
        "all servers run: serve a at {}, serve b at {}",
        servers[0].address, servers[1].address
    );
    let targets = servers.each_ref().map(|server| Target::new(server.address));
    let mut sorts = vec![Sort::Bank];
    sorts.extend(engines.redis.then_some(Sort::Two));
    sorts.extend(engines.cassandra.then_some(Sort::Three));
    let calls = load::calls((seconds * RATE) as usize, &sorts, options.seed);
    let began = Instant::now();
    let probes = targets.each_ref().map(|target| tokio::spawn(target.clone().probe()));
    let loading = tokio::spawn(load::run(calls, targets.clone(), began));
    let watching = watch(&world, &servers, &targets, began, seconds);
    let (samples, happened) = tokio::join!(watching, happen(&faults, &world, &servers, began));
    let outcomes = loading.await.map_err(|error| error.to_string())??;
    probes.iter().for_each(tokio::task::JoinHandle::abort);
    happened?;
    servers.iter().try_for_each(Serve::check)?;
    let run = Run { seconds, faults, outcomes, samples, sorts };
    let verdict = settle(&world, &run.outcomes).await?;
    tell(options, &run, &verdict)
}

/// Writes program and binding, and starts both servers.
fn start(options: &Options, world: &World, engines: Engines) -> Result<[Serve; 2], String> {
    let folder = &options.folder;
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for name in ["serve-a.log", "serve-b.log"] {
        // A file of an earlier run, if there is one.
        let _ = std::fs::remove_file(folder.join(name));
    }
    write(&folder.join("soak.mingle"), &world.program())?;
    write(&folder.join("soak.toml"), &world.binding())?;
    let beside = || std::env::current_exe().map(|here| here.with_file_name("mingle"));
    let mingle = options.mingle.clone().map_or_else(beside, Ok).and_then(std::fs::canonicalize);
    let mingle = mingle.map_err(|error| format!("the command line tool: {error}"))?;
    let launch = |name, at| {
        let at = engines.cassandra.then_some(at);
        Serve::start(Launch { mingle: mingle.clone(), folder: folder.clone(), name, at })
    };
    Ok([launch("a", "dc1")?, launch("b", "dc2")?])
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

async fn until(began: Instant, seconds: f64) {
    tokio::time::sleep_until((began + Duration::from_secs_f64(seconds)).into()).await;
}

/// Injects the faults at their times.
async fn happen(
    faults: &[Fault],
    world: &World,
    servers: &[Serve; 2],
    began: Instant,
) -> Result<(), String> {
    for fault in faults {
        until(began, fault.begin).await;
        println!("{:>6.1} s: {fault}", began.elapsed().as_secs_f64());
        servers.iter().try_for_each(Serve::check)?;
        let server = &servers[fault.server];
        match fault.kind {
            Kind::KillServe => server.kill()?,
            Kind::StopServe => server.pause(true)?,
            Kind::NodeAway => world.pause_node(true)?,
            Kind::RestartRedis => world.kill_redis().await?,
            Kind::CutPostgres => world.cut_postgres(),
        }
        until(began, fault.end).await;
        match fault.kind {
            Kind::KillServe => tokio::task::block_in_place(|| server.restart())?,
            Kind::StopServe => server.pause(false)?,
            Kind::NodeAway => world.pause_node(false)?,
            Kind::RestartRedis => world.restart_redis().await?,
            Kind::CutPostgres => {}
        }
        println!("{:>6.1} s: {fault}: over", began.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Samples the stores and the processes once a second.
async fn watch(
    world: &World,
    servers: &[Serve; 2],
    targets: &[Arc<Target>; 2],
    began: Instant,
    seconds: f64,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    for second in 1..=seconds as usize {
        until(began, second as f64).await;
        let rows = tokio::time::timeout(LOOK_EVERY, world.witness_rows());
        let [first, other] = targets;
        let open = |target: &Arc<Target>| {
            let target = target.clone();
            async move { target.figure("mingle_open_transactions").await }
        };
        let (rows, first, other) = tokio::join!(rows, open(first), open(other));
        samples.push(Sample {
            at: began.elapsed().as_secs_f64(),
            rows: rows.ok().and_then(Result::ok),
            open: first.zip(other).map(|(first, other)| first + other),
            used: servers.each_ref().map(Serve::used),
        });
    }
    samples
}

/// Reads the data in the stores until it satisfies the invariants, or the time is over.
async fn settle(world: &World, outcomes: &[Outcome]) -> Result<Verdict, String> {
    let calls: Vec<_> = outcomes.iter().map(|outcome| (outcome.call, outcome.answer)).collect();
    let began = Instant::now();
    loop {
        let held = world.held().await;
        let is_late = began.elapsed() > SETTLED_WITHIN;
        match held.map(|held| judge(&calls, &held)) {
            Ok(verdict) if verdict.violations.is_empty() || is_late => {
                println!(
                    "the stores were as they must be after {:.1} s",
                    began.elapsed().as_secs_f64()
                );
                return Ok(verdict);
            }
            Err(error) if is_late => return Err(error),
            _ => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}

/// Prints the results, and writes the page.
fn tell(options: &Options, run: &Run, verdict: &Verdict) -> Result<(), String> {
    let table = run.table();
    let width =
        |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    for row in &table {
        let cells =
            row.iter().enumerate().map(|(column, cell)| format!("{cell:<w$}", w = width(column)));
        println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    let mut reasons = std::collections::BTreeMap::<_, usize>::new();
    for outcome in &run.outcomes {
        let why = outcome.why.as_deref().unwrap_or("200");
        *reasons.entry(why.split(" (os").next().unwrap_or(why)).or_default() += 1;
    }
    println!("answers: {reasons:?}");
    let figures = run.figures();
    for figure in &figures {
        let held = figure.is_met.map_or("", |is_met| if is_met { "held" } else { "missed" });
        let bar = if figure.bar.is_empty() { String::new() } else { format!(" ({})", figure.bar) };
        println!("{held:>7}  {}: {}{bar}", figure.name, figure.value);
    }
    let done = run.outcomes.iter().filter(|outcome| outcome.answer == Answer::Done).count();
    println!(
        "{} calls, {done} acknowledged; of the unknown {} took effect and {} did not; {} violations",
        run.outcomes.len(),
        verdict.unknown_done,
        verdict.unknown_not,
        verdict.violations.len()
    );
    let path = options.folder.join("soak.html");
    write(&path, &page::render(run, options))?;
    println!("plots: {}", path.display());
    if !verdict.violations.is_empty() {
        verdict.violations.iter().take(SHOWN).for_each(|violation| println!("  {violation}"));
        return Err("the stores do not hold what was acknowledged, or more than that".into());
    }
    let missed = figures.iter().filter(|figure| figure.is_met == Some(false)).count();
    if options.strict && missed > 0 { Err(format!("{missed} bars are missed")) } else { Ok(()) }
}
