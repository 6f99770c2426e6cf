//! The units to be ordered, and their initial constraints.

use std::collections::HashMap;

use crate::clocks::Layout;
use crate::graph::{Graph, Reason};
use crate::history::Outcome;
use crate::index::{INIT, Index};
use crate::serial::Rules;

pub(crate) struct Units<'i> {
    pub index: &'i Index<'i>,
    pub rules: Rules,
    pub graph: Graph,
    pub layout: Layout,
    readers: HashMap<(usize, usize), Vec<usize>>,
}

impl<'i> Units<'i> {
    pub fn new(index: &'i Index<'i>, rules: Rules) -> Self {
        let width = if rules.is_split { 2 } else { 1 };
        let mut layout = Layout { chains: index.chains, ..Layout::default() };
        for node in &index.nodes {
            for part in 0..width {
                layout.chain.push(node.chain);
                layout.position.push(node.position * width + part);
            }
        }
        let mut readers: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
        for (reader, node) in index.live() {
            for &(key, writer) in &node.reads {
                readers.entry((key, writer)).or_default().push(reader);
            }
        }
        let graph = Graph::new(index.nodes.len() * width);
        let mut units = Self { index, rules, graph, layout, readers };
        units.add_base();
        if rules.real_time {
            units.add_real_time();
        }
        units
    }

    fn width(&self) -> usize {
        if self.rules.is_split { 2 } else { 1 }
    }

    /// Returns the unit in which a transaction reads.
    pub fn start(&self, transaction: usize) -> usize {
        transaction * self.width()
    }

    /// Returns the unit in which a transaction writes.
    pub fn commit(&self, transaction: usize) -> usize {
        transaction * self.width() + self.width() - 1
    }

    /// Returns the transaction of a unit; none for a moment of real time.
    pub fn transaction(&self, unit: usize) -> Option<usize> {
        let transaction = unit / self.width();
        (transaction < self.index.nodes.len()).then_some(transaction)
    }

    /// Returns the transactions of an order of units, in the order of their commits.
    pub fn commits(&self, order: &[usize]) -> Vec<usize> {
        let found = order.iter().filter_map(|unit| {
            let transaction = self.transaction(*unit)?;
            (self.commit(transaction) == *unit).then_some(transaction)
        });
        found.collect()
    }

    /// Returns the transactions that read a key from a writer.
    pub fn readers_of(&self, key: usize, writer: usize) -> Vec<usize> {
        self.readers.get(&(key, writer)).cloned().unwrap_or_default()
    }

    /// Returns the number of transactions that read a key from a writer.
    pub fn reader_count(&self, key: usize, writer: usize) -> usize {
        self.readers.get(&(key, writer)).map_or(0, Vec::len)
    }

    fn add_base(&mut self) {
        let index = self.index;
        for transaction in 0..index.nodes.len() {
            if self.rules.is_split {
                let (from, to) = (self.start(transaction), self.commit(transaction));
                self.graph.add(from, to, Reason::Inside);
            }
        }
        for (transaction, node) in index.live() {
            let start = self.start(transaction);
            self.graph.add(self.commit(node.after), start, Reason::So);
            for &(key, writer) in &node.reads {
                if writer != INIT {
                    self.graph.add(self.commit(writer), start, Reason::Wr { key });
                }
            }
        }
    }

    /// Adds real time as a line of moments, one for each end: linear, while edges between
    /// transactions would be quadratic. An unknown outcome may take effect long after its end, and
    /// orders nothing.
    fn add_real_time(&mut self) {
        let index = self.index;
        let intervals = index.live().filter_map(|(number, _)| {
            let transaction = index.transaction(number)?;
            Some((number, transaction.outcome, transaction.interval?))
        });
        let intervals: Vec<_> = intervals.collect();
        let committed = intervals.iter().filter(|(_, outcome, _)| *outcome == Outcome::Committed);
        let mut ends: Vec<u64> = committed.map(|(_, _, interval)| interval.end).collect();
        ends.sort_unstable();
        ends.dedup();
        let first = self.graph.count();
        for position in 0..ends.len() {
            self.graph.arrows.push(Vec::new());
            self.layout.chain.push(self.layout.chains);
            self.layout.position.push(position);
            if position > 0 {
                self.graph.add(first + position - 1, first + position, Reason::Rt);
            }
        }
        self.layout.chains += 1;
        for (number, outcome, interval) in intervals {
            if outcome == Outcome::Committed {
                let moment = ends.partition_point(|end| *end < interval.end);
                self.graph.add(self.commit(number), first + moment, Reason::Rt);
            }
            if let Some(before) = ends.partition_point(|end| *end < interval.begin).checked_sub(1) {
                self.graph.add(first + before, self.start(number), Reason::Rt);
            }
        }
    }
}
