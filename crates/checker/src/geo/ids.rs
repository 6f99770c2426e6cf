//! Operation ids: none is accepted below a floor. That only one of several runs counts is part of
//! the meaning of the types (`values`).

use std::collections::HashMap;

use mingle_model::Origin;

use super::history::{Floor, Item};
use super::index::Index;
use super::problem::{Problem, Promise, Short};
use crate::limits::PROBLEMS_MAX;

/// Checks floors, and that each id names one operation.
pub fn check(index: &Index<'_>) -> Vec<Problem> {
    let mut problems = floors(index);
    problems.extend(meanings(index));
    problems.truncate(PROBLEMS_MAX);
    problems
}

/// Checks that no commit after a floor was raised has an id below it.
fn floors(index: &Index<'_>) -> Vec<Problem> {
    let mut of_replica: HashMap<(u8, u16, Origin), Vec<&Floor>> = HashMap::new();
    for floor in &index.run.floors {
        of_replica.entry((floor.dc, floor.partition, floor.origin)).or_default().push(floor);
    }
    let mut problems = Vec::new();
    if of_replica.is_empty() {
        return problems;
    }
    for (node, commit) in index.committed() {
        for (item, _, id) in node.transaction.updates() {
            let Some(id) = id else { continue };
            let Some(partition) = partition_of(index, item) else { continue };
            let at = (commit.origin, partition, id.transaction.origin);
            let floors = of_replica.get(&at).map_or(&[][..], Vec::as_slice);
            let passed = floors.iter().find(|floor| {
                id.transaction.sequence <= floor.sequence && commit.timestamp() > floor.at
            });
            if let Some(floor) = passed {
                let what = format!("an operation was accepted below the floor of its id {id}");
                let problem = Problem::new(Promise::OperationIds, what).of([node.id()]).at(item);
                let expected = format!("none above {} up to {}", floor.at, floor.sequence);
                problems.push(problem.in_dc(commit.origin).values(expected, commit.timestamp()));
            }
        }
    }
    problems
}

fn partition_of(index: &Index<'_>, item: Item) -> Option<u16> {
    let system = &index.run.system;
    let only = (system.partition_count == 1).then_some(0);
    system.partition_of.get(&item).copied().or(only)
}

/// Checks that an id names one operation on one item; otherwise "only one run counts" has no
/// meaning.
fn meanings(index: &Index<'_>) -> Vec<Problem> {
    let mut known = HashMap::new();
    let mut problems = Vec::new();
    for (item, operations) in &index.items {
        for entry in operations.entries() {
            let Some(id) = entry.id else { continue };
            let (other_item, other) = *known.entry(id).or_insert((*item, entry));
            if other_item != *item || other.op != entry.op {
                let (one, two) =
                    (index.nodes[other.transaction].id(), index.nodes[entry.transaction].id());
                let what = format!("{id} names two operations");
                let problem = Problem::new(Promise::Recording, what).at(*item).of([two, one]);
                let expected = format!("{:?} of {other_item}, as in {}", other.op, Short(&one));
                problems.push(problem.values(expected, format!("{:?}", entry.op)));
            }
        }
    }
    problems
}
