//! `cargo xtask sim`: simulates seed after seed.

mod geo_command;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use mingle_sim::Flaw;
use mingle_sim::workload::promises::Broken;
use mingle_sim::workload::setup::Plan;
use mingle_sim::workload::{judged, shrunk};

/// Seeded simulation: clients of processes that die, stores that are away, networks that part.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// For how long seeds are run; with a planted fault, at most so long for each.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// The first seed; a seed that failed fails again.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, instead of a time.
    #[arg(long)]
    seeds: Option<u64>,
    /// Plants a fault and runs seeds until one fails; `all` does that for each that there is.
    #[arg(long, value_name = "FAULT")]
    planted: Option<String>,
    /// At most so many runs to find a shorter schedule of a seed that fails.
    #[arg(long, default_value_t = 400)]
    shrink: usize,
}

#[derive(Subcommand)]
enum Command {
    Geo(geo_command::Options),
}

/// How a series of seeds ended.
enum Series {
    Held { seeds: u64, transactions: u64, covered: BTreeMap<String, u64> },
    Broke { seed: u64, plan: Box<Plan>, broken: Broken },
}

fn main() -> ExitCode {
    let options = Options::parse();
    // Panics are verdicts here, and are told as such.
    std::panic::set_hook(Box::new(|_| {}));
    if let Some(Command::Geo(options)) = options.command {
        return geo_command::run(&options);
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

fn series(options: &Options, flaw: Flaw) -> Series {
    let until = Instant::now() + Duration::from_secs(options.seconds);
    let mut covered: BTreeMap<String, u64> = BTreeMap::new();
    let (mut seed, mut transactions) = (options.seed, 0);
    while options.seeds.map_or_else(|| Instant::now() < until, |seeds| seed - options.seed < seeds)
    {
        let plan = Plan::draw(seed);
        match judged(&plan, flaw) {
            Ok(verdict) => {
                transactions += verdict.transactions;
                for (name, count) in verdict.covered {
                    *covered.entry(name).or_default() += count;
                }
            }
            Err(broken) => return Series::Broke { seed, plan: Box::new(plan), broken },
        }
        seed += 1;
    }
    Series::Held { seeds: seed - options.seed, transactions, covered }
}

/// Whether all seeds held.
fn run(options: &Options) -> bool {
    match series(options, Flaw::None) {
        Series::Held { seeds, transactions, covered } => {
            let (first, last) = (options.seed, (options.seed + seeds).saturating_sub(1));
            println!("seeds {first} to {last}: all held; {transactions} transactions took effect");
            for (name, count) in covered {
                println!("  {count:>10} {name}");
            }
            true
        }
        Series::Broke { seed, plan, broken } => {
            println!("seed {seed}: {}: {}", broken.promise, broken.how);
            println!("run again: cargo xtask sim --seed {seed} --seeds 1");
            shorten(&plan, Flaw::None, options.shrink);
            false
        }
    }
}

/// Whether a planted fault was found.
fn find(options: &Options, flaw: Flaw, runs_max: usize) -> bool {
    let begin = Instant::now();
    match series(options, flaw) {
        Series::Held { seeds, .. } => {
            println!("{flaw}: not found in {seeds} seeds");
            false
        }
        Series::Broke { seed, plan, broken } => {
            let seconds = begin.elapsed().as_secs_f64();
            let how: String = broken.how.chars().take(160).collect();
            println!(
                "{flaw}: found with seed {seed} after {seconds:.1} s: {}: {how}",
                broken.promise
            );
            shorten(&plan, flaw, runs_max);
            true
        }
    }
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
