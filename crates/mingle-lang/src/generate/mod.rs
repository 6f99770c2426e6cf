//! Random programs: well typed, and mostly accepted by the flow rules.
//!
//! A program is made as text, so that everything from the lexer on takes part. The generator
//! keeps to a ranking of the stores, from strong to weak: what it computes has the rank of the
//! weakest store that it depends on, and reaches only stores of that rank or weaker. That is
//! stricter than the rules in places, so now and then it departs from it; what the compiler then
//! rejects is not run.

mod declared;
mod expressions;
mod traps;

use std::collections::BTreeSet;

pub use declared::{KEYS, STORES, declarations, field, operations};
pub use mingle_model::random::Random;

/// The types that generated expressions have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Int,
    Bool,
    Text,
    Maybe,
    List,
    Pair,
    /// A ref to the kind of this index.
    Ref(usize),
}

#[derive(Clone, Debug)]
struct Var {
    name: String,
    kind: Kind,
    /// The rank up to which it may depend on stores.
    rank: usize,
    mutable: bool,
}

/// A random transaction called `t`, with its declarations: a whole program.
///
/// # Examples
///
/// ```
/// let text = mingle_lang::generate::program(7);
/// assert!(text.contains("transaction t("));
/// ```
pub fn program(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut ranks: Vec<usize> = (0..STORES.len()).collect();
    // Of two stores of one level either may come first.
    for pair in [(0, 1), (2, 3)] {
        if random.one_in(2) {
            ranks.swap(pair.0, pair.1);
        }
    }
    let first_written = random.below(STORES.len());
    let size = 3 + random.below(14);
    let endorses = random.one_in(3);
    let mut generator = Generator {
        random,
        endorses,
        is_endorsed: false,
        written: BTreeSet::new(),
        ranks,
        first_written,
        vars: Vec::new(),
        text: String::new(),
        depth: 0,
        loops: 0,
        names: 0,
        left: size,
        context: 0,
        returned: 0,
    };
    generator.transaction()
}

struct Generator {
    random: Random,
    /// Whether there are endorsements.
    endorses: bool,
    /// Whether what is made is endorsed: it does not read what may have been written.
    is_endorsed: bool,
    /// Stores that may have been written.
    written: BTreeSet<usize>,
    /// Rank of each store: its place in the order of visits that is aimed at, from 1. Rank 0 has
    /// no store.
    ranks: Vec<usize>,
    /// Stores of a lower rank are only read.
    first_written: usize,
    vars: Vec<Var>,
    text: String,
    depth: usize,
    loops: usize,
    names: usize,
    left: usize,
    context: usize,
    returned: usize,
}

impl Generator {
    fn rank(&self, store: usize) -> usize {
        self.ranks[store] + 1
    }

    fn transaction(&mut self) -> String {
        let mut params = Vec::new();
        for index in 0..STORES.len() {
            let name = format!("o{index}");
            params.push(format!("{name}: ref O{index}"));
            self.vars.push(Var { name, kind: Kind::Ref(index), rank: 0, mutable: false });
        }
        for (name, kind, written) in
            [("x", Kind::Int, "int"), ("y", Kind::Bool, "bool"), ("z", Kind::List, "list<int>")]
        {
            params.push(format!("{name}: {written}"));
            self.vars.push(Var { name: name.into(), kind, rank: 0, mutable: false });
        }
        self.block();
        let rank = STORES.len();
        let result = self.expr(Kind::Int, rank, 2);
        let body = std::mem::take(&mut self.text);
        format!(
            "{}transaction t({}) -> int {{\n{body}    return {result};\n}}\n",
            declarations(),
            params.join(", ")
        )
    }

