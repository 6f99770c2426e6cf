//! Lowering of the checked tree to flattened statements.

use std::collections::HashSet;

use mingle_model::{Name, Type, Value};

use super::lazy::{Choices, Operators};
use super::{Access, Flat, Kind, Operand, ReadKind, Slot, SlotInfo, Stmt, StmtId, WriteKind};
use crate::hir::{self, Expr, Iterated, Program, StmtKind, StoreId, VarId, WriteOp};
use crate::ops::Op;
use crate::syntax::Span;

/// The maximum number of statements that inlined functions add to one transaction, and of inlined
/// calls.
pub(crate) const INLINED_MAX: usize = 100_000;

/// Flattens a transaction, with the operators in `eager` evaluating all operands first. None if the
/// inlined functions are too large. Takes from the stores in `held` run ahead.
pub(crate) fn lower(
    program: &Program,
    transaction: &hir::Transaction,
    eager: &Operators,
    held: &[StoreId],
) -> Option<Flat> {
    let mut lowering = Lowering {
        program,
        flat: Flat { param_count: transaction.param_count, ..Flat::default() },
        env: vec![Operand::Const(Value::Bool(false)); transaction.vars.len()],
        changes: Vec::new(),
        vars: &transaction.vars,
        block: Vec::new(),
        parent: None,
        call: None,
        inlined: 0,
        calls: 0,
        too_large: false,
        choices: Choices::new(eager),
        held,
    };
    for (index, var) in transaction.vars[..transaction.param_count].iter().enumerate() {
        let slot_type = var.var_type.clone().unwrap_or(Type::Bool);
        let slot = lowering.slot(Some(var.name.clone()), slot_type);
        lowering.env[index] = Operand::Slot(slot);
    }
    lowering.statements(&transaction.body);
    lowering.flat.body = std::mem::take(&mut lowering.block);
    let mut flat = lowering.flat;
    if lowering.too_large {
        return None;
    }
    super::live::mark(&mut flat);
    Some(flat)
}

pub(super) struct Lowering<'a> {
    pub(super) program: &'a Program,
    pub(super) flat: Flat,
    /// The current value of each variable.
    pub(super) env: Vec<Operand>,
    /// Changed variables and their previous values, so that branches can be undone.
    pub(super) changes: Vec<(VarId, Operand)>,
    pub(super) vars: &'a [hir::Var],
    block: Vec<StmtId>,
    parent: Option<StmtId>,
    pub(super) call: Option<Span>,
    pub(super) inlined: usize,
    /// The number of inlined calls and of bindings in them.
    pub(super) calls: usize,
    pub(super) too_large: bool,
    pub(super) choices: Choices,
    /// The stores from which takes run ahead.
    pub(super) held: &'a [StoreId],
}

/// The control flow after the lowered statements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    GoesOn,
    Returned,
}

impl<'a> Lowering<'a> {
    pub(super) fn slot(&mut self, name: Option<Name>, slot_type: Type) -> Slot {
        self.flat.slots.push(SlotInfo { name, assigned: None, slot_type });
        Slot(self.flat.slots.len() as u32 - 1)
    }

    pub(super) fn push(&mut self, kind: Kind, span: Span) -> StmtId {
        let id = StmtId(self.flat.statements.len() as u32);
        let source = self.flat.sources.len().saturating_sub(1) as u32;
        self.flat.statements.push(Stmt {
            kind,
            span,
            source,
            call: self.call,
            parent: self.parent,
        });
        self.block.push(id);
        id
    }

    pub(super) fn set(&mut self, var: VarId, value: Operand) {
        let old = std::mem::replace(&mut self.env[var.index()], value);
        self.changes.push((var, old));
    }

    /// Undoes changes back to a mark, and returns each changed variable with its last value.
    fn undo(&mut self, mark: usize) -> Vec<(VarId, Operand)> {
        let mut last = Vec::new();
        let mut seen = HashSet::new();
        for (var, old) in self.changes.split_off(mark).into_iter().rev() {
            let value = std::mem::replace(&mut self.env[var.index()], old);
            if seen.insert(var) {
                last.push((var, value));
            }
        }
        last.sort_by_key(|(var, _)| *var);
        last
    }

