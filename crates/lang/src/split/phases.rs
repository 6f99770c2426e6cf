//! The phase of each statement.

use super::Mutation;
use crate::flat::{Flat, Kind, Operand, StmtId};
use crate::flow::Flow;
use crate::hir::StoreId;

/// The access of a phase to its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The phase only reads.
    Read,
    /// The phase writes.
    Write,
}

/// One phase, without its program.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    /// The store of the phase; none for a transaction that visits no store.
    pub(crate) store: Option<StoreId>,
    pub(crate) before_endorsement: bool,
    pub(crate) mode: Mode,
}

/// The phases of a transaction, and the phase of each statement.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    pub(crate) phases: Vec<Phase>,
    /// The phase of each statement, by id; for a loop or branch, the first phase that can run it.
    pub(crate) of_stmt: Vec<usize>,
}

impl Phases {
    pub(crate) fn new(flat: &Flat, flow: &Flow, mutation: Mutation) -> Self {
        let order = match mutation {
            Mutation::OrderAsDeclared => {
                let mut order = flow.order.clone();
                order.sort_unstable();
                order
            }
            _ => flow.order.clone(),
        };
        let mut phases = Vec::new();
        for before in [true, false] {
            for store in &order {
                let mut effects = flat
                    .live_statements()
                    .filter(|(id, stmt)| {
                        stmt.store() == Some(*store) && flow.endorsed.contains(*id) == before
                    })
                    .peekable();
                if effects.peek().is_some() {
                    let writes = effects.any(|(_, stmt)| matches!(stmt.kind, Kind::Write(_)));
                    let mode = if writes { Mode::Write } else { Mode::Read };
                    phases.push(Phase { store: Some(*store), before_endorsement: before, mode });
                }
            }
        }
        if phases.is_empty() {
            phases.push(Phase { store: None, before_endorsement: false, mode: Mode::Read });
        }
        let of_effect = |id: StmtId, store: StoreId| {
            let before = flow.endorsed.contains(id);
            phases
                .iter()
                .position(|phase| phase.store == Some(store) && phase.before_endorsement == before)
                .expect("every effect's store has a phase")
        };
        let mut assignment = Assignment {
            flat,
            flow,
            mutation,
            last: phases.len() - 1,
            of_slot: vec![0; flat.slots.len()],
            of_stmt: vec![0; flat.statements.len()],
            changed: true,
        };
        // Loops carry values back, so this repeats until no statement moves to a later phase.
        while assignment.changed {
            assignment.changed = false;
            assignment.block(&flat.body, 0, 0, &of_effect);
        }
        let of_stmt = assignment.of_stmt;
        Self { phases, of_stmt }
    }

    /// Returns the first phase that writes.
    pub(crate) fn first_write(&self) -> Option<usize> {
        self.phases.iter().position(|phase| phase.mode == Mode::Write)
    }
}

struct Assignment<'a> {
    flat: &'a Flat,
    flow: &'a Flow,
    mutation: Mutation,
    last: usize,
    of_slot: Vec<usize>,
    of_stmt: Vec<usize>,
    changed: bool,
}

impl Assignment<'_> {
    fn operand(&self, operand: &Operand) -> usize {
        operand.slot().map_or(0, |slot| self.of_slot[slot.index()])
    }

    /// Assigns phases in a block whose context is known from phase `outer` on. Returns the first
    /// phase that knows whether control continues after the block.
    fn block(
        &mut self,
        block: &[StmtId],
        outer: usize,
        returned: usize,
        of_effect: &impl Fn(StmtId, StoreId) -> usize,
    ) -> usize {
        let flat = self.flat;
        let mut returned = returned;
        for id in block.iter().filter(|id| flat.live[id.index()]) {
            let stmt = flat.get(*id);
            // The values that an endorsement depends on are computed even if the program returns
            // before.
            let is_early = self.flow.endorsed.contains(*id);
            let context = if is_early { outer } else { outer.max(returned) };
            let operands =
                stmt.operands().into_iter().map(|operand| self.operand(operand)).max().unwrap_or(0);
            let phase = match &stmt.kind {
                Kind::Read(access) => of_effect(*id, access.store),
                Kind::Write(access) => of_effect(*id, access.store),
                Kind::Require { .. } if self.mutation == Mutation::RequireLate => self.last,
                Kind::Local { .. } | Kind::Copy { .. }
                    if self.mutation == Mutation::ContextIgnored =>
                {
                    operands
                }
                // The items of a list are known in the phase where the list is known.
                Kind::For { count, .. } => self.operand(count).max(context),
                _ => operands.max(context),
            };
            self.set_stmt(*id, phase);
            if let Kind::For { columns, .. } = &stmt.kind {
                for (list, item) in columns {
                    let list = self.operand(list);
                    self.set_slot(item.index(), list);
                }
            } else {
                for dst in stmt.dsts() {
                    self.set_slot(dst.index(), phase);
                }
            }
            if matches!(stmt.kind, Kind::Return { .. }) {
                returned = returned.max(outer);
            }
            let condition = match &stmt.kind {
                Kind::If { condition, .. } | Kind::While { condition, .. } => {
                    self.operand(condition)
                }
                Kind::For { count, .. } => self.operand(count),
                _ => continue,
            };
            let inner = outer.max(condition);
            let mut after = returned;
            for block in stmt.blocks() {
                after = after.max(self.block(block, inner, returned, of_effect));
            }
            returned = after;
        }
        returned
    }

    fn set_stmt(&mut self, id: StmtId, phase: usize) {
        if phase > self.of_stmt[id.index()] {
            self.of_stmt[id.index()] = phase;
            self.changed = true;
        }
    }

    fn set_slot(&mut self, slot: usize, phase: usize) {
        if phase > self.of_slot[slot] {
            self.of_slot[slot] = phase;
            self.changed = true;
        }
    }
}
