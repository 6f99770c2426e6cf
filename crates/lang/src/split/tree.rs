//! The program of one phase, as a tree.

use super::keep::Kept;
use super::phases::Phases;
use crate::flat::{Flat, Kind, Slot, StmtId};

/// A statement of a phase.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A statement that the phase runs.
    Run(StmtId),
    /// Records a slot after this statement has assigned it.
    Record(StmtId, Slot),
    /// Sets a slot to the value that an earlier phase recorded at this statement.
    Replay(StmtId, Slot),
    /// Reads that are sent together.
    Fetch(Vec<StmtId>),
    /// A branch.
    If(StmtId, Vec<Node>, Vec<Node>),
    /// A loop: its head and body.
    While(StmtId, Vec<Node>, Vec<Node>),
    /// A loop over lists: the columns whose items are used, the prefetch for each chunk of rounds,
    /// and the body.
    For(StmtId, Vec<usize>, Option<Prefetch>, Vec<Node>),
    /// The end of the phase; true if this phase computes the transaction's result.
    Return(StmtId, bool),
}

/// The reads that a loop fetches for many rounds at once.
#[derive(Clone, Debug)]
pub(crate) struct Prefetch {
    /// Local statements and replays that compute the refs.
    pub(crate) steps: Vec<Node>,
    /// The reads.
    pub(crate) reads: Vec<StmtId>,
}

/// Returns the tree of one phase, in program order.
pub(crate) fn project(flat: &Flat, phases: &Phases, kept: &Kept, phase: usize) -> Vec<Node> {
    block(flat, phases, kept, phase, &flat.body)
}

fn block(
    flat: &Flat,
    phases: &Phases,
    kept: &Kept,
    phase: usize,
    statements: &[StmtId],
) -> Vec<Node> {
    let mut nodes = Vec::new();
    for id in statements {
        for (_, slot) in kept.replay.range((*id, Slot(0))..=(*id, Slot(u32::MAX))) {
            nodes.push(Node::Replay(*id, *slot));
        }
        if !kept.run.contains(id) {
            continue;
        }
        let inner = |statements: &[StmtId]| block(flat, phases, kept, phase, statements);
        match &flat.get(*id).kind {
            Kind::If { then_block, else_block, .. } => {
                nodes.push(Node::If(*id, inner(then_block), inner(else_block)));
            }
            Kind::While { head, body, .. } => {
                nodes.push(Node::While(*id, inner(head), inner(body)));
            }
            Kind::For { columns, body, .. } => {
                let used =
                    columns.iter().enumerate().filter(|(_, (_, item))| kept.items.contains(item));
                let used = used.map(|(index, _)| index).collect();
                nodes.push(Node::For(*id, used, None, inner(body)));
            }
            Kind::Return { value } => {
                let is_result = value.is_some() && phases.of_stmt[id.index()] == phase;
                nodes.push(Node::Return(*id, is_result));
            }
            _ => nodes.push(Node::Run(*id)),
        }
        for (_, slot) in kept.record.range((*id, Slot(0))..=(*id, Slot(u32::MAX))) {
            nodes.push(Node::Record(*id, *slot));
        }
    }
    nodes
}
