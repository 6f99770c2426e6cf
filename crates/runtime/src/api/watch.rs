//! Watching a call while it runs.

use std::fmt;
use std::sync::Arc;

use mingle_model::{Name, TransactionId};

use crate::api::call::PhaseReport;

/// Something that happens in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A phase begins.
    Began {
        /// Its index in the plan.
        phase: usize,
        /// Its store; none for a transaction that visits no store.
        store: Option<Name>,
    },
    /// A phase waits for the commit witnesses of other transactions.
    Waits {
        /// Its index in the plan.
        phase: usize,
        /// The transactions that it waits for.
        transactions: Vec<TransactionId>,
    },
    /// A phase has failed, and is tried again.
    Retries {
        /// Its index in the plan.
        phase: usize,
        /// The number of tries so far.
        attempts: u32,
        /// The reason of the failure.
        reason: String,
    },
    /// A phase has committed.
    Committed {
        /// Its index in the plan.
        phase: usize,
        /// The report of the phase.
        report: PhaseReport,
    },
    /// The whole transaction starts over: data that it depends on has changed.
    StartsOver,
}

/// A receiver of a call's events. It is called in the middle of the call, so it must not block.
///
/// # Examples
///
/// ```
/// use mingle_runtime::{Event, Watcher};
///
/// let (sender, receiver) = std::sync::mpsc::channel();
/// let watcher = Watcher::new(move |event| drop(sender.send(event)));
/// watcher.tell(Event::StartsOver);
/// assert_eq!(receiver.recv(), Ok(Event::StartsOver));
/// ```
#[derive(Clone)]
pub struct Watcher(Arc<dyn Fn(Event) + Send + Sync>);

impl Watcher {
    /// Creates a watcher that hands events to a function.
    pub fn new(tell: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// Hands over an event.
    pub fn tell(&self, event: Event) {
        (self.0)(event);
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher(..)")
    }
}
