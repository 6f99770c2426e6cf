//! Calibration: the model runs at a moderate load, and each handler is timed. This gives the
//! service time of each kind of input, and the processor time of a transaction in each system.

use mingle_geo::Baseline;

use super::Options;
use super::curve::{micro, rubis};
use super::model::{Model, Setup};
use super::times::{Samples, Times};
use super::workload::Workload;

/// The number of measurements; for each kind the least disturbed round counts.
const ROUNDS: usize = 3;

/// The simulated times before and during sampling, in nanoseconds.
const WARM_UP_NS: u64 = 400_000_000;
const SAMPLED_NS: u64 = 250_000_000;

/// Clients at each data center, on the auction site and in the microbenchmark.
const SITE_CLIENTS: usize = 4_000;
const MICRO_CLIENTS: usize = 100;

/// Measures the service times on this machine. All systems share one table: their common work takes
/// the same time in all of them.
///
/// # Errors
///
/// The core's objection to the settings.
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

/// The processor time of an auction-site transaction in one system on this machine, at all replicas
/// and with their periodic work, without the clients.
#[derive(Clone, Debug)]
pub struct Cost {
    pub system: Baseline,
    /// The processor time in each round, in microseconds.
    pub rounds_us: Vec<f64>,
    /// The transactions of the last round.
    pub committed: u64,
}

impl Cost {
    /// Returns the minimum of the rounds: any other work of the machine only increases the time.
    pub fn least_us(&self) -> f64 {
        self.rounds_us.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn most_us(&self) -> f64 {
        self.rounds_us.iter().copied().fold(0.0, f64::max)
    }
}

/// Returns the number of auction-site clients at each data center while processor time is measured;
/// all systems can bear them.
pub fn cost_clients(options: &Options) -> usize {
    if options.quick { SITE_CLIENTS / 20 } else { SITE_CLIENTS }
}

/// Measures the processor time of all systems one at a time, alternately forwards and backwards.
///
/// # Errors
///
/// The core's objection to the settings, or a system in which nothing commits.
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
