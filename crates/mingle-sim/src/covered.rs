//! What a simulation goes through.

/// Accounts, few enough that calls meet.
pub const ACCOUNTS: usize = 5;

/// What a simulation went through: what never happens is not tested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Transfers and deposits that took effect.
    pub committed: u64,
    /// Refused by a `require`.
    pub refused: u64,
    /// Conflicts that a store reported.
    pub conflicts: u64,
    /// Commits whose answer was lost before they took effect.
    pub lost_before: u64,
    /// Commits whose answer was lost after they took effect.
    pub lost_after: u64,
    /// Calls that a store could not serve.
    pub unavailable: u64,
    /// Callers that went away.
    pub given_up: u64,
    /// Calls that ended without an outcome that is known.
    pub unknown: u64,
    /// Seeds with more than one replica.
    pub replicated: u64,
}

impl Covered {
    /// Adds what another simulation covered.
    pub fn add(&mut self, other: &Self) {
        self.committed += other.committed;
        self.refused += other.refused;
        self.conflicts += other.conflicts;
        self.lost_before += other.lost_before;
        self.lost_after += other.lost_after;
        self.unavailable += other.unavailable;
        self.given_up += other.given_up;
        self.unknown += other.unknown;
        self.replicated += other.replicated;
    }

    /// Names and counts.
    pub fn counters(&self) -> [(&'static str, u64); 9] {
        [
            ("committed", self.committed),
            ("refused", self.refused),
            ("conflicts", self.conflicts),
            ("lost before taking effect", self.lost_before),
            ("lost after taking effect", self.lost_after),
            ("unavailable", self.unavailable),
            ("given up", self.given_up),
            ("unknown", self.unknown),
            ("replicated", self.replicated),
        ]
    }
}
