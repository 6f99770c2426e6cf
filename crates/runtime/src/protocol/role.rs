//! The role of a phase in its transaction: it decides which records the phase leaves.

/// The role of a phase in its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// No other process need know of it: it does not write, or no other store is written.
    Plain,
    /// The phase reads before an `isolated` transaction writes.
    Reader,
    /// The phase writes first: its commit decides the transaction.
    First,
    /// The phase follows the first writing phase, and leaves a commit witness.
    Later,
}

impl Role {
    /// All roles, in order of their numbers.
    pub(crate) const ALL: [Self; 4] = [Self::Plain, Self::Reader, Self::First, Self::Later];

    /// Returns the role's name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "alone",
            Self::Reader => "reader",
            Self::First => "first",
            Self::Later => "later",
        }
    }
}
