//! The geo-replicated store's causal core, in this process: all data centers, their clients and
//! the links between them on the cores of one machine.
//!
//! The shell around the core has the structure of a server. A partition, with its replicas at all
//! data centers, belongs to one thread; threads exchange batches. Data centers exchange frames of
//! encoded messages that are under way for some time. Durable records are encoded and committed as
//! a group, in memory or in a synced file for each data center. Clients are sessions of the core in
//! a closed loop: 90 % of their transactions read three keys, 10 % read three and write one of
//! them.
//!
//! The paper is UniStore (Bravo et al., USENIX ATC 2021), §8.
//!
//! # Departures
//!
//! - All data centers share the cores, so the throughput is the sum over all of them.
//! - Clients are in the process: nothing is parsed, and no kernel carries their requests.
//! - A snapshot can be read for one second instead of ten, so that folding starts within the
//!   warm-up.
//! - The paper's baseline without uniformity (CureFT) is `f = 0`: a data center's own data
//!   suffices.

mod catch_up;
mod client;
mod disk;
mod estimate;
mod figures;
mod link;
mod measure;
mod page;
mod plan;
mod plot;
mod site;
mod worker;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use plan::Plan;

// The evaluation shares these with this benchmark.
pub use figures::{Figure, thousands};
pub use page::{head, table, verdict};
pub use plan::Distance;
pub use plot::Plot;

/// The size of the measurements.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Rounds; each runs the compared sides forwards and then backwards.
    #[arg(long, default_value_t = 4)]
    rounds: usize,
    /// Seconds of each block that count.
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// Seconds of warm-up of each block.
    #[arg(long, default_value_t = 2.0)]
    warm_up: f64,
    /// Clients at each data center, each a session with one transaction at a time.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Threads that carry the data centers and their clients.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Keys, each with a value of 64 bytes.
    #[arg(long, default_value_t = 100_000)]
    keys: usize,
    /// Measure only one part: `throughput`, `items`, `visibility`, `catch-up` or `idle`.
    #[arg(long)]
    only: Option<Part>,
    /// The path of the page.
    #[arg(long, default_value = "target/geo.html")]
    page: PathBuf,
    /// The directory of the logs where commits are synced.
    #[arg(long, default_value = "target")]
    logs: PathBuf,
    /// Seed of the transactions.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One short round with lenient bars: enough to see that everything runs.
    #[arg(long)]
    quick: bool,
}

/// A part of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Throughput, waits, bytes, and the cost of uniformity.
    Throughput,
    /// The cost of items, and of floors for the sessions of a data center.
    Items,
    /// The delay until other data centers see a write.
    Visibility,
    /// The return of a data center that was away.
    CatchUp,
    /// The idle processor time.
    Idle,
}

impl Options {
    fn hurried(mut self) -> Self {
        if self.quick {
            (self.rounds, self.seconds, self.warm_up) = (1, 0.6, 0.8);
            self.keys = self.keys.min(20_000);
        }
        self
    }

    fn check(&self) -> Result<(), String> {
        let counts = [self.rounds, self.clients, self.threads, self.keys];
        let is_sound = |seconds: f64| (0.05..=600.0).contains(&seconds);
        if counts.contains(&0) || self.threads > 4 {
            return Err("there must be rounds, clients and keys, and 1 to 4 threads".into());
        }
        if !is_sound(self.seconds) || !is_sound(self.warm_up) {
            return Err("blocks and warm-ups take 0.05 to 600 seconds".into());
        }
        Ok(())
    }

    fn runs(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    fn warm_up_time(&self) -> Duration {
        Duration::from_secs_f64(self.warm_up)
    }

    fn plan(&self, round: usize) -> Plan {
        Plan {
            clients: self.clients,
            threads: self.threads,
            keys: self.keys,
            logs: self.logs.clone(),
            seed: self.seed.wrapping_add(round as u64),
            ..Plan::default()
        }
    }
}

pub fn run(options: &Options) -> Result<(), String> {
    let options = &options.clone().hurried();
    options.check()?;
    for folder in [options.page.parent(), Some(options.logs.as_path())].into_iter().flatten() {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let outcome = measure::measure(options)?;
    let figures = figures::figures(&outcome, options);
    figures::print(&figures, options);
    std::fs::write(&options.page, page::render(&outcome, &figures, options))
        .map_err(|error| format!("{}: {error}", options.page.display()))?;
    println!("\nplots: {}", options.page.display());
    let missed = figures.iter().filter(|figure| figure.is_met == Some(false));
    let missed: Vec<String> = missed.map(figures::Figure::missed).collect();
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}
