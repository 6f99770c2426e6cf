//! What a failure comes to.

use std::error::Error as _;
use std::fmt;

use mingle_model::Name;
use mingle_store::{Refusal, StoreError, Violation, ViolationKind};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use crate::layout::Layout;

/// A guard does not hold, or an id must not take effect.
pub const GUARD: &str = "MG001";
/// There are witness rows that are not known.
pub const WITNESSED: &str = "MG002";

/// A row that was to be written was not.
pub const UNWRITTEN: &str = "MG004";
/// What is written cannot be, for the reason that the message is.
pub const REFUSED: &str = "MG003";

/// Codes of SQLSTATE that come where a column, table, type, operator or function is not there, or types do not go
/// together: a table has been changed.
const UNLIKE: [&str; 6] = ["42703", "42P01", "42704", "42883", "42804", "42846"];

/// Codes of SQLSTATE that come where a value is none of its column's type: a number out of range, a text that is too
/// long, none of an enumeration or none of the type's form, a time out of range, an interval out of range, bytes that
/// are no text. They come as well where a column has another type than it had.
const RANGE: [&str; 8] = ["22003", "22001", "22P02", "22007", "22008", "22015", "22021", "22P05"];

/// What went wrong, in full: the server's own message with all that it says beside.
pub fn message(error: &Error) -> String {
    match error.as_db_error() {
        Some(error) => Complaint::from(error).to_string(),
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

/// Why a statement failed, whichever driver says so.
#[derive(Clone, Debug)]
pub enum Wrong {
    /// The server says why.
    Server(Box<Complaint>),
    /// No answer came.
    Lost(String),
}

/// What the server says went wrong.
#[derive(Clone, Debug, Default)]
pub struct Complaint {
    /// The SQLSTATE.
    pub code: String,
    /// One line.
    pub message: String,
    /// More of it.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// The schema that it is about.
    pub schema: Option<String>,
    /// The table.
    pub table: Option<String>,
    /// The column.
    pub column: Option<String>,
    /// The constraint or index.
    pub constraint: Option<String>,
    /// In which function.
    pub context: Option<String>,
}

impl From<&DbError> for Complaint {
    fn from(error: &DbError) -> Self {
        let owned = |part: Option<&str>| part.map(str::to_owned);
        Self {
            code: error.code().code().to_owned(),
            message: error.message().to_owned(),
            detail: owned(error.detail()),
            hint: owned(error.hint()),
            schema: owned(error.schema()),
            table: owned(error.table()),
            column: owned(error.column()),
            constraint: owned(error.constraint()),
            context: owned(error.where_()),
        }
    }
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        match error.as_db_error() {
            Some(complaint) => Self::Server(Box::new(complaint.into())),
            None => Self::Lost(message(&error)),
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let parts = [
            ("detail", &self.detail),
            ("hint", &self.hint),
            ("table", &self.table),
            ("column", &self.column),
            ("constraint", &self.constraint),
            ("where", &self.context),
        ];
        for (name, part) in parts {
            if let Some(part) = part {
                write!(f, "; {name}: {part}")?;
            }
        }
        write!(f, " (SQLSTATE {})", self.code)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(complaint) => complaint.fmt(f),
            Self::Lost(reason) => f.write_str(reason),
        }
    }
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
    /// A rule about the data says no.
    Violated(Box<Violation>),
    /// A table was changed, and its statements must be prepared anew.
    Stale(String),
    /// The server says no in a way that it would where tables that were there before are no longer what they were.
    Unlike(Refusal),
    /// A row has the key of one that was written, but the statement did not see it.
    Hidden(Box<Violation>),
    /// The connection is gone.
    Lost(String),
}

impl Failure {
    /// Of a statement in a store.
    pub fn of(wrong: &Wrong, layout: &Layout) -> Self {
        let complaint = match wrong {
            Wrong::Server(complaint) => complaint,
            Wrong::Lost(reason) => return Self::Lost(reason.clone()),
        };
        let code = complaint.code.as_str();
        let is_ours = complaint.schema.as_ref() == Some(&layout.own);
        match code {
            GUARD => return Self::Conflict,
            WITNESSED => return Self::Witnessed,
            REFUSED => return Self::Refused(complaint.message.clone()),
            UNWRITTEN => {
                let message = complaint.message.clone();
                let violation = Violation::of(ViolationKind::Unwritten, message);
                return Self::Violated(Box::new(violation));
            }
            // A cached plan whose table was changed.
            "0A000" if complaint.message.contains("cached plan") => {
                return Self::Stale(complaint.to_string());
            }
            _ => {}
        }
        if is_ours && complaint.table.as_deref() == Some("mingle_outcomes") && code == "23505" {
            return Self::Taken;
        }
        match code.get(..2).unwrap_or_default() {
            "40" => Self::Conflict,
            "23" if is_race(complaint, layout) => {
                Self::Hidden(Box::new(violation(ViolationKind::Unique, complaint)))
            }
            "23" if is_ours && (code == "23505" || code == "23P01") => Self::Conflict,
            "08" | "53" | "57" | "58" | "XX" => Self::Unavailable(complaint.to_string()),
            _ if code == SqlState::LOCK_NOT_AVAILABLE.code() => Self::Conflict,
            // Somebody made the server a standby.
            _ if code == SqlState::READ_ONLY_SQL_TRANSACTION.code() => {
                Self::Unavailable(complaint.to_string())
            }
            _ => match violated(complaint) {
                Some(kind) => Self::Violated(Box::new(violation(kind, complaint))),
                None if RANGE.contains(&code) => {
                    Self::Unlike(violation(ViolationKind::Range, complaint).into())
                }
                None if UNLIKE.contains(&code) => Self::Unlike(complaint.to_string().into()),
                None => Self::Refused(complaint.to_string()),
            },
        }
    }

    /// What a transaction says that has not tried to commit.
    pub fn before_commit(self, store: &Name) -> StoreError {
        let store = store.clone();
        match self {
            Self::Conflict | Self::Witnessed | Self::Taken | Self::Hidden(_) => {
                StoreError::Conflict
            }
            Self::Unavailable(reason) | Self::Stale(reason) | Self::Lost(reason) => {
                StoreError::Unavailable { store, reason }
            }
            Self::Refused(reason) => StoreError::Refused { store, reason },
            Self::Unlike(why) => why.at(store),
            Self::Violated(violation) => StoreError::Violated { store, violation },
        }
    }
}

/// The kind of the rule about the data that a statement would have broken, if that is why it failed.
fn violated(complaint: &Complaint) -> Option<ViolationKind> {
    // With any SQLSTATE that a trigger or a function chooses.
    let is_raised = || complaint.context.as_ref().is_some_and(|place| place.contains("at RAISE"));
    Some(match SqlState::from_code(&complaint.code) {
        SqlState::UNIQUE_VIOLATION => ViolationKind::Unique,
        SqlState::EXCLUSION_VIOLATION => ViolationKind::Exclusion,
        SqlState::FOREIGN_KEY_VIOLATION | SqlState::RESTRICT_VIOLATION => ViolationKind::ForeignKey,
        SqlState::CHECK_VIOLATION | SqlState::WITH_CHECK_OPTION_VIOLATION => ViolationKind::Check,
        SqlState::NOT_NULL_VIOLATION => ViolationKind::NotNull,
        SqlState::RAISE_EXCEPTION | SqlState::ASSERT_FAILURE => ViolationKind::Raised,
        // The same code as where a right is missing, which no caller can help.
        SqlState::INSUFFICIENT_PRIVILEGE if complaint.message.contains("row-level security") => {
            ViolationKind::Policy
        }
        _ if is_raised() => ViolationKind::Raised,
        _ => return None,
    })
}

fn violation(kind: ViolationKind, complaint: &Complaint) -> Violation {
    Violation {
        constraint: complaint.constraint.clone(),
        table: complaint.table.clone(),
        column: complaint.column.clone(),
        ..Violation::of(kind, complaint.to_string())
    }
}

/// Whether a row was there that the statement had looked for and not found: somebody else has
/// inserted it since the snapshot, and the next attempt will see it.
fn is_race(error: &Complaint, layout: &Layout) -> bool {
    let (Some(schema), Some(index)) = (&error.schema, &error.constraint) else { return false };
    error.code == SqlState::UNIQUE_VIOLATION.code()
        && layout.key_indexes.contains(&(schema.clone(), index.clone()))
}
