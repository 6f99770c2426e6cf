//! Commits continue at each data center whose clients want them unless a fault explains a wait, and
//! no call is stuck in the end.

use super::history::{Attached, Fault, FaultKind, Outcome, Run, What};
use super::index::{Index, Node};
use super::problem::{Problem, Promise};
use crate::limits::{STALL_US_MAX, STRONG_US_MAX};

/// Begin and end, in microseconds.
type Interval = (u64, u64);

/// Checks liveness.
pub fn check(index: &Index<'_>) -> Vec<Problem> {
    let dcs = 0..index.run.system.dc_count;
    let mut problems: Vec<Problem> = dcs.flat_map(|dc| stalls(index, dc)).collect();
    problems.extend(strong_waits(index));
    problems.extend(stuck(index));
    problems
}

/// Finds intervals in which clients of a data center waited too long for commits and none came.
fn stalls(index: &Index<'_>, dc: u8) -> Vec<Problem> {
    let end_us = index.run.end.at_us;
    let nodes: Vec<&Node<'_>> = index
        .nodes
        .iter()
        .filter(|node| node.transaction.dc == dc && node.transaction.strong.is_none())
        .collect();
    let wanted = nodes.iter().filter_map(|node| {
        let until_us = node.call.end_us.unwrap_or(end_us);
        Some((node.transaction.commit_asked_us?, until_us))
    });
    let committed =
        nodes.iter().filter(|node| matches!(node.transaction.outcome, Outcome::Committed { .. }));
    let commits = committed.filter_map(|node| node.call.end_us).map(|at_us| (at_us, at_us));
    let faults = index.run.faults.iter().filter(|fault| is_to_blame(fault, dc));
    let faults = faults.map(|fault| (fault.begin_us, fault.end_us));
    let losses = index.run.losses.iter().filter(|loss| loss.dc == dc);
    let losses = losses.map(|loss| (loss.at_us, u64::MAX));
    let excused: Vec<Interval> = commits.chain(faults).chain(losses).collect();
    let stalls = without(union(wanted.collect()), union(excused));
    let long = stalls.into_iter().filter(|(from_us, to_us)| to_us - from_us > STALL_US_MAX);
    let problems = long.map(|(from_us, to_us)| {
        let waits = |node: &&&Node<'_>| {
            let until_us = node.call.end_us.unwrap_or(end_us);
            node.transaction
                .commit_asked_us
                .is_some_and(|asked| asked < to_us && until_us > from_us)
        };
        let waiting = nodes.iter().filter(waits).map(|node| node.id()).take(4);
        let what =
            format!("nothing was committed from {from_us} to {to_us} us, and no fault is to blame");
        let problem = Problem::new(Promise::Liveness, what).in_dc(dc).of(waiting);
        problem
            .values(format!("a commit within {STALL_US_MAX} us"), format!("{} us", to_us - from_us))
    });
    problems.collect()
}

/// Finds strong transactions that were not answered for too long, although a majority could answer.
fn strong_waits(index: &Index<'_>) -> Vec<Problem> {
    let (run, mut problems) = (index.run, Vec::new());
    let majority = u32::from(run.dcs_at_once() / 2 + 1);
    for node in index.nodes.iter().filter(|node| node.transaction.strong.is_some()) {
        let Some(asked_us) = node.transaction.commit_asked_us else { continue };
        let waits = (asked_us, node.call.end_us.unwrap_or(run.end.at_us));
        if waits.1.saturating_sub(waits.0) <= STRONG_US_MAX {
            continue;
        }
        let own = node.transaction.dc;
        let majorities = (0u8..1 << run.system.dc_count)
            .filter(|set| set >> own & 1 == 1 && set.count_ones() == majority);
        let away = away(node, run);
        let mut waited = majorities.flat_map(|set| {
            let excused = hindered(index, own, set).into_iter().chain(away.clone());
            without(vec![waits], union(excused.collect()))
        });
        let long = waited.find(|(from_us, to_us)| to_us - from_us > STRONG_US_MAX);
        problems.extend(long.map(|(from_us, to_us)| {
            let what = "a strong transaction waits although a majority works and is connected";
            let problem = Problem::new(Promise::Liveness, what).in_dc(own).of([node.id()]);
            let expected = format!("an answer within {STRONG_US_MAX} us");
            problem.values(expected, format!("none from {from_us} to {to_us} us"))
        }));
    }
    problems
}

