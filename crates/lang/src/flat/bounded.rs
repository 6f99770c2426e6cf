//! Takes from bounded counters, and what is given to them.

use mingle_model::Type;

use super::lower::{After, Lowering};
use super::{Access, Held, Kind, Operand, ReadKind, WriteKind};
use crate::hir::{Bounds, CollectionRead, CollectionWrite, Expr, Place, StoreId};
use crate::ops::Op;
use crate::syntax::Span;

/// Returns the operation that tells from a counter's value, and an amount, if the amount may be taken or given.
pub(crate) fn may_change(bounds: Bounds, gives: bool) -> Op {
    if gives { Op::MayGive(bounds.max) } else { Op::MayTake(bounds.min) }
}

/// True if a take can run ahead. What is held is given back if the transaction does not commit: a counter with a
/// greatest value might have no room for it by then. A gift that is held would be there for others to take.
fn may_be_held(bounds: Bounds, gives: bool) -> bool {
    !gives && bounds.max.is_none()
}

impl<'a> Lowering<'a> {
    /// Lowers a take: the decision, and the change if the bounds allow it. Where the store decides in its
    /// own phase, the decision is a read that the phase's transaction validates, so at its commit the decision
    /// still holds.
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
        let bounds = self.program.objects[place.kind.index()].bounds_of(place.field);
        let may = if self.held.contains(&store) && may_be_held(bounds.unwrap_or_default(), gives) {
            let dst = self.slot(None, Type::Bool);
            let (kind, field) = (place.kind, place.field);
            let (object, amount) = (object.clone(), amount.clone());
            let held = Held { dst, store, kind, field, object, amount };
            self.push(Kind::Hold(held), span);
            Operand::Slot(dst)
        } else {
            self.decide(place, (store, &object, &amount.0), gives, span)
        };
        self.change_if((may, place, gives), (store, object, amount), span)
    }

    /// Reads a counter, and decides if its bounds allow a change.
    fn decide(
        &mut self,
        place: &Place,
        (store, object, amount): (StoreId, &(Operand, Span), &Operand),
        gives: bool,
        span: Span,
    ) -> Operand {
        let read = ReadKind::Collection(place.kind, place.field, CollectionRead::CounterValue);
        let dst = self.slot(None, Type::Int);
        let value = self.read(read, store, Some(object.clone()), Vec::new(), vec![dst], span);
        let bounds = self.program.objects[place.kind.index()].bounds_of(place.field);
        let op = may_change(bounds.unwrap_or_default(), gives);
        self.local(op, vec![value, amount.clone()], Type::Bool, span)
    }

    /// Changes a counter if its bounds allow it.
    fn change_if(
        &mut self,
        (may, place, gives): (Operand, &Place, bool),
        (store, object, amount): (StoreId, (Operand, Span), (Operand, Span)),
        span: Span,
    ) -> Operand {
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
