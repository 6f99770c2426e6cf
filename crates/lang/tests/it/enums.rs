//! Enumerations: their values, their labels, and what is refused.

use mingle_lang::format::format;
use mingle_lang::names::Names;
use mingle_lang::plain::{State, run};
use mingle_lang::syntax::{Span, lex, parse};
use mingle_lang::{Program, check};
use mingle_model::{Ref, Time, Value};

const OBJECTS: &str = "store shop: linearizable;
enum Status { open, paid, sent = \"in transit\" }
enum Color { red }
struct Line { status: Status, count: int }
object Order in shop {
    key number: int;
    status: Status = Status.paid;
    before: option<Status>;
    all: set<Status>;
    by: map<Status, int>;
    lines: list<Line>;
    index by status;
}
object Room in shop { key status: Status; n: int; }
";

fn program(transaction: &str) -> Program {
    let checked = check(format!("{OBJECTS}{transaction}"));
    checked.program.unwrap_or_else(|| panic!("{transaction}: {:?}", checked.diagnostics))
}

#[track_caller]
fn gives(returns: &str, body: &str, expected: Value) {
    let program =
        program(&format!("transaction t(order: ref Order, s: Status) -> {returns} {{ {body} }}"));
    let arguments = [Value::Ref(Ref::new("Order", Value::Int(1))), Value::from("in transit")];
    let (mut state, transaction) = (State::default(), &program.checked.transactions[0]);
    let ran =
        run(&program.checked, transaction, &arguments, &mut state, Time::default(), 1, 10_000);
    assert_eq!(ran.expect("it runs"), Some(expected), "{body}");
}

#[test]
fn a_value_is_its_label() {
    gives("string", "return string(s);", Value::from("in transit"));
    gives("bool", "return s == Status.sent && s != Status.open;", Value::Bool(true));
    gives("Status", "return order.status;", Value::from("paid"));
    gives("Status", "return Room[Status.open].status;", Value::from("open"));
    gives("Status", "order.status = s; return order.status;", Value::from("in transit"));
    gives("option<Status>", "order.before = some(s); return order.before;", {
        Value::some(Value::from("in transit"))
    });
    gives(
        "list<Status>",
        "order.all.insert(Status.paid); order.all.insert(s); return order.all.to_list();",
        Value::list([Value::from("in transit"), Value::from("paid")]),
    );
    gives("int", "order.by.put(s, 2); return order.by.get(Status.sent) ?? 0;", Value::Int(2));
    gives(
        "Status",
        "let _ = Line { status: s, count: 1 }; return if true { Status.open } else { s };",
        Value::from("open"),
    );
    gives("int", "order.status = s; return Order.by_status(Status.sent).count(5);", Value::Int(1));
}

#[test]
fn the_default_is_the_first_value() {
    let program = program("transaction t(room: ref Room) -> bool { return room.n == 0; }");
    let schema = program.schema();
    let status = &schema.objects["Room"].key_type;
    assert_eq!(schema.default_of(status), Value::from("open"));
    assert!(schema.conforms(&Value::from("in transit"), status));
    assert!(!schema.conforms(&Value::from("sent"), status), "the name of a value is not its label");
}

/// Checks a body, and returns the code, the title and the notes of its only diagnostic.
#[track_caller]
fn refused(items: &str, body: &str, code: &str, says: &str) {
    let text = format!(
        "{OBJECTS}{items}\ntransaction t(order: ref Order, s: Status) {{ {body} order.status = s; }}"
    );
    let checked = check(text.as_str());
    let [found] = &checked.diagnostics[..] else {
        panic!("{body}: {:?}", checked.diagnostics);
    };
    let shown = format!("{found:?}");
    assert_eq!(found.code.text(), code, "{shown}");
    assert!(shown.contains(says), "{shown}");
}

#[test]
fn mistakes_name_the_values_that_there_are() {
    refused("", "order.status = Status.lost;", "M0101", "there is `open`, `paid`, `sent`");
    refused("", "order.status = Status.payd;", "M0101", "there is `paid`");
    refused("", "order.status = Status;", "M0201", "its values are `Status.…`");
    refused("", "order.status = Color.red;", "M0201", "expected `Status`, found `Color`");
    refused("", "order.status = \"paid\";", "M0201", "expected `Status`, found `string`");
    refused("", "require s < Status.paid else \"no\";", "M0204", "`Status` has no order");
    refused("", "let _ = min(s, s);", "M0204", "`Status` has no order");
    refused("", "let _ = order.status.to_string();", "M0204", "string(");
    refused("", "let _ = Status(1);", "M0204", "an enum, which cannot be called");
    refused("", "let _ = Order.by_status().from(s).first(1);", "M0204", "`Status` has no order");
    refused("enum Kind { a, b, a }", "", "M0102", "`a` is declared twice");
    refused("enum Kind { a = \"x\", b = \"x\" }", "", "M0102", "`x` is declared twice");
    refused("enum Kind { a, b = \"a\" }", "", "M0102", "`a` is declared twice");
    refused("enum Kind { }", "", "M0201", "`Kind` has no values");
    refused("enum Order { a }", "", "M0102", "`Order` is declared twice");
    refused("enum Kind { a, new }", "", "M0001", "the reserved word `new`");
    refused("enum Kind { a = \"\\q\" }", "", "M0001", "escape");
    refused("enum Kind { a b }", "", "M0001", "`,`");
    refused("enum Kind { a = b }", "", "M0001", "the label in double quotes");
}

#[test]
fn a_variable_hides_an_enum() {
    let program = program(
        "transaction t(order: ref Order) -> int { let Status = Line { status: Status.open, count: 3 }; return Status.count; }",
    );
    assert_eq!(program.plans.len(), 1);
}

#[test]
fn an_enum_is_formatted_with_its_comments() {
    let text = "enum A{a,\n/// Of b.\nb=\"x y\"/* */,// last\n}";
    let source = lex(text.replace("/* */", ""));
    let (tree, mistakes) = parse(&source);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let formatted = format(&source, &tree);
    assert_eq!(formatted, "enum A {\n    a,\n    /// Of b.\n    b = \"x y\", // last\n}\n");
    let again = lex(formatted.as_str());
    assert_eq!(format(&again, &parse(&again).0), formatted);
}

#[test]
fn names_lead_to_the_values() {
    let text =
        format!("{OBJECTS}transaction t(order: ref Order) {{ order.status = Status.paid; }}");
    let source = lex(text.as_str());
    let names = Names::of(&parse(&source).0);
    let token = |text: &str, nth: usize| {
        let all = 0..source.tokens.len() as u32;
        all.filter(|token| source.token_text(*token) == text).nth(nth).expect("it is there")
    };
    let value = names.at(token("paid", 2)).expect("it is declared");
    assert_eq!((&*value.name, value.span), ("paid", Span::token(token("paid", 0))));
    assert_eq!(names.references(value.span).count(), 2);
    let declared = names.at(token("Status", 0)).expect("it is declared");
    assert_eq!(declared.shown, "enum Status");
    // In six types and two values.
    assert_eq!(names.references(declared.span).count(), 8);
    let shown: Vec<String> = names.values("Status").into_iter().map(|it| it.shown).collect();
    assert_eq!(shown, ["open", "paid", "sent = \"in transit\""]);
}
