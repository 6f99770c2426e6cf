//! Reads with a policy, and the arms of a `match` over their answers.

use mingle_model::{LevelId, Name, Type};

use super::lower::{After, Lowering};
use super::{Answering, Kind, Operand, StmtId};
use crate::hir::{self, Expr, Policy, StmtKind, VarId};
use crate::ops::Op;
use crate::syntax::Span;

/// An arm: its level, its variable and its block.
type Arm = (LevelId, VarId, Vec<hir::Stmt>);

impl<'a> Lowering<'a> {
    /// Lowers a read with a policy.
    pub(super) fn answered_read(
        &mut self,
        read: &'a Expr,
        policy: Policy,
        whole: &Expr,
    ) -> Operand {
        let value = self.expr(read);
        self.answer_last(policy);
        if let Some(slot) = value.slot() {
            self.flat.slots[slot.index()].slot_type = whole.value_type.clone();
        }
        value
    }

    /// Gives the last statement, a read, a policy.
    pub(super) fn answer_last(&mut self, policy: Policy) {
        if let Some(Kind::Read(access)) =
            self.flat.statements.last_mut().map(|statement| &mut statement.kind)
        {
            access.answering = Some(Answering { policy, must_come: false });
        }
    }

    /// Notes on the read of an answer that a `match` needs an answer, however late.
    fn note_match(&mut self, answer: &Operand, must_come: bool) {
        let Some(slot) = answer.slot() else { return };
        for statement in &mut self.flat.statements {
            if let Kind::Read(access) = &mut statement.kind
                && access.dsts.contains(&slot)
                && let Some(answering) = &mut access.answering
            {
                answering.must_come |= must_come;
            }
        }
    }

    /// Lowers a `match` over an answer.
    pub(super) fn match_answer(&mut self, statement: &'a hir::Stmt) -> After {
        let StmtKind::MatchAnswer { scrutinee, arms, late } = &statement.kind else {
            return After::GoesOn;
        };
        let answer = self.expr(scrutinee);
        self.note_match(&answer, late.is_none());
        self.answer_arms((&answer, scrutinee.span), arms, late.as_deref(), statement)
    }

    /// Lowers the arms as branches, one within the other.
    fn answer_arms(
        &mut self,
        (answer, span): (&Operand, Span),
        arms: &'a [Arm],
        late: Option<&'a [hir::Stmt]>,
        statement: &'a hir::Stmt,
    ) -> After {
        let Some(((level, var, block), rest)) = arms.split_first() else {
            return late.map_or(After::GoesOn, |late| self.statements(late));
        };
        // The last arm of a `match` without `late` takes all that the others leave.
        if rest.is_empty() && late.is_none() {
            return self.answer_arm((answer, span), *level, *var, block);
        }
        let levels = &self.program.levels;
        let taken = levels.names().iter().filter(|name| {
            levels.find(name).is_some_and(|answered| levels.is_at_least(answered, *level))
        });
        let op = Op::IsOfLevel(taken.cloned().collect::<Vec<Name>>().into());
        let condition = self.local(op, vec![answer.clone()], Type::Bool, span);
        self.branch(
            (condition, span),
            statement.span,
            |lowering| lowering.answer_arm((answer, span), *level, *var, block),
            |lowering| lowering.answer_arms((answer, span), rest, late, statement),
        )
    }

    fn answer_arm(
        &mut self,
        (answer, span): (&Operand, Span),
        level: LevelId,
        var: VarId,
        block: &'a [hir::Stmt],
    ) -> After {
        let declared = &self.vars[var.index()];
        let (name, assigned) = (declared.name.clone(), declared.span);
        let value_type = declared.var_type.clone().unwrap_or(Type::Bool);
        let dst = self.slot(Some(name), value_type);
        self.flat.slots[dst.index()].assigned = Some(assigned);
        let op = Op::AnswerOf(level);
        self.push(Kind::Local { dst, op, args: vec![answer.clone()] }, span);
        self.set(var, Operand::Slot(dst));
        self.statements(block)
    }
}

impl super::Flat {
    /// The read whose answer an operand holds.
    pub(crate) fn read_of_answer(&self, answer: &Operand) -> Option<StmtId> {
        let slot = answer.slot()?;
        let is_read = |stmt: &super::Stmt| match &stmt.kind {
            Kind::Read(access) => access.dsts.contains(&slot),
            _ => false,
        };
        self.statements.iter().position(is_read).map(|index| StmtId(index as u32))
    }
}