    /// Lowers the statements that `build` pushes into a separate block, within `parent`.
    pub(super) fn nested<T>(
        &mut self,
        parent: StmtId,
        build: impl FnOnce(&mut Self) -> T,
    ) -> (Vec<StmtId>, T) {
        let outer_block = std::mem::take(&mut self.block);
        let outer_parent = self.parent.replace(parent);
        let result = build(self);
        self.parent = outer_parent;
        (std::mem::replace(&mut self.block, outer_block), result)
    }

    pub(super) fn statements(&mut self, statements: &'a [hir::Stmt]) -> After {
        for statement in statements {
            if self.too_large || self.statement(statement) == After::Returned {
                // The following statements are unreachable.
                return After::Returned;
            }
        }
        After::GoesOn
    }

    fn statement(&mut self, statement: &'a hir::Stmt) -> After {
        self.flat.sources.push(statement.span);
        match &statement.kind {
            StmtKind::Let(var, value) => {
                let name_span = self.vars[var.index()].span;
                self.assign(*var, value, (name_span, statement.span));
            }
            StmtKind::Assign(var, value) => {
                let name_span = Span::token(statement.span.start);
                self.assign(*var, value, (name_span, statement.span));
            }
            StmtKind::Write(write) => self.write(write, statement.span),
            StmtKind::If { condition, then_block, else_block } => {
                let span = condition.span;
                let condition = self.expr(condition);
                return self.branch(
                    (condition, span),
                    statement.span,
                    |lowering| lowering.statements(then_block),
                    |lowering| lowering.statements(else_block),
                );
            }
            StmtKind::Match { scrutinee, some_var, some_block, none_block } => {
                let span = scrutinee.span;
                let option = self.expr(scrutinee);
                let condition = self.local(Op::IsSome, vec![option.clone()], Type::Bool, span);
                let bind = |lowering: &mut Self| {
                    let var = &lowering.vars[some_var.index()];
                    let dst = lowering
                        .slot(Some(var.name.clone()), var.var_type.clone().unwrap_or(Type::Bool));
                    let span = var.span;
                    lowering.push(Kind::Local { dst, op: Op::Unwrap, args: vec![option] }, span);
                    lowering.set(*some_var, Operand::Slot(dst));
                    lowering.statements(some_block)
                };
                return self.branch((condition, span), statement.span, bind, |lowering| {
                    lowering.statements(none_block)
                });
            }
            StmtKind::MatchAnswer { .. } => return self.match_answer(statement),
            StmtKind::While { condition, body } => self.while_loop(statement, condition, body),
            StmtKind::For { first, second, iterated, body } => {
                self.for_loop(statement, (*first, *second), iterated, body);
            }
            StmtKind::Require { condition, message, code } => {
                self.require(condition, message, code.clone(), statement.span);
            }
            StmtKind::Return(value) => {
                let value = value.as_ref().map(|value| self.expr(value));
                self.push(Kind::Return { value }, statement.span);
                return After::Returned;
            }
            StmtKind::Expr(value) => {
                self.expr(value);
            }
        }
        After::GoesOn
    }

    fn assign(&mut self, var: VarId, value: &'a Expr, spans: (Span, Span)) {
        let value = self.named(var, value, spans);
        self.set(var, value);
    }

    fn require(&mut self, condition: &'a Expr, message: &'a Expr, code: Option<Name>, span: Span) {
        let (condition_span, message_span) = (condition.span, message.span);
        let (condition, message) = (self.expr(condition), self.expr(message));
        let kind =
            Kind::Require { condition, condition_span, message, message_span, code, check: None };
        self.push(kind, span);
    }

