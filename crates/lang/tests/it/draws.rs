//! Keys that the store draws: their meaning in the plain interpreter, and where they are refused.

use mingle_lang::check;
use mingle_lang::plain::{State, run};
use mingle_model::{Ref, Time, Value};

const DECLARED: &str = "store shop: linearizable;
store feeds: causal;
object Order in shop { key number: int; total: int; }
object Part in shop { key number: decimal; }
object Note in feeds { key number: int; text: string; }
object Feed in feeds { key name: string; orders: log<ref Order>; likes: int; }
";

/// Returns the codes of a transaction's errors.
fn codes(body: &str) -> Vec<String> {
    let checked = check(format!("{DECLARED}transaction t(feed: ref Feed) {{ {body} }}").as_str());
    let codes = checked.diagnostics.iter().map(|found| found.code.text().to_owned());
    codes.filter(|code| code.starts_with('M')).collect()
}

#[test]
fn a_drawn_number_is_of_no_object_and_of_no_earlier_draw() {
    let text = format!(
        "{DECLARED}transaction t() -> list<int> {{
            let given = new Order {{ number: 2, total: 1 }};
            let first = new Order {{ total: 10 }};
            let second = new Order {{ total: 20 }};
            first.delete();
            let third = new Order {{ total: 30 }};
            return [first.number, second.number, third.number];
        }}"
    );
    let checked = check(text.as_str());
    let program = checked.program.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    let mut state = State::default();
    let transaction = &program.checked.transactions[0];
    let ran = run(&program.checked, transaction, &[], &mut state, Time::default(), 1, 1_000);
    let numbers = [1, 3, 4].map(Value::Int);
    assert_eq!(ran.expect("it runs"), Some(Value::list(numbers)));
    assert!(state.exists(&Ref::new("Order", Value::Int(4))));
    let draws = program.operations(program.checked.objects[0].store);
    assert_eq!(draws.filter_map(|found| found.draws()).count(), 1, "nothing draws for `Note`");
}

#[test]
fn a_draw_follows_the_rules_of_a_new_with_a_key() {
    assert_eq!(codes("feed.orders.append(new Order { total: 1 });"), [] as [&str; 0]);
    // The weaker store decides if there is a draw at all.
    assert_eq!(
        codes("if feed.likes > 3 { let order = new Order { total: 1 }; }"),
        ["M0302", "M0304"]
    );
    // Stores that cannot promise that a number is new, and keys that are no numbers.
    assert_eq!(codes("let note = new Note { text: \"x\" };"), ["M0202"]);
    assert_eq!(codes("let part = new Part {};"), ["M0202"]);
    assert_eq!(codes("let order = put Order { total: 1 };"), ["M0202"]);
    // An endorsement would draw another number than the object gets.
    let endorsed = "let order = new Order { total: 1 };
        let known = endorse(order) as linearizable because \"of no use\";
        if feed.likes > 3 { feed.orders.append(known); }";
    assert_eq!(codes(endorsed), [] as [&str; 0], "it is not needed");
    let needed = "let order = new Order { total: 1 };
        let likes = endorse(feed.likes + order.number) as linearizable because \"a test\";
        order.total = likes;";
    assert_eq!(codes(needed), ["M0402"]);
}
