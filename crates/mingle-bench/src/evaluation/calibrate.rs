//! Service times, measured: the model runs at a moderate load, and each handler is timed.

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
            samples.add(sampled(site, rubis(options))?);
            let three_keys = Setup { clients: MICRO_CLIENTS, ..usual };
            samples.add(sampled(three_keys, micro(options, 10, 100, 0))?);
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

fn sampled(setup: Setup, workload: Box<dyn Workload>) -> Result<Samples, String> {
    let mut model = Model::new(setup, workload)?;
    model.elect()?;
    model.start_clients();
    model.run_for(WARM_UP_NS);
    model.count();
    model.run_for(SAMPLED_NS);
    Ok(std::mem::take(&mut model.samples))
}
