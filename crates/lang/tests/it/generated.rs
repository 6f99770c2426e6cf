//! Generated programs contain every construct of the reference: the properties of generated
//! programs cover only constructs that the generator produces.

use std::collections::BTreeSet;

use mingle_lang::generate::program;
use mingle_lang::syntax::{TokenKind, lex};
use mingle_lang::{Checked, check};

const REFERENCE: &str = include_str!("../../../../docs/reference.md");

/// The number of programs that is enough to contain every construct, some more than once.
const PROGRAMS: u64 = 14_000;

/// The constructs that no generated program has, with the reason.
const EXCEPTIONS: [(&str, &str); 2] = [
    ("a command's result", "no built-in command of the embedded engine gives one"),
    ("the grammar's \"import\"", "one text has no files; `files::random` cuts it into some"),
];

/// Operations named in the tables of the reference, by type, with their form in the checked
/// program.
const OPERATIONS: [(&str, &str, &str); 58] = [
    ("list<T>", "size", "Local(ListSize,"),
    ("list<T>", "get", "Local(ListGet,"),
    ("list<T>", "contains", "Local(ListContains,"),
    ("list<T>", "for x in", "iterated: List("),
    ("list<T>", "+", "Local(ConcatList,"),
    ("string", "size", "Local(StringSize,"),
    ("string", "contains", "Local(StringContains,"),
    ("string", "+", "Local(ConcatString,"),
    ("option<T>", "??", "Local(OrValue,"),
    ("option<T>", "match", "Match {"),
    ("option<T>", "is_some", "Local(IsSome,"),
    ("time", "+ int", "Local(AddTime,"),
    ("time", "- int", "Local(SubtractMs,"),
    ("time", "- time", "Local(SubtractTime,"),
    ("date", "+ int", "Local(AddDate,"),
    ("date", "- int", "Local(SubtractDays,"),
    ("date", "- date", "Local(SubtractDate,"),
    ("decimal", "+", "Local(AddDecimal,"),
    ("decimal", "-", "Local(SubtractDecimal,"),
    ("decimal", "*", "Local(MultiplyDecimal,"),
    ("decimal", "-x", "Local(NegateDecimal,"),
    ("decimal", "divide", "Local(DivideDecimal,"),
    ("decimal", "round", "Local(RoundDecimal,"),
    ("any", "==", "Local(Equal,"),
    ("any", "!=", "Local(NotEqual,"),
    ("register T", "r.f = e", "Assign(Place"),
    ("register T", "+=", "Some(AddInt)"),
    ("register T", "-=", "Some(SubtractInt)"),
    ("register T", "r.f", "Register(Place"),
    ("counter", "add", ", Add, ["),
    ("counter", "value", ", CounterValue, ["),
    ("counter min A max B", "take", "gives: false }"),
    ("counter min A max B", "give", "Give(Place"),
    ("counter min A max B", "value", ", CounterValue, ["),
    ("set<T>", "insert", ", Insert, ["),
    ("set<T>", "remove", ", Remove, ["),
    ("set<T>", "clear", ", Clear, ["),
    ("set<T>", "contains", ", SetContains, ["),
    ("set<T>", "size", ", SetSize, ["),
    ("set<T>", "to_list", ", SetList, ["),
    ("set<T>", "for x in", "second: None, iterated: Collection("),
    ("map<K, V>", "put", ", Put, ["),
    ("map<K, V>", "remove", ", Erase, ["),
    ("map<K, V>", "clear", ", Clear, ["),
    ("map<K, V>", "get", ", MapGet, ["),
    ("map<K, V>", "size", ", MapSize, ["),
    ("map<K, V>", "keys", ", MapKeys, ["),
    ("map<K, V>", "first", ", MapFirst, ["),
    ("map<K, V>", "last", ", MapLast, ["),
    ("map<K, V>", "after", ", MapAfter, ["),
    ("map<K, V>", "slice", ", MapSlice, ["),
    ("map<K, V>", "for k, v in", "iterated: Collection("),
    ("log<T>", "append", ", Append, ["),
    ("log<T>", "clear", ", Clear, ["),
    ("log<T>", "last", ", LogLast, ["),
    ("log<T>", "slice", ", LogSlice, ["),
    ("log<T>", "size", ", LogSize, ["),
    ("log<T>", "to_list", ", LogList, ["),
];

