//! `cargo xtask sim cops`: simulates the reference protocols, seed after seed.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use mingle_sim::cops::{Flaw, Plan, Protocol, Verdict, judged, shrunk};
use mingle_sim::series::{Ended, Series};

/// The reference protocols of Lloyd's thesis: COPS, COPS-RT, COPS-CD, Eiger, and three baselines.
#[derive(clap::Args)]
pub struct Options {
    /// The protocol; all in turn if none is given.
    #[arg(long, value_name = "NAME")]
    protocol: Option<String>,
    /// Seconds for which seeds are run, for each protocol.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// The first seed; a seed that failed fails again.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of seeds, instead of a time.
    #[arg(long)]
    seeds: Option<u64>,
    /// Plants a fault and runs seeds until one fails that holds without it.
    #[arg(long, value_name = "FAULT")]
    planted: Option<String>,
    /// The maximum number of runs to find a smaller plan of a failing seed.
    #[arg(long, default_value_t = 400)]
    shrink: usize,
    /// The number of threads that run seeds.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
}

/// Runs the command.
pub fn run(options: &Options) -> ExitCode {
    // Panics are verdicts here, and are reported as verdicts.
    std::panic::set_hook(Box::new(|_| {}));
    match parsed(options) {
        Ok((protocols, flaw)) => {
            let one = |protocol| match flaw {
                None => sound(options, protocol),
                Some(flaw) => found(options, protocol, flaw),
            };
            let held = protocols.into_iter().map(one).fold(true, |all, held| all & held);
            if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn parsed(options: &Options) -> Result<(Vec<Protocol>, Option<Flaw>), String> {
    let protocols = match &options.protocol {
        None => Protocol::ALL.to_vec(),
        Some(name) => vec![Protocol::named(name).ok_or_else(|| {
            let names = Protocol::ALL.map(Protocol::name).join(", ");
            format!("no protocol is called `{name}`; there are {names}")
        })?],
    };
    let flaw = match &options.planted {
        None => None,
        Some(name) => Some(Flaw::named(name).ok_or_else(|| {
            let names = Flaw::ALL.map(Flaw::name).join(", ");
            format!("no planted fault is called `{name}`; there are {names}")
        })?),
    };
    Ok((protocols, flaw))
}

fn series(options: &Options, plan: impl Fn(u64) -> Plan + Sync) -> Ended<Verdict> {
    let until = Instant::now() + Duration::from_secs(options.seconds);
    let (first, count, jobs) = (options.seed, options.seeds, options.jobs);
    Series { first, count, until, jobs }.run(|seed| judged(&plan(seed)), Verdict::add)
}

/// True if all seeds held.
fn sound(options: &Options, protocol: Protocol) -> bool {
    let name = protocol.name();
    let ended = series(options, |seed| Plan::draw(protocol, seed));
    if let Some((seed, broken)) = ended.broken {
        println!("{name}, seed {seed}: {}: {}", broken.promise, broken.how);
        println!("run again: cargo xtask sim cops --protocol {name} --seed {seed} --seeds 1");
        shorten(&Plan::draw(protocol, seed), options.shrink);
        return false;
    }
    let last = (options.seed + ended.seeds).saturating_sub(1);
    let answered = ended.sum.answered;
    println!("{name}, seeds {} to {last}: all held; {answered} calls answered", options.seed);
    for (point, count) in ended.sum.covered {
        println!("  {count:>10} {point}");
    }
    true
}

/// True if a planted fault was found by a seed that holds without it.
fn found(options: &Options, protocol: Protocol, flaw: Flaw) -> bool {
    let (name, planted) = (protocol.name(), flaw.name());
    let ended = series(options, |seed| Plan::draw(protocol, seed).with(flaw));
    let Some((seed, broken)) = ended.broken else {
        println!("{name}: {planted} not found in {} seeds", ended.seeds);
        return false;
    };
    println!("{name}: {planted} found with seed {seed}: {}: {}", broken.promise, broken.how);
    if let Err(broken) = judged(&Plan::draw(protocol, seed)) {
        println!("but the seed fails without it: {}: {}", broken.promise, broken.how);
        return false;
    }
    shorten(&Plan::draw(protocol, seed).with(flaw), options.shrink);
    true
}

fn shorten(plan: &Plan, runs_max: usize) {
    if runs_max == 0 {
        return;
    }
    let plan = shrunk(plan, runs_max);
    println!("shrunk to {} calls and {} faults:", plan.steps.len(), plan.faults.len());
    for step in &plan.steps {
        println!("  {step:?}");
    }
    for fault in &plan.faults {
        println!("  {fault:?}");
    }
    if let Err(broken) = judged(&plan) {
        println!("which fails so: {}: {}", broken.promise, broken.how);
    }
}
