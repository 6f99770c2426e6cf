//! Random statements that write, or may fail.

use super::declared::KEYED;
use super::{Generator, Kind, STORES, Var};

impl Generator {
    /// Returns a store that may be written here, if there is one.
    pub(super) fn written_store(&mut self) -> Option<usize> {
        let around = self.around();
        let stores: Vec<usize> = (0..STORES.len())
            .filter(|store| self.rank(*store) > self.first_written && self.rank(*store) >= around)
            .collect();
        if stores.is_empty() { None } else { Some(*self.random.pick(&stores)) }
    }

    pub(super) fn write(&mut self) {
        let Some(store) = self.written_store() else { return self.declare() };
        // Without a draw, so that other programs stay what they are.
        if self.takes && self.left % 3 == 1 {
            return self.take(store);
        }
        if self.claims && self.left.is_multiple_of(3) && self.claim(store) {
            return;
        }
        let rank = self.rank(store);
        let object = self.reference(store, rank, 2);
        let next = (store + 1) % STORES.len();
        self.written.insert(store);
        // Without a draw, so that other programs stay what they are.
        if self.left % 5 == 2 {
            self.line("allow W0502, W0503 because \"made at random\"");
        }
        if self.may_fail(store) && self.random.one_in(12) {
            let command = *self.random.pick(&["push", "bump"]);
            let argument = self.expr(Kind::Int, rank, 2);
            return self.line(&format!("{}.{command}({object}, {argument});", STORES[store].0));
        }
        if self.random.one_in(8) {
            return self.write_value(store, &object);
        }
        let line = match self.random.below(15) {
            0 => format!("{object}.n = {};", self.expr(Kind::Int, rank, 3)),
            1 => format!("{object}.n += {};", self.expr(Kind::Int, rank, 2)),
            2 => format!("{object}.b = {};", self.expr(Kind::Bool, rank, 3)),
            3 => format!("{object}.m = {};", self.expr(Kind::Maybe, rank, 3)),
            4 => format!("{object}.r = {};", self.reference(store, rank, 2)),
            5 => format!("{object}.q = {};", self.reference(next, rank, 2)),
            6 => format!("{object}.c.add({});", self.expr(Kind::Int, rank, 3)),
            7 => format!("{object}.e.insert({});", self.expr(Kind::Int, rank, 2)),
            8 => format!("{object}.e.remove({});", self.expr(Kind::Int, rank, 2)),
            9 => format!("{object}.f.insert({});", self.reference(next, rank, 2)),
            10 => {
                let (key, value) = (self.expr(Kind::Int, rank, 2), self.expr(Kind::Int, rank, 2));
                format!("{object}.d.put({key}, {value});")
            }
            11 => format!("{object}.d.remove({});", self.expr(Kind::Int, rank, 2)),
            12 => format!("{object}.g.append({});", self.expr(Kind::Int, rank, 3)),
            13 => {
                let (key, value) = (self.expr(Kind::Text, rank, 2), self.reference(next, rank, 2));
                format!("{object}.h.put({key}, {value});")
            }
            _ => match self.random.below(6) {
                0 => format!("{object}.l = {};", self.expr(Kind::List, rank, 2)),
                1 => format!("{object}.p = {};", self.expr(Kind::Pair, rank, 2)),
                2 => format!("{object}.s += {};", self.expr(Kind::Text, rank, 2)),
                _ => format!("{object}.{}.clear();", self.random.pick(&["e", "f", "d", "g", "h"])),
            },
        };
        self.line(&line);
    }

