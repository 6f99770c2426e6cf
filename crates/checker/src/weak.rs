//! Read atomicity and causal convergence: one round of saturation.
//!
//! Both require of the commit order: if `t3` reads a key from `t1`, and another writer `t2` of the
//! key is visible to `t3`, then `t2` comes before `t1`. They differ in visibility, which does not
//! depend on the commit order. So the forced edges are all found at once, and the history satisfies
//! the model unless they close a cycle (Biswas and Enea, OOPSLA 2019, §3, Algorithm 1).

use crate::clocks::{Clocks, Layout};
use crate::graph::{Graph, Reason, Step};
use crate::index::{INIT, Index, Node};
use crate::verdict::Basis;

/// The result of a checker, in numbers of the index.
pub(crate) enum Found {
    Order(Vec<usize>, Basis),
    Cycle(Vec<Step>, Basis),
    NoOrder,
    Unknown(String),
}

/// Returns the chains of an index, one node for each transaction.
pub(crate) fn layout(index: &Index) -> Layout {
    Layout {
        chain: index.nodes.iter().map(|node| node.chain).collect(),
        position: index.nodes.iter().map(|node| node.position).collect(),
        chains: index.chains,
    }
}

/// Returns the graph of session order and, if `reads`, of edges from writers to their readers.
pub(crate) fn base(index: &Index, reads: bool) -> Graph {
    let mut graph = Graph::new(index.nodes.len());
    for (number, node) in index.live() {
        graph.add(node.after, number, Reason::So);
        if reads {
            for &(key, writer) in &node.reads {
                if writer != INIT {
                    graph.add(writer, number, Reason::Wr { key });
                }
            }
        }
    }
    graph
}

/// Checks read atomicity: visible are earlier transactions of the session, and those read from.
pub(crate) fn read_atomic(index: &Index) -> Found {
    let layout = layout(index);
    if let Some(reason) = layout.too_large() {
        return Found::Unknown(reason);
    }
    let sessions = base(index, false);
    let order = sessions.order().expect("sessions are ordered as the history is");
    let clocks = Clocks::new(&sessions, &layout, &order);
    let mut graph = base(index, true);
    force_visible(index, &clocks, &mut graph);
    for (reader, node) in index.live() {
        for (place, other) in read_along(index, node) {
            let (key, writer) = node.reads[place];
            graph.add(other, writer, Reason::WwForced { key, reader });
        }
    }
    conclude(index, graph)
}

/// Returns for each read of a transaction, by its place, the other writers of its key that the
/// transaction also reads from.
fn read_along(index: &Index, node: &Node) -> Vec<(usize, usize)> {
    let mut writers: Vec<usize> = node.reads.iter().map(|(_, writer)| *writer).collect();
    writers.sort_unstable();
    writers.dedup();
    let mut found = Vec::new();
    for other in writers {
        let writes = &index.nodes[other].writes;
        let mut add = |place: usize| {
            if node.reads[place].1 != other {
                found.push((place, other));
            }
        };
        // Walks the shorter of the two lists, so the cost is not quadratic in the reads of one
        // transaction.
        if writes.len() < node.reads.len() {
            writes.iter().filter_map(|(key, _)| node.read_place(*key)).for_each(&mut add);
        } else {
            let is_writer = |place: &usize| index.nodes[other].is_writer_of(node.reads[*place].0);
            (0..node.reads.len()).filter(is_writer).for_each(&mut add);
        }
    }
    found.sort_unstable();
    found
}

/// Checks causal convergence: visible are the transactions that come before by sessions and reads.
pub(crate) fn causal_plus(index: &Index) -> Found {
    let layout = layout(index);
    if let Some(reason) = layout.too_large() {
        return Found::Unknown(reason);
    }
    let mut graph = base(index, true);
    let Some(order) = graph.order() else {
        return conclude(index, graph);
    };
    let causality = graph.clone();
    let clocks = Clocks::new(&causality, &layout, &order);
    force_visible(index, &clocks, &mut graph);
    conclude(index, graph)
}

/// Adds the edges that visibility forces. In each chain only the last visible writer counts:
/// earlier writers come before it.
fn force_visible(index: &Index, clocks: &Clocks, graph: &mut Graph) {
    for (reader, node) in index.live() {
        for &(key, writer) in &node.reads {
            for (chain, writers) in &index.writers[key] {
                let seen = clocks.before(reader, *chain);
                let count = writers.partition_point(|other| index.nodes[*other].position < seen);
                let Some(&other) = count.checked_sub(1).and_then(|last| writers.get(last)) else {
                    continue;
                };
                if other != writer && !clocks.is_before(other, writer) {
                    graph.add(other, writer, Reason::WwForced { key, reader });
                }
            }
        }
    }
}

/// Adds the recorded orders of writes, and looks for a cycle.
fn conclude(index: &Index, mut graph: Graph) -> Found {
    // First without the recorded orders: a violation under every order is worse.
    if graph.order().is_none() {
        return cycle(&graph, Basis::Axioms);
    }
    let mut basis = Basis::Axioms;
    for key in 0..index.keys.len() {
        let recorded = index.recorded(key);
        if recorded.is_used {
            basis = Basis::RecordedOrder;
        }
        // All writers follow the initial values anyway.
        for pair in recorded.order.windows(2).skip(1) {
            graph.add(pair[0], pair[1], Reason::WwRecorded { key });
        }
    }
    match graph.order() {
        Some(order) => Found::Order(order, basis),
        None => cycle(&graph, basis),
    }
}

pub(crate) fn cycle(graph: &Graph, basis: Basis) -> Found {
    let steps = graph.shortest_cycle().expect("a graph without an order has a cycle");
    Found::Cycle(steps, basis)
}
