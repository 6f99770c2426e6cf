//! A call of a transaction, and its report.
//!
//! A transaction runs as a task of its [`mingle_store::World`], so that its caller may go away. If
//! the caller goes away before the first writing phase commits, the transaction is undone; after
//! that it finishes. A transaction that leaves nothing at any store has nothing to finish, so it
//! runs within its caller's task if that task runs in the same place.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mingle_model::{Name, Principal, TransactionId, Value};

use crate::api::error::Error;
use crate::api::session::Session;
use crate::api::watch::{Event, Watcher};
use crate::protocol::call_key::CallKey;

/// One call of a transaction.
#[derive(Clone, Debug)]
pub struct Call {
    /// The transaction's name.
    pub transaction: Name,
    /// Its arguments, in order.
    pub arguments: Vec<Value>,
    /// The caller's session: its replica, and the state it has seen.
    pub session: Session,
    /// The caller gets its result as soon as this store and all before it have committed; the rest
    /// follows. With `None` the caller waits for all stores.
    pub until: Option<Name>,
    /// The time for which conflicts are retried and others waited for; `None` takes it from the settings.
    pub deadline: Option<Duration>,
    /// Calls with the same key are one call: a repeated call gets the answer of the first and takes
    /// effect once.
    pub key: Option<CallKey>,
    /// The caller, if it has a name: all phases run with its rights, whichever process runs them.
    pub principal: Option<Principal>,
    /// A watcher that is told the events of the call while it runs.
    pub watcher: Option<Watcher>,
}

impl Call {
    /// Creates a call in a session of its own that waits for all stores.
    pub fn new(transaction: impl Into<Name>, arguments: Vec<Value>) -> Self {
        let transaction = transaction.into();
        Self {
            transaction,
            arguments,
            session: Session::default(),
            until: None,
            deadline: None,
            key: None,
            principal: None,
            watcher: None,
        }
    }
}

/// The report of a call that has succeeded.
#[derive(Clone, Debug, PartialEq)]
pub struct CallReport {
    /// The transaction's result, if it declares one and a phase that the caller waited for
    /// computed it.
    pub result: Option<Value>,
    /// Its phases, in order, as far as the caller waited for them.
    pub phases: Vec<PhaseReport>,
    /// The id under which its stores know it, if it left anything there.
    pub id: Option<TransactionId>,
    /// Stores at which the rest of it follows.
    pub following: Vec<Name>,
    /// True if this is the answer of an earlier call with the same key: no phase was run.
    pub is_repeated: bool,
}

impl CallReport {
    /// Creates the report of a call of which only these phases are known.
    pub(crate) fn of_phases(phases: Vec<PhaseReport>) -> Self {
        Self { result: None, phases, id: None, following: Vec::new(), is_repeated: false }
    }
}

/// The report of a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseReport {
    /// The store's name; none for a transaction that visits no store.
    pub store: Option<Name>,
    /// Round trips of the attempt that committed.
    pub round_trips: u32,
    /// The number of attempts.
    pub attempts: u32,
    /// The number of values that it recorded for later phases.
    pub recorded: usize,
    /// The time that all attempts took together.
    pub time: Duration,
    /// The part of that time in which it waited for other transactions.
    pub waited: Duration,
    /// True if another process had already run it.
    pub was_done: bool,
}

const RUNNING: u8 = 0;
const COMMITTING: u8 = 1;
const GIVEN_UP: u8 = 2;

/// The state shared by a call and the task that runs it.
#[derive(Default)]
pub(crate) struct Shared {
    state: AtomicU8,
    finished: AtomicBool,
    outcome: Mutex<Answer>,
    watcher: Option<Watcher>,
}

/// The outcome of a call, once it is there, and the waker of the waiting caller.
#[derive(Default)]
struct Answer {
    result: Option<Result<CallReport, Error>>,
    waiter: Option<Waker>,
}

/// A running call. Dropped before the first commit, it writes nothing; dropped later, it
/// finishes.
pub(crate) struct Running(pub(crate) Arc<Shared>);

impl Future for Running {
    type Output = Result<CallReport, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut outcome = self.0.outcome.lock().expect("nobody panics with this lock");
        match outcome.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                outcome.waiter = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails when the task has gone past the point of no return, or is done.
        let _ =
            self.0.state.compare_exchange(RUNNING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// A guard that answers the caller if its task ends without an answer.
pub(crate) struct Finish(pub(crate) Arc<Shared>);

impl Drop for Finish {
    fn drop(&mut self) {
        self.0.finish(Err(Error::Cancelled));
    }
}

impl Shared {
    /// Creates the state of a call that has no answer yet.
    pub(crate) fn of(call: &Call) -> Self {
        Self { watcher: call.watcher.clone(), ..Self::default() }
    }

    /// Tells the watcher, if there is one.
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(watcher) = &self.watcher {
            watcher.tell(event());
        }
    }

    /// Passes the point of no return; false if the caller has gone away.
    pub(crate) fn begin_commit(&self) -> bool {
        let before =
            self.state.compare_exchange(RUNNING, COMMITTING, Ordering::AcqRel, Ordering::Acquire);
        matches!(before, Ok(_) | Err(COMMITTING))
    }

    /// The commit did not take effect, so the caller may go away again.
    pub(crate) fn commit_failed(&self) {
        let _ =
            self.state.compare_exchange(COMMITTING, RUNNING, Ordering::AcqRel, Ordering::Acquire);
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.state.load(Ordering::Acquire) == GIVEN_UP
    }

    /// Answers the caller, unless it has an answer already.
    pub(crate) fn finish(&self, result: Result<CallReport, Error>) {
        if self.finished.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut outcome = self.outcome.lock().expect("nobody panics with this lock");
        outcome.result = Some(result);
        if let Some(waker) = outcome.waiter.take() {
            waker.wake();
        }
    }

    pub(crate) fn take(&self) -> Option<Result<CallReport, Error>> {
        self.outcome.lock().expect("nobody panics with this lock").result.take()
    }
}
