//! All events of a run, as data.
//!
//! A run draws its schedule from a seed and is then a function of it. A schedule without some of
//! its events is a valid schedule too, so a failing one can be shrunk.

use std::time::Duration;

use mingle_model::Name;
use mingle_store::wrap::fault::{Call, Fault};

use super::death::Moment;
use super::partition::{Cut, Slow};

/// An event; `C` is the type of the clients' calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<C> {
    /// A client calls.
    Call {
        /// The time, in elapsed time.
        at: Duration,
        /// The index of the client.
        client: usize,
        /// The call.
        call: C,
    },
    /// A process dies at one of its calls to stores.
    Die {
        /// The name of the process.
        process: Name,
        /// The index of the call, from 0, over all stores and incarnations.
        call: u64,
        /// The moment: before or after the call.
        moment: Moment,
    },
    /// A process dies at a given time, during any activity.
    Kill {
        /// The time, in elapsed time.
        at: Duration,
        /// The name of the process.
        process: Name,
    },
    /// All tasks of a process stand still for some time.
    Pause {
        /// The time, in elapsed time.
        at: Duration,
        /// The name of the process.
        process: Name,
        /// The duration.
        lasts: Duration,
    },
    /// A link is cut.
    Cut(Cut),
    /// A link is slow.
    Slow(Slow),
    /// A machine's time of day jumps.
    Jump {
        /// The time, in elapsed time.
        at: Duration,
        /// The name of the process on the machine.
        process: Name,
        /// The jump in milliseconds.
        by_ms: i64,
    },
    /// A store stops and restarts.
    Restart {
        /// The time, in elapsed time.
        at: Duration,
        /// The name of the store.
        store: Name,
        /// The time until the restart.
        down: Duration,
    },
    /// A call to a store goes wrong.
    Fault {
        /// The name of the store.
        store: Name,
        /// The kind of call.
        call: Call,
        /// The index among the calls of that kind, from 0.
        index: u64,
        /// The fault.
        fault: Fault,
    },
}

/// Events, in no particular order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule<C>(pub Vec<Event<C>>);

impl<C> Schedule<C> {
    /// Returns the calls of one client with their times, in order of time.
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

    /// Returns the calls at which a process dies, as [`super::DeathPlan::scripted`] takes them.
    pub fn deaths(&self, process: &str) -> Vec<(u64, Moment)> {
        let death = |event: &Event<C>| match event {
            Event::Die { process: of, call, moment } if **of == *process => Some((*call, *moment)),
            _ => None,
        };
        self.0.iter().filter_map(death).collect()
    }

    /// Returns the times at which a process is killed, in order.
    pub fn kills(&self, process: &str) -> Vec<Duration> {
        let kill = |event: &Event<C>| match event {
            Event::Kill { at, process: of } if **of == *process => Some(*at),
            _ => None,
        };
        let mut kills: Vec<Duration> = self.0.iter().filter_map(kill).collect();
        kills.sort_unstable();
        kills
    }

    /// Returns the times and durations of a process's pauses, in order of time.
    pub fn pauses(&self, process: &str) -> Vec<(Duration, Duration)> {
        let pause = |event: &Event<C>| match event {
            Event::Pause { at, process: of, lasts } if **of == *process => Some((*at, *lasts)),
            _ => None,
        };
        let mut pauses: Vec<(Duration, Duration)> = self.0.iter().filter_map(pause).collect();
        pauses.sort_unstable();
        pauses
    }

    /// Returns the cuts, as [`super::Partitions::new`] takes them.
    pub fn cuts(&self) -> Vec<Cut> {
        let cut = |event: &Event<C>| match event {
            Event::Cut(cut) => Some(cut.clone()),
            _ => None,
        };
        self.0.iter().filter_map(cut).collect()
    }

    /// Returns the slow times of links.
    pub fn slows(&self) -> Vec<Slow> {
        let slow = |event: &Event<C>| match event {
            Event::Slow(slow) => Some(slow.clone()),
            _ => None,
        };
        self.0.iter().filter_map(slow).collect()
    }

    /// Returns the jumps of a process's time of day, in milliseconds, in order of time.
    pub fn jumps(&self, process: &str) -> Vec<(Duration, i64)> {
        let jump = |event: &Event<C>| match event {
            Event::Jump { at, process: of, by_ms } if **of == *process => Some((*at, *by_ms)),
            _ => None,
        };
        let mut jumps: Vec<(Duration, i64)> = self.0.iter().filter_map(jump).collect();
        jumps.sort_unstable();
        jumps
    }

    /// Returns the times and durations of a store's stops, in order of time.
    pub fn restarts(&self, store: &str) -> Vec<(Duration, Duration)> {
        let restart = |event: &Event<C>| match event {
            Event::Restart { at, store: of, down } if **of == *store => Some((*at, *down)),
            _ => None,
        };
        let mut restarts: Vec<(Duration, Duration)> = self.0.iter().filter_map(restart).collect();
        restarts.sort_unstable();
        restarts
    }

    /// Returns the faulty calls of a store, as `FaultPlan::scripted` takes them.
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
