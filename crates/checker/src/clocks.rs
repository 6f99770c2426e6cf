//! Precedence by vector clocks: for each node, the number of nodes of each chain before it.
//!
//! The nodes of a chain follow each other, so one number for each chain is enough; with few
//! sessions that is far less than a bit for each pair.

use crate::graph::Graph;
use crate::limits::CLOCK_ENTRIES_MAX;

/// The chain of each node, and its position there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub chain: Vec<usize>,
    pub position: Vec<usize>,
    pub chains: usize,
}

impl Layout {
    /// Returns the reason why its clocks would be too large, if they would.
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
    /// Creates the clocks of an acyclic graph in which each chain is connected, from an order of
    /// its nodes.
    pub fn new(graph: &Graph, layout: &'l Layout, order: &[usize]) -> Self {
        let chains = layout.chains;
        let mut counts = vec![0; graph.count() * chains];
        let mut clock = vec![0; chains];
        for &node in order {
            // The count of the node's own chain is final here: all its predecessors were handled
            // before.
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

    /// Returns the number of nodes of a chain that come before a node, without the node itself.
    pub fn before(&self, node: usize, chain: usize) -> usize {
        let count = self.counts[node * self.layout.chains + chain] as usize;
        if self.layout.chain[node] == chain { self.layout.position[node] } else { count }
    }

    /// True if one node comes before another.
    pub fn is_before(&self, first: usize, second: usize) -> bool {
        self.before(second, self.layout.chain[first]) > self.layout.position[first]
    }
}
