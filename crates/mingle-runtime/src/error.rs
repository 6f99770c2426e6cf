//! How a call can end without a result.

use std::fmt;
use std::time::Duration;

use mingle_model::{Name, Ref, TransactionId};
use mingle_store::StoreError;

/// Why a call has no result, and what it left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A `require` failed; nothing was written.
    Require {
        /// The code after `as`.
        code: Option<Name>,
        /// The message.
        message: String,
    },
    /// A keyed `new` met an object that exists; nothing was written.
    Exists(Ref),
    /// The call itself is wrong: no such transaction, arguments that do not fit.
    Misuse(String),
    /// The program asks for what this version does not run.
    Unsupported(String),
    /// A bound on steps, memory or sizes; nothing was written.
    Limit(String),
    /// Conflicts outlasted the deadline; nothing was written.
    Conflict {
        /// At which store.
        store: Name,
        /// How often it was tried.
        attempts: u32,
        /// The deadline.
        deadline: Duration,
    },
    /// A store failed; nothing was written.
    Store(StoreError),
    /// It is not known whether the first write took effect.
    Unknown {
        /// At which store.
        store: Name,
        /// Under which id to ask.
        id: Option<TransactionId>,
    },
    /// Some stores have committed and a later one has not.
    Incomplete {
        /// What has committed.
        committed: Vec<Name>,
        /// What has not.
        missing: Vec<Name>,
        /// Why.
        cause: Box<Error>,
    },
    /// The call was given up before it wrote anything.
    Cancelled,
}

impl Error {
    /// Whether the same call again may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Conflict { .. } | Self::Cancelled => true,
            Self::Store(error) => {
                matches!(error, StoreError::Unavailable { .. } | StoreError::Conflict)
            }
            _ => false,
        }
    }

    /// A short stable name for machines; for a `require` with a code, that code.
    pub fn code(&self) -> &str {
        match self {
            Self::Require { code: Some(code), .. } => code,
            Self::Require { .. } => "require",
            Self::Exists(_) => "exists",
            Self::Misuse(_) => "misuse",
            Self::Unsupported(_) => "unsupported",
            Self::Limit(_) => "limit",
            Self::Conflict { .. } => "conflict",
            Self::Store(_) => "store",
            Self::Unknown { .. } => "unknown",
            Self::Incomplete { .. } => "incomplete",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Require { message, .. } => f.write_str(message),
            Self::Exists(object) => write!(f, "{object} exists already"),
            Self::Misuse(message) | Self::Unsupported(message) | Self::Limit(message) => {
                f.write_str(message)
            }
            Self::Conflict { store, attempts, deadline } => write!(
                f,
                "conflicts at store {store} outlasted the deadline of {deadline:?} ({attempts} attempts); nothing was written"
            ),
            Self::Store(error) => write!(f, "{error}; nothing was written"),
            Self::Unknown { store, id } => {
                write!(f, "store {store} did not say whether the transaction took effect")?;
                id.map_or(Ok(()), |id| write!(f, "; its id is {id}"))
            }
            Self::Incomplete { committed, missing, cause } => {
                write!(
                    f,
                    "committed at {}, but not at {}: {cause}",
                    committed.join(", "),
                    missing.join(", ")
                )
            }
            Self::Cancelled => f.write_str("the call was given up before it wrote anything"),
        }
    }
}

impl std::error::Error for Error {}
