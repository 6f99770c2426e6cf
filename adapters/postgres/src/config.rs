//! The settings of a store, and the reasons why it could not be opened.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use mingle_model::Name;

use crate::mapping::ObjectMapping;

/// The place of a store's rows, and the connection to it.
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
    /// The address: `postgres://user:password@host:port/database?sslmode=…`, or `key=value` pairs
    /// as libpq accepts them.
    pub url: String,
    /// Several servers in place of one, by the names of the sites that sessions use: a causal
    /// store, for [`crate::ReplicatedPostgres`]. Empty for one server.
    pub servers: BTreeMap<String, String>,
    /// The addresses that the other servers use for a server, if they differ from this process's
    /// address.
    pub links: BTreeMap<String, String>,
    /// The schema of Mingle's own tables; the default is `mingle_` and the store's name.
    pub schema: Option<String>,
    /// Maximum number of connections. A transaction holds one from its first read to its commit.
    pub pool: usize,
    /// Maximum time to wait for a free connection, and for a new one.
    pub connect_timeout: Duration,
    /// Maximum time of one statement, and of the answer to one round trip.
    pub statement_timeout: Duration,
    /// Maximum time to wait for another transaction's lock.
    pub lock_timeout: Duration,
    /// Minimum time that an outcome is kept. A transaction that takes half as long until its commit
    /// is a conflict.
    pub keep_outcomes: Duration,
    /// The action if tables are missing.
    pub migrate: Migrate,
    /// The expected time of a round trip.
    pub round_trip: Duration,
    /// Certificates of authorities in PEM, in place of the system's, for `sslmode=verify-ca` and
    /// `verify-full`.
    pub root_certificates: Option<Vec<u8>>,
    /// The kinds of objects in existing tables, by name.
    pub objects: BTreeMap<String, ObjectMapping>,
}

/// The action at the start if tables are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Migrate {
    /// The tables are created.
    #[default]
    Auto,
    /// The store is not opened; [`crate::plan_migration`] returns the missing SQL.
    Refuse,
}

impl PostgresConfig {
    /// Returns the default settings for the server at `url`.
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

    /// Returns the schema of a store's tables.
    pub fn schema_of(&self, store: &str) -> String {
        self.schema.clone().unwrap_or_else(|| format!("mingle_{store}"))
    }
}

/// Omits the password.
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
    /// The server refuses a statement that opening needs.
    Server {
        /// The store.
        store: Name,
        /// The action that failed.
        what: String,
        /// The server's message.
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
    /// Tables are missing, and the settings forbid creating them.
    Missing {
        /// The store.
        store: Name,
        /// The SQL that creates them.
        sql: String,
    },
    /// An existing table does not fit the object that is mapped to it.
    Mapping {
        /// The store.
        store: Name,
        /// The object.
        object: Name,
        /// The column or table, the type found and the types that would fit.
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
