//! Errors of transactions as replies.

use mingle_geo::Refusal;
use mingle_model::TransactionId;

use crate::commands::Fault;
use crate::process::{CommitError, SessionError};
use crate::resp::Reply;

/// The reason why a command has no reply of its own.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The command rejects its arguments or its data.
    Fault(Fault),
    /// The session rejects the transaction.
    Session(SessionError),
    /// The transaction is not committed.
    Aborted(Refusal),
    /// The outcome of the transaction is unknown.
    Unknown(TransactionId, Refusal),
    /// It is committed here, and not known to be uniform in time.
    NotUniform(TransactionId),
    /// It was run as often as it may be, with a conflict each time.
    Conflict,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Aborted(refusal) => Self::Aborted(refusal),
            CommitError::Unknown(id, refusal) => Self::Unknown(id, refusal),
            CommitError::Session(error) => Self::Session(error),
        }
    }
}

impl Failure {
    /// True if the same transaction may succeed when it runs again at once.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Aborted(Refusal::Conflict { .. } | Refusal::Aborted))
    }

    /// Returns the reply.
    pub fn reply(self, is_strong: bool) -> Reply {
        match self {
            Self::Fault(fault) => fault.reply(),
            Self::Session(SessionError::Refused(refusal)) | Self::Aborted(refusal) => {
                let word = word(&refusal, is_strong);
                Reply::Error(format!("{word} {refusal}; nothing was written"))
            }
            Self::Session(error @ SessionError::Suspended(_)) => {
                Reply::Error(format!("LOADING {error}"))
            }
            Self::Session(error) => Reply::Error(format!("ERR {error}")),
            Self::Unknown(id, refusal) => Reply::Error(format!(
                "UNKNOWN {id} the outcome is not known: {refusal}. Ask with OUTCOME {id}"
            )),
            Self::NotUniform(id) => Reply::Error(format!(
                "NOTUNIFORM {id} is committed in this data center, and is not known to survive its loss \
                 yet; BARRIER waits for that"
            )),
            Self::Conflict => Reply::Error(format!(
                "CONFLICT the transaction conflicted with others in each of {} runs; nothing was \
                 written",
                super::RUNS_MAX
            )),
        }
    }
}

/// Returns the first word of the error for a refusal.
fn word(refusal: &Refusal, is_strong: bool) -> &'static str {
    match refusal {
        Refusal::Conflict { .. } | Refusal::Aborted => "CONFLICT",
        Refusal::Fenced { .. } => "FENCED",
        Refusal::SnapshotTooOld { .. } | Refusal::TransactionTooOld { .. } => "TOOOLD",
        Refusal::Full { .. } => "FULL",
        Refusal::TimedOut { .. } if is_strong => "NOQUORUM",
        Refusal::ComingUp { .. } => "LOADING",
        Refusal::TimedOut { .. } | Refusal::Busy | Refusal::Ahead { .. } => "TRYAGAIN",
        _ => "ERR",
    }
}