    /// Writes a value of a rare type, or an object whose key is no string.
    fn write_value(&mut self, store: usize, object: &str) {
        let rank = self.rank(store);
        let line = match self.random.below(10) {
            9 => format!("{object}.i = {};", self.expr(Kind::Json, rank, 2)),
            8 => format!("{object}.v = {};", self.expr(Kind::Tone, rank, 2)),
            0 => format!("{object}.t = {};", self.expr(Kind::Time, rank, 2)),
            1 => {
                let op = *self.random.pick(&["=", "+=", "-="]);
                format!("{object}.w {op} {};", self.expr(Kind::Float, rank, 2))
            }
            2 => format!("{object}.y = {};", self.expr(Kind::Bytes, rank, 2)),
            3 => format!("{object}.n -= {};", self.expr(Kind::Int, rank, 2)),
            4 => format!("{}.n += 1;", self.keyed(store, rank).0),
            6 => format!("{object}.z = {};", self.expr(Kind::Decimal, rank, 2)),
            5 => format!("{object}.u = {};", self.expr(Kind::Date, rank, 2)),
            _ => format!("{}.n = {};", self.keyed(store, rank).0, self.expr(Kind::Int, rank, 2)),
        };
        self.line(&line);
    }

    /// Returns the highest rank of an expression that may make the transaction fail, if one is
    /// allowed here.
    pub(super) fn failing_rank(&mut self) -> Option<usize> {
        let limit = self.first_written + 1;
        (self.around() <= limit || self.random.one_in(12)).then_some(limit)
    }

    /// True if an operation of this store may fail here.
    pub(super) fn may_fail(&self, store: usize) -> bool {
        let limit = self.first_written + 1;
        self.rank(store) <= limit && self.around() <= limit
    }

    pub(super) fn require(&mut self) {
        let Some(rank) = self.failing_rank() else { return self.declare() };
        let condition = self.expr(Kind::Bool, rank, 3);
        let usually =
            if self.random.one_in(4) { condition } else { format!("({condition}) || true") };
        let message =
            if self.random.one_in(2) { "\"no\"".into() } else { self.expr(Kind::Text, rank, 2) };
        let code = if self.random.one_in(4) { "" } else { " as refused" };
        self.line(&format!("require {usually} else {message}{code};"));
    }

    /// Creates an object whose key the store draws, if the rules allow it here; the key is an int like others.
    fn create_drawn(&mut self, store: usize) -> bool {
        let is_drawn = self.draws && KEYED[store].2 == "int" && self.may_fail(store);
        if is_drawn {
            self.draws = false;
            let (name, rank) = (self.fresh(), self.rank(store));
            let value = self.expr(Kind::Int, rank, 2);
            let (kind, key, _) = KEYED[store];
            self.line(&format!("let {name} = (new {kind} {{ n: {value} }}).{key};"));
            let rank = rank.max(self.around());
            self.vars.push(Var { name, kind: Kind::Int, rank, mutable: false });
        }
        is_drawn
    }

    pub(super) fn create(&mut self) {
        let Some(store) = self.written_store() else { return self.declare() };
        let rank = self.rank(store);
        self.written.insert(store);
        if self.create_drawn(store) {
            return;
        }
        let name = self.fresh();
        let value = self.expr(Kind::Int, rank, 2);
        let key = self.expr(Kind::Text, rank, 1);
        let limit = self.first_written + 1;
        let can_fail = rank <= limit && self.around() <= limit;
        let line = match self.random.below(3) {
            0 if can_fail => {
                format!("let {name} = new O{store} {{ name: {key} + \"{name}\", n: {value} }};")
            }
            1 if self.random.one_in(3) => {
                return self.line(&format!("put O{store} {{ n: {value}, name: {key} }};"));
            }
            1 => format!("let {name} = put O{store} {{ name: {key}, n: {value} }};"),
            _ => format!("let {name} = new O{store} {{ n: {value} }};"),
        };
        self.line(&line);
        let rank = rank.max(self.around());
        self.vars.push(Var { name, kind: Kind::Ref(store), rank, mutable: false });
    }

    pub(super) fn delete(&mut self) {
        let Some(store) = self.written_store() else { return self.declare() };
        let rank = self.rank(store);
        self.written.insert(store);
        let object = self.reference(store, rank, 2);
        self.line(&format!("{object}.delete();"));
    }
}
