//! Recognises a history that lists its transactions in an order that explains every read.
//!
//! Recorders write transactions as they end. So a history without concurrency, or from a store that
//! runs transactions one by one, is in such an order. Checking one order takes linear time; finding
//! one does not.

use crate::graph::Reason;
use crate::history::Outcome;
use crate::index::INIT;
use crate::serial::units::Units;

/// Returns the transactions in the order of the history, if all known constraints allow that order.
/// An order of whole transactions also satisfies snapshot isolation: each commits directly after it
/// starts.
pub(crate) fn order(units: &Units) -> Option<Vec<usize>> {
    (follows_edges(units) && follows_time(units) && explains_reads(units))
        .then(|| (0..units.index.nodes.len()).collect())
}

/// True if each edge between transactions leads from an earlier one to a later one.
fn follows_edges(units: &Units) -> bool {
    units.graph.arrows.iter().enumerate().all(|(from, arrows)| {
        arrows.iter().all(|arrow| {
            // `follows_time` checks the edges from and to moments of real time.
            let pair = units.transaction(from).zip(units.transaction(arrow.to));
            arrow.reason == Reason::Inside || pair.is_none_or(|(from, to)| from < to)
        })
    })
}

/// True if no transaction comes after one that began after its end.
fn follows_time(units: &Units) -> bool {
    let mut began_last = 0;
    !units.rules.real_time
        || units.index.live().all(|(number, _)| {
            let transaction = units.index.transaction(number);
            let Some((outcome, interval)) =
                transaction.and_then(|found| Some((found.outcome, found.interval?)))
            else {
                return true;
            };
            let is_late = outcome == Outcome::Committed && interval.end < began_last;
            began_last = began_last.max(interval.begin);
            !is_late
        })
}

/// True if each read finds the last write before it.
fn explains_reads(units: &Units) -> bool {
    let mut writers = vec![INIT; units.index.keys.len()];
    units.index.live().all(|(number, node)| {
        let is_explained = node.reads.iter().all(|(key, writer)| writers[*key] == *writer);
        for (key, _) in &node.writes {
            writers[*key] = number;
        }
        is_explained
    })
}