    pub(super) fn branch(
        &mut self,
        (condition, condition_span): (Operand, Span),
        span: Span,
        then: impl FnOnce(&mut Self) -> After,
        otherwise: impl FnOnce(&mut Self) -> After,
    ) -> After {
        let placeholder = Kind::Return { value: None };
        let id = self.push(placeholder, span);
        let mark = self.changes.len();
        let (mut then_block, then_after) = self.nested(id, then);
        let then_values = self.undo(mark);
        let (mut else_block, else_after) = self.nested(id, otherwise);
        let else_values = self.undo(mark);
        let mut merges = Vec::new();
        match (then_after, else_after) {
            (After::Returned, After::Returned) => {}
            (After::Returned, After::GoesOn) => {
                for (var, value) in else_values {
                    self.set(var, value);
                }
            }
            (After::GoesOn, After::Returned) => {
                for (var, value) in then_values {
                    self.set(var, value);
                }
            }
            (After::GoesOn, After::GoesOn) => {
                let find = |values: &[(VarId, Operand)], var| {
                    values
                        .binary_search_by_key(&var, |(var, _)| *var)
                        .ok()
                        .map(|at| values[at].1.clone())
                };
                let changed = then_values.iter().chain(&else_values).map(|(var, _)| *var);
                let mut changed: Vec<VarId> = changed.collect();
                changed.sort_unstable();
                changed.dedup();
                for var in changed {
                    let before = self.env[var.index()].clone();
                    let then_value = find(&then_values, var).unwrap_or_else(|| before.clone());
                    let else_value = find(&else_values, var).unwrap_or(before);
                    let declared = &self.vars[var.index()];
                    let slot = self.slot(
                        Some(declared.name.clone()),
                        declared.var_type.clone().unwrap_or(Type::Bool),
                    );
                    for (block, value) in
                        [(&mut then_block, then_value), (&mut else_block, else_value)]
                    {
                        let copy = Kind::Copy { dst: slot, src: value };
                        let (pushed, ()) = self.nested(id, |lowering| {
                            lowering.push(copy, span);
                        });
                        block.extend(pushed);
                    }
                    merges.push(slot);
                    self.set(var, Operand::Slot(slot));
                }
            }
        }
        self.flat.statements[id.index()].kind =
            Kind::If { condition, condition_span, then_block, else_block, merges };
        if then_after == After::Returned && else_after == After::Returned {
            After::Returned
        } else {
            After::GoesOn
        }
    }

    /// Gives each variable that a loop assigns its own slot, and copies its value into it.
    fn carry(&mut self, body: &[hir::Stmt], span: Span) -> Vec<(VarId, Slot)> {
        let mut assigned = HashSet::new();
        assigned_vars(body, &mut assigned);
        let mut declared = HashSet::new();
        declared_vars(body, &mut declared);
        let mut assigned: Vec<VarId> = assigned.difference(&declared).copied().collect();
        assigned.sort_unstable();
        let mut carried = Vec::new();
        for var in assigned {
            let declared = &self.vars[var.index()];
            let slot = self
                .slot(Some(declared.name.clone()), declared.var_type.clone().unwrap_or(Type::Bool));
            let src = self.env[var.index()].clone();
            self.push(Kind::Copy { dst: slot, src }, span);
            self.set(var, Operand::Slot(slot));
            carried.push((var, slot));
        }
        carried
    }

    /// At the end of a loop's body: copies each carried variable back into its slot.
    fn carry_back(&mut self, carried: &[(VarId, Slot)], span: Span) {
        for (var, slot) in carried {
            let src = self.env[var.index()].clone();
            if src != Operand::Slot(*slot) {
                self.push(Kind::Copy { dst: *slot, src }, span);
            }
        }
    }

    fn while_loop(&mut self, statement: &'a hir::Stmt, condition: &'a Expr, body: &'a [hir::Stmt]) {
        let span = statement.span;
        let carried = self.carry(body, span);
        let id = self.push(Kind::Return { value: None }, span);
        let mark = self.changes.len();
        let (head, condition_operand) = self.nested(id, |lowering| lowering.expr(condition));
        let (block, ()) = self.nested(id, |lowering| {
            lowering.statements(body);
            lowering.carry_back(&carried, span);
        });
        self.undo(mark);
        self.flat.statements[id.index()].kind = Kind::While {
            head,
            condition: condition_operand,
            condition_span: condition.span,
            body: block,
            carried: carried.into_iter().map(|(_, slot)| slot).collect(),
        };
    }

