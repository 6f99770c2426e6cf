//! Sessions in the thread of the driver, with their calls and answers.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use mingle_geo::certify::{Access, Label};
use mingle_geo::message::Missing;
use mingle_geo::session::{CallError, SessionOutput, Token};
use mingle_geo::{Event as Outcome, Key, Now, Session, SessionConfig, State, Update, Vector};

use super::Durability;

/// The time after which a call does not wait for the disk alone, in microseconds.
const HELD_UP_US: u64 = 1_000;

/// The place that a session has reached, from which another one can continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The data center, and the vectors that the session read or wrote.
    pub token: Token,
    /// The number of the start of the process that made it.
    pub boot: u32,
    /// The random number of that start.
    pub process: u64,
}

/// A call of a session.
#[derive(Debug)]
pub enum Call {
    /// Begins a strong transaction, whose uses of items have this label.
    BeginStrong(Option<Label>),
    /// Asks for the place that the session has reached, once all of it is safe.
    Mark,
    /// Continues here where other sessions have been.
    Attach(Vec<Mark>),
    Durable(Durability),
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

impl Call {
    /// True if the data center has to answer it.
    pub fn asks_replicas(&self) -> bool {
        matches!(self, Self::Read(_) | Self::ReadOnce(_) | Self::Commit(_) | Self::Barrier)
    }
}

/// An answer to a call.
#[derive(Debug)]
pub enum Answer {
    /// The call is done.
    Done,
    /// The call does not fit the state of the session.
    Misfit(CallError),
    /// The place that the session has reached.
    Mark(Mark),
    /// The mark is of another life of this data center than that of this start.
    OtherLife(Mark, u32),
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
    /// The caller that waits for a mark, until as many requests are safe.
    pub marks: Option<(Sender<Answer>, u64)>,
    /// The label of the running strong transaction.
    label: Option<Label>,
    /// True if the transaction ends with the running read.
    reads_once: bool,
}

impl Client {
    pub fn new(config: SessionConfig) -> Self {
        Self {
            session: Session::new(config),
            caller: None,
            marks: None,
            label: None,
            reads_once: false,
        }
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
            Call::BeginStrong(label) => {
                self.label = label;
                session.begin_strong(now).map(|()| true)
            }
            Call::Attach(marks) => {
                for mark in &marks {
                    session.join(&mark.token);
                }
                session.attach(now, session.dc(), outputs).map(|()| false)
            }
            // The driver has handled them.
            Call::Mark | Call::Durable(_) => Ok(true),
            Call::Write(updates) => {
                write(session, now, self.label.as_ref(), updates).map(|()| true)
            }
            Call::Rollback => {
                self.label = None;
                session.rollback();
                Ok(true)
            }
            Call::Leave => {
                session.leave_unanswered();
                Ok(true)
            }
            Call::Read(keys) | Call::ReadOnce(keys) => {
                label(session, self.label.as_ref(), Access::Read, keys.iter())?;
                session.read(now, keys, outputs).map(|()| false)
            }
            Call::Commit(updates) => {
                let label = self.label.take();
                write(session, now, label.as_ref(), updates)?;
                session.commit(now, outputs).map(|()| false)
            }
            Call::Ask => session.ask(now, outputs).map(|()| false),
            Call::Barrier => session.barrier(now, outputs).map(|()| false),
        }
    }

    /// True if a call is under way.
    pub fn is_busy(&self) -> bool {
        self.caller.is_some() || self.marks.is_some()
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

/// True if a caller waits beyond this event: part of an attaching session's past is not here yet, and may
/// still come.
pub fn is_waiting(event: &Outcome) -> bool {
    let may_come = |missing: &Missing| !missing.is_lost;
    matches!(event, Outcome::Waiting(missing) if missing.iter().any(may_come))
}

fn write(
    session: &mut Session,
    now: Now,
    of: Option<&Label>,
    updates: Vec<Update>,
) -> Result<(), CallError> {
    for update in updates {
        label(session, of, Access::Write, std::iter::once(&update.key))?;
        session.write(now, update)?;
    }
    Ok(())
}

/// Labels the use of items, if there is a label.
fn label<'a>(
    session: &mut Session,
    label: Option<&Label>,
    access: Access,
    mut keys: impl Iterator<Item = &'a Key>,
) -> Result<(), CallError> {
    let Some(label) = label else { return Ok(()) };
    keys.try_for_each(|key| session.label(key.clone(), access, label.clone()))
}
