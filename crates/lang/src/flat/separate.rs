//! Separation of the statements that endorsements depend on from everything else.
//!
//! The data behind an endorsement is read before everything else, and the programmer vouched for
//! that value only. Every other use of the same data must read it again in its own phase, or it
//! would be as weak as the endorsed value. So each statement that an endorsement depends on is
//! duplicated: one copy serves the endorsement, with its own slots, the other serves the rest.
//!
//! ```text
//! let x = b.n;                            x' = b.n        early
//! a.n = endorse(x) as linearizable …;     x  = b.n        in b's phase
//! b.n = x + 1;                      ──►   e' = endorse x' early
//!                                         e  = e'
//!                                         a.n = e
//!                                         b.n = x + 1
//! ```
//!
//! A branch or loop that an endorsement depends on is duplicated too. A `while` whose values
//! nothing else needs is not duplicated: its early run has shown that it ends. A branch or loop
//! around an endorsement cannot be duplicated: the endorsed value belongs to one branch, or to one
//! round. The early value decides it once, and an [`Kind::Agree`] before it makes the transaction
//! start over if the phase itself reads a different value.

use std::collections::{HashMap, HashSet};

use super::{Access, Choice, Flat, Kind, Operand, Slot, Stmt, StmtId, live};
use crate::syntax::Span;

/// A flattened transaction whose endorsements share no statements with other uses.
pub(crate) struct Separated {
    pub(crate) flat: Flat,
    /// The statements that endorsed values depend on, endorsements included, by id.
    pub(crate) slice: Vec<bool>,
}

/// Separates the statements in `slice`, on which the live endorsements depend. `varies` is true for
/// a slot that depends on data read outside of endorsements.
pub(crate) fn separate(flat: &Flat, slice: &[bool], varies: &dyn Fn(Slot) -> bool) -> Separated {
    let mut around = HashSet::new();
    let mut early = HashMap::new();
    let mut used = HashSet::new();
    let mut separated = Flat {
        slots: flat.slots.clone(),
        param_count: flat.param_count,
        endorsements: flat.endorsements.clone(),
        sources: flat.sources.clone(),
        ..Flat::default()
    };
    for (id, stmt) in flat.live_statements() {
        used.extend(used_slots(stmt));
        if !slice[id.index()] {
            continue;
        }
        if matches!(stmt.kind, Kind::Endorse { .. }) {
            around.extend(flat.ancestors(id));
        }
        for dst in stmt.dsts() {
            early.entry(dst).or_insert_with(|| {
                separated.slots.push(flat.slots[dst.index()].clone());
                Slot(separated.slots.len() as u32 - 1)
            });
        }
    }
    let mut separating = Separating {
        old: flat,
        slice,
        varies,
        around,
        early,
        used,
        flat: separated,
        is_early: Vec::new(),
        block: Vec::new(),
        parent: None,
        again: Vec::new(),
        choices: flat.choices.iter().map(|choice| (choice.branch, *choice)).collect(),
    };
    separating.both(&flat.body);
    let Separating { mut flat, is_early: slice, block, again, .. } = separating;
    flat.body = block;
    live::mark_but(&mut flat, &again);
    Separated { flat, slice }
}

/// Returns the slots that a statement uses; the lists of a loop count only if their items are used.
fn used_slots(stmt: &Stmt) -> Vec<Slot> {
    let operands = match &stmt.kind {
        Kind::For { count, .. } => vec![count],
        _ => stmt.operands(),
    };
    operands.into_iter().filter_map(Operand::slot).collect()
}

struct Separating<'a> {
    old: &'a Flat,
    slice: &'a [bool],
    varies: &'a dyn Fn(Slot) -> bool,
    /// Branches and loops around an endorsement.
    around: HashSet<StmtId>,
    /// For each slot that an endorsement depends on, the slot with its early value.
    early: HashMap<Slot, Slot>,
    /// Slots that some statement uses.
    used: HashSet<Slot>,
    flat: Flat,
    is_early: Vec<bool>,
    block: Vec<StmtId>,
    parent: Option<StmtId>,
    /// Loops that have run for an endorsement, as everything else depends on them.
    again: Vec<StmtId>,
    /// Operators that stand as branches, by branch.
    choices: HashMap<StmtId, Choice>,
}

