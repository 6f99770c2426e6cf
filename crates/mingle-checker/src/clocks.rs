//! What comes before what, by vector clocks: for each node, how much of each chain does.
//!
//! The nodes of a chain follow each other, so a number for each chain says it all; with few
//! sessions that is far less than a bit for each pair.

use crate::graph::Graph;
use crate::limits::CLOCK_ENTRIES_MAX;

/// Which chain each node is in, and where.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub chain: Vec<usize>,
    pub position: Vec<usize>,
    pub chains: usize,
}

impl Layout {
    /// Why clocks for it would be too large, if they would.
    pub fn too_large(&self) -> Option<String> {
        let (nodes, chains) = (self.chain.len(), self.chains);
        let entries = nodes.saturating_mul(chains);
        (entries > CLOCK_ENTRIES_MAX).then(|| {
            format!("{nodes} nodes in {chains} sessions need {entries} entries of vector clocks, more than {CLOCK_ENTRIES_MAX}")
        })
    }
}

pub(crate) struct Clocks<'l> {
    layout: &'l Layout,
    counts: Vec<u32>,
}

impl<'l> Clocks<'l> {
    /// The clocks of a graph without cycles, in which each chain is connected, from an order of it.
    pub fn new(graph: &Graph, layout: &'l Layout, order: &[usize]) -> Self {
        let chains = layout.chains;
        let mut counts = vec![0; graph.count() * chains];
        let mut clock = vec![0; chains];
        for &node in order {
            // The count of the own chain is final here: what reaches the node was before it.
            counts[node * chains + layout.chain[node]] = layout.position[node] as u32 + 1;
            clock.copy_from_slice(&counts[node * chains..(node + 1) * chains]);
            for arrow in &graph.arrows[node] {
                let target = &mut counts[arrow.to * chains..(arrow.to + 1) * chains];
                for (count, own) in target.iter_mut().zip(&clock) {
                    *count = (*count).max(*own);
                }
            }
        }
        Self { layout, counts }
    }

    /// How many nodes of a chain come before a node, itself not counted.
    pub fn before(&self, node: usize, chain: usize) -> usize {
        let count = self.counts[node * self.layout.chains + chain] as usize;
        if self.layout.chain[node] == chain { self.layout.position[node] } else { count }
    }

    /// Whether one node comes before another.
    pub fn is_before(&self, first: usize, second: usize) -> bool {
        self.before(second, self.layout.chain[first]) > self.layout.position[first]
    }
}
