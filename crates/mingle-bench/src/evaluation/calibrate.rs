//! What is measured: the model runs at a moderate load, and each handler is timed. By kind of input that
//! gives the service times; by system, what a transaction takes of a processor.

use mingle_geo::Baseline;

use super::Options;
use super::curve::{micro, rubis};
use super::model::{Model, Setup};
use super::times::{Samples, Times};
use super::workload::Workload;

/// Each is measured so often; of a kind the least disturbed round counts.
const ROUNDS: usize = 3;

/// Simulated time before samples are taken, and while they are, in nanoseconds.
const WARM_UP_NS: u64 = 400_000_000;
const SAMPLED_NS: u64 = 250_000_000;

/// Clients at each data center, on the auction site and in the microbenchmark.
const SITE_CLIENTS: usize = 4_000;
const MICRO_CLIENTS: usize = 100;

/// The service times of this machine. One table for all systems: what they have in common takes the
/// same time in all of them.
///
/// # Errors
///
/// What the core does not accept about the settings.
pub fn measure(options: &Options) -> Result<Times, String> {
    let recorded = Times::recorded();
    let mut best: Option<Times> = None;
    for round in 0..ROUNDS {
        let mut samples = Samples::default();
        for system in [Baseline::UniStore, Baseline::Strong, Baseline::RedBlue, Baseline::Uniform] {
            let usual = setup(options, system, round);
            let think_us = options.think_ms * 1_000;
            let site = Setup { clients: SITE_CLIENTS, think_us, ..usual.clone() };
            samples.add(sampled(site, rubis(options))?.samples);
            let three_keys = Setup { clients: MICRO_CLIENTS, ..usual };
            samples.add(sampled(three_keys, micro(options, 10, 100, 0))?.samples);
        }
        let fitted = samples.fit(&recorded);
        best = Some(match best {
            Some(best) => best.least(&fitted, &samples),
            None => fitted,
        });
        println!("service times: round {} of {ROUNDS}", round + 1);
    }
    Ok(best.unwrap_or(recorded))
}

fn setup(options: &Options, system: Baseline, round: usize) -> Setup {
    let times = Times::recorded().slower(options.slower);
    let setup = Setup::new(system, options.partitions, times);
    Setup { seed: options.seed + 1_000 + round as u64, is_sampled: true, ..setup }
}

fn sampled(setup: Setup, workload: Box<dyn Workload>) -> Result<Model, String> {
    let mut model = Model::new(setup, workload)?;
    model.elect()?;
    model.start_clients();
    model.run_for(WARM_UP_NS);
    model.count();
    model.run_for(SAMPLED_NS);
    Ok(model)
}

/// What a transaction of the auction site takes of this machine's processor in one system, at all
/// replicas, with what they do whatever the load is; clients not included.
#[derive(Clone, Debug)]
pub struct Cost {
    pub system: Baseline,
    /// By round, in microseconds.
    pub rounds_us: Vec<f64>,
    /// Transactions of the last round.
    pub committed: u64,
}

impl Cost {
    /// Of all rounds the least: whatever else a machine does makes it more.
    pub fn least_us(&self) -> f64 {
        self.rounds_us.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn most_us(&self) -> f64 {
        self.rounds_us.iter().copied().fold(0.0, f64::max)
    }
}

/// Clients of the auction site at each data center when processor time is measured: all systems bear
/// them.
pub fn cost_clients(options: &Options) -> usize {
    if options.quick { SITE_CLIENTS / 20 } else { SITE_CLIENTS }
}

/// The processor time of all systems, forwards and backwards by turns, one at a time.
///
/// # Errors
///
/// What the core does not accept about the settings, or a system in which nothing commits.
pub fn costs(options: &Options) -> Result<Vec<Cost>, String> {
    let new = |system| Cost { system, rounds_us: Vec::new(), committed: 0 };
    let mut costs: Vec<Cost> = Baseline::ALL.into_iter().map(new).collect();
    for round in 0..ROUNDS {
        for cost in &mut costs {
            let think_us = options.think_ms * 1_000;
            let clients = cost_clients(options);
            let setup = Setup { clients, think_us, ..setup(options, cost.system, round) };
            let model = sampled(setup, rubis(options))?;
            if model.tally.committed == 0 {
                return Err(format!("nothing committed in {}", cost.system.name()));
            }
            cost.rounds_us.push(model.tally.handled_us());
            cost.committed = model.tally.committed;
        }
        costs.reverse();
        println!("processor time of a transaction: round {} of {ROUNDS}", round + 1);
    }
    costs.sort_by_key(|cost| cost.system);
    Ok(costs)
}
