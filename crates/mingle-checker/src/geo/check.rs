//! One run, all promises.

use std::fmt;

use super::history::Run;
use super::index::Index;
use super::problem::{Problem, Promise};
use super::{atomic, explain, ids, live, order, registers, strong, uniform, visible};
use crate::limits::PROBLEMS_MAX;

/// What the checks of a run found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The promises that were broken, at most some of each. None if all were kept.
    pub problems: Vec<Problem>,
    /// How much was looked at.
    pub counts: Counts,
}

/// How much a check looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions.
    pub transactions: usize,
    /// Transactions that are committed.
    pub committed: usize,
    /// Values that were read by transactions.
    pub reads: usize,
    /// Times that a session was told that something is uniform.
    pub acknowledged: usize,
}

impl Report {
    /// Whether all promises were kept.
    pub fn is_kept(&self) -> bool {
        self.problems.is_empty()
    }

    /// The promises that were broken, each once.
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

/// Checks a run against every promise. Of what is not recorded as it has to be, only that is said.
///
/// # Examples
///
/// ```
/// use mingle_checker::geo::{self, Promise, Run};
///
/// let report = geo::check(&Run::default());
/// // A run of no data centers is none.
/// assert_eq!(report.broken(), [Promise::Recording]);
/// ```
pub fn check(run: &Run) -> Report {
    check_some(run, &Promise::ALL)
}

/// [`check`] against some promises only.
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
        // The index is not there without it.
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
        Promise::ConflictOrder => strong::conflicts(index),
        Promise::StrictSerializability => strong::strict(index),
        Promise::Invariants => strong::invariants(index),
    }
}
