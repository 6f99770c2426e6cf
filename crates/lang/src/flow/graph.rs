//! The flow graph of a flattened transaction.

use super::Sources;
use crate::flat::{Flat, Kind, Operand, Slot, Stmt, StmtId};
use crate::ops::Op;

/// The reason why one slot flows into another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EdgeKind {
    /// It is an operand.
    Operand,
    /// It is endorsed: its provenance ends here.
    Endorsed,
    /// It decides which value is merged.
    Condition,
}

/// An edge: `from` flows into `to` by a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: Slot,
    pub(crate) to: Slot,
    pub(crate) by: StmtId,
    pub(crate) kind: EdgeKind,
}

/// All edges, indexed by the slots that they enter and leave.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    edges: Vec<Edge>,
    into: Vec<Vec<u32>>,
    out_of: Vec<Vec<u32>>,
    /// The first statement that assigns a slot.
    definitions: Vec<Option<StmtId>>,
}

impl Graph {
    pub(crate) fn new(flat: &Flat, merges: bool) -> Self {
        let mut graph = Self {
            edges: Vec::new(),
            into: vec![Vec::new(); flat.slots.len()],
            out_of: vec![Vec::new(); flat.slots.len()],
            definitions: vec![None; flat.slots.len()],
        };
        for (id, stmt) in flat.live_statements() {
            for dst in stmt.dsts() {
                graph.definitions[dst.index()].get_or_insert(id);
            }
            match &stmt.kind {
                Kind::If { condition, merges: merged, .. } if merges => {
                    graph.conditions(condition, merged, id);
                }
                Kind::While { condition, carried, .. } if merges => {
                    graph.conditions(condition, carried, id);
                }
                Kind::For { count, columns, carried, .. } => {
                    for (list, item) in columns {
                        graph.edge(list, *item, id, EdgeKind::Operand);
                    }
                    if merges {
                        graph.conditions(count, carried, id);
                    }
                }
                Kind::Local { dst, op: Op::IsOfLevel(_) | Op::AnswerOf(_), args } => {
                    // Each has its own sources beside those of the ref and the arguments.
                    let read = flat.read_of_answer(&args[0]).map(|read| flat.get(read));
                    for operand in read.into_iter().flat_map(Stmt::operands) {
                        graph.edge(operand, *dst, id, EdgeKind::Operand);
                    }
                }
                Kind::Endorse { dst, src, .. } => graph.edge(src, *dst, id, EdgeKind::Endorsed),
                _ => {
                    for dst in stmt.dsts() {
                        for operand in stmt.operands() {
                            graph.edge(operand, dst, id, EdgeKind::Operand);
                        }
                    }
                }
            }
        }
        graph
    }

    fn conditions(&mut self, condition: &Operand, merged: &[Slot], by: StmtId) {
        for slot in merged {
            self.edge(condition, *slot, by, EdgeKind::Condition);
        }
    }

    fn edge(&mut self, from: &Operand, to: Slot, by: StmtId, kind: EdgeKind) {
        let Some(from) = from.slot() else { return };
        let index = self.edges.len() as u32;
        self.edges.push(Edge { from, to, by, kind });
        self.into[to.index()].push(index);
        self.out_of[from.index()].push(index);
    }

    pub(crate) fn edges_into(&self, slot: Slot) -> impl Iterator<Item = Edge> + '_ {
        self.into[slot.index()].iter().map(|edge| self.edges[*edge as usize])
    }

    /// Returns the first statement that assigns a slot; for all but merged slots, the only one.
    pub(crate) fn definition(&self, slot: Slot) -> Option<StmtId> {
        self.definitions[slot.index()]
    }

    /// Spreads the sources that statements add along all edges; through endorsements only if
    /// `through`.
    pub(crate) fn spread(
        &self,
        flat: &Flat,
        own: impl Fn(&Kind) -> Sources,
        through: bool,
    ) -> Vec<Sources> {
        let mut sources: Vec<Sources> = vec![0; flat.slots.len()];
        let mut queue = Vec::new();
        for (_, stmt) in flat.live_statements() {
            for dst in stmt.dsts() {
                let added = own(&stmt.kind);
                if added != 0 {
                    sources[dst.index()] |= added;
                    queue.push(dst);
                }
            }
        }
        while let Some(slot) = queue.pop() {
            for edge in &self.out_of[slot.index()] {
                let edge = self.edges[*edge as usize];
                if edge.kind == EdgeKind::Endorsed && !through {
                    continue;
                }
                let joined = sources[edge.to.index()] | sources[slot.index()];
                if joined != sources[edge.to.index()] {
                    sources[edge.to.index()] = joined;
                    queue.push(edge.to);
                }
            }
        }
        sources
    }
}