/// The other constructs of the reference, with their form in the checked program.
const OTHERS: [(&str, &str); 73] = [
    ("a document", "value_type: Json"),
    ("a value of an enum", "value_type: Enum("),
    ("a read `by` a bound", "By(20)"),
    ("a read `at` a weaker level", "At(LevelId("),
    ("`match` over an answer", "MatchAnswer {"),
    ("log<T> for x in", "iterated: Collection("),
    ("for k, v in a slice of a map", "iterated: Slice {"),
    ("`a ?? b` of two options", "Local(OrOption,"),
    ("`if` with a value", "Local(Select,"),
    ("a handle `O[k]`", "Local(MakeRef("),
    ("the key of a ref", "Local(KeyOf,"),
    ("a struct value", "Struct([("),
    ("a field of a struct", "Local(StructField("),
    ("`some`", "Local(Some,"),
    ("a list value", "Local(MakeList,"),
    ("`&&`", "Local(And,"),
    ("`||`", "Local(Or,"),
    ("`!`", "Local(Not,"),
    ("`<`", "Local(Less,"),
    ("`<=`", "Local(LessEqual,"),
    ("`>`", "Local(Greater,"),
    ("`>=`", "Local(GreaterEqual,"),
    ("int: `-x`", "Local(NegateInt,"),
    ("int: `+`", "Local(AddInt,"),
    ("int: `-`", "Local(SubtractInt,"),
    ("int: `*`", "Local(MultiplyInt,"),
    ("int: `/`", "Local(DivideInt,"),
    ("int: `%`", "Local(RemainderInt,"),
    ("int: `/` by a literal", "Local(DivideIntBy,"),
    ("int: `%` by a literal", "Local(RemainderIntBy,"),
    ("`checked_add`", "Local(CheckedAdd,"),
    ("`checked_sub`", "Local(CheckedSubtract,"),
    ("`checked_mul`", "Local(CheckedMultiply,"),
    ("`abs` of an int", "Local(AbsInt,"),
    ("float: `-x`", "Local(NegateFloat,"),
    ("float: `+`", "Local(AddFloat,"),
    ("float: `-`", "Local(SubtractFloat,"),
    ("float: `*`", "Local(MultiplyFloat,"),
    ("float: `/`", "Local(DivideFloat,"),
    ("float: `%`", "Local(RemainderFloat,"),
    ("`abs` of a float", "Local(AbsFloat,"),
    ("`min`", "Local(Min,"),
    ("`max`", "Local(Max,"),
    ("bytes: `size`", "Local(BytesSize,"),
    ("`string(x)`", "Local(ToString,"),
    ("`int(float)`", "Local(IntFromFloat,"),
    ("`int(string)`", "Local(IntFromString,"),
    ("`int(time)`", "Local(IntFromTime,"),
    ("`int(date)`", "Local(IntFromDate,"),
    ("`date(time)`", "Local(DateFromTime,"),
    ("`date(string)`", "Local(DateFromString,"),
    ("`date` of a literal", "Const(Date("),
    ("`time(date)`", "Local(TimeFromDate,"),
    ("`abs` of a decimal", "Local(AbsDecimal,"),
    ("`int(decimal)`", "Local(IntFromDecimal,"),
    ("`float(decimal)`", "Local(FloatFromDecimal,"),
    ("`decimal(int)`", "Local(DecimalFromInt,"),
    ("`decimal(string)`", "Local(DecimalFromString,"),
    ("`decimal` of a literal", "Const(Decimal("),
    ("`float(int)`", "Local(FloatFromInt,"),
    ("`float(string)`", "Local(FloatFromString,"),
    ("`now()`", "kind: Now,"),
    ("`unique()`", "kind: Unique("),
    ("`exists`", "Exists(Expr"),
    ("`delete`", "Delete(Expr"),
    ("`new` with a key", "Create { is_put: false, kind: ObjectId(0), key: Given("),
    ("`new` without a key", "Create { is_put: false, kind: ObjectId(0), key: Fresh("),
    ("`new` whose key the store draws", "Create { is_put: false, kind: ObjectId(5), key: Drawn {"),
    ("`put`", "Create { is_put: true,"),
    ("a function", "kind: Call(FunctionId("),
    ("a query or command", "kind: Operation(StoreId("),
    ("`require` without a code", "code: None }"),
    ("a variable that is assigned", "kind: Assign(VarId("),
];

