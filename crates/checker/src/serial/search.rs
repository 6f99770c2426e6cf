//! Searches for an order of the units, bounded.
//!
//! The search orders units one by one. A key may only be overwritten after all readers of its
//! current value, so the possible continuations depend on the set of ordered units and not on their
//! order: a set that led to no order is not tried again, and a fixed number of sessions has
//! polynomially many sets (Biswas and Enea, OOPSLA 2019, §4). A unit that cannot hinder any other
//! is taken at once, without a choice.

use std::collections::{BTreeSet, HashSet};

use crate::limits::SEARCH_MEMO_ENTRIES_MAX;
use crate::serial::units::Units;

pub(crate) enum Answer {
    Order(Vec<usize>),
    /// No order explains the reads.
    None,
    Unknown(String),
}

/// The state of one key.
#[derive(Clone, Copy, Debug)]
struct Register {
    /// The last writer.
    writer: usize,
    /// The number of readers of that write that are still to come.
    pending: usize,
    /// Under snapshot isolation, the transaction that has started and will write it.
    open: Option<usize>,
}

/// One unit in the order, with the state that it changed.
struct Frame {
    unit: usize,
    saved: Vec<(usize, Register)>,
    /// The alternatives to the unit, the best last.
    others: Vec<usize>,
}

struct Search<'u> {
    units: &'u Units<'u>,
    /// The number of units that must still come before each unit.
    waits: Vec<usize>,
    /// The units without remaining predecessors, in the order in which they are tried.
    ready: BTreeSet<(u64, usize)>,
    registers: Vec<Register>,
    /// The number of ordered units of each chain.
    frontier: Vec<u32>,
    failed: HashSet<Box<[u32]>>,
    candidates: u64,
}

/// Searches for an order.
pub(crate) fn search(units: &Units, candidates_max: u64) -> Answer {
    let mut search = Search::new(units);
    let mut frames: Vec<Frame> = Vec::new();
    while frames.len() < units.graph.count() {
        let mut choices = search.choices();
        if search.candidates > candidates_max {
            return Answer::Unknown(format!(
                "the search for an order looked at {candidates_max} candidates without an end"
            ));
        }
        // Backtracks to the last unit with an alternative.
        while choices.is_empty() {
            if (search.failed.len() + 1) * search.frontier.len() > SEARCH_MEMO_ENTRIES_MAX {
                return Answer::Unknown(format!(
                    "the search for an order would keep more than {SEARCH_MEMO_ENTRIES_MAX} entries"
                ));
            }
            search.failed.insert(search.frontier.clone().into_boxed_slice());
            let Some(frame) = frames.pop() else {
                return Answer::None;
            };
            search.take_back(&frame);
            choices = frame.others;
        }
        if let Some(unit) = choices.pop() {
            let saved = search.put(unit);
            frames.push(Frame { unit, saved, others: choices });
        }
    }
    Answer::Order(frames.into_iter().map(|frame| frame.unit).collect())
}

impl<'u> Search<'u> {
    fn new(units: &'u Units<'u>) -> Self {
        let waits = units.graph.indegrees();
        let initial = Register { writer: usize::MAX, pending: 0, open: None };
        let mut search = Self {
            units,
            ready: BTreeSet::new(),
            registers: vec![initial; units.index.keys.len()],
            frontier: vec![0; units.layout.chains],
            failed: HashSet::new(),
            candidates: 0,
            waits,
        };
        for unit in 0..units.graph.count() {
            if search.waits[unit] == 0 {
                search.ready.insert((search.rank(unit), unit));
            }
        }
        search
    }

    /// Returns the rank for the order of tries: the earliest transaction in the history first.
    fn rank(&self, unit: usize) -> u64 {
        let index = self.units.index;
        let Some(number) = self.units.transaction(unit) else { return 0 };
        let Some(transaction) = index.transaction(number) else { return 0 };
        let end = transaction.interval.map(|interval| interval.end);
        end.or(transaction.commit).unwrap_or(index.nodes[number].position as u64)
    }

