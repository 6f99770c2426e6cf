//! Indexes: their meaning in the plain interpreter, and what is refused.

use mingle_lang::check;
use mingle_lang::plain::{State, run};
use mingle_model::{Ref, Time, Value};

const OBJECTS: &str = "store shop: linearizable;
object Customer in shop { key mail: string; }
object Order in shop {
    key number: int;
    customer: ref Customer;
    placed: int = 5;
    rep: option<string>;
    tags: set<string>;
    weight: float;
    index by customer;
    index by customer, placed as history;
    index by rep;
}
";

/// Fills three customers' orders in; order 4 has no date, order 5 no customer.
fn orders(program: &mingle_lang::Program) -> State {
    let mut state = State::default();
    let order = |number: i64| Ref::new("Order", Value::Int(number));
    let customer = |mail: &str| Value::Ref(Ref::new("Customer", Value::from(mail)));
    let of = |name: &str| {
        program.schema().objects["Order"].field_index(name).expect("a field of it") as u16
    };
    for (number, mail, placed) in [(1, "ada", 30), (2, "bob", 10), (3, "ada", 10), (6, "ada", 10)] {
        state.assign(&order(number), of("customer"), customer(mail));
        state.assign(&order(number), of("placed"), Value::Int(placed));
    }
    state.assign(&order(4), of("customer"), customer("ada"));
    state.assign(&order(5), of("placed"), Value::Int(1));
    state.assign(&order(1), of("rep"), Value::some("eve".into()));
    state.assign(&order(2), of("rep"), Value::NONE);
    state
}

/// Returns the keys, or the number, that an expression gives.
#[track_caller]
fn found(expression: &str, returns: &str) -> Value {
    let text = format!(
        "{OBJECTS}transaction t(ada: ref Customer, bob: ref Customer) -> {returns} {{ return {expression}; }}"
    );
    let checked = check(text.as_str());
    let program = checked.program.unwrap_or_else(|| panic!("{text}: {:?}", checked.diagnostics));
    let customer = |mail: &str| Value::Ref(Ref::new("Customer", Value::from(mail)));
    let arguments = [customer("ada"), customer("bob")];
    let mut state = orders(&program);
    let transaction = &program.checked.transactions[0];
    let ran =
        run(&program.checked, transaction, &arguments, &mut state, Time::default(), 1, 10_000);
    ran.expect("it runs").expect("it has a result")
}

#[track_caller]
fn gives(expression: &str, numbers: &[i64]) {
    let orders = numbers.iter().map(|number| Value::Ref(Ref::new("Order", Value::Int(*number))));
    assert_eq!(found(expression, "list<ref Order>"), Value::list(orders), "{expression}");
}

#[test]
fn pages_are_ordered_bounded_and_go_on() {
    gives("Order.by_customer(ada).first(10)", &[1, 3, 4, 6]);
    gives("Order.by_customer(ada).first(2)", &[1, 3]);
    gives("Order.by_customer(ada).after(Order[3]).first(2)", &[4, 6]);
    gives("Order.by_customer(ada).reversed().first(2)", &[6, 4]);
    gives("Order.by_customer(ada).after(Order[4]).reversed().first(5)", &[3, 1]);
    gives("Order.by_customer(bob).first(0)", &[]);
    gives("Order.history(ada).first(10)", &[3, 6, 1]);
    gives("Order.history(ada).from(11).first(10)", &[1]);
    gives("Order.history(ada).before(30).reversed().first(10)", &[6, 3]);
    gives("Order.history(ada, 10).first(10)", &[3, 6]);
    gives("Order.history().first(10)", &[3, 6, 1, 2]);
}

#[test]
fn what_was_not_written_or_is_none_is_in_no_index() {
    gives("Order.by_rep(\"eve\").first(10)", &[1]);
    gives("Order.by_rep().first(10)", &[1]);
    assert_eq!(found("Order.by_customer().count(100)", "int"), Value::Int(5));
    assert_eq!(found("Order.by_customer().count(3)", "int"), Value::Int(3));
    assert_eq!(found("Order.history(ada).from(10).before(30).count(9)", "int"), Value::Int(2));
    assert_eq!(found("Order.by_rep().first(10).size()", "int"), Value::Int(1));
}

#[track_caller]
fn refused(text: &str, code: &str, title: &str) {
    let checked = check(text);
    let found: Vec<String> = checked
        .diagnostics
        .iter()
        .map(|found| format!("{} {}", found.code.text(), found.title))
        .filter(|found| found.starts_with('M'))
        .collect();
    assert!(
        matches!(&found[..], [only] if only.starts_with(code) && only.contains(title)),
        "{text}: {found:?}"
    );
}

#[test]
fn wrong_reads_say_what_fits() {
    for (read, code, title) in [
        ("Order.by_customer(c)", "M0204", "ends with `first` or `count`"),
        ("Order.by_customer(c).reversed()", "M0204", "ends with `first` or `count`"),
        ("Order.by_customer(c).size()", "M0204", "has no operation `size`"),
        ("Order.by_custmer(c).first(3)", "M0101", "no index of `Order` is called `by_custmer`"),
        ("Order.by_customer(c, 1).first(3)", "M0202", ""),
        ("Order.by_customer(1).first(3)", "M0201", ""),
        ("Order.by_customer(c).first()", "M0202", ""),
        ("Order.by_customer(c).first(true)", "M0201", ""),
        ("Order.by_customer(c).from(1).first(3)", "M0204", "have a value already"),
        ("Order.history(c).after(o).first(3)", "M0204", "in the order of keys"),
        ("Order.history(c).from(1).from(2).first(3)", "M0204", "given already"),
        ("Order.by_customer().from(c).first(3)", "M0204", "has no order"),
        ("Order.history(c).reversed().count(3)", "M0204", "a count has no order"),
        ("Order.history(c).first(1).first(2)", "M0204", "has no operation `first`"),
    ] {
        let body = format!("let _ = {read};");
        let text = format!("{OBJECTS}transaction t(c: ref Customer, o: ref Order) {{ {body} }}");
        refused(&text, code, title);
    }
}

#[test]
fn wrong_declarations_say_what_fits() {
    for (index, code, title) in [
        ("index by tags;", "M0201", "cannot be ordered by `set<string>`"),
        ("index by weight;", "M0201", "cannot be ordered by `float`"),
        ("index by nothing;", "M0101", "nothing"),
        ("index by customer, customer;", "M0102", "customer"),
        ("index by customer;", "M0102", "by_customer"),
        ("index by placed as history;", "M0102", "history"),
        ("index placed;", "M0001", "`by`"),
        ("index by placed", "M0001", ""),
    ] {
        let objects = OBJECTS.replace("    index by rep;", &format!("    index by rep; {index}"));
        refused(&format!("{objects}transaction t(o: ref Order) {{ o.placed = 1; }}"), code, title);
    }
}

#[test]
fn an_index_reads_at_the_level_of_its_store() {
    let text = "store bank: linearizable; store feed: causal;
object Account in bank { key name: string; open: bool; }
object Post in feed { key id: string; author: string; index by author; }
transaction t(name: string) {
    if Post.by_author(name).count(1) > 0 { Account[name].open = true; }
}";
    refused(text, "M0302", "the stronger store `bank`");
}
