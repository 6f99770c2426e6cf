//! The possible effects of a failed request.

use mingle_store::{Refusal, Violation, ViolationKind};
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};

/// The reason why a request failed, and its possible effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The server rejects it, and will reject it again; it had no effect.
    No(Refusal),
    /// It had no effect, and the same request may succeed later.
    Unsent(String),
    /// It may have taken effect, and it may still take effect.
    Lost(String),
}

impl Failed {
    /// Returns the reason.
    pub fn reason(&self) -> &str {
        match self {
            Self::No(why) => why.reason(),
            Self::Unsent(reason) | Self::Lost(reason) => reason,
        }
    }

    /// Returns the same failure for a request of which an earlier part may have taken effect.
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
        // The key exceeds the maximum length.
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
