//! Counters of a runtime's events.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::observe::metrics;

/// Counters that only grow.
#[derive(Debug, Default)]
pub struct Stats {
    counts: [AtomicU64; Counted::ALL.len()],
}

/// The events that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Transactions that left an intent.
    Begun,
    /// Attempts that had to wait for another transaction's commit witness.
    Waited,
    /// Transactions of others that were finished because a transaction waited for them.
    Helped,
    /// Transactions that were finished because their origin was gone.
    Swept,
    /// Undecided `isolated` transactions that were aborted because a transaction waited for them.
    Aborted,
    /// Phases that another process had run.
    Taken,
    /// Transactions that another process had finished and cleaned up meanwhile.
    Over,
    /// Transactions that were cleaned up.
    Cleaned,
    /// Commits that were refused because of witness rows that they did not know.
    Witnessed,
    /// Witness rows that were passed on.
    PassedOn,
    /// Writes that left stamps that their session had seen elsewhere.
    LeftSeen,
    /// Attempts at a replica that was behind the session.
    Behind,
    /// Phases that were run at another replica because the session's own one was behind.
    Expedited,
    /// Calls that ran at the replica that their session leans on, though its client had moved.
    Leaned,
    /// Times that a session needed the replica on which it had leaned no more.
    LeanEnded,
    /// Transactions that started over because data that an endorsement read had changed, or because
    /// they were aborted.
    StartedOver,
    /// Times that this runtime found its own fence, and went on as another origin.
    Fenced,
    /// Phases whose answers were fixed by a commit of their own before they were run.
    Fixed,
    /// Phases whose answers were fixed with the first commit.
    ReadAhead,
    /// Phases of the previous kind that were read while the phase before them ran.
    ReadEarly,
    /// Commit witnesses that were never written, since a floor stands for them.
    FloorStood,
    /// Later phases that were refused, and parked.
    Parked,
    /// Transactions over several stores of one engine that ran as one transaction there.
    United,
    /// Attempts of `isolated` transactions that had to know that others are at all their stores.
    AwaitedWhole,
}

impl Counted {
    /// All counters.
    pub const ALL: [Self; 24] = [
        Self::Begun,
        Self::Waited,
        Self::Helped,
        Self::Swept,
        Self::Aborted,
        Self::Taken,
        Self::Over,
        Self::Cleaned,
        Self::Witnessed,
        Self::PassedOn,
        Self::LeftSeen,
        Self::Behind,
        Self::Expedited,
        Self::Leaned,
        Self::LeanEnded,
        Self::StartedOver,
        Self::Fenced,
        Self::Fixed,
        Self::ReadAhead,
        Self::ReadEarly,
        Self::FloorStood,
        Self::Parked,
        Self::United,
        Self::AwaitedWhole,
    ];
}

impl Counted {
    /// Returns the counter's name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Waited => "waited",
            Self::Helped => "helped",
            Self::Swept => "swept",
            Self::Aborted => "aborted",
            Self::Taken => "taken",
            Self::Over => "over",
            Self::Cleaned => "cleaned",
            Self::Witnessed => "witnessed",
            Self::PassedOn => "passed_on",
            Self::LeftSeen => "left_seen",
            Self::Behind => "behind",
            Self::Expedited => "expedited",
            Self::Leaned => "leaned",
            Self::LeanEnded => "lean_ended",
            Self::StartedOver => "started_over",
            Self::Fenced => "fenced",
            Self::Fixed => "fixed",
            Self::ReadAhead => "read_ahead",
            Self::ReadEarly => "read_early",
            Self::FloorStood => "floor_stood",
            Self::Parked => "parked",
            Self::United => "united",
            Self::AwaitedWhole => "awaited_whole",
        }
    }
}

impl Stats {
    pub(crate) fn count(&self, counted: Counted) {
        self.add(counted, 1);
    }

    pub(crate) fn add(&self, counted: Counted, times: u64) {
        self.counts[counted as usize].fetch_add(times, Ordering::Relaxed);
        if times > 0 {
            metrics::counted(counted, times);
        }
    }

    /// Returns the number of events.
    pub fn get(&self, counted: Counted) -> u64 {
        self.counts[counted as usize].load(Ordering::Relaxed)
    }
}
