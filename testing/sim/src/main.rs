//! `cargo xtask sim`: simulates seed after seed.

mod cops_command;
mod geo_command;
mod outage_command;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use mingle_sim::Flaw;
use mingle_sim::series::{Ended, Series};
use mingle_sim::workload::setup::Plan;
use mingle_sim::workload::{Verdict, judged, shrunk};

/// Seeded simulation: clients of processes that die, stores that are away, networks that part.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Seconds for which seeds are run; with a planted fault, the limit for each fault.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// The first seed; a seed that failed fails again.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of seeds, instead of a time.
    #[arg(long)]
    seeds: Option<u64>,
    /// Plants a fault and runs seeds until one fails; `all` does that for each fault in turn.
    #[arg(long, value_name = "FAULT")]
    planted: Option<String>,
    /// The maximum number of runs to find a shorter schedule of a failing seed.
    #[arg(long, default_value_t = 400)]
    shrink: usize,
    /// The number of threads that run seeds.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
}

#[derive(Subcommand)]
enum Command {
    Cops(cops_command::Options),
    Geo(geo_command::Options),
    Outage(outage_command::Options),
}

/// The sum of the seeds' results.
#[derive(Default)]
struct Sum {
    transactions: u64,
    covered: BTreeMap<String, u64>,
}

impl Sum {
    fn add(&mut self, verdict: Verdict) {
        self.transactions += verdict.transactions;
        for (name, count) in verdict.covered {
            *self.covered.entry(name).or_default() += count;
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    // Panics are verdicts here, and are reported as verdicts.
    std::panic::set_hook(Box::new(|_| {}));
    match options.command {
        Some(Command::Cops(options)) => return cops_command::run(&options),
        Some(Command::Geo(options)) => return geo_command::run(&options),
        Some(Command::Outage(options)) => return outage_command::run(&options),
        None => {}
    }
    let held = match options.planted.as_deref() {
        None => run(&options),
        Some("all") => Flaw::all().map(|flaw| find(&options, flaw, 0)).fold(true, |a, b| a & b),
        Some(name) => match Flaw::find(name) {
            Ok(flaw) => find(&options, flaw, options.shrink),
            Err(message) => {
                eprintln!("error: {message}");
                return ExitCode::from(2);
            }
        },
    };
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn series(options: &Options, flaw: Flaw) -> Ended<Sum> {
    let until = Instant::now() + Duration::from_secs(options.seconds);
    let (first, count, jobs) = (options.seed, options.seeds, options.jobs);
    Series { first, count, until, jobs }.run(|seed| judged(&Plan::draw(seed), flaw), Sum::add)
}

/// True if all seeds held.
fn run(options: &Options) -> bool {
    let Ended { seeds, sum, broken } = series(options, Flaw::None);
    if let Some((seed, broken)) = broken {
        println!("seed {seed}: {}: {}", broken.promise, broken.how);
        println!("run again: cargo xtask sim --seed {seed} --seeds 1");
        shorten(&Plan::draw(seed), Flaw::None, options.shrink);
        return false;
    }
    let (first, last) = (options.seed, (options.seed + seeds).saturating_sub(1));
    println!("seeds {first} to {last}: all held; {} transactions took effect", sum.transactions);
    for (name, count) in sum.covered {
        println!("  {count:>10} {name}");
    }
    true
}

/// True if a planted fault was found.
fn find(options: &Options, flaw: Flaw, runs_max: usize) -> bool {
    let begin = Instant::now();
    let ended = series(options, flaw);
    let Some((seed, broken)) = ended.broken else {
        println!("{flaw}: not found in {} seeds", ended.seeds);
        return false;
    };
    let seconds = begin.elapsed().as_secs_f64();
    let how: String = broken.how.chars().take(160).collect();
    println!("{flaw}: found with seed {seed} after {seconds:.1} s: {}: {how}", broken.promise);
    shorten(&Plan::draw(seed), flaw, runs_max);
    true
}

fn shorten(plan: &Plan, flaw: Flaw, runs_max: usize) {
    if runs_max == 0 {
        return;
    }
    if let Some(shrunk) = shrunk(plan, flaw, runs_max) {
        let is_minimal = if shrunk.is_minimal { "" } else { "; more runs might shorten it" };
        println!("shrunk to {} events in {} runs{is_minimal}:", shrunk.events.len(), shrunk.runs);
        println!("  {:?}", plan.setup);
        for event in &shrunk.events {
            println!("  {event:?}");
        }
        println!("which fails so: {}", shrunk.failure);
    }
}
