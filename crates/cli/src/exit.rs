//! Exit codes, which scripts rely on.

use std::process::ExitCode;

/// The exit code of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// All is well.
    Success = 0,
    /// A program has errors, or is not formatted; a history violates its model.
    Program = 1,
    /// The call or a file is wrong.
    Usage = 2,
    /// A `require` failed, a rule of the database forbids the values, or the transaction gave itself
    /// up for another reason.
    Require = 3,
    /// A store failed, or something is left unfinished.
    Store = 4,
    /// Conflicts, or the wait for other transactions, outlasted the deadline.
    Conflict = 5,
    /// It is not known whether the transaction took effect, or whether a history satisfies its model.
    Unknown = 6,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The reason why the command failed.
#[derive(Debug)]
pub struct Failure {
    /// One line, without a full stop.
    pub message: String,
    /// The exit code for the caller.
    pub exit: Exit,
}

impl Failure {
    /// A failure because the call or a file is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: Exit::Usage }
    }
}
