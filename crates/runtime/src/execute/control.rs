//! The control of a phase from outside: its caller, and its time.

use std::time::Duration;

use mingle_store::StoreError;

use crate::api::call::Shared;
use crate::api::watch::Event;
use crate::stores::deadline::Doing;

/// The caller of a phase, if it has one, and the time that the phase may take.
pub(crate) struct Control<'a> {
    /// The caller, which may go away; none for a helper.
    pub(crate) shared: Option<&'a Shared>,
    /// The time at which it gives up.
    pub(crate) deadline: Duration,
    /// The time that it may take up to the deadline.
    pub(crate) patience: Duration,
    /// The current activity of the attempt.
    pub(crate) doing: Doing,
    /// True if the deadline also ends computation: a caller then gets an answer, or nothing was begun.
    pub(crate) ends_computation: bool,
}

impl<'a> Control<'a> {
    /// Creates the control for a phase that runs for a caller.
    pub(crate) fn of_caller(shared: &'a Shared, deadline: Duration, patience: Duration) -> Self {
        Self {
            shared: Some(shared),
            deadline,
            patience,
            doing: Doing::default(),
            ends_computation: true,
        }
    }

    /// Creates the control for a phase without a caller, whose deadline ends computation if `ends_computation` is set.
    pub(crate) fn without_caller(
        deadline: Duration,
        patience: Duration,
        ends_computation: bool,
    ) -> Self {
        Self { shared: None, deadline, patience, doing: Doing::default(), ends_computation }
    }

    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(shared) = self.shared {
            shared.tell(event);
        }
    }

    pub(crate) fn tell_retries(&self, phase: usize, attempts: u32, error: &StoreError) {
        self.tell(|| Event::Retries { phase, attempts, reason: error.to_string() });
    }
}
