//! Random takes from bounded counters.

use super::{Generator, KEYS, Kind, Var};

impl Generator {
    /// Generates a take from a bounded counter of this store, or a gift to one.
    pub(super) fn take(&mut self, store: usize) {
        let rank = self.rank(store);
        self.written.insert(store);
        let stock = format!("Stock{store}[{:?}]", *self.random.pick(&KEYS));
        let amount = match self.random.below(3) {
            0 => self.expr(Kind::Int, rank, 1),
            amount => amount.to_string(),
        };
        let take = *self.random.pick(&["left.take", "room.take", "room.give"]);
        let taken = format!("{stock}.{take}({amount})");
        let name = self.fresh();
        let around = rank.max(self.around());
        // What a take gives is certain before its store is visited, if its operands are: then it runs ahead.
        let is_literal = amount.parse::<i64>().is_ok();
        let runs_ahead =
            take == "left.take" && is_literal && !self.is_isolated && self.random.one_in(2);
        let taken_rank = if runs_ahead { self.around() } else { around };
        let bound = |kind| Var { name: name.clone(), kind, rank: around, mutable: false };
        match self.random.below(8) {
            0..=2 => self.line(&format!("{stock}.left.give({amount});")),
            3 => {
                let var = bound(Kind::Int);
                let read = *self.random.pick(&["left", "room"]);
                self.line(&format!("let {name} = {stock}.{read}.value();"));
                self.vars.push(var);
            }
            4 => self.nested(&format!("if {taken} {{"), taken_rank, Vec::new(), "}"),
            5 if self.may_fail(store) || runs_ahead => {
                self.line(&format!("require {taken} else \"none left\" as none_left;"));
            }
            6 if self.may_fail(store) && self.loops < 2 => {
                self.loops += 1;
                self.nested(&format!("while {stock}.left.take(3) {{"), rank, Vec::new(), "}");
                self.loops -= 1;
            }
            _ => {
                let var = Var { rank: taken_rank, ..bound(Kind::Bool) };
                self.line(&format!("let {name} = {taken};"));
                self.vars.push(var);
            }
        }
    }
}
