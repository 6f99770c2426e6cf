//! Simulation of the geo-replicated store's core: replicas and sessions in one world of events.
//!
//! A seed's [`Plan`] gives the number of data centers and partitions, the delays and reliability of
//! the network, the acts of the clients and the faults; the run is a function of it.
//! `mingle-checker`, which does not use the core, checks the clients' answers and the final
//! contents of every data center; this crate checks liveness.
//!
//! - [`setup`], [`strong`], [`fault`], [`script`], [`plan`]: the simulated system, as data;
//! - `queue`, `links`, `node`, `world`: events, links, replicas with disks and clocks, and the
//!   world that contains them;
//! - `client`, `calls`, `events`: clients, their calls, and the results;
//! - `strike`, `live`: the effects of faults, and the delays that may be blamed on them;
//! - `fence`, `rejoin`: data centers that are given up and readmitted;
//! - `told`: what the partitions of a data center tell each other;
//! - `apart`, `ways`: long cuts, and cuts of one direction between two replicas, in some seeds;
//! - `record`, `columns`, `items`, `lives`, `reach`: the recorded history and the coverage of the run;
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
mod items;
mod links;
mod live;
mod lives;
mod node;
pub mod plan;
mod pool;
mod queue;
mod reach;
mod record;
mod rejoin;
pub mod script;
pub mod setup;
mod strike;
pub mod strong;
mod told;
mod ways;
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
    /// The number of occurrences of each coverage point.
    pub covered: BTreeMap<String, u64>,
    /// The number of updating transactions reported as committed to their sessions.
    pub committed: u64,
    /// The number of read-only transactions.
    pub read: u64,
    /// The number of faults that struck.
    pub faults: u64,
    /// The number of simulation events.
    pub events: u64,
}

impl Verdict {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: Self) {
        for (name, count) in other.covered {
            *self.covered.entry(name).or_default() += count;
        }
        self.committed += other.committed;
        self.read += other.read;
        self.faults += other.faults;
        self.events += other.events;
    }

    /// Returns the coverage points that were never reached.
    pub fn missed(&self) -> BTreeMap<&str, u64> {
        let missed = self.covered.iter().filter(|(_, count)| **count == 0);
        missed.map(|(name, count)| (name.as_str(), *count)).collect()
    }
}

/// Runs a plan and checks all promises.
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

/// Returns the events of a run, line by line.
pub fn trace(plan: &Plan) -> Vec<String> {
    play(plan, true).trace.unwrap_or_default()
}

/// Does the same as [`judge`], but reports a panic as a failure.
///
/// # Errors
///
/// The failure of the run.
pub fn judged(plan: &Plan) -> Result<Verdict, Broken> {
    std::panic::catch_unwind(|| judge(plan)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Broken { promise: "no panic", how: text.unwrap_or_else(|| "a panic".into()) })
    })
}

/// Removes events from a failing plan while the same promise still breaks.
pub fn shrunk(plan: &Plan, runs_max: usize) -> Option<Shrunk<Event>> {
    let promise = judged(plan).err()?.promise;
    shrink(plan.schedule.clone(), runs_max, |events| {
        let smaller = Plan { schedule: events.to_vec(), ..plan.clone() };
        let broken = judged(&smaller).err()?;
        (broken.promise == promise).then_some(broken.how)
    })
}
