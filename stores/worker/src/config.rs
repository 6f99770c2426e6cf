//! Where a worker is, and how to be let in.

use std::fmt;
use std::time::Duration;

use mingle_model::Name;

use crate::limits::{ANSWER_WITHIN, CONNECT_WITHIN, ROUND_TRIP};

/// Where a worker is, and how to be let in.
#[derive(Clone, PartialEq, Eq)]
pub struct WorkerConfig {
    /// `http://host:port` or `https://host:port`.
    pub url: String,
    /// The API token.
    pub token: Option<String>,
    /// PEM of those that vouch for the worker's certificate; the system's if none.
    pub root_certificates: Option<Vec<u8>>,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long an answer may take.
    pub answer_timeout: Duration,
    /// What a round trip is expected to take.
    pub round_trip: Duration,
}

impl WorkerConfig {
    /// A worker at this address, with nothing else said.
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            token: None,
            root_certificates: None,
            connect_timeout: CONNECT_WITHIN,
            answer_timeout: ANSWER_WITHIN,
            round_trip: ROUND_TRIP,
        }
    }
}

impl WorkerConfig {
    /// Checks the address.
    ///
    /// # Errors
    ///
    /// What was expected, and what was found.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_store_worker::WorkerConfig;
    ///
    /// assert!(WorkerConfig::at("https://bank.example.com:8443").check_url().is_ok());
    /// for wrong in ["bank.example.com", "http://bank:99999", "http://bank/path", "http://me@bank"] {
    ///     assert!(WorkerConfig::at(wrong).check_url().is_err(), "{wrong}");
    /// }
    /// ```
    pub fn check_url(&self) -> Result<(), String> {
        crate::link::Place::of(&self.url).map(|_| ())
    }
}

/// Without the token.
impl fmt::Debug for WorkerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerConfig").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Why a store behind a worker cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The binding makes no sense.
    Config {
        /// Which store.
        store: Name,
        /// Why.
        reason: String,
    },
    /// The worker does not serve the store to this program.
    Refused {
        /// Which store.
        store: Name,
        /// Why.
        reason: String,
    },
    /// The worker cannot be reached.
    Unavailable {
        /// Which store.
        store: Name,
        /// Why.
        reason: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { store, reason } => write!(f, "stores.{store}: {reason}"),
            Self::Refused { store, reason } => {
                write!(f, "the worker of store {store} refuses: {reason}")
            }
            Self::Unavailable { store, reason } => {
                write!(f, "the worker of store {store} cannot be reached: {reason}")
            }
        }
    }
}

impl std::error::Error for OpenError {}
