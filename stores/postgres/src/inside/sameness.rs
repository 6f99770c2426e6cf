//! Whether the application's transaction is one that the store could have begun itself.

use std::sync::{Arc, PoisonError};

use mingle_model::Name;
use mingle_store::StoreError;

use super::plain::first_row;
use crate::error::message;
use crate::name::literal;
use crate::store::Inner;

/// Settings that what is read and written depends on, and how long it may take. Meanwhile they are
/// those of the store's own connections.
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

/// What names a database of a server that runs: the cluster, when it was started (a copy of the files
/// was at another time), and the database in it.
const IDENTITY: &str = "(SELECT system_identifier FROM pg_control_system()) || '/' || \
     extract(epoch FROM pg_postmaster_start_time()) || '/' || \
     (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The level that every transaction of a store needs.
const LEVEL: &str = "serializable";

/// What the store's own connections have.
pub struct Own {
    identity: String,
    database: String,
    settings: Vec<String>,
}

/// What the application's transaction has.
pub struct Found {
    identity: String,
    database: String,
    level: String,
    is_read_only: bool,
    settings: Vec<String>,
}

/// What is looked at: one row.
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

/// What the store's own connections have, as it was last looked at.
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

/// What the store's own connections have now.
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
    /// The settings that a call needs, from where it can go back to.
    pub fn setting(&self) -> String {
        // Nothing less is acknowledged by the store itself either, and that is seen when it commits.
        let durable = "SELECT set_config('synchronous_commit', 'on', true) \
             WHERE current_setting('synchronous_commit') IN ('off', 'local')";
        format!("{}; {durable}", setting(&self.settings))
    }
}

impl Found {
    /// What the row says that was looked at; none if there is none.
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

    /// Whether it may write, and sees what the store promises.
    ///
    /// # Errors
    ///
    /// What was seen, and what is needed.
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

    /// Whether it is at the store's database.
    pub fn is_same(&self, own: &Own) -> bool {
        self.identity == own.identity
    }

    /// What to say where it is not.
    pub fn differs(&self, own: &Own, store: &Name) -> String {
        format!(
            "the application's transaction is at database {} ({}), and store {store} needs one at {} ({})",
            self.database, self.identity, own.database, own.identity
        )
    }

    /// What a call that went well ends with.
    pub fn restoring(&self) -> String {
        setting(&self.settings)
    }
}
