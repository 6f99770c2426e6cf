//! The named bounds of a check. Past one of them the verdict is
//! [`Verdict::Unknown`](crate::Verdict::Unknown), except where a bound only makes a counterexample
//! longer.

/// Entries of the vector clocks: nodes times chains, four bytes each, so a gibibyte at most.
pub const CLOCK_ENTRIES_MAX: usize = 1 << 28;

/// Candidates that the search for an order looks at, over all its steps.
pub const SEARCH_CANDIDATES_MAX: u64 = 50_000_000;

/// The same for each try to make a counterexample smaller.
pub const SHRINK_CANDIDATES_MAX: u64 = 100_000;

/// Entries of the table of prefixes that lead nowhere, four bytes each.
pub const SEARCH_MEMO_ENTRIES_MAX: usize = 1 << 26;

/// Rounds in which forced edges are derived before the search. Fewer edges make the search slower,
/// not wrong.
pub const SATURATION_ROUNDS_MAX: usize = 64;

/// Edges that are looked at to find a shortest cycle; the shortest one so far is reported.
pub const CYCLE_EDGES_MAX: u64 = 50_000_000;

/// Transactions of a history without an order that is made smaller by trying to leave out each.
pub const SHRINK_TRANSACTIONS_MAX: usize = 64;

/// Operations that these tries look at in all; past that the smallest history so far is reported.
pub const SHRINK_OPERATIONS_MAX: usize = 5_000_000;

/// The number of runs of operations that a large history is cut into at first, to leave out each.
pub const SHRINK_RUNS: usize = 1_024;

/// Violations of causality among which the one with the shortest cycle is reported.
pub const CAUSAL_CANDIDATES_MAX: usize = 32;

/// Problems of one promise that a check of a run of the geo-replicated store reports.
pub const PROBLEMS_MAX: usize = 16;

/// Values of an item that a problem shows, and how many of them before the first that differs.
pub const SHOWN_VALUES_MAX: usize = 8;

/// See [`SHOWN_VALUES_MAX`].
pub const SHOWN_AROUND: usize = 2;

/// A data center at which clients wait, and no fault is to blame, must commit something within
/// this, in simulated microseconds.
pub const STALL_US_MAX: u64 = 5_000_000;

/// A strong transaction ends within this, in simulated microseconds, while a majority of the data
/// centers, its own among them, works and is connected.
pub const STRONG_US_MAX: u64 = 10_000_000;

/// Sums that a counter of the geo-replicated store may show where resets that did not see each other
/// took away different runs of its additions: so many are looked at.
pub const OPEN_SUMS_MAX: usize = 4_096;
