//! Policies, and the arms of a `match` over an answer.

use super::doc::Doc;
use super::{Formatter, LineStart};
use crate::syntax::ast::{AnswerArm, Expr, ObjectField, Policy, PolicyKind, Stmt};

impl Formatter<'_> {
    pub(super) fn policy(&mut self, policy: &Policy, docs: &mut Vec<Doc>) {
        docs.extend(self.comments(policy.span.start));
        let (word, operand) = match &policy.kind {
            PolicyKind::At(level) => ("at", level),
            PolicyKind::By(bound) => ("by", bound),
        };
        docs.extend([Doc::text(word), Doc::Space]);
        self.ident(operand, docs);
    }

    /// Formats the policies after the type of a field.
    pub(super) fn field_policies(&mut self, field: &ObjectField, docs: &mut Vec<Doc>) {
        let all = field.policy.iter().map(|policy| (None, policy));
        let single = field.operation_policies.iter().map(|(name, policy)| (Some(name), policy));
        let mut ordered: Vec<_> = all.chain(single).collect();
        ordered.sort_by_key(|(_, policy)| policy.span.start);
        for (index, (operation, policy)) in ordered.into_iter().enumerate() {
            if index > 0 {
                docs.push(Doc::text(","));
            }
            docs.push(Doc::Space);
            if let Some(operation) = operation {
                self.ident(operation, docs);
                docs.push(Doc::Space);
            }
            self.policy(policy, docs);
        }
    }

    pub(super) fn match_answer(
        &mut self,
        statement: &Stmt,
        scrutinee: &Expr,
        arms: &[AnswerArm],
        docs: &mut Vec<Doc>,
    ) {
        docs.extend([Doc::text("match"), Doc::Space]);
        self.head(scrutinee, docs);
        docs.push(Doc::text("{"));
        let mut inner = Vec::new();
        let mut start = LineStart::First;
        for arm in arms {
            inner.extend(self.line(arm.level.span.start, start));
            self.ident(&arm.level, &mut inner);
            if let Some(name) = &arm.name {
                inner.push(Doc::text("("));
                self.ident(name, &mut inner);
                inner.push(Doc::text(")"));
            }
            inner.extend([Doc::Space, Doc::text("=>"), Doc::Space]);
            self.block(&arm.block, &mut inner);
            start = LineStart::AsWritten;
        }
        inner.extend(self.last_comments(statement.span.end - 1, start));
        docs.extend([Doc::indent(inner), Doc::HardLine, Doc::text("}")]);
    }
}
