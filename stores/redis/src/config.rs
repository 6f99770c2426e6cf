//! How a store is set up, and why it could not be opened.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use mingle_model::Name;

use crate::mapping::ObjectMapping;

/// Where a store keeps its keys, and how the server is reached.
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
    /// What all our own keys begin with; none is `mingle:STORE:`.
    pub prefix: Option<String>,
    /// Opens the store although a crash, or a failover, may lose what was acknowledged, or nobody
    /// can say. [`crate::Redis::warnings`] then says what that means.
    pub accept_loss: bool,
    /// You know that the server keeps what it acknowledges, and it does not tell (`CONFIG GET` is
    /// forbidden). What it does tell counts all the same.
    pub known_durable: bool,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait for an answer.
    pub answer_timeout: Duration,
    /// How long an outcome is kept at least.
    pub keep_outcomes: Duration,
    /// What a round trip is expected to take.
    pub round_trip: Duration,
    /// Certificates of authorities in PEM, in place of the system's, for `rediss://`.
    pub root_certificates: Option<Vec<u8>>,
    /// Kinds of objects that live in keys of other applications, by name.
    pub objects: BTreeMap<String, ObjectMapping>,
}

impl RedisConfig {
    /// The usual settings for the server at `url`.
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

    /// What the keys of a store begin with.
    pub fn prefix_of(&self, store: &str) -> String {
        self.prefix.clone().unwrap_or_else(|| format!("mingle:{store}:"))
    }
}

/// Without the address, which may hold a password.
impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("prefix", &self.prefix)
            .field("accept_loss", &self.accept_loss)
            .field("objects", &self.objects)
            .finish_non_exhaustive()
    }
}

/// Why a store could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The configuration makes no sense.
    Config {
        /// Which store.
        store: Name,
        /// Why.
        reason: String,
    },
    /// The server cannot be reached, or lets us not in.
    Unavailable {
        /// Which store.
        store: Name,
        /// Why.
        reason: String,
    },
    /// The server cannot keep what the level promises.
    Unfit {
        /// Which store.
        store: Name,
        /// What cannot be kept, why, and what would help.
        reason: String,
    },
    /// The program declares otherwise what the store keeps.
    Changed {
        /// Which store.
        store: Name,
        /// What was changed, such as `field User.name`.
        what: String,
        /// What it was.
        kept: String,
        /// What the program says.
        wanted: String,
    },
    /// A mapping does not fit what is declared.
    Mapping {
        /// Which store.
        store: Name,
        /// Which object.
        object: Name,
        /// Why.
        reason: String,
    },
    /// The body of a declared operation does not fit.
    Operation {
        /// Which store.
        store: Name,
        /// Which operation.
        operation: Name,
        /// Why.
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
