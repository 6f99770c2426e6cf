//! Sessions of this process, with calls that block.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use mingle_geo::certify::Label;
use mingle_geo::message::Missing;
use mingle_geo::session::CallError;
use mingle_geo::{Event as Outcome, Key, Op, Refusal, State, Update, Vector};
use mingle_model::TransactionId;

use super::Durability;
use super::client::{Answer, Call};
use super::driver::Event;

pub use super::client::Mark;

/// A client's session at this data center. Its transactions see each other's writes, and reads of one
/// transaction see one snapshot.
///
/// A call blocks until its answer has come. Without one, it fails after ten seconds.
#[derive(Debug)]
pub struct Session {
    number: Option<u64>,
    events: Sender<Event>,
}

/// A committed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The transaction.
    pub id: TransactionId,
    /// Its commit vector; for a transaction that wrote nothing, its snapshot.
    pub commit_vec: Vector,
    /// True if it is known to survive the loss of as many data centers as the cluster tolerates.
    pub is_uniform: bool,
}

/// The result of a read.
#[derive(Clone, Debug)]
pub struct Found {
    /// The states of the items, in the requested order.
    pub states: Vec<Arc<State>>,
    /// The snapshot of the transaction.
    pub snapshot: Vector,
}

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// The call does not fit the state of the session.
    Call(CallError),
    /// The data center refuses it; the running transaction is given up.
    Refused(Refusal),
    /// Another process of this data center is connected to the others, so this one may not serve. The
    /// text is theirs. The call may succeed later.
    Suspended(String),
    /// The process has stopped. A commit that has no answer may be found after the next start.
    Stopped,
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(why) => why.fmt(f),
            Self::Refused(why) => why.fmt(f),
            Self::Suspended(why) => write!(f, "this process may not serve: {why}"),
            Self::Stopped => f.write_str("the process of this data center has stopped"),
        }
    }
}

impl std::error::Error for SessionError {}

