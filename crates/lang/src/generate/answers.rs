//! Random reads with policies.

use super::{Generator, Kind, STORES, Var};

impl Generator {
    /// Returns a read of an int.
    fn plain_read(&mut self, store: usize, depth: usize) -> String {
        let object = self.reference(store, self.rank(store), depth.min(2));
        let read = *self.random.pick(&["n", "c.value()", "e.size()", "d.size()", "g.size()"]);
        format!("{object}.{read}")
    }

    /// Returns a read of an int as of the weakest level.
    pub(super) fn weaker_read(&mut self, store: usize, depth: usize) -> String {
        let read = self.plain_read(store, depth);
        if self.is_isolated || STORES[store].1 == "eventual" {
            return read;
        }
        format!("({read} at eventual)")
    }

    /// The arms of an answer of a store: level and rank of each.
    fn arms(&mut self, store: usize) -> Vec<(&'static str, usize)> {
        let (own, rank) = (STORES[store].1, self.rank(store));
        let own = if self.has_levels && STORES[store].0 == "feed" { "regional" } else { own };
        let mut arms = Vec::new();
        if own != "eventual" && self.random.one_in(2) {
            arms.push((own, rank));
        }
        if matches!(own, "linearizable" | "regional") && self.random.one_in(2) {
            // The first rank whose stores are all at most causal.
            let causal = if self.has_levels { 4 } else { 3 };
            arms.push(("causal", rank.max(causal)));
        }
        if !self.has_late || self.random.one_in(2) {
            arms.push(("eventual", STORES.len()));
        }
        arms
    }

    pub(super) fn match_answer(&mut self) {
        let around = self.around();
        let stores: Vec<usize> =
            (0..STORES.len()).filter(|store| self.rank(*store) >= around).collect();
        if self.is_isolated || stores.is_empty() {
            return self.branch();
        }
        let store = *self.random.pick(&stores);
        let rank = self.rank(store);
        let mut answer = format!("{} by 20ms", self.plain_read(store, 2));
        if self.random.one_in(2) {
            let name = self.fresh();
            self.line(&format!("let {name}: rushed<int> = {answer};"));
            answer = name;
        }
        let arms = self.arms(store);
        self.line(&format!("match {answer} {{"));
        self.depth += 1;
        for (level, value_rank) in arms {
            let name = self.fresh();
            let bound = Var {
                name: name.clone(),
                kind: Kind::Int,
                rank: value_rank.max(self.around()),
                mutable: false,
            };
            self.nested(&format!("{level}({name}) => {{"), rank, vec![bound], "}");
        }
        if self.has_late {
            self.nested("late => {", rank, Vec::new(), "}");
        }
        self.depth -= 1;
        self.line("}");
    }
}
