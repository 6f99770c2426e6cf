//! The settings of a store, and the reasons why it could not be opened.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use mingle_model::Name;

use crate::mapping::ObjectMapping;

/// The place of a store's keys, and the connection to the server.
///
/// # Examples
///
/// ```
/// use mingle_store_redis::RedisConfig;
///
/// let mut config = RedisConfig::at("redis://cache.example.com:6379/0");
/// config.accept_loss = true;
/// assert_eq!(config.prefix_of("feed"), "mingle:feed:");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RedisConfig {
    /// `redis://user:password@host:port/database`; `rediss://` for TLS, with the feature `tls`.
    pub url: String,
    /// The prefix of all of Mingle's own keys; the default is `mingle:STORE:`.
    pub prefix: Option<String>,
    /// Opens the store even if a crash or a failover may lose acknowledged commits, or if their
    /// loss cannot be excluded. [`crate::Redis::warnings`] then describes the risk.
    pub accept_loss: bool,
    /// Asserts that the server keeps what it acknowledges, for a server that does not report its
    /// settings (`CONFIG GET` is forbidden). Settings that it does report take precedence.
    pub known_durable: bool,
    /// Maximum time to wait for a connection.
    pub connect_timeout: Duration,
    /// Maximum time to wait for an answer.
    pub answer_timeout: Duration,
    /// Minimum time that an outcome is kept.
    pub keep_outcomes: Duration,
    /// The expected time of a round trip.
    pub round_trip: Duration,
    /// Certificates of authorities in PEM, in place of the system's, for `rediss://`.
    pub root_certificates: Option<Vec<u8>>,
    /// The kinds of objects in keys of other applications, by name.
    pub objects: BTreeMap<String, ObjectMapping>,
}

impl RedisConfig {
    /// Returns the default settings for the server at `url`.
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: None,
            accept_loss: false,
            known_durable: false,
            connect_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(30),
            keep_outcomes: Duration::from_mins(10),
            round_trip: Duration::from_millis(1),
            root_certificates: None,
            objects: BTreeMap::new(),
        }
    }

    /// Returns the prefix of a store's keys.
    pub fn prefix_of(&self, store: &str) -> String {
        self.prefix.clone().unwrap_or_else(|| format!("mingle:{store}:"))
    }
}

/// Omits the address, which may hold a password.
impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("prefix", &self.prefix)
            .field("accept_loss", &self.accept_loss)
            .field("objects", &self.objects)
            .finish_non_exhaustive()
    }
}

/// The reason why a store could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The configuration makes no sense.
    Config {
        /// The store.
        store: Name,
        /// The reason.
        reason: String,
    },
    /// The server cannot be reached, or refuses the connection.
    Unavailable {
        /// The store.
        store: Name,
        /// The reason.
        reason: String,
    },
    /// The server cannot keep the promises of the level.
    Unfit {
        /// The store.
        store: Name,
        /// The promise that cannot be kept, the reason, and a remedy.
        reason: String,
    },
    /// The program's declaration differs from the stored one.
    Changed {
        /// The store.
        store: Name,
        /// The changed declaration, such as `field User.name`.
        what: String,
        /// The stored declaration.
        kept: String,
        /// The program's declaration.
        wanted: String,
    },
    /// A mapping does not fit the program's declarations.
    Mapping {
        /// The store.
        store: Name,
        /// The object.
        object: Name,
        /// The reason.
        reason: String,
    },
    /// The body of a declared operation does not fit.
    Operation {
        /// The store.
        store: Name,
        /// The operation.
        operation: Name,
        /// The reason.
        reason: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { store, reason } | Self::Unfit { store, reason } => {
                write!(f, "store {store}: {reason}")
            }
            Self::Unavailable { store, reason } => {
                write!(f, "store {store}: cannot reach Redis: {reason}")
            }
            Self::Changed { store, what, kept, wanted } => {
                write!(f, "store {store} keeps {what} as `{kept}`, but the program says `{wanted}`")
            }
            Self::Mapping { store, object, reason } => {
                write!(f, "store {store}: object {object}: {reason}")
            }
            Self::Operation { store, operation, reason } => {
                write!(f, "store {store}: operation {operation}: {reason}")
            }
        }
    }
}

impl std::error::Error for OpenError {}
