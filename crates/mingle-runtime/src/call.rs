//! A call of a transaction, and how it went.
//!
//! A transaction runs as a task of its [`mingle_store::World`], so that whoever called it may go
//! away: until the first phase that writes commits, going away undoes it; from then on it
//! finishes. One that leaves nothing at any store has nothing to finish, and runs within the task of
//! its caller where that runs in the same place.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mingle_model::{Name, Principal, TransactionId, Value};

use crate::error::Error;
use crate::keyed::CallKey;
use crate::session::Session;
use crate::watch::{Event, Watcher};

/// One call of a transaction.
#[derive(Clone, Debug)]
pub struct Call {
    /// The transaction's name.
    pub transaction: Name,
    /// Its arguments, in order.
    pub arguments: Vec<Value>,
    /// Who asks, from where, and what it has seen.
    pub session: Session,
    /// The caller has its result as soon as this store has committed, and all before it; the rest
    /// follows. None waits for all of them.
    pub until: Option<Name>,
    /// Conflicts are retried, and others waited for, for so long; none leaves that to the settings.
    pub deadline: Option<Duration>,
    /// Calls with one key are one call: made again, it is answered as the first time, and takes
    /// effect once.
    pub key: Option<CallKey>,
    /// The caller, if it has a name: all phases run with its rights, whichever process runs them.
    pub principal: Option<Principal>,
    /// Is told what happens while it runs.
    pub watcher: Option<Watcher>,
}

impl Call {
    /// A call in a session of its own, which waits for all stores.
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

/// How a call went.
#[derive(Clone, Debug, PartialEq)]
pub struct CallReport {
    /// The transaction's result, if it declares one and a phase that the caller waited for
    /// computed it.
    pub result: Option<Value>,
    /// Its phases, in order, as far as the caller waited for them.
    pub phases: Vec<PhaseReport>,
    /// Under which id it is known at its stores, if it left anything there to be known by.
    pub id: Option<TransactionId>,
    /// Stores at which the rest of it follows.
    pub following: Vec<Name>,
    /// Whether this is the answer of an earlier call with the same key: no phase was run.
    pub is_repeated: bool,
}

impl CallReport {
    /// Of a call of which these phases have run, and nothing else is known.
    pub(crate) fn of_phases(phases: Vec<PhaseReport>) -> Self {
        Self { result: None, phases, id: None, following: Vec::new(), is_repeated: false }
    }
}

/// How a phase went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseReport {
    /// The store's name; none for a transaction that visits no store.
    pub store: Option<Name>,
    /// Round trips of the attempt that committed.
    pub round_trips: u32,
    /// How often it was tried.
    pub attempts: u32,
    /// How many values it recorded for later phases.
    pub recorded: usize,
    /// How long it took, all attempts together.
    pub time: Duration,
    /// How long of that it waited for other transactions.
    pub waited: Duration,
    /// Whether somebody else had run it already.
    pub was_done: bool,
}

const RUNNING: u8 = 0;
const COMMITTING: u8 = 1;
const GIVEN_UP: u8 = 2;

/// What a call and the task that runs it share.
#[derive(Default)]
pub(crate) struct Shared {
    state: AtomicU8,
    finished: AtomicBool,
    outcome: Mutex<Answer>,
    watcher: Option<Watcher>,
}

/// The outcome of a call, once it is there, and who waits for it.
#[derive(Default)]
struct Answer {
    result: Option<Result<CallReport, Error>>,
    waiter: Option<Waker>,
}

/// A call that runs. Dropped before the first commit, it writes nothing; dropped later, it
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

/// Sees to it that a caller gets an answer when its task ends without one.
pub(crate) struct Finish(pub(crate) Arc<Shared>);

impl Drop for Finish {
    fn drop(&mut self) {
        self.0.finish(Err(Error::Cancelled));
    }
}

impl Shared {
    /// Of a call that nobody has answered.
    pub(crate) fn of(call: &Call) -> Self {
        Self { watcher: call.watcher.clone(), ..Self::default() }
    }

    /// Tells whoever watches.
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

    /// Answers the caller, if nobody has.
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