    /// Returns the units that may come next, the best last; a single unit if it hinders no other;
    /// none if the units ordered so far are known to lead to no order.
    fn choices(&mut self) -> Vec<usize> {
        let mut choices = Vec::new();
        for &(_, unit) in &self.ready {
            self.candidates += 1;
            if self.is_enabled(unit) {
                if self.is_harmless(unit) {
                    return vec![unit];
                }
                choices.push(unit);
            }
        }
        if choices.len() > 1 && self.failed.contains(self.frontier.as_slice()) {
            return Vec::new();
        }
        choices.reverse();
        choices
    }

    /// Returns the roles of a unit: the transaction that starts in it, and the one that commits.
    fn roles(&self, unit: usize) -> (Option<usize>, Option<usize>) {
        let transaction = self.units.transaction(unit);
        (
            transaction.filter(|number| self.units.start(*number) == unit),
            transaction.filter(|number| self.units.commit(*number) == unit),
        )
    }

    fn is_enabled(&self, unit: usize) -> bool {
        let nodes = &self.units.index.nodes;
        let (starts, commits) = self.roles(unit);
        let may_start = starts.is_none_or(|number| {
            let node = &nodes[number];
            let mut writes = node.writes.iter();
            node.reads.iter().all(|(key, writer)| self.registers[*key].writer == *writer)
                && writes.all(|(key, _)| self.registers[*key].open.is_none())
        });
        let may_commit = commits.is_none_or(|number| {
            nodes[number].writes.iter().all(|(key, _)| {
                let reads = |number: usize| nodes[number].is_reader_of(*key);
                // A unit that both starts and commits reads before it writes.
                let own = usize::from(starts.is_some_and(reads));
                self.registers[*key].pending == own
            })
        });
        may_start && may_commit
    }

    /// True if a unit that may come next hinders no other. Either it is only a commit, whose keys
    /// no other transaction may write before it; or no transaction reads its writes, if any, and no
    /// other transaction still reads the values that it overwrites.
    fn is_harmless(&self, unit: usize) -> bool {
        let (Some(number), _) = self.roles(unit) else {
            return true;
        };
        let node = &self.units.index.nodes[number];
        node.writes.iter().all(|(key, _)| {
            let own = usize::from(node.is_reader_of(*key));
            self.units.reader_count(*key, number) == 0 && self.registers[*key].pending == own
        })
    }

    fn put(&mut self, unit: usize) -> Vec<(usize, Register)> {
        let units = self.units;
        self.ready.remove(&(self.rank(unit), unit));
        self.frontier[units.layout.chain[unit]] += 1;
        for arrow in &units.graph.arrows[unit] {
            self.waits[arrow.to] -= 1;
            if self.waits[arrow.to] == 0 {
                self.ready.insert((self.rank(arrow.to), arrow.to));
            }
        }
        let mut saved = Vec::new();
        let (starts, commits) = self.roles(unit);
        if let Some(number) = starts {
            for &(key, _) in &units.index.nodes[number].reads {
                saved.push((key, self.registers[key]));
                self.registers[key].pending -= 1;
            }
            for &(key, _) in &units.index.nodes[number].writes {
                saved.push((key, self.registers[key]));
                self.registers[key].open = Some(number);
            }
        }
        if let Some(number) = commits {
            for key in self.written(number) {
                saved.push((key, self.registers[key]));
                let pending = units.reader_count(key, number);
                self.registers[key] = Register { writer: number, pending, open: None };
            }
        }
        saved
    }

    /// Returns the keys that a transaction writes; `INIT` writes all.
    fn written(&self, number: usize) -> Vec<usize> {
        if number == crate::index::INIT {
            return (0..self.registers.len()).collect();
        }
        self.units.index.nodes[number].writes.iter().map(|(key, _)| *key).collect()
    }

    fn take_back(&mut self, frame: &Frame) {
        for (key, register) in frame.saved.iter().rev() {
            self.registers[*key] = *register;
        }
        for arrow in &self.units.graph.arrows[frame.unit] {
            if self.waits[arrow.to] == 0 {
                self.ready.remove(&(self.rank(arrow.to), arrow.to));
            }
            self.waits[arrow.to] += 1;
        }
        self.frontier[self.units.layout.chain[frame.unit]] -= 1;
        self.ready.insert((self.rank(frame.unit), frame.unit));
    }
}
