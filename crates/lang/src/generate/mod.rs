//! Random programs: well typed, and mostly accepted by the flow rules.
//!
//! A program is generated as text, so that it passes through every stage from the lexer on. The
//! generator keeps to a ranking of the stores, from strong to weak: an expression has the rank of
//! the weakest store that it depends on, and affects only stores of that rank or weaker. That is
//! stricter than the rules in places, so the generator sometimes departs from it; programs that the
//! compiler then rejects are not run.

mod answers;
mod bounded;
mod control;
mod declared;
mod expressions;
mod traps;
mod unique;
mod values;
mod writes;

use std::collections::BTreeSet;

use declared::declarations;
pub use declared::{KEYS, STORES, UNIQUE, field, operations};
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
    Float,
    Time,
    Date,
    Decimal,
    Bytes,
    Tone,
    Json,
    /// A ref to the kind of this index.
    Ref(usize),
}

#[derive(Clone, Debug)]
struct Var {
    name: String,
    kind: Kind,
    /// The highest rank of the stores that it may depend on.
    rank: usize,
    mutable: bool,
}

/// Returns a whole program: a random transaction called `t`, with its declarations.
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
    let is_isolated = random.one_in(6);
    let has_levels = random.one_in(6);
    // Of two stores of one level, either may come first, unless all transactions keep to one order.
    for pair in [(0, 1), (2, 3)] {
        if random.one_in(2) && !is_isolated && !(has_levels && pair.0 == 2) {
            ranks.swap(pair.0, pair.1);
        }
    }
    let first_written = random.below(STORES.len());
    let size = 3 + random.below(14);
    let endorses = random.one_in(3);
    let gives_result = !random.one_in(12);
    let mut generator = Generator {
        random,
        is_isolated,
        has_levels,
        gives_result,
        has_late: seed.is_multiple_of(2),
        takes: seed % 4 == 1 && !endorses,
        claims: seed % 4 == 2,
        endorses,
        draws: seed % 8 == 6,
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
    is_isolated: bool,
    /// True if the program declares some levels itself.
    has_levels: bool,
    /// True if the transaction returns a value.
    gives_result: bool,
    /// True if every `match` over an answer has an arm `late`.
    has_late: bool,
    /// True if it takes from bounded counters.
    takes: bool,
    /// True if it writes fields of `unique`s.
    claims: bool,
    /// True if there are endorsements.
    endorses: bool,
    /// True if one `new` may leave its key to the store: the numbers of several could be drawn in another order than
    /// that of the program.
    draws: bool,
    /// True while an endorsed expression is generated: it must not read stores that may have been
    /// written.
    is_endorsed: bool,
    /// Stores that may have been written.
    written: BTreeSet<usize>,
    /// The rank of each store: its place in the intended order of visits, from 1. Rank 0 has no
    /// store.
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
        for (name, kind, written) in [
            ("x", Kind::Int, "int"),
            ("y", Kind::Bool, "bool"),
            ("z", Kind::List, "list<int>"),
            ("j", Kind::Json, "json"),
        ] {
            params.push(format!("{name}: {written}"));
            self.vars.push(Var { name: name.into(), kind, rank: 0, mutable: false });
        }
        self.block();
        let returned = match &*self.result() {
            "" => String::new(),
            result => format!("    return{result};\n"),
        };
        let body = std::mem::take(&mut self.text);
        let isolated = if self.is_isolated { "isolated " } else { "" };
        let gives = if self.gives_result { " -> int" } else { "" };
        format!(
            "{}/// Made at random.\n{isolated}transaction t({}){gives} {{\n{body}{returned}}}\n",
            declarations(self.has_levels),
            params.join(", ")
        )
    }

    /// Returns the value of a `return`, with a leading blank; empty if the transaction returns no
    /// value.
    fn result(&mut self) -> String {
        if !self.gives_result {
            return String::new();
        }
        format!(" {}", self.expr(Kind::Int, STORES.len(), 2))
    }

    fn line(&mut self, line: &str) {
        let indent = "    ".repeat(self.depth + 1);
        self.text.push_str(&indent);
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Returns the minimum rank of all values here: they depend at least on their context.
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

    /// Generates a block in a context of this rank.
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

    /// Returns a rank for a value: usually not below the rank of the context.
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
        match self.random.below(if self.depth < 3 { 25 } else { 15 }) {
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
            23 => self.match_answer(),
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
            Kind::Float,
            Kind::Time,
            Kind::Date,
            Kind::Decimal,
            Kind::Bytes,
            Kind::Tone,
            Kind::Json,
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
            Kind::Float => "float".into(),
            Kind::Time => "time".into(),
            Kind::Date => "date".into(),
            Kind::Decimal => "decimal".into(),
            Kind::Bytes => "bytes".into(),
            Kind::Tone => "Tone".into(),
            Kind::Json => "json".into(),
            Kind::Ref(index) => format!("ref O{index}"),
        };
        let keyword = if mutable { "var" } else { "let" };
        if self.random.one_in(16) {
            self.line("// Not a name: it takes a value.");
            return self.line(&format!("let _: {written} = {value};"));
        }
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
}
