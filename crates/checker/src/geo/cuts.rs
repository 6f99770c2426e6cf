//! Data centers that were given up: all their transactions up to the cut are everywhere, and those
//! above it are nowhere, except in their own sessions.

use super::history::{Cut, View};
use super::index::Index;
use super::problem::{Problem, Promise};
use crate::limits::PROBLEMS_MAX;

pub fn check(index: &Index<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for cut in &index.run.cuts {
        problems.extend(shown(index, *cut));
        problems.extend(claimed(index, *cut));
        problems.extend(lacking(index, *cut));
    }
    problems.truncate(PROBLEMS_MAX);
    problems
}

/// Finds data centers that showed transactions above another's cut: to a session, or in the end.
fn shown(index: &Index<'_>, cut: Cut) -> Vec<Problem> {
    let what = format!("what lies above the cut of d{} is shown", cut.dc);
    let problem = |dc: u8, found: u64| {
        let problem = Problem::new(Promise::Uniformity, what.clone()).in_dc(dc);
        problem.values(format!("at most {}", cut.at), found)
    };
    let nodes = index.nodes.iter().filter(|node| node.transaction.dc != cut.dc);
    let readers = nodes.filter_map(|node| {
        let committed = node.commit.as_ref().map(|commit| &commit.snap_vec);
        let found = node.transaction.snapshot.as_ref().or(committed)?.get(cut.dc);
        (found > cut.at).then(|| problem(node.transaction.dc, found).of([node.id()]))
    });
    let views = index.run.end.views.iter().filter_map(|view| {
        let found = view.snapshot.get(cut.dc);
        (found > cut.at).then(|| problem(view.dc, found))
    });
    readers.chain(views).take(PROBLEMS_MAX).collect()
}

/// Finds a replica that claimed transactions above a cut to be uniform.
fn claimed(index: &Index<'_>, cut: Cut) -> Option<Problem> {
    let mut claims = index.run.claims.iter();
    let claim = claims.find(|claim| claim.uniform_vec.get(cut.dc) > cut.at)?;
    let (partition, at_us) = (claim.partition, claim.at_us);
    let what = format!(
        "partition {partition} said at {at_us} us that more of d{} is uniform than its cut left",
        cut.dc
    );
    let problem = Problem::new(Promise::Uniformity, what).in_dc(claim.dc);
    let found = claim.uniform_vec.get(cut.dc);
    Some(problem.values(format!("at most {}", cut.at), found))
}

/// Finds transactions up to a cut that are not everywhere in the end.
fn lacking(index: &Index<'_>, cut: Cut) -> Vec<Problem> {
    let run = index.run;
    if !run.end.is_settled || index.lost_too_many() {
        return Vec::new();
    }
    let left = index
        .committed()
        .filter(|(_, commit)| commit.origin == cut.dc && commit.timestamp() <= cut.at);
    let problems = left.filter_map(|(node, commit)| {
        let lacks = |view: &&View| !view.snapshot.covers(&commit.commit_vec);
        let view = run.end.views.iter().find(lacks)?;
        let what = format!("a transaction is gone that lies below the cut of d{}", cut.dc);
        let problem = Problem::new(Promise::Uniformity, what).of([node.id()]).in_dc(view.dc);
        let expected = format!("a snapshot that holds {}", commit.commit_vec);
        Some(problem.values(expected, view.snapshot))
    });
    problems.take(PROBLEMS_MAX).collect()
}
