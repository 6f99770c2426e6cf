//! Cases of items of any type that a run has reached, counted in its history.

use std::collections::{BTreeMap, BTreeSet};

use mingle_checker::geo::{Commit, Item, ItemOp, Op, OpId, Place, Run, Vector};
use mingle_geo::Timestamp;

/// A committed operation on an item.
struct Done<'r> {
    commit: Commit,
    op: &'r ItemOp,
    id: Option<OpId>,
}

impl Done<'_> {
    fn time_us(&self) -> u64 {
        Timestamp(self.commit.timestamp()).micros()
    }

    fn sees(&self, other: &Self) -> bool {
        self.commit.snap_vec.covers(&other.commit.commit_vec)
    }

    fn is_beside(&self, other: &Self) -> bool {
        self.commit != other.commit && !self.sees(other) && !other.sees(self)
    }

    /// True if it says when the item expires: at a deadline, or never.
    fn is_fact(&self) -> bool {
        matches!(self.op, ItemOp::Set(_) | ItemOp::Delete | ItemOp::Expire(_))
    }

    /// Returns the end of the life that it ends if no other fact comes in time.
    fn end_us(&self) -> Option<u64> {
        let ItemOp::Expire(Some(deadline_us)) = self.op else { return None };
        Some((*deadline_us).max(self.time_us() + 1))
    }

    /// Returns the number of the type that it gives something to.
    fn body(&self) -> Option<u8> {
        match self.op {
            ItemOp::Set(_) => Some(0),
            ItemOp::Put(place, _) | ItemOp::Add(place, _) => Some(match place {
                Place::Value => 0,
                Place::Field(_) => 1,
                Place::Score(_) => 2,
            }),
            ItemOp::Insert(_) => Some(3),
            ItemOp::Push(..) => Some(4),
            _ => None,
        }
    }

    /// True if it takes the additions of a cell away.
    fn takes(&self, at: &Place) -> bool {
        match self.op {
            ItemOp::Set(_) | ItemOp::Delete => true,
            ItemOp::Put(place, _) | ItemOp::Drop(place) => place == at,
            _ => false,
        }
    }
}

/// A snapshot of a reader, with the time of its own entry.
struct Look {
    snapshot: Vector,
    now_us: u64,
}

/// Returns the counts by name; `forgotten` are the items that a replica does not remember in the end.
pub(super) fn counts(run: &Run, forgotten: &BTreeSet<Item>) -> BTreeMap<String, u64> {
    let mut done: BTreeMap<Item, Vec<Done<'_>>> = BTreeMap::new();
    let mut looks: Vec<Look> = Vec::new();
    for (_, _, transaction) in run.transactions() {
        looks.extend(transaction.snapshot.map(|snapshot| {
            let now_us = Timestamp(snapshot.get(transaction.dc)).micros();
            Look { snapshot, now_us }
        }));
        let Some(commit) = transaction.commit else { continue };
        for (item, op, id) in transaction.updates() {
            if let Op::Item(op) = op {
                done.entry(item).or_default().push(Done { commit, op, id: id.copied() });
            }
        }
    }
    let names = [
        "item: addition beside a put",
        "item: types beside each other",
        "item: element pulled",
        "item: life ended",
        "item: late fact about a deadline",
        "item: removal beside the end of a life",
        "item: forgotten in the end",
        "item: written by strong transactions only",
        "item: operation run beside another run of its id",
    ];
    let mut counts = [0; 9];
    for (item, all) in &mut done {
        all.sort_by_key(|one| one.commit.version());
        let found = [
            additions(all),
            pairs(all, |one, other| one.body().zip(other.body()).is_some_and(|(a, b)| a < b)),
            all.iter().filter(|one| matches!(one.op, ItemOp::Pull(of) if !of.is_empty())).count(),
            ends(all).len(),
            late(all, &looks),
            across(all),
            usize::from(forgotten.contains(item)),
            if run.system.strong_only.contains(item) { all.len() } else { 0 },
            pairs(all, |one, other| one.id.is_some() && one.id == other.id),
        ];
        counts.iter_mut().zip(found).for_each(|(count, found)| *count += found as u64);
    }
    names.into_iter().map(str::to_owned).zip(counts).collect()
}

/// Returns the number of pairs of operations beside each other for which `is` holds.
fn pairs(all: &[Done<'_>], is: impl Fn(&Done<'_>, &Done<'_>) -> bool) -> usize {
    let of_one =
        |one: &Done<'_>| all.iter().filter(|other| is(one, other) && one.is_beside(other)).count();
    all.iter().map(of_one).sum()
}

fn additions(all: &[Done<'_>]) -> usize {
    pairs(all, |one, other| match one.op {
        ItemOp::Add(place, _) => other.takes(place) && other.body().is_some(),
        _ => false,
    })
}

/// Returns the facts that ended a life, by the time of the last operation.
fn ends<'a, 'r>(all: &'a [Done<'r>]) -> Vec<&'a Done<'r>> {
    let last_us = all.iter().map(Done::time_us).max().unwrap_or_default();
    let facts: Vec<&Done<'_>> = all.iter().filter(|one| one.is_fact()).collect();
    let ended = facts.iter().enumerate().filter(|(place, fact)| {
        let next_us = facts.get(place + 1).map_or(u64::MAX, |next| next.time_us());
        fact.end_us().is_some_and(|end_us| end_us <= last_us && end_us <= next_us)
    });
    ended.map(|(_, fact)| *fact).collect()
}

/// Returns the number of facts that saved a life which a reader without them saw ended.
fn late(all: &[Done<'_>], looks: &[Look]) -> usize {
    let facts: Vec<&Done<'_>> = all.iter().filter(|one| one.is_fact()).collect();
    let is_late = |pair: &&[&Done<'_>]| {
        let [first, next] = pair else { return false };
        let Some(end_us) = first.end_us().filter(|end_us| next.time_us() < *end_us) else {
            return false;
        };
        let was_ended = |look: &Look| {
            look.now_us >= end_us
                && look.snapshot.covers(&first.commit.commit_vec)
                && !look.snapshot.covers(&next.commit.commit_vec)
        };
        first.is_beside(next) && looks.iter().any(was_ended)
    };
    facts.windows(2).filter(is_late).count()
}

/// Returns the number of removals of additions of a life that did not see its end.
fn across(all: &[Done<'_>]) -> usize {
    let ends = ends(all);
    let is_across = |removal: &&Done<'_>| {
        let unseen = ends.iter().filter(|end| !removal.sees(end));
        let mut unseen = unseen.filter_map(|end| end.end_us());
        unseen.any(|end_us| {
            end_us <= removal.time_us()
                && all.iter().any(|one| match one.op {
                    ItemOp::Add(place, _) => {
                        one.time_us() < end_us && removal.takes(place) && removal.sees(one)
                    }
                    _ => false,
                })
        })
    };
    all.iter().filter(is_across).count()
}
