//! The parts of the program that each phase runs, replays and records.

use std::collections::{BTreeSet, HashSet};

use super::Mutation;
use super::phases::Phases;
use crate::flat::{Flat, Kind, Operand, Slot, StmtId};

/// The parts of the program kept by one phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    /// The statements that the phase runs; for loops and branches, those that it enters.
    pub(crate) run: HashSet<StmtId>,
    /// The statements that the phase does not run: it takes the values that an earlier phase
    /// recorded.
    pub(crate) replay: BTreeSet<(StmtId, Slot)>,
    /// The slots that the phase records when these statements assign them.
    pub(crate) record: BTreeSet<(StmtId, Slot)>,
    /// The loop items that the phase uses.
    pub(crate) items: HashSet<Slot>,
    /// The loops of which the phase needs only the number of rounds.
    pub(crate) counted: HashSet<StmtId>,
}

impl Kept {
    pub(crate) fn contains(&self, id: StmtId) -> bool {
        self.run.contains(&id)
            || self.replay.range((id, Slot(0))..=(id, Slot(u32::MAX))).next().is_some()
    }
}

/// Returns the kept parts, by phase.
pub(crate) fn keep(flat: &Flat, phases: &Phases, mutation: Mutation) -> Vec<Kept> {
    let mut defs: Vec<Vec<StmtId>> = vec![Vec::new(); flat.slots.len()];
    for (id, stmt) in flat.live_statements() {
        for dst in stmt.dsts() {
            defs[dst.index()].push(id);
        }
    }
    let again = computed_again(flat, &defs, mutation);
    let mut keeping = Keeping {
        flat,
        phases,
        mutation,
        defs,
        again,
        kept: vec![Kept::default(); phases.phases.len()],
        queue: Vec::new(),
        wanted: HashSet::new(),
    };
    for (id, stmt) in flat.live_statements() {
        let phase = phases.of_stmt[id.index()];
        match &stmt.kind {
            Kind::Read(_)
            | Kind::Write(_)
            | Kind::Hold(_)
            | Kind::Require { .. }
            | Kind::While { .. }
            | Kind::Agree { .. } => keeping.run(id, phase),
            Kind::Return { value: Some(_) } => keeping.run(id, phase),
            _ => {}
        }
    }
    loop {
        keeping.settle();
        let mut more = keeping.count_loops();
        if mutation != Mutation::ReturnForgotten {
            more |= keeping.keep_returns();
        }
        if !more {
            break;
        }
    }
    keeping.kept
}

/// Returns, for each slot, true if any phase can compute it again: it depends on parameters and
/// constants alone.
fn computed_again(flat: &Flat, defs: &[Vec<StmtId>], mutation: Mutation) -> Vec<bool> {
    let mut again: Vec<bool> = (0..flat.slots.len()).map(|slot| slot < flat.param_count).collect();
    if mutation == Mutation::AllComputedAgain {
        again.fill(true);
        return again;
    }
    // Every statement comes after the statements whose slots it uses, except for loops, whose slots
    // have two definitions.
    for (_, stmt) in flat.live_statements() {
        let known = |operand: &Operand| operand.slot().is_none_or(|slot| again[slot.index()]);
        match &stmt.kind {
            Kind::Local { .. } | Kind::Copy { .. } | Kind::Now { .. } | Kind::Unique { .. } => {
                let dst = stmt.dsts()[0];
                let is_known =
                    defs[dst.index()].len() == 1 && stmt.operands().into_iter().all(known);
                again[dst.index()] = is_known;
            }
            Kind::For { columns, .. } => {
                for (item, is_known) in
                    columns.iter().map(|(list, item)| (*item, known(list))).collect::<Vec<_>>()
                {
                    again[item.index()] = is_known;
                }
            }
            _ => {}
        }
    }
    again
}

struct Keeping<'a> {
    flat: &'a Flat,
    phases: &'a Phases,
    mutation: Mutation,
    defs: Vec<Vec<StmtId>>,
    again: Vec<bool>,
    kept: Vec<Kept>,
    /// Pairs of a slot and a phase that needs the slot's value.
    queue: Vec<(Slot, usize)>,
    wanted: HashSet<(Slot, usize)>,
}

