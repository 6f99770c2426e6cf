//! The type `json`: passing documents on, comparing them, and what programs cannot do with them.

use mingle_lang::format::format;
use mingle_lang::plain::{State, run};
use mingle_lang::syntax::{lex, parse};
use mingle_lang::{Program, check};
use mingle_model::{Document, Ref, Time, Value};

const OBJECTS: &str = "store shop: linearizable {
    query found(j: json) -> option<json>;
}
struct Paper { body: json, pages: int }
struct Shelf { papers: list<Paper>, next: option<Shelf> }
object Item in shop {
    key id: int;
    body: json;
    draft: option<json>;
    paper: Paper;
    all: list<json>;
    by: map<string, json>;
    lines: log<json>;
}
";

fn program(transaction: &str) -> Program {
    let checked = check(format!("{OBJECTS}{transaction}"));
    checked.program.unwrap_or_else(|| panic!("{transaction}: {:?}", checked.diagnostics))
}

fn json(text: &str) -> Value {
    Value::Json(Document::parse(text).expect("JSON"))
}

#[track_caller]
fn gives(returns: &str, body: &str, expected: Value) {
    let program = program(&format!(
        "transaction t(item: ref Item, a: json, b: json) -> {returns} {{ {body} }}"
    ));
    let item = Value::Ref(Ref::new("Item", Value::Int(1)));
    let arguments = [item, json(r#"{"x": 1.50, "y": "é"}"#), json(r#"{"y":"\u00e9","x":15e-1}"#)];
    let (mut state, transaction) = (State::default(), &program.checked.transactions[0]);
    let ran =
        run(&program.checked, transaction, &arguments, &mut state, Time::default(), 1, 10_000);
    assert_eq!(ran.expect("it runs"), Some(expected), "{body}");
}

#[test]
fn documents_are_passed_on_and_compared() {
    let a = || json(r#"{"x":1.5,"y":"é"}"#);
    gives("bool", "return a == b && !(a != b);", Value::Bool(true));
    gives("bool", "return item.body == a;", Value::Bool(false));
    gives("json", "return item.body;", json("null"));
    gives("json", "item.body = a; return item.body;", a());
    gives("option<json>", "return item.draft;", Value::NONE);
    gives("option<json>", "item.draft = some(a); return item.draft;", Value::some(a()));
    gives("json", "return item.draft ?? a;", a());
    gives("bool", "item.draft = some(item.body); return item.draft == none;", Value::Bool(false));
    gives("json", "return item.paper.body;", json("null"));
    gives(
        "bool",
        "item.paper = Paper { body: a, pages: 2 }; return item.paper == Paper { pages: 2, body: b };",
        Value::Bool(true),
    );
    gives("bool", "item.all = [a]; return item.all.contains(b);", Value::Bool(true));
    gives("option<json>", "item.by.put(\"k\", a); return item.by.get(\"k\");", Value::some(a()));
    gives("list<json>", "item.lines.append(a); return item.lines.last(1);", Value::list([a()]));
    gives("json", "return if item.exists() { a } else { item.body };", json("null"));
    program("transaction t(a: json) -> option<json> { return shop.found(a); }");
    program("transaction t(s: Shelf) -> Shelf { return s; }");
}

#[test]
fn documents_have_no_members_no_order_and_no_conversions() {
    for (body, code, title) in [
        ("return a.x;", "M0204", "`json` has no fields, so no `x`"),
        ("return a.get(\"x\");", "M0204", "`json` has no operation `get`"),
        ("return a < b;", "M0204", "`json` has no order"),
        ("return min(a, b);", "M0204", "`json` has no order"),
        ("return string(a);", "M0204", "`string(…)` does not convert `json`"),
        ("return a + b;", "M0201", "`+` does not go with `json` and `json`"),
        ("for x in a {} return 1;", "M0204", "`json` cannot be iterated"),
        ("return a == \"x\";", "M0201", "expected `json`, found `string`"),
        ("let x: json = 1; return x;", "M0201", "expected `json`, found `int`"),
    ] {
        let text = format!("{OBJECTS}transaction t(a: json, b: json) -> int {{ {body} }}");
        let found = check(text).diagnostics;
        let is_there = found.iter().any(|it| format!("{:?}", it.code) == code && it.title == title);
        assert!(is_there, "{body}: {found:?}");
    }
}

#[test]
fn documents_are_no_keys_elements_or_fields_of_an_index() {
    let paper = "store s: causal; struct Paper { body: json } struct Deep { next: option<Deep>, all: list<Paper> }";
    for (fields, title) in [
        ("key k: json;", "`json` cannot be a key"),
        ("key k: Paper;", "`Paper` cannot be a key: its field `body` is of type `json`"),
        ("key k: int; f: set<json>;", "`json` cannot be in `set<json>`"),
        ("key k: int; f: set<Paper>;", "`Paper` cannot be in `set<Paper>`"),
        (
            "key k: int; f: set<list<option<json>>>;",
            "`list<option<json>>` cannot be in `set<list<option<json>>>`",
        ),
        ("key k: int; f: map<Deep, int>;", "`Deep` cannot be in `map<Deep, int>`"),
        ("key k: int; f: json; index by f;", "an index cannot be ordered by `json`"),
        (
            "key k: int; f: option<json>; index by f;",
            "an index cannot be ordered by `option<json>`",
        ),
    ] {
        let found = check(format!("{paper} object O in s {{ {fields} }}")).diagnostics;
        let titles: Vec<&str> = found.iter().map(|it| &*it.title).collect();
        assert!(titles.contains(&title), "{fields}: {titles:?}");
    }
}

#[test]
fn other_names_of_the_type_are_known_and_the_name_is_reserved() {
    for name in ["jsonb", "JSON", "any"] {
        let found = check(format!("store s: causal; object O in s {{ key k: int; f: {name}; }}"));
        let found = format!("{:?}", found.diagnostics);
        assert!(found.contains("M0101") && found.contains("json"), "{name}: {found}");
    }
    let found = check("struct json { x: int }").diagnostics;
    assert!(!found.is_empty(), "a struct is called like a type");
    let text = "store s: causal;\n\nobject O in s {\n    key k: int;\n    f: option<json>;\n}\n";
    let source = lex(text);
    assert_eq!(format(&source, &parse(&source).0), text);
}
