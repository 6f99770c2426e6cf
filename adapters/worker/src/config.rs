//! The address and credentials of a worker.

use std::fmt;
use std::time::Duration;

use mingle_model::Name;

use crate::limits::{ANSWER_WITHIN, CONNECT_WITHIN, ROUND_TRIP};

/// The address and credentials of a worker.
#[derive(Clone, PartialEq, Eq)]
pub struct WorkerConfig {
    /// `http://host:port` or `https://host:port`.
    pub url: String,
    /// The API token.
    pub token: Option<String>,
    /// Certificates in PEM of the authorities for the worker's certificate; none stands for the
    /// system's.
    pub root_certificates: Option<Vec<u8>>,
    /// The longest time to connect.
    pub connect_timeout: Duration,
    /// The longest wait for an answer.
    pub answer_timeout: Duration,
    /// The expected time of a round trip.
    pub round_trip: Duration,
}

impl WorkerConfig {
    /// Returns the configuration of a worker at this address, with default settings.
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
    /// The expected form, and the value found.
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

/// Omits the token.
impl fmt::Debug for WorkerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerConfig").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The reason why a store behind a worker cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The binding is invalid.
    Config {
        /// The store.
        store: Name,
        /// The reason.
        reason: String,
    },
    /// The worker does not serve the store to this program.
    Refused {
        /// The store.
        store: Name,
        /// The reason.
        reason: String,
    },
    /// The worker cannot be reached.
    Unavailable {
        /// The store.
        store: Name,
        /// The reason.
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
