//! A check that the store could have begun the application's transaction itself.

use std::sync::{Arc, PoisonError};

use mingle_model::Name;
use mingle_store::StoreError;

use super::plain::first_row;
use crate::error::message;
use crate::name::literal;
use crate::store::Inner;

/// Settings that affect results and time limits. During a call they have the values of the store's
/// own connections.
const SETTINGS: [&str; 9] = [
    "search_path",
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "extra_float_digits",
    "bytea_output",
    "enable_seqscan",
    "lock_timeout",
    "statement_timeout",
];

/// Identifies a database of a running server: the cluster, its start time (a copy of its files was
/// started at another time), and the database in it.
const IDENTITY: &str = "(SELECT system_identifier FROM pg_control_system()) || '/' || \
     extract(epoch FROM pg_postmaster_start_time()) || '/' || \
     (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The level that every transaction of a store needs.
const LEVEL: &str = "serializable";

/// The identity and settings of the store's own connections.
pub struct Own {
    identity: String,
    database: String,
    settings: Vec<String>,
}

/// The identity, level and settings of the application's transaction.
pub struct Found {
    identity: String,
    database: String,
    level: String,
    is_read_only: bool,
    settings: Vec<String>,
}

/// Returns the query for them: one row.
pub fn query() -> String {
    let settings = SETTINGS.map(|name| format!("current_setting({})", literal(name)));
    format!(
        "SELECT {IDENTITY}, current_database(), current_setting('transaction_isolation'), \
         current_setting('transaction_read_only'), {}",
        settings.join(", ")
    )
}

fn setting<'a>(values: impl IntoIterator<Item = &'a String>) -> String {
    let set = SETTINGS
        .iter()
        .zip(values)
        .map(|(name, value)| format!("set_config({}, {}, true)", literal(name), literal(value)));
    format!("SELECT {}", set.collect::<Vec<_>>().join(", "))
}

/// Returns the values of the store's own connections, from the last look.
///
/// # Errors
///
/// When the server fails.
pub async fn own(inner: &Inner) -> Result<Arc<Own>, StoreError> {
    let known = inner.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match known {
        Some(own) => Ok(own),
        None => look(inner).await,
    }
}

/// Reads the values of the store's own connections now.
///
/// # Errors
///
/// When the server fails.
pub async fn look(inner: &Inner) -> Result<Arc<Own>, StoreError> {
    let unavailable =
        |reason: String| StoreError::Unavailable { store: inner.store.clone(), reason };
    let lease = inner.pool.lease().await.map_err(unavailable)?;
    let answers = lease.connection().client().simple_query(&query()).await;
    let answers = answers.map_err(|error| unavailable(message(&error)))?;
    let found = Found::read(first_row(&answers));
    let found = found.ok_or_else(|| unavailable("the server gave no settings".into()))?;
    let Found { identity, database, settings, .. } = found;
    let own = Arc::new(Own { identity, database, settings });
    *inner.own.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&own));
    Ok(own)
}

impl Own {
    /// Returns the settings of a call, which run behind its savepoint.
    pub fn setting(&self) -> String {
        // The store itself acknowledges nothing less durable, and the setting is read at the
        // commit.
        let durable = "SELECT set_config('synchronous_commit', 'on', true) \
             WHERE current_setting('synchronous_commit') IN ('off', 'local')";
        format!("{}; {durable}", setting(&self.settings))
    }
}

impl Found {
    /// Decodes the row of the query; none if it is incomplete.
    pub fn read(cells: Vec<Option<String>>) -> Option<Self> {
        let mut cells = cells.into_iter();
        let mut next = || cells.next().flatten();
        Some(Self {
            identity: next()?,
            database: next()?,
            level: next()?,
            is_read_only: next()? == "on",
            settings: SETTINGS.iter().map(|_| next()).collect::<Option<_>>()?,
        })
    }

    /// Checks that the transaction may write, at the level that the store promises.
    ///
    /// # Errors
    ///
    /// The found and the required value.
    pub fn check_level(&self, store: &Name) -> Result<(), String> {
        if self.level != LEVEL {
            return Err(format!(
                "the application's transaction is at {}, and store {store} needs SERIALIZABLE",
                self.level.to_uppercase()
            ));
        }
        if self.is_read_only {
            return Err(format!(
                "the application's transaction is READ ONLY, and store {store} needs READ WRITE"
            ));
        }
        Ok(())
    }

    /// True if it is at the store's database.
    pub fn is_same(&self, own: &Own) -> bool {
        self.identity == own.identity
    }

    /// Returns the message for a different database.
    pub fn differs(&self, own: &Own, store: &Name) -> String {
        format!(
            "the application's transaction is at database {} ({}), and store {store} needs one at {} ({})",
            self.database, self.identity, own.database, own.identity
        )
    }

    /// Returns the statement that restores the settings after a successful call.
    pub fn restoring(&self) -> String {
        setting(&self.settings)
    }
}
