//! UniStore's evaluation (Bravo et al., USENIX ATC 2021, §8): the systems that it compares, side by side,
//! in a capacity model.
//!
//! The handler times of the real core are measured in this process ([`times`]). All waiting is
//! modelled ([`model`]): each partition's replica is a core with a queue, and data centers have the
//! distances of Virginia, California and Frankfurt. The workloads are the paper's: an auction site
//! ([`rubis`]) and a microbenchmark ([`micro`]).
//!
//! # Departures
//!
//! - Simulated cores are slower than the measured one, all by one factor, so that a run of the
//!   model takes seconds: [`Options`]. Comparisons of systems do not depend on the factor, except
//!   that periodic work weighs more.
//! - A tenth of the paper's million users.
//! - Sessions coordinate their own transactions and run on the clients' machines; in the paper a
//!   replica does that.

mod calibrate;
mod clients;
mod curve;
mod figures;
mod machine;
mod micro;
mod model;
mod page;
mod rubis;
mod tally;
mod times;
mod workload;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::Args;

use times::Times;

/// The size of the runs.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Partitions of each data center: four machines of eight.
    #[arg(long, default_value_t = 32)]
    partitions: u16,
    /// The factor by which simulated cores are slower than this machine's.
    #[arg(long, default_value_t = 10.0)]
    slower: f64,
    /// Simulated seconds of each point that count.
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Simulated seconds of warm-up of each point.
    #[arg(long, default_value_t = 1.2)]
    warm_up: f64,
    /// Items for sale on the auction site.
    #[arg(long, default_value_t = 33_000)]
    items: u64,
    /// Users of the auction site.
    #[arg(long, default_value_t = 100_000)]
    users: u64,
    /// The clients' average think time between two transactions, in milliseconds.
    #[arg(long, default_value_t = 500)]
    think_ms: u64,
    /// Keys of the microbenchmark.
    #[arg(long, default_value_t = 100_000)]
    keys: usize,
    /// Threads that run points.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Take service times from this file instead of measuring them.
    #[arg(long)]
    times: Option<PathBuf>,
    /// Take the recorded service times, so that the model gives the same results each time.
    #[arg(long)]
    recorded: bool,
    /// Seed of the clients' choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run only one part: `cost`, `site`, `micro` or `trouble`.
    #[arg(long)]
    only: Option<Part>,
    /// The path of the page.
    #[arg(long, default_value = "target/evaluation.html")]
    page: PathBuf,
    /// Few partitions, few points, recorded times and lenient bars: enough to see that everything
    /// runs.
    #[arg(long)]
    quick: bool,
}

/// A part of the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The processor time of a transaction, in all systems.
    Cost,
    /// The auction site, in all systems.
    Site,
    /// The microbenchmark.
    Micro,
    /// The loss of the leader's data center, and contention.
    Trouble,
}

impl Options {
    fn runs(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    fn hurried(mut self) -> Self {
        if self.quick {
            (self.partitions, self.seconds, self.warm_up) = (4, 0.3, 0.5);
            (self.items, self.users, self.keys) = (2_000, 5_000, 5_000);
            (self.slower, self.think_ms, self.recorded) = (40.0, 200, true);
        }
        self
    }

    fn check(&self) -> Result<(), String> {
        let is_time = |seconds: f64| (0.05..=600.0).contains(&seconds);
        let counts = [self.items as usize, self.users as usize, self.keys, self.threads];
        let is_sound = is_time(self.seconds)
            && is_time(self.warm_up)
            && counts.iter().all(|count| (1..=10_000_000).contains(count))
            && (2..=64).contains(&self.partitions)
            && (1.0..=1e4).contains(&self.slower)
            && (1..=60_000).contains(&self.think_ms);
        if is_sound { Ok(()) } else { Err(format!("these settings are out of bounds: {self:?}")) }
    }

    fn times(&self) -> Result<Times, String> {
        match &self.times {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
                Times::parse(&text)
            }
            None if self.recorded => Ok(Times::recorded()),
            None => calibrate::measure(self),
        }
    }
}

/// Runs the evaluation, prints its table and writes its page.
///
/// # Errors
///
/// A failure of a run, or the missed bars.
pub fn run(options: &Options) -> Result<(), String> {
    let options = &options.clone().hurried();
    options.check()?;
    if let Some(folder) = options.page.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let costs = if options.runs(Part::Cost) { calibrate::costs(options)? } else { Vec::new() };
    if options.only == Some(Part::Cost) {
        println!("\n{}", figures::costs(&costs, options));
        return Ok(());
    }
    let times = options.times()?;
    println!("service times of handlers, in ns on this machine:\n{}", times.shown());
    let outcome = curve::run_all(options, &times.slower(options.slower))?;
    let outcome = curve::Outcome { costs, ..outcome };
    let figures = figures::figures(&outcome, options);
    figures::print(&outcome, &figures, options);
    std::fs::write(&options.page, page::render(&outcome, &figures, options))
        .map_err(|error| format!("{}: {error}", options.page.display()))?;
    println!("\nplots: {}", options.page.display());
    let missed = figures.iter().filter(|figure| figure.is_met == Some(false));
    let missed: Vec<String> = missed.map(crate::geo::Figure::missed).collect();
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}
