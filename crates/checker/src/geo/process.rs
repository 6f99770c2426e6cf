//! Pools of connections: the sessions of one process see each other's acknowledged commits.
//!
//! A commit that was acknowledged to any session of a process, at a data center, is in the snapshot
//! of every transaction that any session of the process begins there later in real time. So for each
//! process the acknowledged writes are linearizable as far as that process can tell.

use std::collections::BTreeMap;

use super::history::{Outcome, Transaction};
use super::index::{Index, Node};
use super::problem::{Problem, Promise};
use super::vector::Vector;
use crate::limits::PROBLEMS_MAX;

/// Checks that transactions of a process see what the process was told before they began.
pub fn check(index: &Index<'_>) -> Vec<Problem> {
    let processes = &index.run.processes;
    let mut of_pools: BTreeMap<(u64, u8), Vec<&Node<'_>>> = BTreeMap::new();
    for node in &index.nodes {
        let session = index.run.sessions[node.session].id;
        if let Some(process) = processes.get(&session) {
            of_pools.entry((*process, node.transaction.dc)).or_default().push(node);
        }
    }
    let problems = of_pools.values().flat_map(|nodes| check_pool(index, nodes));
    problems.take(PROBLEMS_MAX).collect()
}

/// Checks the transactions of one process at one data center.
fn check_pool(index: &Index<'_>, nodes: &[&Node<'_>]) -> Vec<Problem> {
    let mut acknowledged: Vec<(u64, Vector, &Node<'_>)> = Vec::new();
    for node in nodes {
        if let (Some(end_us), Some(commit_vec)) = (node.call.end_us, told(node.transaction)) {
            acknowledged.push((end_us, commit_vec, node));
        }
    }
    acknowledged.sort_by_key(|(end_us, _, node)| (*end_us, node.id()));
    let mut joined = Vector::ZERO;
    let joined = acknowledged.iter().map(|(_, commit_vec, _)| {
        joined.join(commit_vec);
        joined
    });
    let joined: Vec<Vector> = joined.collect();
    let mut problems = Vec::new();
    for node in nodes {
        let Some(mut snapshot) = seen(node) else { continue };
        index.run.see_before(&mut snapshot);
        let before = acknowledged.partition_point(|(end_us, ..)| *end_us < node.call.begin_us);
        let Some(last) = before.checked_sub(1) else { continue };
        if snapshot.covers(&joined[last]) {
            continue;
        }
        let lacks = |(_, commit_vec, _): &&(u64, Vector, &Node<'_>)| !snapshot.covers(commit_vec);
        let Some((_, commit_vec, other)) = acknowledged[..before].iter().find(lacks) else {
            continue;
        };
        let what = "a transaction lacks a commit that was acknowledged to its process before it \
                    began";
        let problem = Problem::new(Promise::ProcessOrder, what).of([node.id(), other.id()]);
        problems.push(problem.values(format!("a snapshot that holds {commit_vec}"), snapshot));
    }
    problems
}

/// Returns the commit vector that the session was told, if the transaction has updates.
fn told(transaction: &Transaction) -> Option<Vector> {
    let Outcome::Committed { commit_vec, .. } = &transaction.outcome else { return None };
    transaction.updates().next().map(|_| *commit_vec)
}

/// Returns the snapshot of a transaction, as far as it is known.
fn seen(node: &Node<'_>) -> Option<Vector> {
    node.transaction.snapshot.or(node.commit.map(|commit| commit.snap_vec))
}
