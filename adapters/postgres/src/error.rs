//! Classification of the server's errors.

use std::error::Error as _;
use std::fmt;

use mingle_model::Name;
use mingle_store::{Refusal, StoreError, Violation, ViolationKind};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use crate::layout::{Layout, UNIQUE_INDEX};

/// SQLSTATE: a guard does not hold, or an id must not take effect.
pub const GUARD: &str = "MG001";
/// SQLSTATE: there are unknown witness rows.
pub const WITNESSED: &str = "MG002";

/// SQLSTATE: a row that was to be written was not.
pub const UNWRITTEN: &str = "MG004";
/// SQLSTATE: a value cannot be written; the message gives the reason.
pub const REFUSED: &str = "MG003";

/// SQLSTATEs that PostgreSQL raises if a column, table, type, operator or function does not exist,
/// or types do not match: a table has been changed.
const UNLIKE: [&str; 6] = ["42703", "42P01", "42704", "42883", "42804", "42846"];

/// SQLSTATEs that PostgreSQL raises if a value does not fit its column's type: a number out of
/// range, a text that is too long, a text that is no label of an enumeration or not in the type's
/// form, a time or an interval out of range, bytes that are no text. PostgreSQL also raises them if
/// a column's type has changed.
const RANGE: [&str; 8] = ["22003", "22001", "22P02", "22007", "22008", "22015", "22021", "22P05"];

/// Returns the full error: the server's message with its detail, hint and context.
pub fn message(error: &Error) -> String {
    match error.as_db_error() {
        Some(error) => Complaint::from(error).to_string(),
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

/// The reason why a statement failed, independent of the driver.
#[derive(Clone, Debug)]
pub enum Wrong {
    /// The server reported an error.
    Server(Box<Complaint>),
    /// No answer came.
    Lost(String),
}

/// An error reported by the server.
#[derive(Clone, Debug, Default)]
pub struct Complaint {
    /// The SQLSTATE.
    pub code: String,
    /// The message, one line.
    pub message: String,
    /// The details.
    pub detail: Option<String>,
    /// The server's hint.
    pub hint: Option<String>,
    /// The schema concerned.
    pub schema: Option<String>,
    /// The table concerned.
    pub table: Option<String>,
    /// The column concerned.
    pub column: Option<String>,
    /// The constraint or index concerned.
    pub constraint: Option<String>,
    /// The function that raised it.
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

/// The meaning of a statement's failure for its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A concurrent transaction conflicts.
    Conflict,
    /// There are unknown witness rows.
    Witnessed,
    /// The id is already recorded.
    Taken,
    /// The server cannot serve now; it reported so before it did anything.
    Unavailable(String),
    /// The server refuses.
    Refused(String),
    /// A rule about the data is violated.
    Violated(Box<Violation>),
    /// A table was changed, and its statements must be prepared again.
    Stale(String),
    /// The server refuses with an error that also occurs if existing tables have changed.
    Unlike(Refusal),
    /// A written row has the key of an existing row that the statement did not see.
    Hidden(Box<Violation>),
    /// The connection is gone.
    Lost(String),
}

impl Failure {
    /// Classifies the failure of a statement in a store.
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
            // A cached plan failed because its table was changed.
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
            "23" if is_ours && is_of_unique(complaint) => {
                Self::Violated(Box::new(violation(ViolationKind::Unique, complaint)))
            }
            "23" if is_ours && (code == "23505" || code == "23P01") => Self::Conflict,
            "08" | "53" | "57" | "58" | "XX" => Self::Unavailable(complaint.to_string()),
            _ if code == SqlState::LOCK_NOT_AVAILABLE.code() => Self::Conflict,
            // The operator made the server a standby.
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

    /// Returns the error of a transaction that has not tried to commit.
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

/// Returns the kind of the violated rule about the data, if that is why the statement failed.
fn violated(complaint: &Complaint) -> Option<ViolationKind> {
    // RAISE may use any SQLSTATE that a trigger or a function chooses.
    let is_raised = || complaint.context.as_ref().is_some_and(|place| place.contains("at RAISE"));
    Some(match SqlState::from_code(&complaint.code) {
        SqlState::UNIQUE_VIOLATION => ViolationKind::Unique,
        SqlState::EXCLUSION_VIOLATION => ViolationKind::Exclusion,
        SqlState::FOREIGN_KEY_VIOLATION | SqlState::RESTRICT_VIOLATION => ViolationKind::ForeignKey,
        SqlState::CHECK_VIOLATION | SqlState::WITH_CHECK_OPTION_VIOLATION => ViolationKind::Check,
        SqlState::NOT_NULL_VIOLATION => ViolationKind::NotNull,
        SqlState::RAISE_EXCEPTION | SqlState::ASSERT_FAILURE => ViolationKind::Raised,
        // A missing privilege has the same code, but the caller cannot correct that.
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

/// True if the statement looked for a row and did not find it, but the row exists: another
/// transaction has inserted it since the snapshot. The next attempt will see it.
fn is_race(error: &Complaint, layout: &Layout) -> bool {
    let (Some(schema), Some(index)) = (&error.schema, &error.constraint) else { return false };
    error.code == SqlState::UNIQUE_VIOLATION.code()
        && layout.key_indexes.contains(&(schema.clone(), index.clone()))
}

/// True if the index of a `unique` in a table of Mingle's own refuses a row: one that this program does not declare,
/// since the others are known to the layout.
fn is_of_unique(complaint: &Complaint) -> bool {
    let index = complaint.constraint.as_deref().unwrap_or_default();
    index.trim_start_matches('_').starts_with(UNIQUE_INDEX)
}