    fn for_loop(
        &mut self,
        statement: &'a hir::Stmt,
        (first, second): (VarId, Option<VarId>),
        iterated: &'a Iterated,
        body: &'a [hir::Stmt],
    ) {
        let span = statement.span;
        let (lists, iterated_span) = match iterated {
            Iterated::List(list) => (vec![self.expr(list)], list.span),
            Iterated::Collection(place, level) => {
                let kind = ReadKind::Contents(place.kind, place.field);
                let lists = self.columns((first, second), kind, (place, &[]), *level, place.span);
                (lists, place.span)
            }
            Iterated::Slice { map, read, args, level, span } => {
                let kind = ReadKind::Collection(map.kind, map.field, *read);
                (self.columns((first, second), kind, (map, args), *level, *span), *span)
            }
        };
        let count = self.local(Op::ListSize, vec![lists[0].clone()], Type::Int, iterated_span);
        let carried = self.carry(body, span);
        let id = self.push(Kind::Return { value: None }, span);
        let mark = self.changes.len();
        let mut columns = Vec::new();
        for (var, list) in std::iter::once(first).chain(second).zip(lists) {
            let declared = &self.vars[var.index()];
            let item = self
                .slot(Some(declared.name.clone()), declared.var_type.clone().unwrap_or(Type::Bool));
            self.set(var, Operand::Slot(item));
            columns.push((list, item));
        }
        let (block, ()) = self.nested(id, |lowering| {
            lowering.statements(body);
            lowering.carry_back(&carried, span);
        });
        self.undo(mark);
        let carried = carried.into_iter().map(|(_, slot)| slot).collect();
        self.flat.statements[id.index()].kind =
            Kind::For { count, iterated_span, columns, body: block, carried };
    }

    fn write(&mut self, write: &'a WriteOp, span: Span) {
        let (kind, store, object, args) = match write {
            WriteOp::Assign(place, op, value) => {
                let object = self.expr(&place.object);
                let store = self.program.store_of(place.kind);
                let object = (object, place.object.span);
                let value_operand = match op {
                    None => self.expr(value),
                    Some(op) => {
                        let dst = self.slot(None, value.value_type.clone());
                        let kind = ReadKind::Register(place.kind, place.field);
                        let old = self.read(
                            kind,
                            store,
                            Some(object.clone()),
                            Vec::new(),
                            vec![dst],
                            place.span,
                        );
                        let value_operand = self.expr(value);
                        self.local(
                            op.clone(),
                            vec![old, value_operand],
                            value.value_type.clone(),
                            span,
                        )
                    }
                };
                let written = [(place.field, value_operand.clone(), value.span)];
                self.uniques(place.kind, &object, &written, false, span);
                let args = vec![(value_operand, value.span)];
                (WriteKind::Assign(place.kind, place.field), store, object, args)
            }
            WriteOp::Collection(place, op, args) => {
                let object = (self.expr(&place.object), place.object.span);
                let args = self.exprs(args);
                let kind = WriteKind::Collection(place.kind, place.field, *op);
                (kind, self.program.store_of(place.kind), object, args)
            }
            WriteOp::Give(place, amount) => {
                self.take(place, amount, true, span);
                return;
            }
            WriteOp::Delete(object, kind) => {
                let operand = (self.expr(object), object.span);
                (WriteKind::Delete(*kind), self.program.store_of(*kind), operand, Vec::new())
            }
        };
        self.push(
            Kind::Write(Access {
                store,
                kind,
                object: Some(object),
                args,
                dsts: Vec::new(),
                answering: None,
            }),
            span,
        );
    }
}

/// The variables that statements assign.
fn assigned_vars(statements: &[hir::Stmt], found: &mut HashSet<VarId>) {
    each_block(statements, &mut |statement| {
        if let StmtKind::Assign(var, _) = &statement.kind {
            found.insert(*var);
        }
    });
}

/// The variables that statements declare.
fn declared_vars(statements: &[hir::Stmt], found: &mut HashSet<VarId>) {
    each_block(statements, &mut |statement| {
        if let StmtKind::Let(var, _) = &statement.kind {
            found.insert(*var);
        }
    });
}

fn each_block(statements: &[hir::Stmt], visit: &mut impl FnMut(&hir::Stmt)) {
    for statement in statements {
        visit(statement);
        match &statement.kind {
            StmtKind::If { then_block, else_block, .. } => {
                each_block(then_block, visit);
                each_block(else_block, visit);
            }
            StmtKind::While { body, .. } | StmtKind::For { body, .. } => each_block(body, visit),
            StmtKind::Match { some_block, none_block, .. } => {
                each_block(some_block, visit);
                each_block(none_block, visit);
            }
            StmtKind::MatchAnswer { arms, late, .. } => {
                for block in arms.iter().map(|(_, _, block)| block).chain(late) {
                    each_block(block, visit);
                }
            }
            _ => {}
        }
    }
}
