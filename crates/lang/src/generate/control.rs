//! Random branches and loops.

use super::{Generator, Kind, STORES, Var};

impl Generator {
    pub(super) fn branch(&mut self) {
        let rank = self.some_rank();
        let condition = self.expr(Kind::Bool, rank, 3);
        self.nested(&format!("if {condition} {{"), rank, Vec::new(), "}");
        if self.random.one_in(5) {
            let second = self.expr(Kind::Bool, rank, 2);
            self.nested(&format!("else if {second} {{"), rank, Vec::new(), "}");
        }
        if self.random.one_in(2) {
            self.nested("else {", rank, Vec::new(), "}");
        }
    }

    pub(super) fn for_loop(&mut self) {
        if self.loops >= 3 {
            return self.write();
        }
        let rank = self.some_rank();
        let name = self.fresh();
        let (mut bound, mut head) = (Vec::new(), format!("for {name} in"));
        let around = self.around();
        let var = |name: &str, kind, rank: usize| Var {
            name: name.into(),
            kind,
            rank: rank.max(around),
            mutable: false,
        };
        let store = (0..STORES.len()).rfind(|store| self.rank(*store) <= rank);
        let iterated = match (self.random.below(5), store) {
            (0, Some(store)) => {
                let next = (store + 1) % STORES.len();
                bound.push(var(&name, Kind::Ref(next), rank));
                format!("{}.f", self.reference(store, self.rank(store), 1))
            }
            (1, Some(store)) => {
                bound.push(var(&name, Kind::Int, rank));
                let field = *self.random.pick(&["e", "g"]);
                format!("{}.{field}", self.reference(store, self.rank(store), 1))
            }
            (2, Some(store)) => {
                let second = self.fresh();
                head = format!("for {name}, {second} in");
                let next = (store + 1) % STORES.len();
                let object = self.reference(store, self.rank(store), 1);
                if self.random.one_in(2) {
                    bound.extend([var(&name, Kind::Int, rank), var(&second, Kind::Int, rank)]);
                    if self.random.one_in(2) {
                        format!("{object}.d.{}", self.map_slice())
                    } else {
                        format!("{object}.d")
                    }
                } else {
                    bound.extend([
                        var(&name, Kind::Text, rank),
                        var(&second, Kind::Ref(next), rank),
                    ]);
                    format!("{object}.h")
                }
            }
            (3, Some(store)) => {
                bound.push(var(&name, Kind::Ref(store), rank));
                let value = self.expr(Kind::Int, self.rank(store), 1);
                format!("O{store}.by_n({value}).first({})", self.random.below(4))
            }
            _ => {
                bound.push(var(&name, Kind::Int, rank));
                self.expr(Kind::List, rank, 2)
            }
        };
        self.loops += 1;
        self.nested(&format!("{head} {iterated} {{"), rank, bound, "}");
        self.loops -= 1;
    }

    pub(super) fn while_loop(&mut self) {
        let Some(limit) = self.failing_rank() else { return self.write() };
        if self.loops >= 2 {
            return self.write();
        }
        let counter = self.fresh();
        let condition = self.expr(Kind::Bool, limit, 2);
        let rounds = 1 + self.random.below(3);
        self.line(&format!("var {counter} = 0;"));
        self.loops += 1;
        self.line(&format!("while {counter} < {rounds} && ({condition} || {counter} < 1) {{"));
        let outer = (self.context, self.vars.len());
        self.context = self.context.max(limit);
        self.depth += 1;
        self.line(&format!("{counter} += 1;"));
        self.block();
        self.depth -= 1;
        self.vars.truncate(outer.1);
        self.context = outer.0;
        self.line("}");
        self.loops -= 1;
    }

    pub(super) fn match_option(&mut self) {
        let rank = self.some_rank();
        let option = self.expr(Kind::Maybe, rank, 2);
        let name = self.fresh();
        let bound = Var {
            name: name.clone(),
            kind: Kind::Int,
            rank: rank.max(self.around()),
            mutable: false,
        };
        self.line(&format!("match {option} {{"));
        self.depth += 1;
        let none_first = self.random.one_in(3);
        if none_first {
            self.nested("none => {", rank, Vec::new(), "},");
        }
        self.nested(&format!("some({name}) => {{"), rank, vec![bound], "}");
        if !none_first {
            self.nested("none => {", rank, Vec::new(), "}");
        }
        self.depth -= 1;
        self.line("}");
    }

    pub(super) fn early_return(&mut self) {
        if self.loops > 0 {
            return self.branch();
        }
        let rank = self.some_rank();
        let condition = self.expr(Kind::Bool, rank, 2);
        self.line(&format!("if {condition} {{"));
        self.depth += 1;
        let result = self.result();
        let outer = (self.context, self.vars.len());
        self.context = self.context.max(rank);
        if self.random.one_in(2) {
            self.statement();
        }
        self.line(&format!("return{result};"));
        (self.context, _) = outer;
        self.vars.truncate(outer.1);
        self.depth -= 1;
        self.line("}");
        self.returned = self.returned.max(rank).max(self.context);
    }
}
