//! What can be said after a request failed.

use mingle_store::{Refusal, Violation, ViolationKind};
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};

/// Why a request failed, and what that means for its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The server says no, and will say no again; nothing was done.
    No(Refusal),
    /// Nothing was done, but the same again may be.
    Unsent(String),
    /// It may have been done, and it may yet be done.
    Lost(String),
}

impl Failed {
    /// Why.
    pub fn reason(&self) -> &str {
        match self {
            Self::No(why) => why.reason(),
            Self::Unsent(reason) | Self::Lost(reason) => reason,
        }
    }

    /// The same of something of which a part may have been done.
    pub fn in_doubt(self) -> Self {
        match self {
            Self::Unsent(reason) => Self::Lost(reason),
            other => other,
        }
    }
}

impl From<ExecutionError> for Failed {
    fn from(error: ExecutionError) -> Self {
        let reason = error.to_string();
        match error {
            ExecutionError::BadQuery(_) | ExecutionError::PrepareError(_) => {
                Self::No(reason.into())
            }
            ExecutionError::EmptyPlan | ExecutionError::ConnectionPoolError(_) => {
                Self::Unsent(reason)
            }
            ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, text)) => {
                of_server(&error, &text)
            }
            ExecutionError::LastAttemptError(
                RequestAttemptError::SerializationError(_)
                | RequestAttemptError::CqlRequestSerialization(_),
            ) => Self::No(reason.into()),
            ExecutionError::LastAttemptError(RequestAttemptError::UnableToAllocStreamId) => {
                Self::Unsent(reason)
            }
            _ => Self::Lost(reason),
        }
    }
}

fn of_server(error: &DbError, text: &str) -> Failed {
    let reason = format!("{error}: {text}");
    match error {
        // A key is longer than any can be.
        DbError::Invalid if text.contains("longer than maximum") => {
            Failed::No(Violation::of(ViolationKind::Range, text).into())
        }
        DbError::SyntaxError
        | DbError::Invalid
        | DbError::AlreadyExists { .. }
        | DbError::FunctionFailure { .. }
        | DbError::AuthenticationError
        | DbError::Unauthorized
        | DbError::ConfigError => Failed::No(text.into()),
        DbError::Unavailable { .. } | DbError::IsBootstrapping | DbError::Unprepared { .. } => {
            Failed::Unsent(reason)
        }
        _ => Failed::Lost(reason),
    }
}
