//! Tests of a running system's promises: transactions over four stores, from clients of several
//! processes, while processes die, networks part, clocks jump and answers are lost.
//!
//! - [`calls`]: the clients' calls, and the reads and writes of each call;
//! - [`setup`]: a seed's setup and events, as data; [`extras`] adds the features of some seeds
//!   only;
//! - [`run`](mod@run): a run from the processes' start to the quiet end; it uses a `stage` and
//!   `clients`; `gather` collects the final contents;
//! - [`live`]: the same clients in real time, over real servers;
//! - [`history`]: the clients' observations and the final contents;
//! - [`outage`]: a minute without one replica or store, under a steady load;
//! - [`promises`]: the checks of a history; `visibility` is the largest of them, [`deletes`] judges
//!   objects that are deleted, and [`answers`] judges answers to reads with policies;
//! - `takes`: takes from bounded counters, in some seeds; `cut_off`: clients around a replica that is cut off, in others;
//! - [`checked`]: the history as register histories for `mingle-checker`; [`mixed`]: the check of
//!   all stores together.

pub mod answers;
pub mod calls;
pub mod checked;
mod clients;
mod cut_off;
pub mod deletes;
pub mod extras;
mod gather;
pub mod history;
mod laggards;
pub mod live;
pub mod mixed;
pub mod outage;
pub mod promises;
pub mod run;
pub mod setup;
mod stage;
mod takes;
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
    /// A digest of all events.
    pub digest: u64,
    /// The number of occurrences of each coverage point.
    pub covered: BTreeMap<String, u64>,
    /// The number of transactions that took effect.
    pub transactions: u64,
}

/// Runs a plan and checks all promises.
///
/// # Errors
///
/// The first promise that did not hold.
pub fn judge(plan: &Plan, flaw: Flaw) -> Result<Verdict, Broken> {
    let mut ran = run(plan, flaw);
    deletes::unroll(&mut ran.history)?;
    check(&ran.history, PATIENCE)?;
    checked::models(&ran.history, &ran.events)?;
    let mut covered = ran.covered;
    covered.extend(mixed::mixed(&ran.history)?);
    covered.extend(extras::counts(plan));
    covered.extend(deletes::counts(&ran.history));
    covered.extend(answers::counts(&ran.history));
    let done = ran.history.operations.iter().filter(|operation| operation.end.is_done());
    let transactions = done.count() as u64;
    Ok(Verdict { digest: ran.digest, covered, transactions })
}

/// Does the same as [`judge`], but reports a panic as a failure.
///
/// # Errors
///
/// The failure of the run.
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

/// Removes events from a failing plan while the same promise still breaks.
pub fn shrunk(plan: &Plan, flaw: Flaw, runs_max: usize) -> Option<Shrunk<Event<ClientCall>>> {
    let promise = judged(plan, flaw).err()?.promise;
    shrink(plan.schedule.0.clone(), runs_max, |events| {
        let smaller = Plan { setup: plan.setup.clone(), schedule: Schedule(events.to_vec()) };
        let broken = judged(&smaller, flaw).err()?;
        (broken.promise == promise).then(|| format!("{}: {}", broken.promise, broken.how))
    })
}
