//! Atomic visibility, checked without vectors, from the values that reads show.
//!
//! A line of a log that no transaction clears identifies its transaction, if only one appended it.
//! The value of a register that no transaction erases does the same. If one transaction changed two
//! items, a reader that sees its write at one item sees it at the other too, or a later write
//! there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use mingle_model::{TransactionId, Value};

use super::history::{Action, Content, Item, ItemKind, Op};
use super::index::{Index, Node};
use super::problem::{Problem, Promise};
use super::registers;
use crate::limits::PROBLEMS_MAX;

/// Checks atomic visibility, in each transaction's reads and in each final view.
pub fn check(index: &Index<'_>) -> Vec<Problem> {
    let marks = Marks::new(index);
    let mut problems = Vec::new();
    for node in &index.nodes {
        let found = marks.fracture(index, &of_others(node), Some(node.id()));
        problems.extend(found.map(|found| found.in_dc(node.transaction.dc)));
    }
    for view in &index.run.end.views {
        let seen = view.items.iter().map(|(item, found)| (*item, found)).collect();
        problems.extend(marks.fracture(index, &seen, None).map(|found| found.in_dc(view.dc)));
    }
    problems.extend(registers::fractured(index));
    problems.truncate(PROBLEMS_MAX);
    problems
}

/// Returns the values that a transaction read of items before it changed them.
fn of_others<'r>(node: &Node<'r>) -> BTreeMap<Item, &'r Content> {
    let (mut seen, mut own) = (BTreeMap::new(), BTreeSet::new());
    for action in &node.transaction.actions {
        match action {
            Action::Read { item, found } if !own.contains(item) => {
                seen.insert(*item, found);
            }
            Action::Read { .. } => {}
            Action::Update { item, .. } => {
                own.insert(*item);
            }
        }
    }
    seen
}

/// The values that identify their writers.
struct Marks<'r> {
    /// For each item with such values: the values written, in the order of versions.
    written: HashMap<Item, Vec<&'r Value>>,
    /// For each two such items: the transactions that wrote both, with the places of their writes.
    both: HashMap<(Item, Item), Vec<Both>>,
}

/// A transaction that wrote two items, with the place of its write at each.
struct Both {
    transaction: usize,
    places: (usize, usize),
}

impl<'r> Marks<'r> {
    fn new(index: &Index<'r>) -> Self {
        let out = ambiguous(index);
        let (mut written, mut places) =
            (HashMap::new(), BTreeMap::<usize, Vec<(Item, usize)>>::new());
        for (item, operations) in index.items.iter().filter(|(item, _)| !out.contains(item)) {
            let values = operations.entries().iter().filter_map(|entry| value_of(entry.op));
            written.insert(*item, values.collect::<Vec<_>>());
            for (place, entry) in operations.entries().iter().enumerate() {
                let of = places.entry(entry.transaction).or_default();
                // Of several writes of one transaction only the last is visible.
                of.retain(|(other, _)| other != item);
                of.push((*item, place));
            }
        }
        let mut both: HashMap<(Item, Item), Vec<Both>> = HashMap::new();
        for (transaction, items) in places {
            for (count, (one, place)) in items.iter().enumerate() {
                for (other, other_place) in &items[count + 1..] {
                    let of_both = both.entry((*one, *other)).or_default();
                    of_both.push(Both { transaction, places: (*place, *other_place) });
                }
            }
        }
        Self { written, both }
    }

    /// Returns a problem for the first transaction of which the reader sees only a part.
    fn fracture(
        &self,
        index: &Index<'_>,
        seen: &BTreeMap<Item, &Content>,
        reader: Option<TransactionId>,
    ) -> Option<Problem> {
        let sights = seen.iter().filter_map(|(item, found)| {
            let written = self.written.get(item)?;
            Some((*item, Sight::new(written, found)?))
        });
        let sights: Vec<(Item, Sight)> = sights.collect();
        for (count, (one, sight)) in sights.iter().enumerate() {
            for (other, other_sight) in &sights[count + 1..] {
                let both = self.both.get(&(*one, *other)).map_or(&[][..], Vec::as_slice);
                for Both { transaction, places } in both {
                    let states = (sight.has(places.0), other_sight.has(places.1));
                    let (at, not_at) = match states {
                        (Some(true), Some(false)) => (*one, *other),
                        (Some(false), Some(true)) => (*other, *one),
                        _ => continue,
                    };
                    let what = format!("a transaction is seen at {at}, and not here");
                    let problem = Problem::new(Promise::Atomicity, what).at(not_at);
                    let writer = index.nodes[*transaction].id();
                    let found = format!("{:?}", seen[&not_at]);
                    return Some(
                        problem.of(reader).of([writer]).values("all of it or nothing", found),
                    );
                }
            }
        }
        None
    }
}

/// Returns the items with a value that does not identify its writer.
fn ambiguous(index: &Index<'_>) -> BTreeSet<Item> {
    let (mut known, mut out) = (HashSet::new(), BTreeSet::new());
    for node in &index.nodes {
        for (item, op, id) in node.transaction.updates() {
            let is_clear = matches!(item.kind, ItemKind::Log | ItemKind::Register) && id.is_none();
            let value = value_of(op).filter(|_| is_clear);
            if value.is_none_or(|value| !known.insert((item, value))) {
                out.insert(item);
            }
        }
    }
    out
}

fn value_of(op: &Op) -> Option<&Value> {
    match op {
        Op::Append(value) | Op::Write(value) => Some(value),
        _ => None,
    }
}

/// The visible writes of an item.
enum Sight {
    /// For a log: for each line written, true if it is visible.
    Lines(Vec<bool>),
    /// For a register: the visible writes, in order.
    Values(Vec<usize>),
}

impl Sight {
    /// Returns none if the content has a value that no transaction wrote.
    fn new(written: &[&Value], found: &Content) -> Option<Self> {
        match found {
            Content::Log(lines) => Some(Self::Lines(places(written, lines)?)),
            Content::Register(values) => {
                let place = |value| written.iter().rposition(|other| *other == value);
                let places: Option<Vec<usize>> = values.iter().map(place).collect();
                Some(Self::Values(places?))
            }
            _ => None,
        }
    }

    /// True if the write at this place is visible; none if it may have been overwritten.
    fn has(&self, place: usize) -> Option<bool> {
        match self {
            Self::Lines(seen) => Some(seen[place]),
            Self::Values(seen) if seen.contains(&place) => Some(true),
            Self::Values(seen) => match seen.last() {
                Some(last) if *last > place => None,
                _ => Some(false),
            },
        }
    }
}

/// Marks the written lines that are present. Usually they are in the order of versions, so that one
/// pass finds them.
fn places(written: &[&Value], lines: &[Value]) -> Option<Vec<bool>> {
    let (mut seen, mut next) = (vec![false; written.len()], 0);
    for line in lines {
        let ahead = written[next..].iter().position(|value| *value == line);
        let place = match ahead {
            Some(ahead) => next + ahead,
            None => written.iter().position(|value| *value == line)?,
        };
        seen[place] = true;
        next = place + 1;
    }
    Some(seen)
}
