//! Strict serializability, serializability and snapshot isolation: is there an order that explains
//! every read?
//!
//! All three require an order of *units*. A transaction is one unit; under snapshot isolation it is
//! two: its start, at which it reads, and its commit, at which it writes. Two transactions that
//! write one key may not overlap (Biswas and Enea, OOPSLA 2019, §5: snapshot isolation reduces to
//! serializability by such a split). If the order of the writes of each key is known, the question
//! is whether a graph has a cycle; for snapshot isolation it is the graph of Cerone and Gotsman
//! (JACM 2018, Theorem 4.1), since a unit graph lets no two `rw` edges follow each other. If it is
//! unknown, the problem is NP-hard: the check first tries the order in which the history lists the
//! transactions (`given`), then derives forced edges (`saturate`), and then searches for an order
//! (`search`).

mod given;
mod saturate;
mod search;
mod units;

#[cfg(test)]
mod tests;

use crate::graph::Reason;
use crate::index::{INIT, Index};
use crate::verdict::Basis;
use crate::weak::{Found, cycle};

use units::Units;

/// The rules that distinguish the three models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A transaction starts and commits at two moments.
    pub is_split: bool,
    /// A transaction that ended before another began comes first.
    pub real_time: bool,
}

/// Checks if an order explains every read. The search examines at most `candidates_max` candidates.
pub(crate) fn check(index: &Index, rules: Rules, candidates_max: u64) -> Found {
    let mut units = Units::new(index, rules);
    if units.graph.order().is_none() {
        return cycle(&units.graph, Basis::Axioms);
    }
    let (mut basis, mut is_complete) = (Basis::Axioms, true);
    for key in 0..index.keys.len() {
        let recorded = index.recorded(key);
        if recorded.is_used {
            basis = Basis::RecordedOrder;
        }
        is_complete &= recorded.is_complete;
        add_order(&mut units, key, &recorded.order);
    }
    if is_complete {
        return match units.graph.order() {
            Some(order) => Found::Order(units.commits(&order), basis),
            None => cycle(&units.graph, basis),
        };
    }
    if let Some(order) = given::order(&units) {
        return Found::Order(order, Basis::GivenOrder);
    }
    if let Some(reason) = units.layout.too_large() {
        return Found::Unknown(reason);
    }
    if !saturate::saturate(&mut units) {
        return cycle(&units.graph, basis);
    }
    match search::search(&units, candidates_max) {
        search::Answer::Order(order) => Found::Order(units.commits(&order), Basis::Search),
        search::Answer::None => Found::NoOrder,
        search::Answer::Unknown(reason) => Found::Unknown(reason),
    }
}

/// Adds the order of a key's writes, and an edge from each reader of a write to the next write.
fn add_order(units: &mut Units, key: usize, order: &[usize]) {
    for pair in order.windows(2) {
        let (first, second) = (pair[0], pair[1]);
        // All writers follow the initial values anyway.
        if first != INIT {
            let (from, to) = (units.commit(first), units.start(second));
            units.graph.add(from, to, Reason::WwRecorded { key });
        }
        for reader in units.readers_of(key, first) {
            if reader != second {
                let (from, to) = (units.start(reader), units.commit(second));
                units.graph.add(from, to, Reason::Rw { key, writer: first });
            }
        }
    }
}
