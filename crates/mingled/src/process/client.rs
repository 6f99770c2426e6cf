//! Sessions in the thread of the driver, with their calls and answers.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use mingle_geo::session::{CallError, SessionOutput};
use mingle_geo::{Event as Outcome, Key, Now, Session, SessionConfig, State, Update, Vector};

/// The time after which a call does not wait for the disk alone, in microseconds.
const HELD_UP_US: u64 = 1_000;

/// A call of a session.
#[derive(Debug)]
pub enum Call {
    BeginStrong,
    Read(Vec<Key>),
    /// Reads, and then gives up the transaction, which has written nothing.
    ReadOnce(Vec<Key>),
    Write(Vec<Update>),
    Rollback,
    /// Adds writes, and commits.
    Commit(Vec<Update>),
    Ask,
    /// Goes on without the answer to a commit.
    Leave,
    Barrier,
}

/// An answer to a call.
#[derive(Debug)]
pub enum Answer {
    /// The call is done.
    Done,
    /// The call does not fit the state of the session.
    Misfit(CallError),
    /// The process may not serve.
    Suspended(String),
    /// The states that a read found, and their snapshot.
    Read(Vec<Arc<State>>, Vector),
    /// The result of another call.
    Outcome(Outcome),
}

/// A session, and the caller that waits for its answer.
#[derive(Debug)]
pub struct Client {
    pub session: Session,
    /// The caller that waits, and since when, on the monotonic clock.
    pub caller: Option<(Sender<Answer>, u64)>,
    /// True if the transaction ends with the running read.
    reads_once: bool,
}

impl Client {
    pub fn new(config: SessionConfig) -> Self {
        Self { session: Session::new(config), caller: None, reads_once: false }
    }

    /// Begins a call; returns true if it has ended, too.
    pub fn begin(
        &mut self,
        now: Now,
        call: Call,
        outputs: &mut Vec<SessionOutput>,
    ) -> Result<bool, CallError> {
        let session = &mut self.session;
        self.reads_once = matches!(call, Call::ReadOnce(_));
        match call {
            Call::BeginStrong => session.begin_strong(now).map(|()| true),
            Call::Write(updates) => write(session, now, updates).map(|()| true),
            Call::Rollback => {
                session.rollback();
                Ok(true)
            }
            Call::Leave => {
                session.leave_unanswered();
                Ok(true)
            }
            Call::Read(keys) | Call::ReadOnce(keys) => {
                session.read(now, keys, outputs).map(|()| false)
            }
            Call::Commit(updates) => {
                write(session, now, updates)?;
                session.commit(now, outputs).map(|()| false)
            }
            Call::Ask => session.ask(now, outputs).map(|()| false),
            Call::Barrier => session.barrier(now, outputs).map(|()| false),
        }
    }

    /// True if its caller has waited for longer than a write to the disk takes: then the partitions
    /// have to tell each other something.
    pub fn is_held_up(&self, now_us: u64) -> bool {
        let since_us = self.caller.as_ref().map(|(_, since_us)| *since_us);
        since_us.is_some_and(|since_us| since_us.saturating_add(HELD_UP_US) <= now_us)
    }

    /// Returns the answer that an event is to the caller.
    pub fn answer(&mut self, event: Outcome) -> Answer {
        let Outcome::Read(states) = event else { return Answer::Outcome(event) };
        let snapshot = self.session.snapshot().unwrap_or(Vector::ZERO);
        if std::mem::take(&mut self.reads_once) {
            self.session.rollback();
        }
        Answer::Read(states, snapshot)
    }
}

fn write(session: &mut Session, now: Now, updates: Vec<Update>) -> Result<(), CallError> {
    updates.into_iter().try_for_each(|update| session.write(now, update))
}
