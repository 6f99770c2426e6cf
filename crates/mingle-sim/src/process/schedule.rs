//! All that happens in a run, as data.
//!
//! A run draws its schedule from a seed, and is then a function of it: a schedule with some events
//! taken out is one too, so one that fails can be shrunk.

use std::time::Duration;

use mingle_model::Name;
use mingle_store::wrap::fault::{Call, Fault};

use super::death::Moment;
use super::partition::Cut;

/// Something that happens; `C` is what clients call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<C> {
    /// A client calls.
    Call {
        /// When, in elapsed time.
        at: Duration,
        /// Which client.
        client: usize,
        /// What.
        call: C,
    },
    /// A process dies at one of its calls to stores.
    Die {
        /// Which process.
        process: Name,
        /// At the how manieth call, from 0, over all stores and incarnations.
        call: u64,
        /// Before or after it.
        moment: Moment,
    },
    /// A process dies at some time, whatever it does.
    Kill {
        /// When, in elapsed time.
        at: Duration,
        /// Which process.
        process: Name,
    },
    /// None of a process's tasks goes on for some time.
    Pause {
        /// When, in elapsed time.
        at: Duration,
        /// Which process.
        process: Name,
        /// For how long.
        lasts: Duration,
    },
    /// A link is cut.
    Cut(Cut),
    /// A machine's time of day jumps.
    Jump {
        /// When, in elapsed time.
        at: Duration,
        /// Whose.
        process: Name,
        /// By so many milliseconds.
        by_ms: i64,
    },
    /// A store stops, and starts again.
    Restart {
        /// When, in elapsed time.
        at: Duration,
        /// Which store.
        store: Name,
        /// How long it is away.
        down: Duration,
    },
    /// A call to a store goes wrong.
    Fault {
        /// Which store.
        store: Name,
        /// Which kind of call.
        call: Call,
        /// The how manieth of that kind, from 0.
        index: u64,
        /// What goes wrong.
        fault: Fault,
    },
}

/// Events, in no particular order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule<C>(pub Vec<Event<C>>);

impl<C> Schedule<C> {
    /// What one client calls, and when, in order of time.
    pub fn calls(&self, client: usize) -> Vec<(Duration, &C)> {
        let mut calls: Vec<(Duration, &C)> = self
            .0
            .iter()
            .filter_map(|event| match event {
                Event::Call { at, client: of, call } if *of == client => Some((*at, call)),
                _ => None,
            })
            .collect();
        calls.sort_by_key(|(at, _)| *at);
        calls
    }

    /// At which of its calls a process dies: what [`super::DeathPlan::scripted`] takes.
    pub fn deaths(&self, process: &str) -> Vec<(u64, Moment)> {
        let death = |event: &Event<C>| match event {
            Event::Die { process: of, call, moment } if **of == *process => Some((*call, *moment)),
            _ => None,
        };
        self.0.iter().filter_map(death).collect()
    }

    /// When a process dies whatever it does, in order.
    pub fn kills(&self, process: &str) -> Vec<Duration> {
        let kill = |event: &Event<C>| match event {
            Event::Kill { at, process: of } if **of == *process => Some(*at),
            _ => None,
        };
        let mut kills: Vec<Duration> = self.0.iter().filter_map(kill).collect();
        kills.sort_unstable();
        kills
    }

    /// When a process pauses, and for how long, in order.
    pub fn pauses(&self, process: &str) -> Vec<(Duration, Duration)> {
        let pause = |event: &Event<C>| match event {
            Event::Pause { at, process: of, lasts } if **of == *process => Some((*at, *lasts)),
            _ => None,
        };
        let mut pauses: Vec<(Duration, Duration)> = self.0.iter().filter_map(pause).collect();
        pauses.sort_unstable();
        pauses
    }

    /// What is cut: what [`super::Partitions::new`] takes.
    pub fn cuts(&self) -> Vec<Cut> {
        let cut = |event: &Event<C>| match event {
            Event::Cut(cut) => Some(cut.clone()),
            _ => None,
        };
        self.0.iter().filter_map(cut).collect()
    }

    /// When a process's time of day jumps, and by how many milliseconds, in order of time.
    pub fn jumps(&self, process: &str) -> Vec<(Duration, i64)> {
        let jump = |event: &Event<C>| match event {
            Event::Jump { at, process: of, by_ms } if **of == *process => Some((*at, *by_ms)),
            _ => None,
        };
        let mut jumps: Vec<(Duration, i64)> = self.0.iter().filter_map(jump).collect();
        jumps.sort_unstable();
        jumps
    }

    /// When a store stops, and for how long, in order of time.
    pub fn restarts(&self, store: &str) -> Vec<(Duration, Duration)> {
        let restart = |event: &Event<C>| match event {
            Event::Restart { at, store: of, down } if **of == *store => Some((*at, *down)),
            _ => None,
        };
        let mut restarts: Vec<(Duration, Duration)> = self.0.iter().filter_map(restart).collect();
        restarts.sort_unstable();
        restarts
    }

    /// Which calls of a store go wrong: what `FaultPlan::scripted` takes.
    pub fn faults(&self, store: &str) -> Vec<(Call, u64, Fault)> {
        let fault = |event: &Event<C>| match event {
            Event::Fault { store: of, call, index, fault } if **of == *store => {
                Some((*call, *index, *fault))
            }
            _ => None,
        };
        self.0.iter().filter_map(fault).collect()
    }
}

#[cfg(test)]
mod tests;
