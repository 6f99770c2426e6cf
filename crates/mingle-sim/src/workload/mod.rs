//! The promises of a running system, put to the test: transactions over four stores, from clients
//! of several processes, while processes die, networks part, clocks jump and answers are lost.
//!
//! - [`calls`]: what clients call, and what each call reads and writes;
//! - [`setup`]: what a seed sets up, and what happens in it, as data; [`extras`] is what only some seeds have;
//! - [`run`](mod@run): from the processes' start to what is left when all is quiet; on a `stage`,
//!   with `clients`; `gather` looks at what is left;
//! - [`live`]: the same clients in real time, over servers that are not simulated;
//! - [`history`]: what clients saw, and what was left;
//! - [`outage`]: a minute without one replica or store, under a steady load;
//! - [`promises`]: what must hold of that; `visibility` is the largest of them;
//! - [`checked`]: the same as histories of registers, for `mingle-checker`; [`mixed`]: of all stores together.

pub mod calls;
pub mod checked;
mod clients;
pub mod extras;
mod gather;
pub mod history;
pub mod live;
pub mod mixed;
pub mod outage;
pub mod promises;
pub mod run;
pub mod setup;
mod stage;
mod visibility;

use std::collections::BTreeMap;

use crate::flaw::Flaw;
use crate::process::{Event, Schedule, Shrunk, shrink};
use calls::ClientCall;
use promises::{Broken, check};
use run::{PATIENCE, run};
use setup::Plan;

/// A run whose promises held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// A digest of all that happened.
    pub digest: u64,
    /// How often what happened.
    pub covered: BTreeMap<String, u64>,
    /// Transactions that took effect.
    pub transactions: u64,
}

/// Runs a plan, and checks all promises.
///
/// # Errors
///
/// The first promise that did not hold.
pub fn judge(plan: &Plan, flaw: Flaw) -> Result<Verdict, Broken> {
    let ran = run(plan, flaw);
    check(&ran.history, PATIENCE)?;
    checked::models(&ran.history, &ran.events)?;
    let mut covered = ran.covered;
    covered.extend(mixed::mixed(&ran.history)?);
    covered.extend(extras::counts(plan));
    let done = ran.history.operations.iter().filter(|operation| operation.end.is_done());
    let transactions = done.count() as u64;
    Ok(Verdict { digest: ran.digest, covered, transactions })
}

/// As [`judge`], where a panic is a failure too.
///
/// # Errors
///
/// How the run failed.
pub fn judged(plan: &Plan, flaw: Flaw) -> Result<Verdict, Broken> {
    let plan = plan.clone();
    std::panic::catch_unwind(move || judge(&plan, flaw)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Broken { promise: "no panic", how: text.unwrap_or_else(|| "a panic".into()) })
    })
}

/// Takes events out of a plan that fails, as long as the same promise breaks.
pub fn shrunk(plan: &Plan, flaw: Flaw, runs_max: usize) -> Option<Shrunk<Event<ClientCall>>> {
    let promise = judged(plan, flaw).err()?.promise;
    shrink(plan.schedule.0.clone(), runs_max, |events| {
        let smaller = Plan { setup: plan.setup.clone(), schedule: Schedule(events.to_vec()) };
        let broken = judged(&smaller, flaw).err()?;
        (broken.promise == promise).then(|| format!("{}: {}", broken.promise, broken.how))
    })
}
