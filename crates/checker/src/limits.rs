//! The named bounds of a check. Beyond a bound the verdict is
//! [`Verdict::Unknown`](crate::Verdict::Unknown), except where the bound only makes a
//! counterexample longer.

/// Entries of the vector clocks: nodes times chains, four bytes each, so a gibibyte at most.
pub const CLOCK_ENTRIES_MAX: usize = 1 << 28;

/// Candidates that the search for an order examines, over all its steps.
pub const SEARCH_CANDIDATES_MAX: u64 = 50_000_000;

/// Candidates of the search in each try to make a counterexample smaller.
pub const SHRINK_CANDIDATES_MAX: u64 = 100_000;

/// Entries of the table of prefixes known to lead to no order, four bytes each.
pub const SEARCH_MEMO_ENTRIES_MAX: usize = 1 << 26;

/// Rounds in which forced edges are derived before the search. Fewer edges make the search slower,
/// not wrong.
pub const SATURATION_ROUNDS_MAX: usize = 64;

/// Edges that are examined to find a shortest cycle; the shortest one so far is reported.
pub const CYCLE_EDGES_MAX: u64 = 50_000_000;

/// The most transactions of a history without an order for which smaller histories are tried,
/// leaving out operations.
pub const SHRINK_TRANSACTIONS_MAX: usize = 64;

/// Operations that these tries examine in all; beyond that the smallest history so far is reported.
pub const SHRINK_OPERATIONS_MAX: usize = 5_000_000;

/// The number of runs that a large history's operations are first divided into, to leave out each.
pub const SHRINK_RUNS: usize = 1_024;

/// Violations of causality among which the one with the shortest cycle is reported.
pub const CAUSAL_CANDIDATES_MAX: usize = 32;

/// Problems of one promise that a check of a run of the geo-replicated store reports.
pub const PROBLEMS_MAX: usize = 16;

/// Values of an item that a problem shows.
pub const SHOWN_VALUES_MAX: usize = 8;

/// The number of these values before the first that differs; see [`SHOWN_VALUES_MAX`].
pub const SHOWN_AROUND: usize = 2;

/// The longest time, in simulated microseconds, without a commit at a data center at which clients
/// wait, while no fault explains it.
pub const STALL_US_MAX: u64 = 5_000_000;

/// The longest time of a strong transaction, in simulated microseconds, while a majority of the
/// data centers, including its own, works and is connected.
pub const STRONG_US_MAX: u64 = 10_000_000;

/// The most sums examined for a counter of the geo-replicated store. A counter has several possible
/// sums if concurrent resets removed different runs of its additions.
pub const OPEN_SUMS_MAX: usize = 4_096;
