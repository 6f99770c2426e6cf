//! Statements that rarely occur by chance, and that a mistake in the rules or the splitter would
//! handle wrongly.

use super::{Generator, Kind, STORES, Var};

impl Generator {
    /// Endorses a value that is also used without endorsement, or under a condition that may
    /// change. Returns true if there are stores for that.
    pub(super) fn endorse_and_use(&mut self) -> bool {
        let around = self.around();
        let stores = 0..STORES.len();
        let targets: Vec<usize> = stores
            .clone()
            .filter(|store| self.rank(*store) > self.first_written && self.rank(*store) >= around)
            .collect();
        let weaker: Vec<usize> =
            stores.filter(|store| self.rank(*store) >= around && self.may_read(*store)).collect();
        if targets.is_empty() || weaker.is_empty() || self.written.len() > 1 {
            return false;
        }
        let target = *self.random.pick(&targets);
        let weak = *self.random.pick(&weaker);
        if self.rank(weak) <= self.rank(target) || self.written.contains(&weak) {
            return false;
        }
        let object = self.reference(target, self.rank(target), 0);
        let read_at = self.reference(weak, self.rank(weak), 0);
        if self.random.one_in(2) {
            self.guarded(target, &object, &format!("{read_at}.n"));
        } else {
            self.shared((target, &object), (weak, &read_at));
        }
        true
    }

    /// Writes an endorsed value, and also uses it as the base of a write at its own store.
    fn shared(&mut self, (target, object): (usize, &str), (weak, read_at): (usize, &str)) {
        let name = self.fresh();
        self.line(&format!("let {name} = {read_at}.n;"));
        let rank = self.rank(weak).max(self.around());
        self.vars.push(Var { name: name.clone(), kind: Kind::Int, rank, mutable: false });
        self.written.insert(target);
        let endorsed = format!("(endorse({name}) as linearizable because \"why not\")");
        self.line(&format!("{object}.n = {endorsed};"));
        self.written.insert(weak);
        self.line(&format!("{read_at}.n = {name} + 1;"));
    }

    /// Endorses a value that is used only under a condition that other transactions change.
    fn guarded(&mut self, target: usize, object: &str, read: &str) {
        self.written.insert(target);
        let bound = 1 + self.random.below(5);
        self.line(&format!("if {object}.n < {bound} {{"));
        let endorsed = format!("(endorse({read} * 0 + 1) as linearizable because \"why not\")");
        self.line(&format!("    {object}.n += {endorsed};"));
        self.line("}");
    }

    /// Breaks the rules: a write depends on a weaker condition, through a merge.
    pub(super) fn decided_by_weaker(&mut self) {
        let Some(store) = self.written_store() else { return self.declare() };
        let name = self.fresh();
        let object = self.reference(store, self.rank(store), 0);
        let condition = self.expr(Kind::Bool, STORES.len(), 2);
        self.written.insert(store);
        self.line(&format!("var {name} = 0;"));
        self.line(&format!("if {condition} {{"));
        self.line(&format!("    {name} = 1;"));
        self.line("}");
        self.line(&format!("{object}.n = {name};"));
    }
}
