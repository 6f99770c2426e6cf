//! The check of one run against all promises.

use std::fmt;

use super::history::Run;
use super::index::Index;
use super::problem::{Problem, Promise};
use super::{atomic, explain, ids, live, order, process, registers, strong, uniform, visible};
use crate::limits::PROBLEMS_MAX;

/// The result of the checks of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The broken promises, with a limited number of problems each. Empty if all were kept.
    pub problems: Vec<Problem>,
    /// The number of things checked.
    pub counts: Counts,
}

/// The number of things checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions.
    pub transactions: usize,
    /// Transactions that are committed.
    pub committed: usize,
    /// Values that were read by transactions.
    pub reads: usize,
    /// Acknowledgements to sessions that their past is uniform.
    pub acknowledged: usize,
}

impl Report {
    /// True if all promises were kept.
    pub fn is_kept(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the promises that were broken, each once.
    pub fn broken(&self) -> Vec<Promise> {
        let mut broken: Vec<Promise> =
            self.problems.iter().map(|problem| problem.promise).collect();
        broken.sort_unstable();
        broken.dedup();
        broken
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { transactions, committed, reads, acknowledged } = self.counts;
        writeln!(
            f,
            "{} problems in {transactions} transactions, {committed} of them committed, with \
             {reads} reads and {acknowledged} acknowledgements",
            self.problems.len()
        )?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "  {problem}"))
    }
}

/// Checks a run against every promise. If the run is not recorded correctly, reports only that.
///
/// # Examples
///
/// ```
/// use mingle_checker::geo::{self, Promise, Run};
///
/// let report = geo::check(&Run::default());
/// // A run without data centers is invalid.
/// assert_eq!(report.broken(), [Promise::Recording]);
/// ```
pub fn check(run: &Run) -> Report {
    check_some(run, &Promise::ALL)
}

/// Checks a run against some promises only; see [`check`].
pub fn check_some(run: &Run, promises: &[Promise]) -> Report {
    let index = match Index::new(run) {
        Ok(index) => index,
        Err(problems) => return Report { problems, counts: Counts::default() },
    };
    let mut problems: Vec<Problem> = Vec::new();
    for promise in promises {
        let mut found = check_one(&index, *promise);
        found.truncate(PROBLEMS_MAX);
        problems.extend(found);
    }
    let reads = index.nodes.iter().map(|node| node.transaction.reads().count()).sum();
    let counts = Counts {
        transactions: index.nodes.len(),
        committed: index.committed.len(),
        reads,
        acknowledged: index.acknowledged.len(),
    };
    Report { problems, counts }
}

fn check_one(index: &Index<'_>, promise: Promise) -> Vec<Problem> {
    match promise {
        // The index exists only if this promise holds.
        Promise::Recording => Vec::new(),
        Promise::CausalOrder => order::causal(index),
        Promise::ReturnValues => explain::reads(index),
        Promise::Registers => registers::check(index),
        Promise::VersionOrder => order::versions(index),
        Promise::Atomicity => atomic::check(index),
        Promise::EventualVisibility => visible::check(index),
        Promise::Uniformity => uniform::check(index),
        Promise::Liveness => live::check(index),
        Promise::OperationIds => ids::check(index),
        Promise::ProcessOrder => process::check(index),
        Promise::ConflictOrder => strong::conflicts(index),
        Promise::StrictSerializability => strong::strict(index),
        Promise::Invariants => strong::invariants(index),
    }
}
