//! The reference protocols over real sockets, and the evaluation of Lloyd's thesis (chapter 7).
//!
//! All servers of two data centers and their clients run in this process, each with its connections on
//! loopback: the protocols and the codec are real, and so is the kernel's work. Compared systems have the
//! same connections, frames, clients and jobs, so that their ratios are those of the protocols.
//!
//! - [`hub`]: processes over TCP; `topology` connects them;
//! - [`protocols`] and [`core`]: the reference protocols and our own store as processes;
//! - [`job`] and [`workloads`]: the calls of clients, and their tally;
//! - [`site`]: a running system; `measure` has its rounds;
//! - [`cops`] and [`eiger`]: the benchmarks, and [`report`] their tables.
//!
//! # Departures
//!
//! - **The links of the server** (`mingle_geo_node::link`) are not used: they greet each other with the
//!   data centers and clocks of the geo core, which these protocols do not have, and clients are no part of
//!   them. A frame is a length and a content.
//! - **Values** are numbers in the state of a server, and have their bytes on connections only.
//! - **The processor time of a call** counts everything that it causes at clients, servers of both data
//!   centers, and in the kernel. Its ratio is the ratio of throughputs of a machine that does nothing else;
//!   other programs of the machine disturb it less than a throughput.
//! - **Capacity** is a model: the calls by the processor time of the busiest server, as if each server had a
//!   core of its own and clients cost nothing.
//! - **Garbage** of a measurement is not collected within it: the thesis collects after 6 s, and a
//!   measurement is shorter. All initial contents are below the global checkpoint time.
//! - **Loss** of a connection is not tested here: the simulation (`mingle_sim::cops`) does that.

mod cops;
mod core;
mod eiger;
mod hub;
mod job;
mod measure;
mod protocols;
mod report;
mod site;
mod topology;
mod workloads;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use mingle_cops::config::Protocol;

use site::{Plan, System};

/// The size of the measurements.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Rounds; each runs all sides of a comparison, and medians count.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 0.6)]
    seconds: f64,
    /// Seconds of warm-up before each measurement.
    #[arg(long, default_value_t = 0.3)]
    warm_up: f64,
    /// One-way delay between the two data centers, in milliseconds.
    #[arg(long, default_value_t = 10)]
    delay_ms: u64,
    /// Seed of the calls.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Measure only one part: `latency`, `saturated`, `groups` or `scaling` of COPS; `latency`, `rows`,
    /// `sweeps`, `facebook` or `writes` of Eiger.
    #[arg(long)]
    only: Option<Part>,
    /// The path of the page; in `target` if none is given.
    #[arg(long)]
    page: Option<PathBuf>,
    /// One short round with lenient bars: enough to see that everything runs.
    #[arg(long)]
    quick: bool,
}

/// A part of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Latencies of single calls (Tables 7.2 and 7.4).
    Latency,
    /// Throughput of single calls (Table 7.2).
    Saturated,
    /// Groups of keys: the ratio of writes to reads, and variance (Figures 7.3 and 7.4).
    Groups,
    /// COPS against one log, on 1 to 16 servers (Figure 7.5).
    Scaling,
    /// Eiger's default workload.
    Rows,
    /// The parameters of Eiger's workload one by one (Figure 7.7).
    Sweeps,
    /// The Facebook workload (Table 7.6).
    Facebook,
    /// Write transactions over 1 to 8 servers (Figure 7.6).
    Writes,
}

impl Options {
    fn hurried(mut self) -> Self {
        if self.quick {
            (self.rounds, self.seconds, self.warm_up) = (1, 0.1, 0.05);
        }
        self
    }

    fn check(&self) -> Result<(), String> {
        let is_sound = |seconds: f64| (0.02..=5.0).contains(&seconds);
        if !(1..=1_000).contains(&self.rounds) {
            return Err(format!("{} rounds, expected 1 to 1000", self.rounds));
        }
        if !is_sound(self.seconds) || !is_sound(self.warm_up) || self.seconds + self.warm_up > 6.0 {
            return Err(
                "measurements and warm-ups take 0.02 to 5 seconds, and both at most 6".into()
            );
        }
        if self.delay_ms > 1_000 {
            return Err(format!("a delay of {} ms, expected at most 1000", self.delay_ms));
        }
        Ok(())
    }

    fn runs(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    fn warm_up(&self) -> Duration {
        Duration::from_secs_f64(self.warm_up)
    }

    fn page(&self, name: &str) -> PathBuf {
        self.page.clone().unwrap_or_else(|| PathBuf::from(format!("target/{name}.html")))
    }

    /// Returns the plan of a system with so many servers in each data center, one client process and so
    /// many actors.
    fn plan(&self, system: System, servers: u16, actors: usize) -> Plan {
        let (delay_us, seed) = (self.delay_ms * 1_000, self.seed);
        Plan { system, servers, clients: 1, actors, delay_us, seed }
    }

    /// Describes the setting of all parts.
    fn setting(&self) -> String {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        format!(
            "Two data centers, {} ms apart one way, on {cores} cores that other programs use too; medians of {} \
             interleaved rounds with the least and the greatest, {} s each after {} s; seed {}.",
            self.delay_ms, self.rounds, self.seconds, self.warm_up, self.seed
        )
    }
}

/// A reference protocol as a system.
fn system(protocol: Protocol) -> System {
    System::Reference(protocol)
}

/// Runs the benchmark of the COPS family.
pub fn run_cops(options: &Options) -> Result<(), String> {
    let options = &options.clone().hurried();
    options.check()?;
    cops::run(options)
}

/// Runs the benchmark of Eiger.
pub fn run_eiger(options: &Options) -> Result<(), String> {
    let options = &options.clone().hurried();
    options.check()?;
    eiger::run(options)
}