/// Returns the intervals in which the session of a transaction was not at the data center of its
/// commit request, but on its way elsewhere, or there: if it asked again at all, it asked there.
fn away(node: &Node<'_>, run: &Run) -> Vec<Interval> {
    let own = node.transaction.dc;
    let calls = &run.sessions[node.session].calls;
    let (mut away, mut left_us) = (Vec::new(), None);
    for call in calls {
        let What::Attach { dc, answer } = &call.what else { continue };
        let end_us = call.end_us.unwrap_or(run.end.at_us);
        away.push((call.begin_us, end_us));
        match answer {
            Attached::Failed => {}
            _ if *dc == own => away.extend(left_us.take().map(|left_us| (left_us, end_us))),
            _ => left_us = left_us.or(Some(end_us)),
        }
    }
    away.extend(left_us.map(|left_us| (left_us, run.end.at_us)));
    away
}

/// Returns the intervals in which these data centers, as bits, may have been unable to answer
/// clients of `own`.
fn hindered(index: &Index<'_>, own: u8, set: u8) -> Vec<Interval> {
    let has = |dc: u8| set >> dc & 1 == 1;
    let faults = index.run.faults.iter().filter(|fault| match &fault.kind {
        FaultKind::Down { dc, .. } | FaultKind::Disk { dc, .. } | FaultKind::Clock { dc, .. } => {
            has(*dc)
        }
        FaultKind::Clients { dc } => *dc == own,
        FaultKind::Link { from, to } => has(*from) && has(*to),
        FaultKind::Noise => true,
        FaultKind::Other { dcs, .. } => dcs.iter().any(|dc| has(*dc)),
    });
    let faults = faults.map(|fault| (fault.begin_us, fault.end_us));
    let losses = index.run.losses.iter().filter(|loss| has(loss.dc));
    let losses = losses.map(|loss| (loss.at_us, u64::MAX));
    let admissions = index.run.admissions.iter().filter(|admission| has(admission.dc));
    let before = admissions.map(|admission| (0, admission.at_us.unwrap_or(u64::MAX)));
    union(faults.chain(losses).chain(before).collect())
}

/// True if the fault can delay commits at a data center. Causal transactions never wait for another
/// data center, so links between data centers do not explain a delay, nor do a few lost messages.
fn is_to_blame(fault: &Fault, dc: u8) -> bool {
    match &fault.kind {
        FaultKind::Down { dc: at, .. }
        | FaultKind::Disk { dc: at, .. }
        | FaultKind::Clock { dc: at, .. }
        | FaultKind::Clients { dc: at } => *at == dc,
        FaultKind::Link { from, to } => *from == dc && *to == dc,
        FaultKind::Noise => false,
        FaultKind::Other { dcs, .. } => dcs.contains(&dc),
    }
}

/// Returns the intervals in order, with overlapping and adjacent ones merged.
fn union(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_unstable();
    let mut union: Vec<Interval> = Vec::new();
    for (from, to) in intervals {
        match union.last_mut() {
            Some((_, last)) if from <= *last => *last = to.max(*last),
            _ => union.push((from, to)),
        }
    }
    union
}

/// Returns the intervals without others; both are in order, and none touches the next.
fn without(intervals: Vec<Interval>, others: Vec<Interval>) -> Vec<Interval> {
    let (mut left, mut first) = (Vec::new(), 0);
    for (mut from, to) in intervals {
        while first < others.len() && others[first].1 < from {
            first += 1;
        }
        for (begin, end) in others[first..].iter().take_while(|(begin, _)| *begin <= to) {
            if *begin > from {
                left.push((from, *begin));
            }
            from = from.max(*end);
        }
        if from < to {
            left.push((from, to));
        }
    }
    left
}

/// Finds calls that are still not answered although the run had settled. A call may wait if it
/// needs a lost data center, or more data centers than are left.
fn stuck(index: &Index<'_>) -> Vec<Problem> {
    let run = index.run;
    if !run.end.is_settled {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for session in &run.sessions {
        for call in session.calls.iter().filter(|call| call.end_us.is_none()) {
            let may_wait = match &call.what {
                What::Transaction(transaction) => index.is_lost(transaction.dc),
                What::Barrier { .. } => !run.losses.is_empty(),
                What::Attach { answer, .. } => {
                    *answer != Attached::Failed || !run.losses.is_empty()
                }
                What::Join { .. } | What::Raised { .. } | What::Learned { .. } => true,
            };
            if may_wait || run.end.at_us.saturating_sub(call.begin_us) <= STALL_US_MAX {
                continue;
            }
            let (what, id) = match &call.what {
                What::Transaction(transaction) => ("a transaction", Some(transaction.id)),
                What::Barrier { .. } => ("a barrier", None),
                _ => ("an attach", None),
            };
            let what = format!("session {} is stuck in {what}", session.id);
            let problem = Problem::new(Promise::Liveness, what).of(id);
            problems.push(problem.values("an answer", format!("none since {} us", call.begin_us)));
        }
    }
    problems
}
