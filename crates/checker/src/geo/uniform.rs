//! Uniform transactions survive the loss of up to `f` data centers, and sessions continue with
//! them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mingle_model::TransactionId;

use super::cuts;
use super::history::{Attached, Commit, Outcome, Session, View, What};
use super::index::{Index, Node};
use super::problem::{Problem, Promise};
use super::vector::Vector;
use crate::limits::PROBLEMS_MAX;

/// Checks uniformity.
pub fn check(index: &Index<'_>) -> Vec<Problem> {
    let mut problems = survivors(index);
    problems.extend(cuts::check(index));
    problems.extend(
        index
            .run
            .sessions
            .iter()
            .enumerate()
            .flat_map(|(place, session)| losses_told(session, &index.pasts[place])),
    );
    problems.truncate(PROBLEMS_MAX);
    problems
}

/// Finds transactions of lost data centers that are missing although a session or replica was
/// promised them.
fn survivors(index: &Index<'_>) -> Vec<Problem> {
    let (run, mut problems) = (index.run, Vec::new());
    let is_open = run.alive() > usize::from(run.system.losses_max) && !index.lost_too_many();
    if !run.end.is_settled || !is_open {
        return problems;
    }
    let sightings: HashMap<TransactionId, u8> =
        run.sightings.iter().map(|sighting| (sighting.transaction, sighting.dc)).collect();
    for (node, commit) in index.committed().filter(|(_, commit)| index.is_lost(commit.origin)) {
        let lacks = |view: &&View| !view.snapshot.covers(&commit.commit_vec);
        let Some(view) = run.end.views.iter().find(lacks) else { continue };
        let Some((promised, reader)) = promised(index, &sightings, node, &commit) else { continue };
        let what = format!("a transaction is gone although {promised}");
        let problem = Problem::new(Promise::Uniformity, what).of([node.id()]).of(reader);
        let expected = format!("a snapshot that holds {}", commit.commit_vec);
        problems.push(problem.in_dc(view.dc).values(expected, view.snapshot));
    }
    problems
}

/// Returns the evidence that a transaction was promised to survive.
fn promised(
    index: &Index<'_>,
    sightings: &HashMap<TransactionId, u8>,
    node: &Node<'_>,
    commit: &Commit,
) -> Option<(String, Option<TransactionId>)> {
    let holds = |vector: &Vector| vector.covers(&commit.commit_vec);
    if let Some(told) = index.acknowledged.iter().find(|told| holds(&told.past_vec)) {
        let (session, at_us) = (told.session, told.at_us);
        return Some((
            format!("session {session} was told at {at_us} us that it is uniform"),
            None,
        ));
    }
    let elsewhere = index.nodes.iter().filter(|node| node.transaction.dc != commit.origin);
    for reader in elsewhere {
        let committed = reader.commit.as_ref().map(|commit| &commit.snap_vec);
        let snapshot = reader.transaction.snapshot.as_ref().or(committed);
        if snapshot.is_some_and(holds) {
            let dc = reader.transaction.dc;
            return Some((format!("d{dc} had it in a snapshot"), Some(reader.id())));
        }
    }
    if let Some(dc) = sightings.get(&node.id()).filter(|dc| **dc != commit.origin) {
        return Some((format!("d{dc} had shown it"), None));
    }
    let claims = index.run.claims.iter();
    let mut claims =
        claims.filter(|claim| commit.timestamp() <= claim.uniform_vec.get(commit.origin));
    claims.next().map(|claim| {
        let (dc, partition, at_us) = (claim.dc, claim.partition, claim.at_us);
        (format!("partition {partition} of d{dc} said at {at_us} us that it is uniform"), None)
    })
}

/// Checks that a session that continues with loss is told which of its own transactions are lost.
/// The list may have no others, except those with an outcome unknown to the record.
fn losses_told(session: &Session, pasts: &[Vector]) -> Vec<Problem> {
    let (mut own, mut problems) = (BTreeMap::<TransactionId, Vector>::new(), Vec::new());
    let mut unknown = BTreeSet::new();
    for (call, past_vec) in session.calls.iter().zip(pasts) {
        match &call.what {
            What::Transaction(transaction) => match &transaction.outcome {
                Outcome::Committed { commit_vec, .. } => {
                    own.insert(transaction.id, *commit_vec);
                }
                Outcome::Unknown => {
                    unknown.insert(transaction.id);
                }
                _ => {}
            },
            What::Learned { id, commit_vec } => {
                unknown.remove(id);
                own.insert(*id, *commit_vec);
            }
            What::Attach {
                dc,
                answer: Attached::WithLoss { lost, is_complete, past_vec: left },
            } => {
                let mut claim = |what: &str, ids: BTreeSet<TransactionId>| {
                    if !ids.is_empty() {
                        let what = format!("session {} {what}", session.id);
                        let problem = Problem::new(Promise::Uniformity, what).in_dc(*dc).of(ids);
                        problems.push(problem.values(past_vec, left));
                    }
                };
                if !past_vec.covers(left) {
                    claim("goes on with more than it had seen", lost.iter().copied().collect());
                }
                let lost: BTreeSet<TransactionId> = lost.iter().copied().collect();
                let gone = own.iter().filter(|(_, commit_vec)| !left.covers(commit_vec));
                let gone: BTreeSet<TransactionId> = gone.map(|(id, _)| *id).collect();
                if *is_complete {
                    let untold = gone.difference(&lost).copied().collect();
                    claim("was not told of all its transactions that are lost", untold);
                }
                let wrong = lost.difference(&gone).filter(|id| !unknown.contains(id));
                claim("was told that a transaction is lost which is not", wrong.copied().collect());
                own.clear();
            }
            _ => {}
        }
    }
    problems
}
