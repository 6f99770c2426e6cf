//! The reasons why there is no server.

use std::fmt;

/// The reason why there is no server, or why an operation on one failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The named engine or checker is not in the services folder: `cargo xtask services fetch` gets
    /// it.
    NotFetched(&'static str),
    /// The named tool, which is not fetched, is not installed.
    NotInstalled(&'static str),
    /// Another failure; the text has the action that failed, and a remedy if one is known.
    Failed(String),
}

impl Error {
    /// Creates a failure from a description of the action.
    pub(crate) fn new(what: impl fmt::Display) -> Self {
        Self::Failed(what.to_string())
    }

    /// Returns a closure for `map_err` that puts a description of the action before the cause.
    pub(crate) fn of<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Self {
        move |cause| Self::Failed(format!("{what}: {cause}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFetched(name) => {
                write!(f, "{name} is not fetched: run cargo xtask services fetch {name}")
            }
            Self::NotInstalled(name) => write!(f, "{name} is not installed"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}
