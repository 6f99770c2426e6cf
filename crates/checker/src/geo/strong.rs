//! The promises of strong transactions in addition to those of causal ones: conflicting ones are
//! ordered (UniStore §3, Conflict Ordering), and together they are strictly serializable.
//!
//! The order is that of strong timestamps. It must agree with snapshots, explain the values read,
//! and agree with real time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::any::Element;
use super::conflict::{Conflicts, Use, uses};
use super::history::{Action, Commit, Content, Item};
use super::index::{Index, Node};
use super::problem::{Problem, Promise};
use super::values::{Operations, Own, Reader};
use super::vector::{STRONG, Vector, time_us};
use crate::limits::PROBLEMS_MAX;

/// Returns the committed strong transactions, in the order of their timestamps.
fn committed<'i, 'r>(index: &'i Index<'r>) -> impl Iterator<Item = (&'i Node<'r>, Commit)> {
    index.committed().filter(|(_, commit)| commit.origin == STRONG)
}

/// A value for each item and each way in which transactions used it.
type ByUse<'r, T> = HashMap<Item, BTreeMap<Use<'r>, T>>;

/// Checks that of two conflicting transactions, one is completely in the other's snapshot.
pub fn conflicts(index: &Index<'_>) -> Vec<Problem> {
    let relation = &index.run.system.conflicts;
    let mut before: ByUse<'_, (Vector, Vec<(&Node<'_>, Vector)>)> = HashMap::new();
    let mut problems = Vec::new();
    for (node, commit) in committed(index) {
        let of_node = uses(node.transaction);
        for (item, how) in &of_node {
            let earlier = before.get(item).into_iter().flatten();
            let earlier = earlier.filter(|(other, _)| relation.between(*how, **other));
            for (_, (joined, nodes)) in earlier {
                if commit.snap_vec.covers(joined) || problems.len() >= PROBLEMS_MAX {
                    continue;
                }
                let lacks = |(_, vec): &&(&Node<'_>, Vector)| !commit.snap_vec.covers(vec);
                let Some((other, vec)) = nodes.iter().find(lacks) else { continue };
                let what = "two strong transactions conflict, and neither has the other in its \
                            snapshot";
                let problem = Problem::new(Promise::ConflictOrder, what).at(*item);
                let problem = problem.of([node.id(), other.id()]);
                let expected = format!("a snapshot that holds {vec}");
                problems.push(problem.values(expected, commit.snap_vec));
            }
        }
        for (item, how) in of_node {
            let (joined, nodes) = before.entry(item).or_default().entry(how).or_default();
            joined.join(&commit.commit_vec);
            nodes.push((node, commit.commit_vec));
        }
    }
    problems
}

/// Checks strict serializability of strong transactions.
pub fn strict(index: &Index<'_>) -> Vec<Problem> {
    let mut problems = reads(index);
    problems.extend(in_time(index));
    problems.truncate(PROBLEMS_MAX);
    problems
}

/// Returns the items that only strong transactions without labels have changed, or may change.
fn strong_items(index: &Index<'_>) -> BTreeSet<Item> {
    let declared = &index.run.system.strong_only;
    let mut out = BTreeSet::new();
    for node in &index.nodes {
        let strong = node.transaction.strong.as_ref();
        for (item, _, id) in node.transaction.updates() {
            let is_plain = strong.is_some_and(|strong| !strong.labels.contains_key(&item));
            if (!is_plain || id.is_some()) && !declared.contains(&item) {
                out.insert(item);
            }
        }
    }
    let used = index.nodes.iter().flat_map(|node| node.transaction.reads());
    used.map(|(item, _)| item).filter(|item| !out.contains(item)).collect()
}

