//! What a failure comes to.

use std::error::Error as _;

use mingle_model::Name;
use mingle_store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use crate::layout::Layout;

/// A guard does not hold, or an id must not take effect.
pub const GUARD: &str = "MG001";
/// There are witness rows that are not known.
pub const WITNESSED: &str = "MG002";

/// What is written cannot be, for the reason that the message is.
pub const REFUSED: &str = "MG003";

/// What went wrong, in full: the server's own message with all that it says beside.
pub fn message(error: &Error) -> String {
    match error.as_db_error() {
        Some(error) => database_message(error),
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

fn database_message(error: &DbError) -> String {
    let mut text = error.message().to_owned();
    let parts = [
        ("detail", error.detail()),
        ("hint", error.hint()),
        ("table", error.table()),
        ("column", error.column()),
        ("constraint", error.constraint()),
        ("where", error.where_()),
    ];
    for (name, part) in parts {
        if let Some(part) = part {
            text.extend(["; ", name, ": ", part]);
        }
    }
    format!("{text} (SQLSTATE {})", error.code().code())
}

/// How the failure of a statement concerns its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Another transaction got in between.
    Conflict,
    /// There are witness rows that are not known.
    Witnessed,
    /// The id stands already.
    Taken,
    /// The server cannot serve now; it said so before it did anything.
    Unavailable(String),
    /// The server says no.
    Refused(String),
    /// A table was changed, and its statements must be prepared anew.
    Stale(String),
    /// The connection is gone.
    Lost(String),
}

impl Failure {
    /// Of a statement in a store.
    pub fn of(error: &Error, layout: &Layout) -> Self {
        let Some(database) = error.as_db_error() else {
            return Self::Lost(message(error));
        };
        let code = database.code().code();
        let is_ours = database.schema() == Some(&layout.own);
        match code {
            GUARD => return Self::Conflict,
            WITNESSED => return Self::Witnessed,
            REFUSED => return Self::Refused(database.message().to_owned()),
            // A cached plan whose table was changed.
            "0A000" if database.message().contains("cached plan") => {
                return Self::Stale(database_message(database));
            }
            _ => {}
        }
        if is_ours && database.table() == Some("mingle_outcomes") && code == "23505" {
            return Self::Taken;
        }
        match &code[..2] {
            "40" => Self::Conflict,
            "23" if is_race(database, layout) => Self::Conflict,
            "23" if is_ours && (code == "23505" || code == "23P01") => Self::Conflict,
            "08" | "53" | "57" | "58" | "XX" => Self::Unavailable(database_message(database)),
            _ if *database.code() == SqlState::LOCK_NOT_AVAILABLE => Self::Conflict,
            // Somebody made the server a standby.
            _ if *database.code() == SqlState::READ_ONLY_SQL_TRANSACTION => {
                Self::Unavailable(database_message(database))
            }
            _ => Self::Refused(database_message(database)),
        }
    }

    /// What a transaction says that has not tried to commit.
    pub fn before_commit(self, store: &Name) -> StoreError {
        let store = store.clone();
        match self {
            Self::Conflict | Self::Witnessed | Self::Taken => StoreError::Conflict,
            Self::Unavailable(reason) | Self::Stale(reason) | Self::Lost(reason) => {
                StoreError::Unavailable { store, reason }
            }
            Self::Refused(reason) => StoreError::Refused { store, reason },
        }
    }
}

/// Whether a row was there that the statement had looked for and not found: somebody else has
/// inserted it since the snapshot, and the next attempt will see it.
fn is_race(error: &DbError, layout: &Layout) -> bool {
    let (Some(schema), Some(index)) = (error.schema(), error.constraint()) else { return false };
    *error.code() == SqlState::UNIQUE_VIOLATION
        && layout.key_indexes.contains(&(schema.to_owned(), index.to_owned()))
}