    fn line(&mut self, line: &str) {
        let indent = "    ".repeat(self.depth + 1);
        self.text.push_str(&indent);
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// The rank that everything here depends on at least.
    fn around(&self) -> usize {
        self.context.max(self.returned)
    }

    fn block(&mut self) {
        let before = self.vars.len();
        let count = 1 + self.random.below(4);
        for _ in 0..count {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            self.statement();
        }
        if self.depth == 0 {
            while self.left > 0 {
                self.left -= 1;
                self.statement();
            }
        } else {
            self.vars.truncate(before);
        }
    }

    /// Opens a block in a context of this rank.
    fn nested(&mut self, head: &str, rank: usize, bound: Vec<Var>, tail: &str) {
        self.line(head);
        let outer = (self.context, self.vars.len());
        self.context = self.context.max(rank);
        self.vars.extend(bound);
        self.depth += 1;
        self.block();
        self.depth -= 1;
        self.vars.truncate(outer.1);
        self.context = outer.0;
        self.line(tail);
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("_v{}", self.names)
    }

    /// A rank for what is to be computed: not below what is around, mostly.
    fn some_rank(&mut self) -> usize {
        let around = self.around();
        let rank = self.random.below(STORES.len() + 1);
        if self.random.one_in(24) { rank } else { rank.max(around) }
    }

    fn statement(&mut self) {
        if self.endorses && self.random.one_in(5) && self.endorse_and_use() {
            return;
        }
        if self.random.one_in(150) {
            return self.decided_by_weaker();
        }
        match self.random.below(if self.depth < 3 { 24 } else { 15 }) {
            0..=2 => self.declare(),
            3 | 4 => self.assign(),
            5..=11 => self.write(),
            12 => self.require(),
            13 => self.create(),
            14 => self.delete(),
            15..=17 => self.branch(),
            18..=20 => self.for_loop(),
            21 => self.while_loop(),
            22 => self.match_option(),
            _ => self.early_return(),
        }
    }

    fn some_kind(&mut self) -> Kind {
        let object = self.random.below(STORES.len());
        *self.random.pick(&[
            Kind::Int,
            Kind::Int,
            Kind::Bool,
            Kind::Text,
            Kind::Maybe,
            Kind::List,
            Kind::Pair,
            Kind::Ref(object),
            Kind::Ref(object),
        ])
    }

    fn declare(&mut self) {
        let kind = self.some_kind();
        let rank = self.some_rank();
        let name = self.fresh();
        let mutable = self.random.one_in(2);
        let value = self.expr(kind, rank, 3);
        let written = match kind {
            Kind::Int => "int".into(),
            Kind::Bool => "bool".into(),
            Kind::Text => "string".into(),
            Kind::Maybe => "option<int>".into(),
            Kind::List => "list<int>".into(),
            Kind::Pair => "Pair".into(),
            Kind::Ref(index) => format!("ref O{index}"),
        };
        let keyword = if mutable { "var" } else { "let" };
        self.line(&format!("{keyword} {name}: {written} = {value};"));
        let rank = rank.max(self.around());
        self.vars.push(Var { name, kind, rank, mutable });
    }

    fn assign(&mut self) {
        let around = if self.random.one_in(12) { 0 } else { self.around() };
        let fits = |var: &&Var| var.mutable && var.rank >= around;
        let candidates: Vec<Var> = self.vars.iter().filter(fits).cloned().collect();
        if candidates.is_empty() {
            return self.declare();
        }
        let var = self.random.pick(&candidates).clone();
        let rank = if self.random.one_in(24) { STORES.len() } else { var.rank };
        let value = self.expr(var.kind, rank, 3);
        let op = match var.kind {
            Kind::Int => *self.random.pick(&["=", "+=", "-="]),
            _ => "=",
        };
        self.line(&format!("{} {op} {value};", var.name));
    }

    /// A store that may be written here, if there is one.
    fn written_store(&mut self) -> Option<usize> {
        let around = self.around();
        let stores: Vec<usize> = (0..STORES.len())
            .filter(|store| self.rank(*store) > self.first_written && self.rank(*store) >= around)
            .collect();
        if stores.is_empty() { None } else { Some(*self.random.pick(&stores)) }
    }

    fn write(&mut self) {
        let Some(store) = self.written_store() else { return self.declare() };
        let rank = self.rank(store);
        let object = self.reference(store, rank, 2);
        let next = (store + 1) % STORES.len();
        self.written.insert(store);
        if self.may_fail(store) && self.random.one_in(12) {
            let command = *self.random.pick(&["push", "bump"]);
            let argument = self.expr(Kind::Int, rank, 2);
            return self.line(&format!("{}.{command}({object}, {argument});", STORES[store].0));
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

    /// The rank up to which something may depend on stores that may make the transaction fail.
    fn failing_rank(&mut self) -> Option<usize> {
        let limit = self.first_written + 1;
        (self.around() <= limit || self.random.one_in(12)).then_some(limit)
    }

    /// Whether what may fail may be asked of a store here.
    fn may_fail(&self, store: usize) -> bool {
        let limit = self.first_written + 1;
        self.rank(store) <= limit && self.around() <= limit
    }

    fn require(&mut self) {
        let Some(rank) = self.failing_rank() else { return self.declare() };
        let condition = self.expr(Kind::Bool, rank, 3);
        let usually =
            if self.random.one_in(4) { condition } else { format!("({condition}) || true") };
        self.line(&format!("require {usually} else \"no\" as refused;"));
    }

    pub(super) fn create(&mut self) {
        let Some(store) = self.written_store() else { return self.declare() };
        let rank = self.rank(store);
        self.written.insert(store);
        let name = self.fresh();
        let value = self.expr(Kind::Int, rank, 2);
        let key = self.expr(Kind::Text, rank, 1);
        let limit = self.first_written + 1;
        let can_fail = rank <= limit && self.around() <= limit;
        let line = match self.random.below(3) {
            0 if can_fail => {
                format!("let {name} = new O{store} {{ name: {key} + \"{name}\", n: {value} }};")
            }
            1 => format!("let {name} = put O{store} {{ name: {key}, n: {value} }};"),
            _ => format!("let {name} = new O{store} {{ n: {value} }};"),
        };
        self.line(&line);
        let rank = rank.max(self.around());
        self.vars.push(Var { name, kind: Kind::Ref(store), rank, mutable: false });
    }

    fn delete(&mut self) {
        let Some(store) = self.written_store() else { return self.declare() };
        let rank = self.rank(store);
        self.written.insert(store);
        let object = self.reference(store, rank, 2);
        self.line(&format!("{object}.delete();"));
    }

    fn branch(&mut self) {
        let rank = self.some_rank();
        let condition = self.expr(Kind::Bool, rank, 3);
        self.nested(&format!("if {condition} {{"), rank, Vec::new(), "}");
        if self.random.one_in(2) {
            self.nested("else {", rank, Vec::new(), "}");
        }
    }

    fn for_loop(&mut self) {
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
                    format!("{object}.d")
                } else {
                    bound.extend([
                        var(&name, Kind::Text, rank),
                        var(&second, Kind::Ref(next), rank),
                    ]);
                    format!("{object}.h")
                }
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

    fn while_loop(&mut self) {
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

    fn match_option(&mut self) {
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
        self.nested(&format!("some({name}) => {{"), rank, vec![bound], "}");
        self.nested("none => {", rank, Vec::new(), "}");
        self.depth -= 1;
        self.line("}");
    }

    fn early_return(&mut self) {
        if self.loops > 0 {
            return self.branch();
        }
        let rank = self.some_rank();
        let condition = self.expr(Kind::Bool, rank, 2);
        self.line(&format!("if {condition} {{"));
        self.depth += 1;
        let result = self.expr(Kind::Int, STORES.len(), 2);
        let outer = (self.context, self.vars.len());
        self.context = self.context.max(rank);
        if self.random.one_in(2) {
            self.statement();
        }
        self.line(&format!("return {result};"));
        (self.context, _) = outer;
        self.vars.truncate(outer.1);
        self.depth -= 1;
        self.line("}");
        self.returned = self.returned.max(rank).max(self.context);
    }
}
