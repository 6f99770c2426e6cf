//! Random expressions.

use super::declared::KEYED;
use super::{Generator, KEYS, Kind, STORES, Var};

impl Generator {
    /// Returns a ref to an object of a store; the ref may depend on stores up to this rank.
    pub(super) fn reference(&mut self, store: usize, rank: usize, depth: usize) -> String {
        let fits = |var: &&Var| var.kind == Kind::Ref(store) && var.rank <= rank;
        let vars: Vec<String> = self.vars.iter().filter(fits).map(|var| var.name.clone()).collect();
        match self.random.below(if depth == 0 { 4 } else { 6 }) {
            0..=2 if !vars.is_empty() => self.random.pick(&vars).clone(),
            4 if self.rank(store) <= rank && self.may_read(store) => {
                format!("{}.r", self.reference(store, self.rank(store), depth - 1))
            }
            5 => {
                let before = (store + STORES.len() - 1) % STORES.len();
                if self.rank(before) <= rank && self.may_read(before) {
                    let object = self.reference(before, self.rank(before), depth - 1);
                    return format!("{object}.q");
                }
                format!("O{store}[{}]", self.expr(Kind::Text, rank, depth - 1))
            }
            _ => format!("O{store}[\"{}\"]", self.random.pick(&KEYS)),
        }
    }

    /// Returns an expression that depends on stores up to this rank.
    pub(super) fn expr(&mut self, kind: Kind, rank: usize, depth: usize) -> String {
        let fits = |var: &&Var| var.kind == kind && var.rank <= rank;
        let vars: Vec<String> = self.vars.iter().filter(fits).map(|var| var.name.clone()).collect();
        if !vars.is_empty() && self.random.one_in(3) {
            return self.random.pick(&vars).clone();
        }
        if self.endorses && depth > 0 && rank < STORES.len() && self.random.one_in(3) {
            return self.endorsement(kind, rank, depth - 1);
        }
        // A read needs a store that is not stronger than its context.
        let around = self.around();
        let stores: Vec<usize> = (0..STORES.len())
            .filter(|store| self.rank(*store) <= rank && self.rank(*store) >= around)
            .filter(|store| self.may_read(*store))
            .collect();
        if depth > 0 && !stores.is_empty() && self.random.one_in(2) {
            let store = *self.random.pick(&stores);
            if kind == Kind::Int && rank == STORES.len() && self.random.one_in(8) {
                return self.weaker_read(store, depth - 1);
            }
            return self.read(kind, store, depth - 1);
        }
        if depth > 1 && self.random.one_in(12) {
            return self.select(kind, (rank, depth - 1));
        }
        if depth == 0 { self.literal(kind) } else { self.local(kind, rank, depth - 1) }
    }

    /// True if a store may be read: endorsed expressions are read before any write.
    pub(super) fn may_read(&self, store: usize) -> bool {
        !(self.is_endorsed && self.written.contains(&store))
    }

    /// Returns an endorsement: its expression may depend on weaker stores than its rank allows.
    fn endorsement(&mut self, kind: Kind, rank: usize, depth: usize) -> String {
        let outer = std::mem::replace(&mut self.is_endorsed, true);
        let around = self.around();
        let weaker: Vec<usize> = (0..STORES.len())
            .filter(|store| self.rank(*store) > rank && self.rank(*store) >= around)
            .filter(|store| self.may_read(*store))
            .collect();
        let value = if weaker.is_empty() || self.random.one_in(4) {
            let weaker = rank + self.random.below(STORES.len() + 1 - rank);
            self.expr(kind, weaker, depth)
        } else {
            let store = *self.random.pick(&weaker);
            self.read(kind, store, depth)
        };
        self.is_endorsed = outer;
        let level = if self.random.one_in(12) { "causal" } else { "linearizable" };
        format!("(endorse({value}) as {level} because \"why not\")")
    }

    pub(super) fn read(&mut self, kind: Kind, store: usize, depth: usize) -> String {
        let rank = self.rank(store);
        let object = self.reference(store, rank, depth.min(2));
        let int = |generator: &mut Self| generator.expr(Kind::Int, rank, depth.min(1));
        if let Some(query) = self.some_query(kind, store, &object) {
            return query;
        }
        match kind {
            Kind::Int => self.int_read(store, &object, depth),
            Kind::Bool => match self.random.below(5) {
                0 => format!("{object}.b"),
                1 => format!("{object}.exists()"),
                2 => format!("{object}.p.second"),
                3 => {
                    let next = (store + 1) % STORES.len();
                    let member = self.reference(next, rank, 1);
                    format!("{object}.f.contains({member})")
                }
                _ => {
                    let element = int(self);
                    format!("{object}.e.contains({element})")
                }
            },
            Kind::Text => {
                if self.random.one_in(2) {
                    format!("{object}.s")
                } else {
                    format!("{object}.name")
                }
            }
            Kind::Maybe => {
                if self.random.one_in(2) {
                    return format!("{object}.m");
                }
                let key = int(self);
                format!("{object}.d.get({key})")
            }
            Kind::List => self.list_read(&object),
            Kind::Pair => format!("{object}.p"),
            Kind::Float => format!("{object}.w"),
            Kind::Time => format!("{object}.t"),
            Kind::Date => format!("{object}.u"),
            Kind::Decimal => format!("{object}.z"),
            Kind::Bytes => format!("{object}.y"),
            Kind::Tone => format!("{object}.v"),
            Kind::Json => format!("{object}.i"),
            Kind::Ref(wanted) if wanted == store => format!("{object}.r"),
            Kind::Ref(wanted) if wanted == (store + 1) % STORES.len() => {
                if self.random.one_in(2) {
                    return format!("{object}.q");
                }
                format!("({object}.h.get(\"{}\") ?? O{wanted}[\"a\"])", self.random.pick(&KEYS))
            }
            Kind::Ref(wanted) => format!("O{wanted}[{object}.s]"),
        }
    }

