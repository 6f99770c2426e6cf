//! Edges that the reads force on every order, derived until nothing new follows.
//!
//! Let a transaction `t3` read a key from `t1`, and let `t2` be another writer of that key. If `t2`
//! comes before `t3`, then `t2` comes before `t1`; if `t1` comes before `t2`, then `t3` comes
//! before `t2`. In each chain only one `t2` counts, the last or the first: the other edges follow
//! by session order.

use crate::clocks::Clocks;
use crate::graph::Reason;
use crate::limits::SATURATION_ROUNDS_MAX;
use crate::serial::units::Units;

type Edges = Vec<(usize, usize, Reason)>;

/// Adds the forced edges. Returns true if the graph still has an order.
pub(crate) fn saturate(units: &mut Units) -> bool {
    for _ in 0..SATURATION_ROUNDS_MAX {
        let Some(order) = units.graph.order() else {
            return false;
        };
        let clocks = Clocks::new(&units.graph, &units.layout, &order);
        let mut edges = Edges::new();
        for (reader, node) in units.index.live() {
            for &(key, writer) in &node.reads {
                before(units, &clocks, (key, reader, writer), &mut edges);
                after(units, &clocks, (key, reader, writer), &mut edges);
            }
            if units.rules.is_split {
                for (key, _) in &node.writes {
                    overlap(units, &clocks, *key, reader, &mut edges);
                }
            }
        }
        if edges.is_empty() {
            return true;
        }
        for (from, to, reason) in edges {
            units.graph.add(from, to, reason);
        }
    }
    units.graph.order().is_some()
}

/// Adds edges from writers before the reader to the writer that it reads from.
fn before(units: &Units, clocks: &Clocks, read: (usize, usize, usize), edges: &mut Edges) {
    let (key, reader, writer) = read;
    let start = units.start(reader);
    for (chain, writers) in &units.index.writers[key] {
        let seen = clocks.before(start, *chain);
        let position = |other: &usize| units.layout.position[units.commit(*other)];
        let count = writers.partition_point(|other| position(other) < seen);
        let Some(&other) = count.checked_sub(1).and_then(|last| writers.get(last)) else {
            continue;
        };
        let (from, to) = (units.commit(other), units.start(writer));
        if other != writer && !clocks.is_before(from, to) {
            edges.push((from, to, Reason::WwForced { key, reader }));
        }
    }
}

/// Adds edges from the reader to writers after the writer that it reads from.
fn after(units: &Units, clocks: &Clocks, read: (usize, usize, usize), edges: &mut Edges) {
    let (key, reader, writer) = read;
    for (_, writers) in &units.index.writers[key] {
        let is_after = |other: &usize| clocks.is_before(units.commit(writer), units.start(*other));
        let mut rest = &writers[writers.partition_point(|other| !is_after(other))..];
        if rest.first() == Some(&reader) {
            rest = &rest[1..];
        }
        let Some(&other) = rest.first() else { continue };
        let (from, to) = (units.start(reader), units.commit(other));
        if !clocks.is_before(from, to) {
            edges.push((from, to, Reason::Rw { key, writer }));
        }
    }
}

/// Adds edges for writers that began before another writer of the key committed: they must commit
/// before it begins.
fn overlap(units: &Units, clocks: &Clocks, key: usize, second: usize, edges: &mut Edges) {
    let commit = units.commit(second);
    for (_, writers) in &units.index.writers[key] {
        let begins = |first: &usize| clocks.is_before(units.start(*first), commit);
        let before = &writers[..writers.partition_point(begins)];
        let Some(&first) = before.iter().rfind(|first| **first != second) else { continue };
        let (from, to) = (units.commit(first), units.start(second));
        if !clocks.is_before(from, to) {
            edges.push((from, to, Reason::WwOverlap { key }));
        }
    }
}
