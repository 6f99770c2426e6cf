//! Rules that a database keeps about its own data.

use std::fmt;

use mingle_model::Name;
use serde::{Deserialize, Serialize};

use crate::store::StoreError;

/// A rule of the database that a write would have broken, such as a constraint or a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The kind of the rule.
    pub kind: ViolationKind,
    /// The name of the constraint, where the rule has one.
    pub constraint: Option<String>,
    /// The table, where that is known.
    #[serde(default)]
    pub table: Option<String>,
    /// The column, where that is known.
    #[serde(default)]
    pub column: Option<String>,
    /// The database's own words.
    pub message: String,
}

impl Violation {
    /// Creates a violation of this kind, of which nothing more is known.
    pub fn of(kind: ViolationKind, message: impl Into<String>) -> Self {
        Self { kind, constraint: None, table: None, column: None, message: message.into() }
    }

    /// Creates the violation for a value that a column cannot hold.
    pub fn range(column: impl Into<String>, message: impl Into<String>) -> Self {
        Self { column: Some(column.into()), ..Self::of(ViolationKind::Range, message) }
    }
}

/// The reason why an adapter refuses a request.
///
/// # Examples
///
/// ```
/// use mingle_store::{Refusal, StoreError, Violation};
///
/// let refusal = Refusal::from(Violation::range("age", "column age cannot hold 70000"));
/// assert!(matches!(refusal.at("shop".into()), StoreError::Violated { .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The store cannot do the request.
    Plain(String),
    /// The request breaks a rule of the database.
    Broken(Box<Violation>),
}

impl Refusal {
    /// Returns this refusal as the error of a store.
    pub fn at(self, store: Name) -> StoreError {
        match self {
            Self::Plain(reason) => StoreError::Refused { store, reason },
            Self::Broken(violation) => StoreError::Violated { store, violation },
        }
    }

    /// Returns the reason in words.
    pub fn reason(&self) -> &str {
        match self {
            Self::Plain(reason) => reason,
            Self::Broken(violation) => &violation.message,
        }
    }

    /// Returns the refusal with `place` in front of its words.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        match self {
            Self::Plain(reason) => Self::Plain(format!("{place}: {reason}")),
            Self::Broken(mut violation) => {
                violation.message.insert_str(0, &format!("{place}: "));
                Self::Broken(violation)
            }
        }
    }

    /// Returns the refusal with this table, unless it names a table already.
    #[must_use]
    pub fn of_table(self, table: &str) -> Self {
        match self {
            Self::Broken(mut violation) => {
                violation.table.get_or_insert_with(|| table.to_owned());
                Self::Broken(violation)
            }
            plain @ Self::Plain(_) => plain,
        }
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self::Plain(reason)
    }
}

impl From<&str> for Refusal {
    fn from(reason: &str) -> Self {
        Self::Plain(reason.to_owned())
    }
}

impl From<Violation> for Refusal {
    fn from(violation: Violation) -> Self {
        Self::Broken(Box::new(violation))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

/// The kind of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViolationKind {
    /// Values that may occur at most once.
    Unique,
    /// Rows that exclude each other.
    Exclusion,
    /// A reference to a row that must exist.
    ForeignKey,
    /// A condition that each row must meet.
    Check,
    /// A value that must not be missing.
    NotNull,
    /// A value that its column cannot hold: a number out of range, a text that is too long, a time that is too fine, or
    /// a text that is no value of the column's type.
    Range,
    /// An error that a trigger or a function raised.
    Raised,
    /// A policy that limits which rows are seen and written.
    Policy,
    /// A row that was not written, though no statement failed: a trigger or a rule prevented it.
    Unwritten,
}

impl ViolationKind {
    /// Returns a short stable name for programs.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(mingle_store::ViolationKind::ForeignKey.name(), "foreign-key");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::Exclusion => "exclusion",
            Self::ForeignKey => "foreign-key",
            Self::Check => "check",
            Self::NotNull => "not-null",
            Self::Range => "out-of-range",
            Self::Raised => "raised",
            Self::Policy => "policy",
            Self::Unwritten => "unwritten",
        }
    }

    /// True if the write conflicts with other data, and would be allowed without that data; false if the
    /// written values are wrong by themselves.
    pub fn is_conflict(self) -> bool {
        matches!(self, Self::Unique | Self::Exclusion | Self::ForeignKey)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