/// Constructs that only the text shows: their description, and parts of a line.
const WRITTEN: [(&str, &[&str]); 30] = [
    ("a value of an enum", &["Tone.low"]),
    ("a label of an enum", &["mid = \"mid-range\""]),
    ("a command's result", &["x: int) -> int; }"]),
    ("an `isolated` transaction", &["isolated transaction"]),
    ("a message that reads", &["require ", " else ", ".s"]),
    ("`else if`", &["else if "]),
    ("`none` first", &["none => {"]),
    ("`return` without a value", &["return;"]),
    ("a level between others", &["level regional between"]),
    ("a level above several", &["and regional, spare;"]),
    ("a value that is dropped", &["let _: "]),
    ("an endorsed condition of a loop", &["while ", "endorse("]),
    ("an endorsed message", &["require ", " else ", "endorse("]),
    ("a query that may fail", &[".size(o"]),
    ("a query in an operand", &["&& ", ".maybe("]),
    ("a warning that is allowed", &["allow W0502, W0503 because "]),
    ("a count over an index", &[".by_n(", ".count("]),
    ("an index from a bound on", &[".by_n().from("]),
    ("an index before a bound", &[".texts(", ".before("]),
    ("an index after an object", &[".texts(", ".after("]),
    ("a page from the end", &[".reversed().first("]),
    ("`for` over an index", &["for ", ".by_n(", ".first("]),
    ("an assignment to a field of a `unique`", &["Badge0[", ".color = "]),
    ("an assignment with an operator to one", &["Badge1[", ".color += "]),
    ("an assignment to a field of a `unique` of several", &["Badge0[", ".of = "]),
    ("a field of a `unique` that becomes `none`", &["Badge0[", ".shape = none"]),
    ("`put` of a field of a `unique`", &["put Badge1 {", "color:"]),
    ("`new` with a `unique`", &["new Badge0 {", "color:"]),
    ("a comment", &["// "]),
    ("a doc comment", &["/// "]),
];

fn terminals() -> BTreeSet<String> {
    let (_, grammar) = REFERENCE.split_once("```ebnf").expect("the reference has a grammar");
    let (grammar, _) = grammar.split_once("```").expect("it ends");
    let quoted = grammar.split('"').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

/// Returns the operations named in the tables of the reference, by the type of their row.
fn tabled() -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let mut in_table = false;
    for line in REFERENCE.lines() {
        if line.starts_with("| type | operations") {
            in_table = true;
        } else if !line.starts_with('|') {
            in_table = false;
        } else if in_table && !line.starts_with("| ---") {
            let mut cells = line.trim_matches('|').split('|');
            let of = cells.next().expect("a row has a cell").trim().replace('`', "");
            for cell in cells {
                for code in cell.split('`').skip(1).step_by(2) {
                    let name = code.split_once('(').map_or(code, |(name, _)| name);
                    found.insert((of.clone(), name.to_owned()));
                }
            }
        }
    }
    found
}

