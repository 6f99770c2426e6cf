//! Transactional causal consistency without convergence.
//!
//! For each transaction there must be an order of its causal past, compatible with causality, in
//! which it reads the last write of each key. If it reads `x` from `t1`, each other writer of `x`
//! before it must come before `t1`: such an order exists unless these edges and causality close a
//! cycle (the bad patterns of Bouajjani and others, POPL 2017, for CC, with whole transactions
//! instead of single operations).

use crate::clocks::Clocks;
use crate::graph::{Graph, Reason};
use crate::index::{Index, Node};
use crate::limits::CAUSAL_CANDIDATES_MAX;
use crate::verdict::Basis;
use crate::weak::{Found, base, cycle, layout};

/// Checks that each transaction reads from a causal past of its own.
pub(crate) fn check(index: &Index) -> Found {
    let layout = layout(index);
    if let Some(reason) = layout.too_large() {
        return Found::Unknown(reason);
    }
    let graph = base(index, true);
    let Some(order) = graph.order() else {
        return cycle(&graph, Basis::Axioms);
    };
    let clocks = Clocks::new(&graph, &layout, &order);
    let violations = index.live().filter(|(reader, node)| breaks(index, &clocks, *reader, node));
    let found = violations.take(CAUSAL_CANDIDATES_MAX).map(|(reader, node)| {
        let mut graph = graph.clone();
        for (key, writer, other) in forced(index, &clocks, reader, node) {
            graph.add(other, writer, Reason::WwForced { key, reader });
        }
        graph.shortest_cycle().expect("the edges of a violation close a cycle")
    });
    match found.min_by_key(Vec::len) {
        Some(steps) => Found::Cycle(steps, Basis::Axioms),
        None => Found::Order(Vec::new(), Basis::Axioms),
    }
}

/// Returns for each read of a transaction and each chain: the key, the writer it is read from, and
/// the last other writer that comes before the reader.
fn forced<'a>(
    index: &'a Index,
    clocks: &'a Clocks,
    reader: usize,
    node: &'a Node,
) -> impl Iterator<Item = (usize, usize, usize)> + 'a {
    node.reads.iter().flat_map(move |&(key, writer)| {
        index.writers[key].iter().filter_map(move |(chain, writers)| {
            let seen = clocks.before(reader, *chain);
            let count = writers.partition_point(|other| index.nodes[*other].position < seen);
            let other = *writers.get(count.checked_sub(1)?)?;
            (other != writer).then_some((key, writer, other))
        })
    })
}

/// True if the forced edges of one transaction close a cycle. Each of these edges leads to a writer
/// that the transaction reads from, so a cycle passes only through such writers: from one to the
/// next by causality and then a forced edge. In each chain, the writers before a node are a prefix
/// of the chain, so each forced edge becomes one edge for each chain, from a node that stands for
/// this prefix.
fn breaks(index: &Index, clocks: &Clocks, reader: usize, node: &Node) -> bool {
    let mut targets: Vec<usize> = node.reads.iter().map(|(_, writer)| *writer).collect();
    let place = |target: &usize| (index.nodes[*target].chain, index.nodes[*target].position);
    targets.sort_unstable_by_key(place);
    targets.dedup();
    let chains: Vec<&[usize]> =
        targets.chunk_by(|a, b| index.nodes[*a].chain == index.nodes[*b].chain).collect();
    // The target at `first + n` has node `first + n`; all targets of its chain up to it have node
    // `count + first + n`.
    let (count, mut first) = (targets.len(), 0);
    let mut between = Graph::new(2 * count);
    for chain in &chains {
        for target in first..first + chain.len() {
            between.add(target, count + target, Reason::So);
            if target > first {
                between.add(count + target - 1, count + target, Reason::So);
            }
        }
        first += chain.len();
    }
    for (key, writer, other) in forced(index, clocks, reader, node) {
        let Ok(to) = targets.binary_search_by_key(&place(&writer), place) else { continue };
        let mut first = 0;
        for chain in &chains {
            let comes_before =
                |target: &usize| *target == other || clocks.is_before(*target, other);
            let before = chain.partition_point(comes_before);
            if before > 0 {
                between.add(count + first + before - 1, to, Reason::WwForced { key, reader });
            }
            first += chain.len();
        }
    }
    between.order().is_none()
}