/// The reason why a commit failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitError {
    /// The transaction is not committed, and never will be. On a
    /// [conflict](Refusal::Conflict) the caller runs it again.
    Aborted(Refusal),
    /// The outcome is unknown; [`Session::ask`] asks for it.
    Unknown(TransactionId, Refusal),
    /// The call itself failed.
    Session(SessionError),
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aborted(why) => write!(f, "the transaction is aborted: {why}"),
            Self::Unknown(id, why) => write!(f, "the outcome of {id} is unknown: {why}"),
            Self::Session(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for CommitError {}

/// The reason why a session cannot continue where others have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// Part of it is lost: its data center was given up.
    Lost(Vec<Missing>),
    /// The mark is of another life of this data center: its folder was restored from an older copy.
    OtherLife {
        /// The mark.
        mark: Box<Mark>,
        /// The number of the start that runs now.
        boot: u32,
    },
    /// It has not arrived here in time, or the call itself failed.
    Session(SessionError),
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(missing) => {
                f.write_str("part of what the session read or wrote is lost:")?;
                for Missing { dc, have, want, .. } in missing {
                    let (have, want) = (have.micros() / 1_000, want.micros() / 1_000);
                    write!(
                        f,
                        " of {dc}, which was given up, it has seen all up to {want} ms, and all up to \
                         {have} ms is kept;"
                    )?;
                }
                f.write_str(" begin without the token")
            }
            Self::OtherLife { mark, boot } => write!(
                f,
                "start {} of {} that made the token is unknown to this one, start {boot}: the folder \
                 was restored from an older copy",
                mark.boot, mark.token.dc
            ),
            Self::Session(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for AttachError {}

impl Session {
    pub(super) fn open(events: Sender<Event>) -> Self {
        let (answer, answers) = channel();
        let is_sent = events.send(Event::Open(answer)).is_ok();
        let number = if is_sent { answers.recv().ok() } else { None };
        Self { number, events }
    }

    /// Begins a strong transaction. Without this call, the first read or write begins a causal one.
    ///
    /// # Errors
    ///
    /// If a transaction is running, or the session has an unanswered commit.
    pub fn begin_strong(&self) -> Result<(), SessionError> {
        self.done(Call::BeginStrong(None))
    }

    /// The same, where the transaction's uses of items have a label for which conflicts are
    /// [declared](super::Settings::conflicts).
    ///
    /// # Errors
    ///
    /// As for [`begin_strong`](Self::begin_strong).
    pub fn begin_labelled(&self, label: Label) -> Result<(), SessionError> {
        self.done(Call::BeginStrong(Some(label)))
    }

    /// Sets the time at which later causal commits are acknowledged.
    ///
    /// # Errors
    ///
    /// If the process has stopped.
    pub fn set_durability(&self, durability: Durability) -> Result<(), SessionError> {
        self.done(Call::Durable(durability))
    }

    /// Returns the place that the session has reached, once all that it wrote is on disk here.
    ///
    /// # Errors
    ///
    /// If the process has stopped.
    pub fn mark(&self) -> Result<Mark, SessionError> {
        match self.call(Call::Mark)? {
            Answer::Mark(mark) => Ok(mark),
            other => Err(failed(other)),
        }
    }

    pub(super) fn attach(&self, marks: &[Mark]) -> Result<(), AttachError> {
        match self.call(Call::Attach(marks.to_vec())).map_err(AttachError::Session)? {
            Answer::Outcome(Outcome::Resumed(_)) => Ok(()),
            Answer::Outcome(Outcome::Waiting(missing)) => Err(AttachError::Lost(missing)),
            Answer::OtherLife(mark, boot) => {
                Err(AttachError::OtherLife { mark: Box::new(mark), boot })
            }
            other => Err(AttachError::Session(failed(other))),
        }
    }

    /// Reads items, in the requested order.
    ///
    /// # Errors
    ///
    /// If the call does not fit, or the data center refuses it.
    pub fn read(&self, keys: Vec<Key>) -> Result<Vec<Arc<State>>, SessionError> {
        self.found(Call::Read(keys)).map(|found| found.states)
    }

    /// Reads items, in the requested order, and returns their snapshot too.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub fn find(&self, keys: Vec<Key>) -> Result<Found, SessionError> {
        self.found(Call::Read(keys))
    }

    /// Reads items in a transaction that ends with this call. No transaction that has written may
    /// run: its writes would be given up.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub fn find_once(&self, keys: Vec<Key>) -> Result<Found, SessionError> {
        self.found(Call::ReadOnce(keys))
    }

    /// Adds a write to the transaction. It leaves this session at the commit.
    ///
    /// # Errors
    ///
    /// If the operation does not fit the key, or the call does not fit.
    pub fn write(&self, key: Key, op: Op) -> Result<(), SessionError> {
        self.write_all(vec![Update { key, op, id: None }])
    }

    /// Adds writes to the transaction.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    pub fn write_all(&self, updates: Vec<Update>) -> Result<(), SessionError> {
        self.done(Call::Write(updates))
    }

    /// Gives up the transaction.
    ///
    /// # Errors
    ///
    /// If the process has stopped.
    pub fn rollback(&self) -> Result<(), SessionError> {
        self.done(Call::Rollback)
    }

    /// Commits the transaction. The answer comes once it is on disk here; for a strong one, once it is
    /// certified.
    ///
    /// # Errors
    ///
    /// If it is aborted, or its outcome is unknown.
    pub fn commit(&self) -> Result<Committed, CommitError> {
        self.committed(Call::Commit(Vec::new()))
    }

    /// Adds writes to the transaction, and commits it.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit).
    pub fn commit_with(&self, updates: Vec<Update>) -> Result<Committed, CommitError> {
        self.committed(Call::Commit(updates))
    }

    /// Asks for the outcome of the commit that has no answer.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit).
    pub fn ask(&self) -> Result<Committed, CommitError> {
        self.committed(Call::Ask)
    }

    /// Continues without the outcome of the commit that has no answer, if there is one.
    ///
    /// # Errors
    ///
    /// If the process has stopped.
    pub fn leave_unanswered(&self) -> Result<(), SessionError> {
        self.done(Call::Leave)
    }

    /// Waits until all that the session read or wrote survives the loss of `f` data centers.
    ///
    /// # Errors
    ///
    /// If that takes too long.
    pub fn barrier(&self) -> Result<(), SessionError> {
        match self.call(Call::Barrier)? {
            Answer::Done | Answer::Outcome(Outcome::Uniform) => Ok(()),
            other => Err(failed(other)),
        }
    }

    fn found(&self, call: Call) -> Result<Found, SessionError> {
        match self.call(call)? {
            Answer::Read(states, snapshot) => Ok(Found { states, snapshot }),
            other => Err(failed(other)),
        }
    }

    fn committed(&self, call: Call) -> Result<Committed, CommitError> {
        match self.call(call).map_err(CommitError::Session)? {
            Answer::Outcome(Outcome::Committed { id, commit_vec, is_uniform }) => {
                Ok(Committed { id, commit_vec, is_uniform })
            }
            Answer::Outcome(Outcome::Aborted { refusal, .. }) => Err(CommitError::Aborted(refusal)),
            Answer::Outcome(Outcome::Unknown { id, refusal }) => {
                Err(CommitError::Unknown(id, refusal))
            }
            other => Err(CommitError::Session(failed(other))),
        }
    }

    fn done(&self, call: Call) -> Result<(), SessionError> {
        match self.call(call)? {
            Answer::Done => Ok(()),
            other => Err(failed(other)),
        }
    }

    fn call(&self, call: Call) -> Result<Answer, SessionError> {
        let number = self.number.ok_or(SessionError::Stopped)?;
        let (answer, answers) = channel();
        let sent = self.events.send(Event::Call(number, call, answer));
        sent.map_err(|_| SessionError::Stopped)?;
        answers.recv().map_err(|_| SessionError::Stopped)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            // The process may have stopped.
            let _ = self.events.send(Event::Closed(number));
        }
    }
}

/// Returns the error of an answer that is no success of the call.
fn failed(answer: Answer) -> SessionError {
    match answer {
        Answer::Misfit(why) => SessionError::Call(why),
        Answer::Suspended(why) => SessionError::Suspended(why),
        Answer::Outcome(Outcome::Failed(refusal)) => SessionError::Refused(refusal),
        // An answer to another call: no session gives one, since each has one call at a time.
        Answer::Done
        | Answer::Read(..)
        | Answer::Mark(_)
        | Answer::OtherLife(..)
        | Answer::Outcome(_) => SessionError::Call(CallError::Busy),
    }
}
