//! How a store is set up, and why it could not be opened.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use mingle_model::Name;

use crate::mapping::ObjectMapping;

/// Where a store keeps its rows, and how it is reached.
///
/// # Examples
///
/// ```
/// use mingle_store_postgres::{Migrate, PostgresConfig};
///
/// let mut config = PostgresConfig::at("postgres://app@db.example.com/shop?sslmode=require");
/// config.pool = 8;
/// config.migrate = Migrate::Refuse;
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database?sslmode=…`, or `key=value` pairs as libpq
    /// knows them.
    pub url: String,
    /// Several servers in place of one, by the names at which sessions stay: a causal store, for
    /// [`crate::ReplicatedPostgres`]. Empty for one server.
    pub servers: BTreeMap<String, String>,
    /// How the other servers reach one of them, where that is not as we do.
    pub links: BTreeMap<String, String>,
    /// The schema of our own tables; none is `mingle_` and the store's name.
    pub schema: Option<String>,
    /// At most so many connections; one transaction has one from its first read to its commit.
    pub pool: usize,
    /// How long to wait for a connection: for a free one, and for a new one.
    pub connect_timeout: Duration,
    /// How long one statement may take, and how long the answer to a round trip.
    pub statement_timeout: Duration,
    /// How long to wait for another transaction's lock.
    pub lock_timeout: Duration,
    /// How long an outcome is kept at least. A transaction that takes half as long until its
    /// commit is a conflict.
    pub keep_outcomes: Duration,
    /// What to do where tables are missing.
    pub migrate: Migrate,
    /// What a round trip is expected to take.
    pub round_trip: Duration,
    /// Certificates of authorities in PEM, in place of the system's, for `sslmode=verify-ca` and
    /// `verify-full`.
    pub root_certificates: Option<Vec<u8>>,
    /// Kinds of objects that live in tables that were there before, by name.
    pub objects: BTreeMap<String, ObjectMapping>,
}

/// What to do at the start where tables are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Migrate {
    /// They are made.
    #[default]
    Auto,
    /// The store is not opened; [`crate::plan_migration`] says what is missing.
    Refuse,
}

impl PostgresConfig {
    /// The usual settings for the server at `url`.
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            servers: BTreeMap::new(),
            links: BTreeMap::new(),
            schema: None,
            pool: 16,
            connect_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(5),
            keep_outcomes: Duration::from_mins(10),
            migrate: Migrate::Auto,
            round_trip: Duration::from_millis(1),
            root_certificates: None,
            objects: BTreeMap::new(),
        }
    }

    /// The schema of the tables of a store.
    pub fn schema_of(&self, store: &str) -> String {
        self.schema.clone().unwrap_or_else(|| format!("mingle_{store}"))
    }
}

/// Without the password.
impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("schema", &self.schema)
            .field("pool", &self.pool)
            .field("migrate", &self.migrate)
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
    /// The server refuses what is needed.
    Server {
        /// Which store.
        store: Name,
        /// What was to be done.
        what: String,
        /// What the server said.
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
    /// Tables are missing, and are not to be made.
    Missing {
        /// Which store.
        store: Name,
        /// The SQL that makes them.
        sql: String,
    },
    /// A table that was there before does not fit what is mapped to it.
    Mapping {
        /// Which store.
        store: Name,
        /// Which object.
        object: Name,
        /// Which column or table, what was found and what would fit.
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
            Self::Config { store, reason } => write!(f, "store {store}: {reason}"),
            Self::Unavailable { store, reason } => {
                write!(f, "store {store}: cannot reach PostgreSQL: {reason}")
            }
            Self::Server { store, what, reason } => {
                write!(f, "store {store}: PostgreSQL refuses {what}: {reason}")
            }
            Self::Changed { store, what, kept, wanted } => {
                write!(f, "store {store} keeps {what} as `{kept}`, but the program says `{wanted}`")
            }
            Self::Missing { store, sql } => {
                write!(f, "store {store}: tables are missing; this makes them:\n{sql}")
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
