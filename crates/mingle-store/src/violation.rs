//! Rules that a database keeps about its own data.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A rule of the database that a write would have broken, such as a constraint or a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The kind of the rule.
    pub kind: ViolationKind,
    /// The name of the constraint, where the rule has one.
    pub constraint: Option<String>,
    /// The database's own words.
    pub message: String,
}

/// The kind of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViolationKind {
    /// Values that are there once at most.
    Unique,
    /// Rows that exclude each other.
    Exclusion,
    /// A reference to a row that must be there.
    ForeignKey,
    /// A condition that each row meets.
    Check,
    /// A value that must be there.
    NotNull,
    /// An error that a trigger or a function raised.
    Raised,
    /// A policy that says which rows are seen and written.
    Policy,
    /// A row that was to be written and was not, though no statement failed: a trigger or a rule kept it from being.
    Unwritten,
}

impl ViolationKind {
    /// A short stable name for machines.
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
            Self::Raised => "raised",
            Self::Policy => "policy",
            Self::Unwritten => "unwritten",
        }
    }

    /// True if the write conflicts with other data, and would be allowed without that; false if the
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
