//! The ways in which a call can end without a result.

use std::fmt;
use std::time::Duration;

use mingle_model::{Name, Principal, Ref, Taken, TransactionId};
use mingle_store::StoreError;
use serde::{Deserialize, Serialize};

/// The reason why a call has no result, and the state in which it left its stores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// A write of a `unique` met another object with the same values; nothing was written.
    Taken(Taken),
    /// The call itself is wrong: no such transaction, arguments that do not fit.
    Misuse(String),
    /// The program uses a feature that this version does not run.
    Unsupported(String),
    /// A bound on steps, memory or sizes was exceeded; nothing was written.
    Limit(String),
    /// Conflicts outlasted the deadline; nothing was written.
    Conflict {
        /// The store.
        store: Name,
        /// The number of attempts.
        attempts: u32,
        /// The deadline.
        deadline: Duration,
    },
    /// A store failed; nothing was written.
    Store(StoreError),
    /// It is not known whether the first write took effect.
    Unknown {
        /// The store.
        store: Name,
        /// The id under which to ask the store.
        id: Option<TransactionId>,
    },
    /// The deadline passed while it waited for another transaction; nothing was written.
    Waiting {
        /// The store.
        store: Name,
        /// The transaction it waited for.
        id: TransactionId,
        /// The deadline.
        deadline: Duration,
    },
    /// The transaction must wait for another that cannot be finished for now; nothing was written.
    Parked {
        /// The transaction it must wait for.
        id: TransactionId,
        /// The reason why that cannot be finished.
        reason: String,
    },
    /// The transaction took effect, but others finished it and have cleaned up since, so its result
    /// is no longer known.
    ResultGone {
        /// The transaction's id, if it left anything at its stores.
        id: Option<TransactionId>,
    },
    /// The key of the call was already used for a different call.
    KeyReused,
    /// The caller may not call the transaction; nothing was written.
    Forbidden {
        /// The caller, if it has a name.
        principal: Option<Principal>,
        /// The transaction.
        transaction: Name,
    },
    /// Some stores have committed and a later one has not. The rest follows by itself, even if the
    /// caller goes away, unless the transaction is parked.
    Incomplete {
        /// The id under which its stores know the transaction.
        id: Option<TransactionId>,
        /// The stores that have committed.
        committed: Vec<Name>,
        /// The stores that have not.
        missing: Vec<Name>,
        /// The cause.
        cause: Box<Error>,
    },
    /// The call was given up before it wrote anything.
    Cancelled,
    /// The deadline passed while the transaction computed; nothing was written.
    Deadline {
        /// The deadline.
        deadline: Duration,
    },
}

impl Error {
    /// True if the same call may succeed when it is made again.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Conflict { .. } | Self::Cancelled | Self::Waiting { .. } => true,
            Self::Store(error) => {
                matches!(error, StoreError::Unavailable { .. } | StoreError::Conflict)
            }
            _ => false,
        }
    }

    /// The store that cannot be reached, if that is the cause.
    pub fn unreachable(&self) -> Option<&Name> {
        match self {
            Self::Store(StoreError::Unavailable { store, .. }) => Some(store),
            Self::Incomplete { cause, .. } => cause.unreachable(),
            _ => None,
        }
    }

    /// The stores that have committed despite the error; the others follow by themselves.
    pub fn committed(&self) -> &[Name] {
        match self {
            Self::Incomplete { committed, .. } => committed,
            _ => &[],
        }
    }

    /// The message without the promise that nothing was written.
    fn without_promise(&self) -> String {
        let text = self.to_string();
        text.strip_suffix("; nothing was written").map_or(text.clone(), str::to_owned)
    }

    /// A short stable name for programs; for a `require` with a code, that code.
    pub fn code(&self) -> &str {
        match self {
            Self::Require { code: Some(code), .. } => code,
            Self::Require { .. } => "require",
            Self::Exists(_) => "exists",
            Self::Taken(_) => "taken",
            Self::Misuse(_) => "misuse",
            Self::Unsupported(_) => "unsupported",
            Self::Limit(_) => "limit",
            Self::Conflict { .. } => "conflict",
            Self::Store(StoreError::Violated { violation, .. }) if violation.kind.is_conflict() => {
                "constraint_conflict"
            }
            Self::Store(StoreError::Violated { .. }) => "constraint_violated",
            Self::Store(_) => "store",
            Self::Unknown { .. } => "unknown",
            Self::Waiting { .. } => "waiting",
            Self::Parked { .. } => "parked",
            Self::ResultGone { .. } => "result_gone",
            Self::KeyReused => "key_reused",
            Self::Forbidden { .. } => "forbidden",
            Self::Incomplete { .. } => "incomplete",
            Self::Cancelled => "cancelled",
            Self::Deadline { .. } => "deadline",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Require { message, .. } => f.write_str(message),
            Self::Exists(object) => write!(f, "{object} exists already"),
            Self::Taken(taken) => write!(f, "{taken}"),
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
            Self::Waiting { store, id, deadline } => write!(
                f,
                "transaction {id} was not visible at store {store} within the deadline of {deadline:?}; nothing was written"
            ),
            Self::Parked { id, reason } => write!(
                f,
                "transaction {id} cannot be finished: {reason}; `mingle recover` tries it again"
            ),
            Self::ResultGone { id } => {
                let call = id.map_or("the call".to_owned(), |id| format!("transaction {id}"));
                write!(f, "{call} took effect, but its result is not kept any more")
            }
            Self::KeyReused => f.write_str("the key was used for another call"),
            Self::Forbidden { principal, transaction } => {
                forbidden(f, principal.as_ref(), transaction)
            }
            Self::Incomplete { id, committed, missing, cause } => {
                let (committed, missing) = (committed.join(", "), missing.join(", "));
                match &**cause {
                    Self::Parked { reason, id: parked } if Some(parked) == id.as_ref() => write!(
                        f,
                        "committed at {committed}, but not at {missing}: {reason}; it is parked, and `mingle recover` tries it again"
                    )?,
                    Self::Limit(reason) => write!(
                        f,
                        "committed at {committed}, and nothing is left to write; there is no result, since what is read at {missing} gives {reason}"
                    )?,
                    cause => write!(
                        f,
                        "committed at {committed}, not yet at {missing}, where it follows by itself: {}",
                        cause.without_promise()
                    )?,
                }
                id.map_or(Ok(()), |id| write!(f, " (transaction {id})"))
            }
            Self::Cancelled => f.write_str("the call was given up before it wrote anything"),
            Self::Deadline { deadline } => write!(
                f,
                "the transaction computed beyond the deadline of {deadline:?}; nothing was written"
            ),
        }
    }
}

/// Writes the message for a call that its caller is not allowed to make.
fn forbidden(
    f: &mut fmt::Formatter<'_>,
    principal: Option<&Principal>,
    transaction: &Name,
) -> fmt::Result {
    match principal {
        Some(principal) => write!(f, "{principal} may not call {transaction}; nothing was written"),
        None => write!(
            f,
            "{transaction} is for callers with a name and the right to it; nothing was written"
        ),
    }
}

impl std::error::Error for Error {}
