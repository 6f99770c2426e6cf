//! Takes from bounded counters, and what is given to them.

use mingle_model::Type;

use super::lower::{After, Lowering};
use super::{Access, Kind, Operand, ReadKind, WriteKind};
use crate::hir::{Bounds, CollectionRead, CollectionWrite, Expr, Place};
use crate::ops::Op;
use crate::syntax::Span;

/// Returns the operation that tells from a counter's value, and an amount, if the amount may be taken or given.
pub(crate) fn may_change(bounds: Bounds, gives: bool) -> Op {
    if gives { Op::MayGive(bounds.max) } else { Op::MayTake(bounds.min) }
}

impl<'a> Lowering<'a> {
    /// Lowers a take: a read of the counter, the decision, and the change if the bounds allow it. The
    /// phase's transaction validates the read, so at its commit the decision still holds.
    pub(super) fn take(
        &mut self,
        place: &'a Place,
        amount: &'a Expr,
        gives: bool,
        span: Span,
    ) -> Operand {
        let object = (self.expr(&place.object), place.object.span);
        let amount = (self.expr(amount), amount.span);
        let store = self.program.store_of(place.kind);
        let read = ReadKind::Collection(place.kind, place.field, CollectionRead::CounterValue);
        let dst = self.slot(None, Type::Int);
        let value = self.read(read, store, Some(object.clone()), Vec::new(), vec![dst], span);
        let bounds = self.program.objects[place.kind.index()].bounds_of(place.field);
        let op = may_change(bounds.unwrap_or_default(), gives);
        let may = self.local(op, vec![value, amount.0.clone()], Type::Bool, span);
        self.branch(
            (may.clone(), span),
            span,
            |lowering| {
                let change = if gives {
                    amount.0
                } else {
                    lowering.local(Op::NegateInt, vec![amount.0], Type::Int, span)
                };
                let add = CollectionWrite::Add;
                let access = Access {
                    store,
                    kind: WriteKind::Collection(place.kind, place.field, add),
                    object: Some(object),
                    args: vec![(change, amount.1)],
                    dsts: Vec::new(),
                    answering: None,
                };
                lowering.push(Kind::Write(access), span);
                After::GoesOn
            },
            |_| After::GoesOn,
        );
        may
    }
}