/// The constructs that no accepted program has shown yet.
struct Missing {
    terminals: BTreeSet<String>,
    shown: Vec<(String, &'static str)>,
    written: Vec<(&'static str, &'static [&'static str])>,
    keys: BTreeSet<&'static str>,
}

impl Missing {
    fn everything() -> Self {
        let operations =
            OPERATIONS.iter().map(|(of, name, shown)| (format!("{of}: {name}"), *shown));
        let others = OTHERS.iter().map(|(name, shown)| ((*name).to_owned(), *shown));
        Self {
            terminals: terminals(),
            shown: operations.chain(others).collect(),
            written: WRITTEN.to_vec(),
            keys: ["Number[", "Seat[", "Switch[", "Linked[", "Moment[", "Raw["].into(),
        }
    }

    /// Removes the constructs of a program, if it is accepted.
    fn look(&mut self, checked: &Checked) {
        let Some(program) = &checked.program else { return };
        let source = &checked.source;
        for (index, token) in source.tokens.iter().enumerate() {
            if token.kind != TokenKind::String {
                self.terminals.remove(source.token_text(index as u32));
            }
        }
        let transaction = program.checked.transaction("t").expect("every program has it");
        let tree = format!("{transaction:?}");
        self.shown.retain(|(_, shown)| !tree.contains(shown));
        let (_, body) = source.text.split_once("/// Made at random.").expect("it says so");
        self.keys.retain(|key| !body.contains(key));
        let has = |parts: &[&str]| {
            source.text.lines().any(|line| parts.iter().all(|part| line.contains(part)))
        };
        self.written.retain(|(_, parts)| !has(parts));
    }

    fn names(&self) -> Vec<String> {
        let terminals = self.terminals.iter().map(|text| format!("the grammar's {text:?}"));
        let shown = self.shown.iter().map(|(name, _)| name.clone());
        let written = self.written.iter().map(|(name, _)| (*name).to_owned());
        let keys = self.keys.iter().map(|key| format!("an object {key}…]"));
        terminals.chain(shown).chain(written).chain(keys).collect()
    }
}

#[test]
fn the_tables_of_the_reference_are_looked_for() {
    let known = OPERATIONS.iter().map(|(of, name, _)| ((*of).to_owned(), (*name).to_owned()));
    let mut known: BTreeSet<(String, String)> = known.collect();
    // This row of the table is for several types at once.
    known.insert(("log<T>".to_owned(), "for x in".to_owned()));
    assert_eq!(known, tabled());
    assert!(terminals().contains("isolated") && terminals().contains("??"));
}

#[test]
fn generated_programs_have_every_construct_of_the_reference() {
    let mut missing = Missing::everything();
    let mut accepted = 0;
    for seed in 0..PROGRAMS {
        let checked = check(program(seed));
        accepted += u64::from(checked.program.is_some());
        let mut codes = checked.diagnostics.iter().map(|found| found.code.text());
        let is_flow = |code: &str| {
            code.starts_with("M03") || ["M0402", "M0403", "M0404", "M0607"].contains(&code)
        };
        let other = codes.find(|code| code.starts_with('M') && !is_flow(code));
        assert_eq!(other, None, "seed {seed}\n{}", program(seed));
        missing.look(&checked);
    }
    assert!(accepted * 2 > PROGRAMS, "{accepted} of {PROGRAMS} programs are accepted");
    let mut found = missing.names();
    for (name, reason) in EXCEPTIONS {
        let before = found.len();
        found.retain(|known| known != name);
        assert!(found.len() < before, "{name} is generated, although {reason}");
    }
    assert!(found.is_empty(), "in no accepted program: {found:#?}");
}

#[test]
fn a_program_that_has_little_misses_much() {
    let mut missing = Missing::everything();
    let all = missing.names().len();
    missing.look(&check(
        "store s: causal; object O in s { key k: int; n: int; }\n\
         /// Made at random.\ntransaction t(o: ref O) { o.n = 1; }",
    ));
    let left = missing.names();
    assert!(
        left.len() < all && left.contains(&"the grammar's \"isolated\"".to_owned()),
        "{left:?}"
    );
    assert!(lex("a").tokens.len() > 1);
}