    /// Returns an object of a store whose key is no string, and the field of its key.
    pub(super) fn keyed(&mut self, store: usize, rank: usize) -> (String, &'static str) {
        let kinds: Vec<usize> =
            (0..KEYED.len()).filter(|index| index % STORES.len() == store).collect();
        let (kind, field, key_type) = KEYED[*self.random.pick(&kinds)];
        let key = match key_type {
            "int" => self.expr(Kind::Int, rank, 1),
            "bool" => self.expr(Kind::Bool, rank, 1),
            "time" => self.expr(Kind::Time, rank, 1),
            "date" => self.expr(Kind::Date, rank, 1),
            "decimal" => self.expr(Kind::Decimal, rank, 1),
            "Tone" => self.expr(Kind::Tone, rank, 1),
            "bytes" => self.expr(Kind::Bytes, rank, 1),
            "Place" => {
                let (row, letter) = (self.expr(Kind::Int, rank, 1), self.expr(Kind::Text, rank, 1));
                format!("Place {{ row: {row}, letter: {letter} }}")
            }
            _ => self.reference(0, rank, 1),
        };
        (format!("{kind}[{key}]"), field)
    }

    fn int_read(&mut self, store: usize, object: &str, depth: usize) -> String {
        let rank = self.rank(store);
        match self.random.below(10) {
            8 => format!("{}.n", self.keyed(store, rank).0),
            9 => format!("known{store}({object})"),
            0 | 1 => format!("{object}.n"),
            2 => format!("{object}.c.value()"),
            3 => format!("{object}.{}.size()", self.random.pick(&["e", "f", "d", "g", "h"])),
            4 => {
                let key = self.expr(Kind::Int, rank, depth.min(1));
                format!("({object}.d.get({key}) ?? 0)")
            }
            5 => format!("sum{store}({object})"),
            6 => format!("{object}.p.first"),
            _ => format!("({object}.m ?? 7)"),
        }
    }

    fn list_read(&mut self, object: &str) -> String {
        match self.random.below(8) {
            0 => format!("{object}.l"),
            1 => format!("{object}.e.to_list()"),
            2 => format!("{object}.g.to_list()"),
            3 => format!("{object}.d.keys()"),
            4 => format!("{object}.g.last({})", self.random.below(4)),
            5 | 6 => format!("{object}.d.{}", self.map_slice()),
            _ => {
                format!("{object}.g.slice({}, {})", self.random.below(3), self.random.below(4))
            }
        }
    }

    /// Returns the read of a slice of a map with keys of type `int`.
    pub(super) fn map_slice(&mut self) -> String {
        let count = self.random.below(4);
        match self.random.below(4) {
            0 => format!("first({count})"),
            3 => format!("after({} - 2, {count})", self.random.below(5)),
            1 => format!("last({count})"),
            _ => {
                let (from, before) = (self.random.below(5), self.random.below(12));
                format!("slice({from} - 2, {before}, {count})")
            }
        }
    }

    /// Returns a query of a store with this kind of result, if the query is allowed here.
    fn query(&self, kind: Kind, store: usize, object: &str) -> Option<String> {
        let query = match kind {
            Kind::Int if self.may_fail(store) => "size",
            Kind::Maybe => "maybe",
            Kind::List => "lines",
            _ => return None,
        };
        Some(format!("{}.{query}({object})", STORES[store].0))
    }

    /// Returns, now and then, a query of a store or a read of one of its indexes.
    fn some_query(&mut self, kind: Kind, store: usize, object: &str) -> Option<String> {
        if self.random.one_in(8)
            && let Some(query) = self.query(kind, store, object)
        {
            return Some(query);
        }
        if self.random.one_in(12) { self.index_read(kind, store, object) } else { None }
    }

    /// Returns a read of an index of a store, compared with an object or counted; none for other kinds.
    fn index_read(&mut self, kind: Kind, store: usize, object: &str) -> Option<String> {
        if !matches!(kind, Kind::Int | Kind::Bool) {
            return None;
        }
        let rank = self.rank(store);
        let (int, text) = (self.expr(Kind::Int, rank, 1), self.expr(Kind::Text, rank, 1));
        let read = match self.random.below(5) {
            0 => format!("by_n({int})"),
            1 => format!("by_n().from({int})"),
            2 => format!("texts({text}).before({int})"),
            3 => format!("texts({text}, {int}).after({object})"),
            _ => "texts()".to_owned(),
        };
        let most = self.random.below(4);
        Some(match kind {
            Kind::Int if self.random.one_in(2) => format!("O{store}.{read}.count({most})"),
            Kind::Int => format!("O{store}.{read}.first({most}).size()"),
            _ => format!("O{store}.{read}.reversed().first({most}).contains({object})"),
        })
    }
}
