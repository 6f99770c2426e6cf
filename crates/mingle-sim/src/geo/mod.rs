//! Simulation of the geo-replicated store's core: replicas and sessions in one world of events.
//!
//! A seed's [`Plan`] says how many data centers and partitions there are, how far and how reliable,
//! what clients do, and what goes wrong; the run is a function of it. What clients were answered
//! and what every data center holds in the end is checked by `mingle-checker`, which knows nothing
//! of the core; liveness is checked here.
//!
//! - [`setup`], [`strong`], [`fault`], [`script`], [`plan`]: what is simulated, as data;
//! - `queue`, `links`, `node`, `world`: events, links, replicas with disks and clocks, and all of it;
//! - `client`, `calls`, `events`: clients, what they call, and what comes of it;
//! - `strike`, `live`: what faults do, and what may be blamed on them;
//! - `fence`, `rejoin`: data centers that are given up, and admitted again;
//! - `record`, `columns`, `reach`: what is written down, and what was gone through;
//! - `finish`: a run from its start to its end; [`baseline`]: the other systems of UniStore's evaluation.

mod apart;
pub mod baseline;
mod calls;
mod client;
mod columns;
mod events;
pub mod fault;
mod fence;
mod finish;
mod links;
mod live;
mod node;
pub mod plan;
mod queue;
mod reach;
mod record;
mod rejoin;
pub mod script;
pub mod setup;
mod strike;
pub mod strong;
mod world;

use std::collections::BTreeMap;

use crate::process::{Shrunk, shrink};
use crate::workload::promises::Broken;
pub use fault::Event;
use finish::{Played, play};
pub use mingle_geo::flaw::Flaw;
pub use plan::Plan;

/// A run whose promises held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// How often what happened.
    pub covered: BTreeMap<String, u64>,
    /// Transactions with updates whose sessions were told that they committed.
    pub committed: u64,
    /// Transactions that only read.
    pub read: u64,
    /// Faults that struck.
    pub faults: u64,
    /// Events of the simulation.
    pub events: u64,
}

impl Verdict {
    /// Adds what another run came to.
    pub fn add(&mut self, other: Self) {
        for (name, count) in other.covered {
            *self.covered.entry(name).or_default() += count;
        }
        self.committed += other.committed;
        self.read += other.read;
        self.faults += other.faults;
        self.events += other.events;
    }

    /// What was never reached.
    pub fn missed(&self) -> BTreeMap<&str, u64> {
        let missed = self.covered.iter().filter(|(_, count)| **count == 0);
        missed.map(|(name, count)| (name.as_str(), *count)).collect()
    }
}

/// Runs a plan, and checks all promises.
///
/// # Errors
///
/// The first promise that did not hold.
pub fn judge(plan: &Plan) -> Result<Verdict, Broken> {
    let played = play(plan, false);
    let Played { run, covered, broken, committed, read, struck, events, .. } = played;
    if let Some(broken) = broken {
        return Err(broken);
    }
    let report = mingle_checker::geo::check(&run);
    if let Some(problem) = report.problems.first() {
        return Err(Broken { promise: problem.promise.name(), how: problem.to_string() });
    }
    Ok(Verdict { covered, committed, read, faults: struck, events })
}

/// What happens in a run, line by line.
pub fn trace(plan: &Plan) -> Vec<String> {
    play(plan, true).trace.unwrap_or_default()
}

/// As [`judge`], where a panic is a failure too.
///
/// # Errors
///
/// How the run failed.
pub fn judged(plan: &Plan) -> Result<Verdict, Broken> {
    std::panic::catch_unwind(|| judge(plan)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Broken { promise: "no panic", how: text.unwrap_or_else(|| "a panic".into()) })
    })
}

/// Takes events out of a plan that fails, as long as the same promise breaks.
pub fn shrunk(plan: &Plan, runs_max: usize) -> Option<Shrunk<Event>> {
    let promise = judged(plan).err()?.promise;
    shrink(plan.schedule.clone(), runs_max, |events| {
        let smaller = Plan { schedule: events.to_vec(), ..plan.clone() };
        let broken = judged(&smaller).err()?;
        (broken.promise == promise).then_some(broken.how)
    })
}
