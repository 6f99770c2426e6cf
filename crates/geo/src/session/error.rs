//! Reasons why a call of a session cannot begin.

use std::fmt;

/// The reason why a call cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// Another call is under way.
    Busy,
    /// The session must attach first.
    Detached,
    /// A commit has not been answered; see [`Session::ask`](super::Session::ask).
    Unanswered,
    /// A transaction is running.
    InTransaction,
    /// There is nothing to ask for.
    Nothing,
    /// The operation does not fit the key's type.
    WrongKind,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "another call of this session is under way",
            Self::Detached => "the session is not attached to a data center",
            Self::Unanswered => "a commit of this session has not been answered",
            Self::InTransaction => "a transaction of this session is running",
            Self::Nothing => "there is nothing to ask for",
            Self::WrongKind => "the operation does not fit the key's type",
        })
    }
}

impl std::error::Error for CallError {}
