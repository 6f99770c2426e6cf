//! The address of a data center, and the errors of opening its stores.

use std::fmt;
use std::time::Duration;

use mingle_model::Name;

use crate::limits::{ANSWER_WITHIN, CONNECT_WITHIN, ROUND_TRIP};

/// The address of a data center.
///
/// # Examples
///
/// ```
/// use mingle_store_mingled::MingledConfig;
///
/// assert!(MingledConfig::at("127.0.0.1:6398").check_address().is_ok());
/// for wrong in ["127.0.0.1", ":6398", "oslo:99999", "redis://oslo:6398"] {
///     assert!(MingledConfig::at(wrong).check_address().is_err(), "{wrong}");
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MingledConfig {
    /// `host:port` of the data center's listener for programs (`mingled --engine`).
    pub address: String,
    /// The number of the cluster, if it is to be checked. After it has connected once, a program accepts
    /// no other cluster in any case.
    pub cluster: Option<u128>,
    /// The longest time to connect.
    pub connect_timeout: Duration,
    /// The longest wait for an answer.
    pub answer_timeout: Duration,
    /// The expected time of a round trip.
    pub round_trip: Duration,
}

impl MingledConfig {
    /// Returns the configuration of a data center at this address, with usual settings.
    pub fn at(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            cluster: None,
            connect_timeout: CONNECT_WITHIN,
            answer_timeout: ANSWER_WITHIN,
            round_trip: ROUND_TRIP,
        }
    }

    /// Checks the form of the address.
    ///
    /// # Errors
    ///
    /// The expected form, and the value found.
    pub fn check_address(&self) -> Result<(), String> {
        let place = self.address.rsplit_once(':').filter(|(host, port)| {
            let is_host = !host.is_empty() && !host.contains(['/', '@', ' ']);
            is_host && port.parse::<u16>().is_ok_and(|port| port != 0)
        });
        let found = &self.address;
        place.map(|_| ()).ok_or_else(|| {
            format!("expected HOST:PORT of a data center's listener for programs, found {found:?}")
        })
    }
}

/// The reason why a store cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The binding is invalid.
    Config {
        /// The store.
        store: Name,
        /// The reason.
        reason: String,
    },
    /// The data center refuses the program's stores.
    Refused {
        /// The address.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The data center cannot be reached.
    Unavailable {
        /// The address.
        address: String,
        /// The reason.
        reason: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { store, reason } => write!(f, "stores.{store}: {reason}"),
            Self::Refused { address, reason } => {
                write!(f, "the data center at {address} refuses: {reason}")
            }
            Self::Unavailable { address, reason } => {
                write!(f, "the data center at {address} cannot be reached: {reason}")
            }
        }
    }
}

impl std::error::Error for OpenError {}
