//! Simulation of the reference protocols of `mingle-cops`.
//!
//! A seed's plan has the data centers, the calls of actors at certain times, and the faults: cuts
//! between data centers, broken connections within one, a data center that is lost for good. Packets
//! take random times, so they overtake each other. Afterwards everything is repaired, and the run is
//! judged from its record: the answers to clients, and the events of servers.
//!
//! - [`plan`]: a run as data;
//! - `library`: the client libraries; `columns` has the calls of Eiger;
//! - `world`: the packets in flight, and the record;
//! - `record`: the record of a run; `trace` has the messages of its reads;
//! - `check`: the promises.

mod check;
mod columns;
mod library;
pub mod plan;
mod record;
mod trace;
mod world;

use std::collections::BTreeMap;

pub use mingle_cops::config::Protocol;
pub use mingle_cops::flaw::Flaw;
pub use plan::Plan;

use crate::workload::promises::Broken;

/// The result of runs that held.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The number of calls that were answered.
    pub answered: u64,
    /// The number of times that each path was taken.
    pub covered: BTreeMap<&'static str, u64>,
}

impl Verdict {
    /// Adds another verdict.
    pub fn add(&mut self, other: Self) {
        self.answered += other.answered;
        for (name, count) in other.covered {
            *self.covered.entry(name).or_default() += count;
        }
    }
}

/// Runs a plan and judges it.
///
/// # Errors
///
/// The first promise that is broken.
///
/// # Examples
///
/// ```
/// use mingle_sim::cops::{Flaw, Plan, Protocol, judged};
///
/// assert!(judged(&Plan::draw(Protocol::Cops, 1)).is_ok());
/// let finds = |seed| judged(&Plan::draw(Protocol::Cops, seed).with(Flaw::DepsUnchecked)).is_err();
/// assert!((1..100).any(finds));
/// ```
pub fn judged(plan: &Plan) -> Result<Verdict, Broken> {
    let mut record = world::run(plan)?;
    check::all(plan, &mut record)?;
    let answered = record.calls.iter().filter(|call| call.end_us.is_some()).count() as u64;
    Ok(Verdict { answered, covered: record.covered })
}

/// Leaves out calls and faults of a plan that fails, as long as it fails, in at most `runs_max` runs.
/// Returns the smallest plan that fails.
pub fn shrunk(plan: &Plan, runs_max: usize) -> Plan {
    let (mut plan, mut runs, mut size) = (plan.clone(), 0, plan.len().div_ceil(2).max(1));
    loop {
        let mut place = 0;
        let mut is_smaller = false;
        while place < plan.len() && runs < runs_max {
            runs += 1;
            let less = plan.without(place, size);
            if judged(&less).is_err() {
                plan = less;
                is_smaller = true;
            } else {
                place += size;
            }
        }
        if runs >= runs_max || size == 1 && !is_smaller {
            return plan;
        }
        size = (size / 2).max(1);
    }
}
