//! Takes from bounded counters, and what is given to them.

use super::{Abort, Run};
use crate::flat::may_change;
use crate::hir::{CollectionRead, Expr, Place};
use crate::ops;

impl Run<'_> {
    /// Takes from a bounded counter, or gives to it, if its bounds allow it.
    pub(super) fn take(
        &mut self,
        place: &Place,
        amount: &Expr,
        gives: bool,
    ) -> Result<bool, Abort> {
        let object = self.object(&place.object)?;
        let amount = self.expr(amount)?;
        let value = self.collection(&object, place, CollectionRead::CounterValue, &[])?;
        let bounds = self.program.objects[place.kind.index()].bounds_of(place.field);
        let op = may_change(bounds.unwrap_or_default(), gives);
        let may = ops::apply(&op, &[value, amount.clone()]).map_err(|_| Abort::Limit)?;
        let may = may.as_bool().expect("the operation gives a bool");
        if may && !self.is_early() {
            let amount = i128::from(amount.as_int().expect("an amount is an int"));
            self.state.add(&object, place.field, if gives { amount } else { -amount });
        }
        Ok(may)
    }
}
