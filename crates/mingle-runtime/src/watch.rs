//! Watching a call while it runs.

use std::fmt;
use std::sync::Arc;

use mingle_model::{Name, TransactionId};

use crate::call::PhaseReport;

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
        /// For which.
        transactions: Vec<TransactionId>,
    },
    /// A phase has failed, and is tried again.
    Retries {
        /// Its index in the plan.
        phase: usize,
        /// How often it was tried by now.
        attempts: u32,
        /// Why it failed.
        reason: String,
    },
    /// A phase has committed.
    Committed {
        /// Its index in the plan.
        phase: usize,
        /// How it went.
        report: PhaseReport,
    },
    /// The whole transaction starts over: what it rests on has changed.
    StartsOver,
}

/// Is told what happens in a call. It is called in the middle of things, so it must not block.
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
    /// A watcher that hands events to a function.
    pub fn new(tell: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// Tells it.
    pub fn tell(&self, event: Event) {
        (self.0)(event);
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher(..)")
    }
}
