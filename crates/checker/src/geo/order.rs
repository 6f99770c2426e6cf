//! Checks that the recorded vectors make a causal order, and versions a total order that extends
//! it.
//!
//! One transaction comes before another if its commit vector is within the other's snapshot. This
//! order is transitive if commit vectors hold their snapshots, and irreflexive if they hold more
//! than that. It includes session order if each snapshot holds everything that its session had
//! seen: its commits, its reads, and the tokens that it joined. So a snapshot holds each
//! transaction with its causes.

use std::collections::HashMap;

use super::history::{Attached, Outcome, What};
use super::index::{Index, Node};
use super::problem::{Problem, Promise};
use super::vector::Vector;

/// Checks causality preservation.
pub fn causal(index: &Index<'_>) -> Vec<Problem> {
    let nodes = index.nodes.iter();
    let mut problems: Vec<Problem> = nodes.flat_map(|node| of_transaction(index, node)).collect();
    problems.extend(tokens(index));
    problems
}

/// Returns the reasons why this transaction cannot have its snapshot.
fn of_transaction(index: &Index<'_>, node: &Node<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut claim = |holds: bool, what: &str, expected: &Vector, found: &Vector| {
        if !holds {
            let problem = Problem::new(Promise::CausalOrder, what).of([node.id()]);
            problems.push(problem.in_dc(node.transaction.dc).values(expected, found));
        }
    };
    let past_vec = &node.past_vec;
    let what = if is_first_after_attach(index, node) {
        "the session was told that it goes on with all its past, and its snapshot lacks some of it"
    } else {
        "its snapshot lacks what its session had seen"
    };
    let lacks = |snapshot: &Vector| !snapshot.covers(past_vec);
    if let Some(snapshot) = &node.transaction.snapshot {
        claim(!lacks(snapshot), what, past_vec, snapshot);
    }
    let Some(commit) = &node.commit else { return problems };
    claim(!lacks(&commit.snap_vec), what, past_vec, &commit.snap_vec);
    if let Some(snapshot) = &node.transaction.snapshot {
        let is_same = commit.snap_vec == *snapshot;
        claim(
            is_same,
            "it was committed on a snapshot that it did not read",
            snapshot,
            &commit.snap_vec,
        );
    }
    let raised = commit.snap_vec.with(commit.origin, commit.timestamp());
    let is_raised =
        commit.commit_vec == raised && commit.timestamp() > commit.snap_vec.get(commit.origin);
    let what = "its commit vector is not its snapshot with a higher timestamp at its origin";
    claim(is_raised, what, &commit.snap_vec, &commit.commit_vec);
    if let Outcome::Committed { commit_vec, .. } = &node.transaction.outcome {
        let is_same = commit.commit_vec == *commit_vec;
        claim(is_same, "its session was told another vector", &commit.commit_vec, commit_vec);
    }
    problems
}

fn is_first_after_attach(index: &Index<'_>, node: &Node<'_>) -> bool {
    let calls = &index.run.sessions[node.session].calls[..node.place];
    matches!(
        calls.last().map(|call| &call.what),
        Some(What::Attach { answer: Attached::Resumed, .. })
    )
}

/// Checks that tokens hold everything that their sessions had seen.
fn tokens(index: &Index<'_>) -> Vec<Problem> {
    let places = index.run.sessions.iter().enumerate();
    let places: HashMap<u64, usize> = places.map(|(place, session)| (session.id, place)).collect();
    let mut problems = Vec::new();
    for session in &index.run.sessions {
        for call in &session.calls {
            let What::Join { session: from, call_count, past_vec } = &call.what else { continue };
            let pasts = places.get(from).map(|place| &index.pasts[*place]);
            let Some(past) = pasts.and_then(|pasts| pasts.get(*call_count)) else {
                let what = format!(
                    "session {} took up a token of session {from} after {call_count} calls, \
                     which is not in the run",
                    session.id
                );
                problems.push(Problem::new(Promise::Recording, what));
                continue;
            };
            if !past_vec.covers(past) {
                let what = format!(
                    "the token of session {from} after {call_count} calls, which session {} took \
                     up, lacks what that session had seen",
                    session.id
                );
                problems.push(Problem::new(Promise::CausalOrder, what).values(past, past_vec));
            }
        }
    }
    problems
}

/// Checks that the order of versions, by (timestamp, origin), is total and extends causality.
pub fn versions(index: &Index<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut last: Option<(&Node<'_>, (u64, u8))> = None;
    for (node, commit) in index.committed() {
        let version = commit.version();
        if let Some((other, _)) = last.filter(|(_, last)| *last == version) {
            let what = "two transactions have one timestamp at one origin";
            let problem = Problem::new(Promise::VersionOrder, what).in_dc(commit.origin);
            problems.push(problem.of([node.id(), other.id()]).values("two", commit.timestamp()));
        }
        last = Some((node, version));
        // All transactions that it has seen have timestamps within its snapshot, so they come
        // before it.
        if commit.timestamp() <= commit.snap_vec.highest() {
            let what = "its timestamp is not above every entry of its snapshot: what it has seen \
                        may come after it in the order of versions";
            let problem = Problem::new(Promise::VersionOrder, what).of([node.id()]);
            let expected = format!("more than {}", commit.snap_vec.highest());
            problems.push(problem.values(expected, commit.timestamp()));
        }
    }
    problems
}
