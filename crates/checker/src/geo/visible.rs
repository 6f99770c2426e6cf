//! The final state: all required transactions are visible, no others, and none twice.

use std::collections::{BTreeMap, HashSet};

use mingle_model::Value;

use super::any::ItemOp;
use super::explain::{Read, judge};
use super::history::{Content, Item, Op, OpId, Outcome, View};
use super::index::Index;
use super::problem::{Problem, Promise};
use super::vector::STRONG;
use crate::limits::PROBLEMS_MAX;

/// Checks eventual visibility. A run that was not left alone until it had settled says little about
/// it.
pub fn check(index: &Index<'_>) -> Vec<Problem> {
    let mut problems = told_otherwise(index);
    if index.run.end.is_settled {
        let checks = [views, lacking, differing, contents, twice];
        problems.extend(checks.iter().flat_map(|check| check(index)));
    }
    problems
}

/// Checks that the outcomes told to sessions are true.
fn told_otherwise(index: &Index<'_>) -> Vec<Problem> {
    let ended = index.committed().filter_map(|(node, commit)| {
        let what = match node.transaction.outcome {
            // The session was not told of the commit, which is gone with its data center.
            Outcome::Aborted if index.run.is_cut_off(&commit) => return None,
            Outcome::Aborted => {
                "a transaction is committed although its session was told it is not"
            }
            Outcome::GivenUp => "a transaction is committed that its session gave up",
            Outcome::ReadOnly => "a transaction that updates nothing is committed",
            Outcome::Committed { .. } | Outcome::Unknown => return None,
        };
        let problem = Problem::new(Promise::EventualVisibility, what).of([node.id()]);
        Some(problem.values("nothing", commit.commit_vec))
    });
    ended.take(PROBLEMS_MAX).collect()
}

/// Checks that every data center that is not lost has a view, with every item.
fn views(index: &Index<'_>) -> Vec<Problem> {
    let run = index.run;
    let seen: HashSet<u8> = run.end.views.iter().map(|view| view.dc).collect();
    let alive = (0..run.system.dc_count).filter(|dc| !index.is_lost(*dc));
    let unseen = alive.filter(|dc| !seen.contains(dc)).map(|dc| {
        Problem::new(Promise::Recording, "a data center was not looked at in the end").in_dc(dc)
    });
    let missing = run.end.views.iter().flat_map(|view| {
        let missing = index.items.keys().filter(|item| !view.items.contains_key(item));
        missing.map(|item| {
            let what = "an item was not looked at in the end";
            Problem::new(Promise::Recording, what).in_dc(view.dc).at(*item)
        })
    });
    unseen.chain(missing).take(PROBLEMS_MAX).collect()
}

/// Checks the required transactions: strong ones, and all commits of data centers that are not
/// lost. With fewer than `f + 1` data centers left, remote transactions are no longer shown.
fn lacking(index: &Index<'_>) -> Vec<Problem> {
    let (run, mut problems) = (index.run, Vec::new());
    let is_open = run.alive() > usize::from(run.system.losses_max) && !index.lost_too_many();
    for (node, commit) in index.committed().filter(|(_, commit)| !index.is_lost(commit.origin)) {
        let lacks = |view: &&View| {
            let is_promised = is_open || view.dc == commit.origin;
            is_promised && !view.snapshot.covers(&commit.commit_vec)
        };
        let Some(view) = run.end.views.iter().find(lacks) else { continue };
        let what = match commit.origin {
            STRONG => "a strong transaction is not visible in the end",
            _ => "a transaction of a data center that is not lost is not visible in the end",
        };
        let problem = Problem::new(Promise::EventualVisibility, what).of([node.id()]);
        let expected = format!("a snapshot that holds {}", commit.commit_vec);
        problems.push(problem.in_dc(view.dc).values(expected, view.snapshot));
        if problems.len() >= PROBLEMS_MAX {
            break;
        }
    }
    problems
}

/// True if an item may expire: two data centers may then show different contents of it, since each
/// has its own time. [`contents`] checks both.
fn may_expire(index: &Index<'_>, item: Item) -> bool {
    let entries = index.items.get(&item).map_or(&[][..], |operations| operations.entries());
    entries.iter().any(|entry| matches!(entry.op, Op::Item(ItemOp::Expire(Some(_)))))
}

/// Checks that all data centers hold the same.
fn differing(index: &Index<'_>) -> Vec<Problem> {
    let Some((first, others)) = index.run.end.views.split_first() else { return Vec::new() };
    let pairs = others.iter().flat_map(|other| {
        first
            .items
            .iter()
            .filter_map(move |(item, one)| Some((other, *item, one, other.items.get(item)?)))
    });
    let differing = pairs.filter(|(_, item, one, found)| one != found && !may_expire(index, *item));
    let problems = differing.map(|(other, item, one, found)| {
        let what = format!("two data centers hold different things in the end: d{} and", first.dc);
        Problem::new(Promise::EventualVisibility, what)
            .in_dc(other.dc)
            .at(item)
            .contents(one, found)
    });
    problems.take(PROBLEMS_MAX).collect()
}

/// Checks that each item has the content of the view's snapshot, by the meaning of its type.
fn contents(index: &Index<'_>) -> Vec<Problem> {
    let views = index.run.end.views.iter();
    let looks =
        views.flat_map(|view| view.items.iter().map(move |(item, found)| (view, *item, found)));
    let problems = looks.filter_map(|(view, item, found)| {
        let (dc, snapshot) = (view.dc, &view.snapshot);
        let why = judge(index, &Read { item, dc, snapshot, own: &[], found })?;
        let promise = match why.promise {
            Promise::ReturnValues => Promise::EventualVisibility,
            promise => promise,
        };
        let problem = Problem::new(promise, format!("in the end {}", why.what)).at(item);
        Some(problem.in_dc(view.dc).of(why.transactions).contents(&why.expected, found))
    });
    problems.take(PROBLEMS_MAX).collect()
}

/// Checks that no line of a log is there more often than it was appended.
fn twice(index: &Index<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for view in &index.run.end.views {
        for (item, found) in &view.items {
            let Content::Log(lines) = found else { continue };
            let appended = appended(index, *item);
            let mut shown: BTreeMap<&Value, usize> = BTreeMap::new();
            for line in lines {
                *shown.entry(line).or_default() += 1;
            }
            for (line, count) in shown {
                let most = appended.get(line).copied().unwrap_or(0);
                if count > most {
                    let what = format!("a line is there more often than it was appended: {line:?}");
                    let problem = Problem::new(Promise::EventualVisibility, what).at(*item);
                    problems.push(problem.in_dc(view.dc).values(format!("at most {most}"), count));
                }
            }
        }
    }
    problems.truncate(PROBLEMS_MAX);
    problems
}

/// Returns the number of times that each line was appended, by operations of different ids.
fn appended<'r>(index: &Index<'r>, item: Item) -> BTreeMap<&'r Value, usize> {
    let (mut counts, mut ids) = (BTreeMap::new(), HashSet::<&OpId>::new());
    let entries = index.items.get(&item).map_or(&[][..], |operations| operations.entries());
    for entry in entries {
        if let Op::Append(line) = entry.op
            && entry.id.is_none_or(|id| ids.insert(id))
        {
            *counts.entry(line).or_default() += 1;
        }
    }
    counts
}
