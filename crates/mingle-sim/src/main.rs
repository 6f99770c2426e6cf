//! `cargo xtask sim`: simulates seed after seed.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use mingle_sim::{Covered, simulate};

/// Seeded simulation: clients, conflicts, lost answers, callers that go away.
#[derive(Parser)]
struct Options {
    /// For how long seeds are run.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// The first seed; a seed that failed fails again.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, instead of a time.
    #[arg(long)]
    seeds: Option<u64>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let until = Instant::now() + Duration::from_secs(options.seconds);
    let mut covered = Covered::default();
    let mut seed = options.seed;
    while options.seeds.map_or_else(|| Instant::now() < until, |seeds| seed - options.seed < seeds)
    {
        match std::panic::catch_unwind(|| simulate(seed)) {
            Ok(Ok(report)) => covered.add(&report.covered),
            Ok(Err(message)) => {
                println!(
                    "seed {seed}: {message}\nrun again: cargo xtask sim --seed {seed} --seeds 1"
                );
                return ExitCode::FAILURE;
            }
            Err(_) => {
                println!(
                    "seed {seed} panicked\nrun again: cargo xtask sim --seed {seed} --seeds 1"
                );
                return ExitCode::FAILURE;
            }
        }
        seed += 1;
    }
    println!("seeds {} to {}: all held", options.seed, seed - 1);
    for (name, count) in covered.counters() {
        println!("  {count:>10} {name}");
    }
    ExitCode::SUCCESS
}
