//! Why there is no server.

use std::fmt;

/// Why there is no server, or why something could not be done to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// What has this name is not in the folder of services: `cargo xtask services fetch` gets it.
    NotFetched(&'static str),
    /// Something else failed; the text says what was tried, and what to do if that is known.
    Failed(String),
}

impl Error {
    /// A failure, and what was being done.
    pub(crate) fn new(what: impl fmt::Display) -> Self {
        Self::Failed(what.to_string())
    }

    /// A closure for `map_err`: names what was being done before the cause.
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
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}
