//! Exit codes, which scripts rely on.

use std::process::ExitCode;

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// All is well.
    Success = 0,
    /// A program has errors, or is not formatted; a history violates its model.
    Program = 1,
    /// The call is wrong, or a file.
    Usage = 2,
    /// A `require` failed, a rule of the database forbids the values, or something else lets a transaction give itself
    /// up.
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

/// Why the command could not do what it should.
#[derive(Debug)]
pub struct Failure {
    /// One line, without a full stop.
    pub message: String,
    /// What the caller gets.
    pub exit: Exit,
}

impl Failure {
    /// The call is wrong, or a file.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: Exit::Usage }
    }
}
