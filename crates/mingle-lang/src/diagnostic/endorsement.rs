//! The endorsements of a program: what a reviewer wants to see in one list.

use mingle_model::Name;

use crate::syntax::Span;
use crate::syntax::ast::{ExprKind, Program};
use crate::syntax::walk::each_expr;

/// One `endorse(…) as level because "…"`.
#[derive(Clone, Debug, PartialEq)]
pub struct Endorsement {
    /// All of it.
    pub span: Span,
    /// The level that is vouched for.
    pub level: Name,
    /// Why; empty where it is missing.
    pub reason: Name,
}

/// All endorsements, in source order.
pub fn endorsements(program: &Program) -> Vec<Endorsement> {
    let mut found = Vec::new();
    each_expr(program, &mut |expr| {
        if let ExprKind::Endorse { level, reason, .. } = &expr.kind {
            found.push(Endorsement {
                span: expr.span,
                level: level.name.clone(),
                reason: reason
                    .as_ref()
                    .map_or_else(|| "".into(), |(text, _)| text.clone()),
            });
        }
    });
    found.sort_by_key(|endorsement| endorsement.span);
    found
}
