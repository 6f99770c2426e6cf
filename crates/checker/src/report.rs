//! Conversion from numbers of the index to readable reports.

use std::fmt::Write as _;

use crate::graph::{Reason, Step};
use crate::history::{History, Kind, Transaction};
use crate::index::Index;
use crate::model::Model;
use crate::verdict::{Anomaly, BadRead, Edge, Why};
use crate::weak;

/// Returns a cycle for readers. If it rests on a single forced order of writes, returns the cycle
/// through the read that forces it, which is clearer and as short; else adds the support of the
/// forced orders.
pub(crate) fn cycle(index: &Index, model: Model, steps: &[Step]) -> Anomaly {
    let width = if model == Model::Snapshot { 2 } else { 1 };
    let count = index.nodes.len();
    let transaction = |unit: usize| Some(unit / width).filter(|number| *number < count);
    let base = weak::base(index, true);
    let mut forced = Vec::new();
    for step in steps {
        if let (Reason::WwForced { key, reader }, Some(from), Some(to)) =
            (step.reason, transaction(step.from), transaction(step.to))
        {
            forced.push((from, to, key, reader));
        }
    }
    let is_weak = matches!(model, Model::ReadAtomic | Model::Causal | Model::CausalPlus);
    let is_recorded = |step: &Step| matches!(step.reason, Reason::WwRecorded { .. });
    if let ([(other, writer, key, reader)], true) = (forced.as_slice(), is_weak)
        && !steps.iter().any(is_recorded)
        && let Some(mut path) = base.path(*other, *reader)
    {
        let reason = Reason::Rw { key: *key, writer: *writer };
        path.push(Step { from: *reader, to: *other, reason });
        return Anomaly::Cycle { edges: edges(index, &path, Some), support: Vec::new() };
    }
    let paths = forced.iter().filter_map(|(other, _, _, reader)| base.path(*other, *reader));
    let paths: Vec<Vec<Edge>> = paths.map(|path| line_of(index, &path, Some)).collect();
    Anomaly::Cycle { edges: edges(index, steps, transaction), support: paths }
}

/// Returns the steps of a cycle as edges between transactions: runs of session order and of real
/// time are one edge each, and the transaction with the smallest number comes first.
fn edges(index: &Index, steps: &[Step], transaction: impl Fn(usize) -> Option<usize>) -> Vec<Edge> {
    let mut steps: Vec<Step> =
        steps.iter().filter(|step| step.reason != Reason::Inside).copied().collect();
    // The start of the cycle must not split a run.
    let begins = (0..steps.len()).position(|place| {
        let before = steps[(place + steps.len() - 1) % steps.len()].reason;
        !is_run(before) || before != steps[place].reason
    });
    steps.rotate_left(begins.unwrap_or(0));
    let mut edges = line_of(index, &steps, transaction);
    let first = edges.iter().enumerate().min_by_key(|(_, edge)| edge.from);
    let first = first.map_or(0, |(place, _)| place);
    edges.rotate_left(first);
    edges
}

/// Returns the steps of a path as edges, with one edge for each run.
fn line_of(
    index: &Index,
    steps: &[Step],
    transaction: impl Fn(usize) -> Option<usize>,
) -> Vec<Edge> {
    let mut merged: Vec<Step> = Vec::new();
    for step in steps {
        match merged.last_mut() {
            Some(last) if is_run(step.reason) && last.reason == step.reason => last.to = step.to,
            _ => merged.push(*step),
        }
    }
    let id = |node: usize| index.transaction(node).map(|transaction| transaction.id);
    merged
        .iter()
        .map(|step| Edge {
            from: transaction(step.from).and_then(id),
            to: transaction(step.to).and_then(id),
            why: why(index, step.reason),
        })
        .collect()
}

fn is_run(reason: Reason) -> bool {
    matches!(reason, Reason::So | Reason::Rt)
}

fn why(index: &Index, reason: Reason) -> Why {
    let key = |key: usize| index.keys[key];
    let id = |node: usize| index.transaction(node).map(|transaction| transaction.id);
    match reason {
        Reason::Rt => Why::Rt,
        Reason::So | Reason::Inside => Why::So,
        Reason::Wr { key: number } => Why::Wr(key(number)),
        Reason::WwRecorded { key: number } => Why::WwRecorded(key(number)),
        Reason::WwForced { key: number, reader } => {
            Why::WwForced { key: key(number), reader: id(reader) }
        }
        Reason::WwOverlap { key: number } => Why::WwOverlap(key(number)),
        Reason::Rw { key: number, writer } => Why::Rw { key: key(number), writer: id(writer) },
    }
}

/// Returns the transactions of an anomaly, with their operations on the keys of the anomaly.
pub(crate) fn transactions(history: &History, anomaly: &Anomaly) -> Vec<String> {
    let (ids, keys) = mentioned(anomaly);
    let is_all = matches!(anomaly, Anomaly::NoOrder);
    let mut found: Vec<&Transaction> = history
        .transactions()
        .iter()
        .filter(|transaction| is_all || ids.contains(&transaction.id))
        .collect();
    found.sort_by_key(|transaction| transaction.id);
    found.iter().map(|found| line(found, (!is_all).then_some(&keys))).collect()
}

fn mentioned(anomaly: &Anomaly) -> (Vec<i64>, Vec<i64>) {
    match anomaly {
        Anomaly::Read { transaction, key, what, .. } => {
            let writer = match what {
                BadRead::Aborted { writer } | BadRead::Intermediate { writer } => Some(*writer),
                _ => None,
            };
            (std::iter::once(*transaction).chain(writer).collect(), vec![*key])
        }
        Anomaly::Cycle { edges, support } => {
            let edges: Vec<&Edge> = edges.iter().chain(support.iter().flatten()).collect();
            let mut ids: Vec<i64> =
                edges.iter().flat_map(|edge| [edge.from, edge.to]).flatten().collect();
            let mut keys = Vec::new();
            for edge in edges {
                match edge.why {
                    Why::So | Why::Rt => {}
                    Why::Wr(key) | Why::WwRecorded(key) | Why::WwOverlap(key) => keys.push(key),
                    Why::WwForced { key, reader: other } | Why::Rw { key, writer: other } => {
                        keys.push(key);
                        ids.extend(other);
                    }
                }
            }
            (ids, keys)
        }
        Anomaly::NoOrder => (Vec::new(), Vec::new()),
        Anomaly::Diverged { key, reads } => (vec![reads[0].0, reads[1].0], vec![*key]),
        Anomaly::Lost { key, reader, writer } => (vec![*reader, *writer], vec![*key]),
    }
}

const WRITES: &str = "writing to a string does not fail";

fn line(transaction: &Transaction, keys: Option<&Vec<i64>>) -> String {
    let is_shown = |key: &i64| keys.is_none_or(|keys| keys.contains(key));
    let mut text = format!("T{}, session {}", transaction.id, transaction.session);
    if let Some(interval) = transaction.interval {
        write!(text, ", {} to {}", interval.begin, interval.end).expect(WRITES);
    }
    text.push(':');
    let mut is_whole = true;
    for operation in &transaction.operations {
        if is_shown(&operation.key) {
            let letter = if operation.kind == Kind::Read { 'r' } else { 'w' };
            write!(text, " {letter}({},{})", operation.key, operation.value).expect(WRITES);
        } else {
            is_whole = false;
        }
    }
    if !is_whole {
        text.push_str(" and other keys");
    }
    text
}
