//! Checks that every value read is the value of its snapshot, with the transaction's own updates on
//! top; for a wrong value, finds an explanation.

use std::collections::HashMap;

use mingle_model::TransactionId;

use super::any::Element;
use super::history::{Action, Commit, Content, Item, Outcome};
use super::index::{Index, Node};
use super::problem::{Problem, Promise};
use super::values::{Entry, Operations, Own, Reader};
use super::vector::{Vector, time_us};
use crate::limits::PROBLEMS_MAX;

/// Checks return value consistency.
pub fn reads(index: &Index<'_>) -> Vec<Problem> {
    let nodes = index.nodes.iter().filter(|node| node.transaction.snapshot.is_some());
    nodes.flat_map(|node| of_transaction(index, node)).take(PROBLEMS_MAX).collect()
}

fn of_transaction(index: &Index<'_>, node: &Node<'_>) -> Vec<Problem> {
    let Some(snapshot) = &node.transaction.snapshot else { return Vec::new() };
    let mut own: HashMap<Item, Vec<Own<'_>>> = HashMap::new();
    let mut problems = Vec::new();
    let (dc, mut updates) = (node.transaction.dc, 0..);
    for action in &node.transaction.actions {
        match action {
            Action::Update { item, op, id } => {
                let index = updates.next().unwrap_or_default();
                let name = Element { transaction: node.id(), index };
                own.entry(*item).or_default().push(Own { name, op, id: id.as_ref() });
            }
            Action::Read { item, found } => {
                let own = own.get(item).map_or(&[][..], Vec::as_slice);
                let read = Read { item: *item, dc, snapshot, own, found };
                if let Some(why) = judge(index, &read) {
                    let problem = Problem::new(why.promise, why.what).at(*item);
                    let problem = problem.in_dc(node.transaction.dc).of([node.id()]);
                    problems.push(problem.of(why.transactions).contents(&why.expected, found));
                }
            }
        }
    }
    problems
}

/// A look at an item: by a read, or in a final view.
pub struct Read<'a> {
    pub item: Item,
    /// The data center at which it takes place.
    pub dc: u8,
    pub snapshot: &'a Vector,
    pub own: &'a [Own<'a>],
    pub found: &'a Content,
}

/// The reason why a value differs from that of its snapshot.
pub struct Why {
    pub promise: Promise,
    pub what: &'static str,
    pub transactions: Vec<TransactionId>,
    pub expected: Content,
}

/// Returns the reason if the value found differs from the expected one.
pub fn judge(index: &Index<'_>, read: &Read<'_>) -> Option<Why> {
    let nothing = Operations::new(read.item.kind, Vec::new());
    let operations = index.items.get(&read.item).unwrap_or(&nothing);
    let shown = operations.at(read.snapshot, &reader(index, read));
    if shown.allows(read.found) {
        return None;
    }
    let (promise, what, transactions) = blame(index, read, operations);
    Some(Why { promise, what, transactions, expected: shown.content })
}

fn reader<'a>(index: &Index<'_>, read: &Read<'a>) -> Reader<'a> {
    let entry_us = time_us(index.run.own_entry(read.dc, read.snapshot));
    Reader { own: read.own, entry_us }
}

/// Returns the smallest change that would explain the value found.
fn blame(
    index: &Index<'_>,
    read: &Read<'_>,
    operations: &Operations<'_>,
) -> (Promise, &'static str, Vec<TransactionId>) {
    let entries = operations.entries();
    let is_held = |place: usize| read.snapshot.covers(&entries[place].commit.commit_vec);
    let reader = reader(index, read);
    let explains =
        |show: &dyn Fn(usize) -> bool| operations.show(show, &reader).content == *read.found;
    for entry in entries {
        let of = entry.transaction;
        let ids = vec![index.nodes[of].id()];
        if read.snapshot.covers(&entry.commit.commit_vec) {
            if explains(&|place| is_held(place) && entries[place].transaction != of) {
                return (
                    Promise::ReturnValues,
                    "what was read lacks a transaction of its snapshot",
                    ids,
                );
            }
        } else if explains(&|place| is_held(place) || entries[place].transaction == of) {
            return (
                Promise::ReturnValues,
                "what was read shows a transaction that its snapshot does not hold",
                ids,
            );
        }
    }
    let plain = entries.iter().map(|entry| Entry { id: None, ..*entry });
    let plain = Operations::new(read.item.kind, plain.collect());
    let own: Vec<Own<'_>> = read.own.iter().map(|own| Own { id: None, ..*own }).collect();
    if plain.at(read.snapshot, &Reader { own: &own, ..reader }).content == *read.found {
        let runs = entries.iter().filter(|entry| entry.id.is_some());
        let runs = runs.map(|entry| index.nodes[entry.transaction].id()).take(PROBLEMS_MAX);
        return (
            Promise::OperationIds,
            "an operation with an id counts more than once",
            runs.collect(),
        );
    }
    if let Some(id) = uncommitted(index, read, &reader, entries) {
        return (
            Promise::ReturnValues,
            "what was read shows a transaction that is not committed",
            vec![id],
        );
    }
    (Promise::ReturnValues, "what was read is not what its snapshot holds", Vec::new())
}

/// Returns a transaction without a commit that would explain the value found.
fn uncommitted(
    index: &Index<'_>,
    read: &Read<'_>,
    reader: &Reader<'_>,
    entries: &[Entry<'_>],
) -> Option<TransactionId> {
    let open =
        index.nodes.iter().enumerate().filter(|(_, node)| {
            node.commit.is_none() && node.transaction.outcome != Outcome::ReadOnly
        });
    for (number, node) in open {
        let snap_vec = node.transaction.snapshot.unwrap_or(node.past_vec);
        let origin = node.transaction.dc;
        let commit_vec = snap_vec.with(origin, snap_vec.highest().saturating_add(1));
        let commit = Commit { origin, snap_vec, commit_vec };
        let updates = node.transaction.updates().enumerate();
        let added = updates.filter(|(_, (item, ..))| *item == read.item);
        let added: Vec<Entry<'_>> = added
            .map(|(index, (_, op, id))| {
                let by = node.id();
                Entry { transaction: number, by, index, commit, op, id }
            })
            .collect();
        if added.is_empty() {
            continue;
        }
        let all: Vec<Entry<'_>> = entries.iter().copied().chain(added).collect();
        let all = Operations::new(read.item.kind, all);
        let is_shown = |place: usize| {
            let entry = &all.entries()[place];
            entry.transaction == number || read.snapshot.covers(&entry.commit.commit_vec)
        };
        if all.show(is_shown, reader).content == *read.found {
            return Some(node.id());
        }
    }
    None
}