/// Checks, independent of snapshots, that a strong transaction reads the writes of all lower
/// timestamps.
fn reads(index: &Index<'_>) -> Vec<Problem> {
    let items = strong_items(index);
    let mut problems = Vec::new();
    for (node, commit) in committed(index) {
        let mut own: HashMap<Item, Vec<Own<'_>>> = HashMap::new();
        let snapshot = node.transaction.snapshot.unwrap_or(commit.snap_vec);
        let entry_us = time_us(index.run.own_entry(node.transaction.dc, &snapshot));
        let mut updates = 0..;
        for action in &node.transaction.actions {
            let (item, found) = match action {
                Action::Update { item, op, id } => {
                    let place = updates.next().unwrap_or_default();
                    let name = Element { transaction: node.id(), index: place };
                    own.entry(*item).or_default().push(Own { name, op, id: id.as_ref() });
                    continue;
                }
                Action::Read { item, .. } if !items.contains(item) => continue,
                Action::Read { item, found } => (item, found),
            };
            let own = own.get(item).map_or(&[][..], Vec::as_slice);
            let nothing = Operations::new(item.kind, Vec::new());
            let operations = index.items.get(item).unwrap_or(&nothing);
            let entries = operations.entries();
            let is_before = |place: usize| entries[place].commit.timestamp() < commit.timestamp();
            let shown = operations.show(is_before, &Reader { own, entry_us });
            if !shown.allows(found) && problems.len() < PROBLEMS_MAX {
                let what = "a strong transaction read something else than those before it wrote";
                let problem = Problem::new(Promise::StrictSerializability, what).at(*item);
                let problem = problem.in_dc(node.transaction.dc).of([node.id()]);
                problems.push(problem.contents(&shown.content, found));
            }
        }
    }
    problems
}

/// An event in time; at one time, begins are ordered first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    Begun,
    Told,
}

/// Checks that a transaction comes after a conflicting one that was acknowledged before it began.
fn in_time(index: &Index<'_>) -> Vec<Problem> {
    let strong: Vec<(&Node<'_>, Commit)> = committed(index).collect();
    let mut moments: Vec<(u64, Moment, usize)> = Vec::new();
    for (place, (node, _)) in strong.iter().enumerate() {
        moments.push((node.call.begin_us, Moment::Begun, place));
        let is_told = matches!(node.transaction.outcome, super::history::Outcome::Committed { .. });
        moments.extend(node.call.end_us.filter(|_| is_told).map(|at| (at, Moment::Told, place)));
    }
    moments.sort_unstable();
    let mut told: ByUse<'_, usize> = HashMap::new();
    let mut problems = Vec::new();
    for (_, moment, place) in moments {
        let (node, commit) = &strong[place];
        for (item, how) in uses(node.transaction) {
            if moment == Moment::Told {
                // By place in `strong`, which is the order of timestamps.
                let last = told.entry(item).or_default().entry(how).or_insert(place);
                *last = place.max(*last);
                continue;
            }
            let Some(last) = last_of(&told, &index.run.system.conflicts, item, how) else {
                continue;
            };
            if last > place && problems.len() < PROBLEMS_MAX {
                let (other, other_commit) = &strong[last];
                let what = "a strong transaction comes before one that was acknowledged before it \
                            began";
                let problem = Problem::new(Promise::StrictSerializability, what).at(item);
                let problem = problem.of([node.id(), other.id()]);
                let expected = format!("more than {}", other_commit.timestamp());
                problems.push(problem.values(expected, commit.timestamp()));
            }
        }
    }
    problems
}

/// Returns the place of the last acknowledged transaction that conflicts.
fn last_of(
    told: &ByUse<'_, usize>,
    relation: &Conflicts,
    item: Item,
    how: Use<'_>,
) -> Option<usize> {
    let told = told.get(&item)?.iter();
    told.filter(|(other, _)| relation.between(how, **other)).map(|(_, last)| *last).max()
}

/// Checks sums that strong transactions keep from going below 0: a withdrawal is declared to
/// conflict with itself, and is made only if the transaction saw enough.
pub fn invariants(index: &Index<'_>) -> Vec<Problem> {
    let accounts = &index.run.system.accounts;
    let is_overdrawn = |item: &Item, found: &Content| {
        accounts.contains(item) && matches!(found, Content::Counter(sum) if *sum < 0)
    };
    let overdrawn = |dc: u8, item: Item, found: &Content| {
        let problem = Problem::new(Promise::Invariants, "an account is overdrawn").at(item);
        problem.in_dc(dc).values("0 or more", format!("{found:?}"))
    };
    let nodes = index.nodes.iter();
    let reads = nodes.flat_map(|node| {
        let reads = node.transaction.reads();
        let reads = reads.filter(|(item, found)| is_overdrawn(item, found));
        reads.map(|(item, found)| overdrawn(node.transaction.dc, item, found).of([node.id()]))
    });
    let views = index.run.end.views.iter();
    let ends = views.flat_map(|view| {
        let items = view.items.iter().filter(|(item, found)| is_overdrawn(item, found));
        items.map(|(item, found)| overdrawn(view.dc, *item, found))
    });
    reads.chain(ends).take(PROBLEMS_MAX).collect()
}