impl Keeping<'_> {
    fn want(&mut self, operand: &Operand, phase: usize) {
        if let Some(slot) = operand.slot()
            && slot.index() >= self.flat.param_count
            && self.wanted.insert((slot, phase))
        {
            self.queue.push((slot, phase));
        }
    }

    /// Keeps a statement to be run in a phase, with everything that it needs there.
    fn run(&mut self, id: StmtId, phase: usize) {
        if !self.kept[phase].run.insert(id) {
            return;
        }
        let flat = self.flat;
        let stmt = flat.get(id);
        match &stmt.kind {
            // The used items decide which of its lists a loop needs.
            Kind::For { .. } => {}
            // A `return` of another phase only ends this phase.
            Kind::Return { .. } if self.phases.of_stmt[id.index()] != phase => {}
            Kind::If { .. }
                if self.mutation == Mutation::ConditionNotReplayed
                    && self.phases.of_stmt[id.index()] < phase => {}
            _ => {
                for operand in stmt.operands() {
                    self.want(operand, phase);
                }
            }
        }
        self.around(id, phase);
    }

    /// Keeps the loops and branches around a statement.
    fn around(&mut self, id: StmtId, phase: usize) {
        if let Some(parent) = self.flat.get(id).parent {
            self.run(parent, phase);
        }
    }

    fn settle(&mut self) {
        while let Some((slot, phase)) = self.queue.pop() {
            for def in self.defs[slot.index()].clone() {
                self.define(slot, def, phase);
            }
        }
    }

    /// Makes a slot's value known in a phase, as far as the statement `def` assigns it.
    fn define(&mut self, slot: Slot, def: StmtId, phase: usize) {
        let flat = self.flat;
        if let Kind::For { columns, .. } = &flat.get(def).kind {
            self.kept[phase].items.insert(slot);
            self.run(def, phase);
            let list = columns.iter().find(|(_, item)| *item == slot).map(|(list, _)| list);
            self.want(list.expect("an item has its list"), phase);
            return;
        }
        let computed = self.phases.of_stmt[def.index()];
        if computed == phase || self.again[slot.index()] {
            self.run(def, phase);
        } else if computed < phase {
            let is_merge = matches!(flat.get(def).kind, Kind::Copy { .. })
                && self.defs[slot.index()].len() > 1;
            if self.mutation == Mutation::MergeNotRecorded && is_merge {
                return;
            }
            self.kept[phase].replay.insert((def, slot));
            self.around(def, phase);
            self.kept[computed].record.insert((def, slot));
            self.run(def, computed);
        }
        // A value that only a later phase assigns is not read here: the flow rules ensure that.
    }

    /// Keeps the number of rounds for each loop without a used item. Returns true if anything
    /// changed.
    fn count_loops(&mut self) -> bool {
        let flat = self.flat;
        let mut more = false;
        for phase in 0..self.kept.len() {
            let loops: Vec<StmtId> = self.kept[phase].run.iter().copied().collect();
            for id in loops {
                let Kind::For { count, columns, .. } = &flat.get(id).kind else { continue };
                let uses_items =
                    columns.iter().any(|(_, item)| self.kept[phase].items.contains(item));
                if !uses_items && self.kept[phase].counted.insert(id) {
                    self.want(count, phase);
                    more = true;
                }
            }
        }
        more
    }

    /// Keeps each `return` that is followed by kept statements in a phase. Returns true if anything
    /// changed.
    fn keep_returns(&mut self) -> bool {
        let flat = self.flat;
        let mut found = Vec::new();
        for (phase, kept) in self.kept.iter().enumerate() {
            returns_before(flat, &flat.body, kept, false, &mut |id| found.push((id, phase)));
        }
        let mut more = false;
        for (id, phase) in found {
            if !self.kept[phase].run.contains(&id) && self.is_due(id, phase) {
                self.run(id, phase);
                more = true;
            }
        }
        more
    }
}

impl Keeping<'_> {
    /// True if a `return` ends this phase. A phase before an endorsement heeds a `return` only if it
    /// already knows all conditions around it: they may be known only in a later phase, and until
    /// then the reads for the endorsement run regardless.
    fn is_due(&self, id: StmtId, phase: usize) -> bool {
        let mut around = self.flat.ancestors(id);
        !self.phases.phases[phase].before_endorsement
            || around.all(|around| self.phases.of_stmt[around.index()] <= phase)
    }
}

/// Finds the `return`s in a block that are followed by kept statements. `after` is true if kept
/// statements follow the block.
fn returns_before(
    flat: &Flat,
    block: &[StmtId],
    kept: &Kept,
    after: bool,
    found: &mut impl FnMut(StmtId),
) {
    let mut after = after;
    for id in block.iter().rev().filter(|id| flat.live[id.index()]) {
        let stmt = flat.get(*id);
        if let Kind::If { then_block, else_block, .. } = &stmt.kind {
            returns_before(flat, then_block, kept, after, found);
            returns_before(flat, else_block, kept, after, found);
        }
        if after && matches!(stmt.kind, Kind::Return { .. }) {
            found(*id);
        }
        after |= kept.contains(*id);
    }
}
