//! `cargo xtask sim geo`: simulates the geo-replicated store's core, seed after seed.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use mingle_sim::geo::{Flaw, Plan, Verdict, judged, shrunk, trace};
use mingle_sim::series::{Ended, Series};

/// A run of at least this many seeds must have reached every coverage point.
const SEEDS_THAT_REACH: u64 = 200;

/// The geo-replicated store's core: clocks that are off, links that break, disks that fail, data
/// centers that are lost.
#[derive(clap::Args)]
pub struct Options {
    /// Seconds for which seeds are run; with a planted fault, the limit for each fault.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// The first seed; a seed that failed fails again.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of seeds, instead of a time.
    #[arg(long)]
    seeds: Option<u64>,
    /// Plants a mistake and runs seeds until one fails that holds without it; `all` does that for
    /// each mistake in turn.
    #[arg(long, value_name = "FAULT")]
    planted: Option<String>,
    /// The maximum number of runs to find a shorter schedule of a failing seed.
    #[arg(long, default_value_t = 400)]
    shrink: usize,
    /// Prints the events of the shortest failing schedule.
    #[arg(long)]
    trace: bool,
    /// The number of threads that run seeds.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// The length of each run, in percent of the usual.
    #[arg(long, default_value_t = 100)]
    percent: usize,
}

/// Runs the command.
pub fn run(options: &Options) -> ExitCode {
    // Panics are verdicts here, and are reported as verdicts.
    std::panic::set_hook(Box::new(|_| {}));
    let is_held = match options.planted.as_deref() {
        None => sound(options),
        Some("all") => {
            Flaw::ALL.into_iter().map(|flaw| found(options, flaw, 0)).fold(true, |a, b| a & b)
        }
        Some(name) => match Flaw::named(name) {
            Some(flaw) => found(options, flaw, options.shrink),
            None => {
                let names = Flaw::ALL.map(Flaw::name).join(", ");
                eprintln!("error: no planted fault is called `{name}`; there are {names}");
                return ExitCode::from(2);
            }
        },
    };
    if is_held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn series(options: &Options, first: u64, until: Instant, flaw: Option<Flaw>) -> Ended<Verdict> {
    let count = options.seeds.map(|seeds| seeds - (first - options.seed));
    let series = Series { first, count, until, jobs: options.jobs };
    let plan = |seed| Plan::scaled(seed, options.percent).with(flaw);
    series.run(|seed| judged(&plan(seed)), Verdict::add)
}

/// True if all seeds held.
fn sound(options: &Options) -> bool {
    let begin = Instant::now();
    let until = begin + Duration::from_secs(options.seconds);
    let ended = series(options, options.seed, until, None);
    let Some((seed, broken)) = &ended.broken else {
        return held(options, &ended, begin.elapsed());
    };
    println!("seed {seed}: {}: {}", broken.promise, broken.how);
    let percent = match options.percent {
        100 => String::new(),
        percent => format!(" --percent {percent}"),
    };
    println!("run again: cargo xtask sim geo --seed {seed} --seeds 1{percent}");
    shorten(&Plan::scaled(*seed, options.percent), options, options.shrink);
    false
}

/// True if a planted fault was found by a seed that holds without it.
fn found(options: &Options, flaw: Flaw, runs_max: usize) -> bool {
    let begin = Instant::now();
    let until = begin + Duration::from_secs(options.seconds);
    let mut first = options.seed;
    loop {
        let ended = series(options, first, until, Some(flaw));
        let name = flaw.name();
        let Some((seed, broken)) = ended.broken else {
            println!("{name}: not found in {} seeds", first - options.seed + ended.seeds);
            return false;
        };
        let plan = Plan::scaled(seed, options.percent);
        if let Err(broken) = judged(&plan) {
            println!("seed {seed} fails without {name}: {}: {}", broken.promise, broken.how);
            first = seed + 1;
            continue;
        }
        let (seconds, how) = (begin.elapsed().as_secs_f64(), broken.how);
        let how: String = how.chars().take(300).collect();
        println!("{name}: found with seed {seed} after {seconds:.1} s: {how}");
        shorten(&plan.with(Some(flaw)), options, runs_max);
        return true;
    }
}

/// Reports a series without failures; true if it reached all required coverage points.
fn held(options: &Options, ended: &Ended<Verdict>, took: Duration) -> bool {
    let (first, seeds, sum) = (options.seed, ended.seeds, &ended.sum);
    let transactions = sum.committed + sum.read;
    println!(
        "seeds {first} to {}: all held; {transactions} transactions, {} of which wrote, and {} faults \
         in {:.1} s",
        (first + seeds).saturating_sub(1),
        sum.committed,
        sum.faults,
        took.as_secs_f64()
    );
    for (name, count) in &sum.covered {
        println!("  {count:>10} {name}");
    }
    let missed = sum.missed();
    if seeds >= SEEDS_THAT_REACH && !missed.is_empty() {
        let names: Vec<&str> = missed.into_keys().collect();
        println!("never reached: {}", names.join(", "));
        return false;
    }
    true
}

fn shorten(plan: &Plan, options: &Options, runs_max: usize) {
    if runs_max == 0 {
        return;
    }
    if let Some(shrunk) = shrunk(plan, runs_max) {
        let is_minimal = if shrunk.is_minimal { "" } else { "; more runs might shorten it" };
        println!("shrunk to {} events in {} runs{is_minimal}:", shrunk.events.len(), shrunk.runs);
        println!("  {:?}", plan.setup);
        for event in &shrunk.events {
            println!("  {event:?}");
        }
        println!("which fails so: {}", shrunk.failure);
        if options.trace {
            for line in trace(&Plan { schedule: shrunk.events, ..plan.clone() }) {
                println!("{line}");
            }
        }
    }
}