impl Separating<'_> {
    fn slot(&self, slot: Slot) -> Slot {
        self.early.get(&slot).copied().unwrap_or(slot)
    }

    fn operand(&self, operand: &Operand) -> Operand {
        match operand {
            Operand::Slot(slot) => Operand::Slot(self.slot(*slot)),
            Operand::Const(_) => operand.clone(),
        }
    }

    fn slots(&self, slots: &[Slot]) -> Vec<Slot> {
        slots.iter().filter_map(|slot| self.early.get(slot).copied()).collect()
    }

    /// Adds a statement in the place of `old`.
    fn push(&mut self, kind: Kind, old: &Stmt, is_early: bool) -> StmtId {
        let id = StmtId(self.flat.statements.len() as u32);
        self.flat.statements.push(Stmt {
            kind,
            span: old.span,
            source: old.source,
            call: old.call,
            parent: self.parent,
        });
        self.is_early.push(is_early);
        self.block.push(id);
        id
    }

    /// Records that the new branch is lowered from an operator, if the old one is.
    fn note_choice(&mut self, old: StmtId, new: StmtId) {
        let choice = self.choices.get(&old);
        self.flat.choices.extend(choice.map(|choice| Choice { branch: new, ..*choice }));
    }

    fn nested(&mut self, parent: StmtId, build: impl FnOnce(&mut Self)) -> Vec<StmtId> {
        let outer_block = std::mem::take(&mut self.block);
        let outer_parent = self.parent.replace(parent);
        build(self);
        self.parent = outer_parent;
        std::mem::replace(&mut self.block, outer_block)
    }

    fn live(&self, block: &[StmtId]) -> Vec<StmtId> {
        block.iter().copied().filter(|id| self.old.live[id.index()]).collect()
    }

    /// Both sides of a block.
    fn both(&mut self, block: &[StmtId]) {
        let old = self.old;
        for id in self.live(block) {
            let stmt = old.get(id);
            if let (true, Kind::Endorse { dst, .. }) = (self.slice[id.index()], &stmt.kind) {
                self.early_stmt(id);
                let src = Operand::Slot(self.slot(*dst));
                self.push(Kind::Copy { dst: *dst, src }, stmt, false);
            } else if self.around.contains(&id) {
                self.shared(id);
            } else {
                if self.slice[id.index()] {
                    self.early_stmt(id);
                }
                self.late_stmt(id);
            }
        }
    }

    fn early_block(&mut self, block: &[StmtId]) {
        for id in self.live(block).into_iter().filter(|id| self.slice[id.index()]) {
            self.early_stmt(id);
        }
    }

    fn late_block(&mut self, block: &[StmtId]) {
        for id in self.live(block) {
            self.late_stmt(id);
        }
    }

    /// Adds the copy of a statement for endorsements.
    fn early_stmt(&mut self, id: StmtId) {
        let old = self.old;
        let stmt = old.get(id);
        let placeholder = Kind::Return { value: None };
        let kind = match &stmt.kind {
            Kind::If { condition, condition_span, then_block, else_block, merges } => {
                let new = self.push(placeholder, stmt, true);
                self.note_choice(id, new);
                let then_block = self.nested(new, |to| to.early_block(then_block));
                let else_block = self.nested(new, |to| to.early_block(else_block));
                let (condition, merges) = (self.operand(condition), self.slots(merges));
                let condition_span = *condition_span;
                let kind = Kind::If { condition, condition_span, then_block, else_block, merges };
                return self.flat.statements[new.index()].kind = kind;
            }
            Kind::While { head, condition, condition_span, body, carried } => {
                let new = self.push(placeholder, stmt, true);
                let head = self.nested(new, |to| to.early_block(head));
                let body = self.nested(new, |to| to.early_block(body));
                let (condition, carried) = (self.operand(condition), self.slots(carried));
                let condition_span = *condition_span;
                let kind = Kind::While { head, condition, condition_span, body, carried };
                return self.flat.statements[new.index()].kind = kind;
            }
            Kind::For { count, iterated_span, columns, body, carried } => {
                let new = self.push(placeholder, stmt, true);
                let body = self.nested(new, |to| to.early_block(body));
                let (count, columns) = (self.operand(count), self.columns(columns));
                let (carried, iterated_span) = (self.slots(carried), *iterated_span);
                let kind = Kind::For { count, iterated_span, columns, body, carried };
                return self.flat.statements[new.index()].kind = kind;
            }
            Kind::Local { dst, op, args } => {
                let args = args.iter().map(|arg| self.operand(arg)).collect();
                Kind::Local { dst: self.slot(*dst), op: op.clone(), args }
            }
            Kind::Copy { dst, src } => Kind::Copy { dst: self.slot(*dst), src: self.operand(src) },
            Kind::Endorse { dst, src, endorsement } => Kind::Endorse {
                dst: self.slot(*dst),
                src: self.operand(src),
                endorsement: *endorsement,
            },
            Kind::Now { dst } => Kind::Now { dst: self.slot(*dst) },
            Kind::Unique { dst, site } => Kind::Unique { dst: self.slot(*dst), site: *site },
            Kind::Read(access) => Kind::Read(self.access(access)),
            Kind::Write(_)
            | Kind::Hold(_)
            | Kind::Require { .. }
            | Kind::Return { .. }
            | Kind::Agree { .. } => {
                unreachable!("no value comes from here: M0402 refuses what a command gives")
            }
        };
        self.push(kind, stmt, true);
    }

    fn columns(&self, columns: &[(Operand, Slot)]) -> Vec<(Operand, Slot)> {
        columns.iter().map(|(list, item)| (self.operand(list), self.slot(*item))).collect()
    }

    fn access<K: Clone>(&self, access: &Access<K>) -> Access<K> {
        let operand = |(operand, span): &(Operand, Span)| (self.operand(operand), *span);
        Access {
            store: access.store,
            kind: access.kind.clone(),
            object: access.object.as_ref().map(operand),
            args: access.args.iter().map(operand).collect(),
            dsts: access.dsts.iter().map(|slot| self.slot(*slot)).collect(),
            answering: access.answering,
        }
    }

    /// Adds the copy of a statement for everything else.
    fn late_stmt(&mut self, id: StmtId) {
        let old = self.old;
        let stmt = old.get(id);
        let new = self.push(stmt.kind.clone(), stmt, false);
        let mut kind = stmt.kind.clone();
        if self.slice[id.index()] && matches!(kind, Kind::While { .. }) {
            self.again.push(new);
        }
        match &mut kind {
            Kind::If { then_block, else_block, .. } => {
                self.note_choice(id, new);
                *then_block = self.nested(new, |to| to.late_block(&old.blocks_of(id)[0]));
                *else_block = self.nested(new, |to| to.late_block(&old.blocks_of(id)[1]));
            }
            Kind::While { head, body, .. } => {
                *head = self.nested(new, |to| to.late_block(&old.blocks_of(id)[0]));
                *body = self.nested(new, |to| to.late_block(&old.blocks_of(id)[1]));
            }
            Kind::For { body, .. } => {
                *body = self.nested(new, |to| to.late_block(&old.blocks_of(id)[0]));
            }
            _ => return,
        }
        self.flat.statements[new.index()].kind = kind;
    }

    /// A branch or loop around an endorsement.
    fn shared(&mut self, id: StmtId) {
        let old = self.old;
        let stmt = old.get(id);
        let placeholder = Kind::Return { value: None };
        match &stmt.kind {
            Kind::If { condition, condition_span, then_block, else_block, merges } => {
                self.agree(condition, *condition_span, stmt);
                let new = self.push(placeholder, stmt, false);
                let then_block = self.nested(new, |to| to.both(then_block));
                let else_block = self.nested(new, |to| to.both(else_block));
                let (condition, condition_span) = (self.operand(condition), *condition_span);
                let merges = [merges.clone(), self.slots(merges)].concat();
                self.flat.statements[new.index()].kind =
                    Kind::If { condition, condition_span, then_block, else_block, merges };
            }
            Kind::While { head, condition, condition_span, body, carried } => {
                let new = self.push(placeholder, stmt, false);
                let head = self.nested(new, |to| {
                    to.both(head);
                    to.agree(condition, *condition_span, stmt);
                });
                let body = self.nested(new, |to| to.both(body));
                let (condition, condition_span) = (self.operand(condition), *condition_span);
                let carried = [carried.clone(), self.slots(carried)].concat();
                self.flat.statements[new.index()].kind =
                    Kind::While { head, condition, condition_span, body, carried };
            }
            Kind::For { count, iterated_span, columns, body, carried } => {
                self.agree(count, *iterated_span, stmt);
                for (list, item) in columns {
                    if self.used.contains(item) {
                        self.agree(list, *iterated_span, stmt);
                    }
                }
                let new = self.push(placeholder, stmt, false);
                let body = self.nested(new, |to| {
                    for (_, item) in columns {
                        let src = Operand::Slot(to.slot(*item));
                        to.push(Kind::Copy { dst: *item, src }, stmt, false);
                    }
                    to.both(body);
                });
                let (count, columns) = (self.operand(count), self.columns(columns));
                let carried = [carried.clone(), self.slots(carried)].concat();
                let iterated_span = *iterated_span;
                self.flat.statements[new.index()].kind =
                    Kind::For { count, iterated_span, columns, body, carried };
            }
            _ => unreachable!("only branches and loops stand around something"),
        }
    }

    /// Requires that the condition of a branch or loop has the same value now as early.
    fn agree(&mut self, late: &Operand, value_span: Span, stmt: &Stmt) {
        let early = self.operand(late);
        if early != *late && late.slot().is_some_and(self.varies) {
            self.push(Kind::Agree { early, late: late.clone(), value_span }, stmt, false);
        }
    }
}

impl Flat {
    fn blocks_of(&self, id: StmtId) -> Vec<Vec<StmtId>> {
        self.get(id).blocks().into_iter().map(<[StmtId]>::to_vec).collect()
    }
}
