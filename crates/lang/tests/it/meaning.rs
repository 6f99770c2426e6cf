//! The meaning of expressions in the plain interpreter: tests that compare split runs with plain
//! runs do not notice if both are wrong.
//! tell where both are wrong.

use mingle_lang::plain::{State, run};
use mingle_lang::{check, ops};
use mingle_model::{Time, Value};

/// Returns the result of a transaction with this body, which has `a` = 7, `b` = 3 and `yes` = true.
#[track_caller]
fn result(returns: &str, body: &str) -> Value {
    let text = format!("transaction t(a: int, b: int, yes: bool) -> {returns} {{ {body} }}");
    let checked = check(text.as_str());
    let program = checked.program.unwrap_or_else(|| panic!("{text}: {:?}", checked.diagnostics));
    let arguments = [Value::Int(7), Value::Int(3), Value::Bool(true)];
    let transaction = &program.checked.transactions[0];
    let mut state = State::default();
    let ran =
        run(&program.checked, transaction, &arguments, &mut state, Time::default(), 1, 10_000);
    ran.expect("it runs").expect("it has a result")
}

#[track_caller]
fn is_bool(expression: &str, expected: bool) {
    assert_eq!(
        result("bool", &format!("return {expression};")),
        Value::Bool(expected),
        "{expression}"
    );
}

#[test]
fn boolean_operators_and_comparisons_mean_what_they_say() {
    for (expression, expected) in [
        ("yes && true", true),
        ("yes && false", false),
        ("!yes && false", false),
        ("yes || false", true),
        ("!yes || false", false),
        ("!yes || true", true),
        ("a == 7", true),
        ("a == b", false),
        ("a != 7", false),
        ("a != b", true),
        ("a < b", false),
        ("b < a", true),
        ("a < a", false),
        ("a <= b", false),
        ("a <= a", true),
        ("a > b", true),
        ("a > a", false),
        ("a >= a", true),
        ("b >= a", false),
    ] {
        is_bool(expression, expected);
    }
}

#[test]
fn arithmetic_means_what_it_says() {
    for (expression, expected) in [
        ("a + b", 10),
        ("a - b", 4),
        ("a * b", 21),
        ("(a / b) ?? 0", 2),
        ("(a / (b - 3)) ?? 99", 99),
        ("(a % b) ?? 0", 1),
        ("-a", -7),
        ("a - b - 1", 3),
        ("a - (b - 1)", 5),
        ("a + b * 2", 13),
        ("if yes { a } else { b }", 7),
        ("if !yes { a } else { b }", 3),
    ] {
        let found = result("int", &format!("return {expression};"));
        assert_eq!(found, Value::Int(expected), "{expression}");
    }
}

#[test]
fn statements_of_choice_run_one_of_their_branches() {
    for (body, expected) in [
        ("var x = 0; if yes { x = 1; } else { x = 2; } return x;", 1),
        ("var x = 0; if !yes { x = 1; } else { x = 2; } return x;", 2),
        ("var x = 0; if !yes { x = 1; } return x;", 0),
        ("var x = 0; var i = 0; while i < 3 { x += a; i += 1; } return x;", 21),
    ] {
        assert_eq!(result("int", body), Value::Int(expected), "{body}");
    }
}

#[test]
fn collections_and_texts_have_what_was_put_into_them() {
    for (expression, expected) in [
        ("[a, b, a].size()", 3),
        ("[a, b].get(0) ?? -1", 7),
        ("[a, b].get(1) ?? -1", 3),
        ("[a, b].get(2) ?? -1", -1),
        ("([a] + [b, 5]).get(2) ?? -1", 5),
        ("([a] + [b, 5]).size()", 3),
        ("\"ab\".size()", 2),
        ("(\"ab\" + \"cde\").size()", 5),
    ] {
        let found = result("int", &format!("return {expression};"));
        assert_eq!(found, Value::Int(expected), "{expression}");
    }
    for (expression, expected) in [
        ("[a, b].contains(3)", true),
        ("[a, b].contains(4)", false),
        ("[a, b] == [7, 3]", true),
        ("[a, b] == [3, 7]", false),
        ("\"abc\".contains(\"bc\")", true),
        ("\"abc\".contains(\"cb\")", false),
        ("\"a\" + \"b\" == \"ab\"", true),
    ] {
        is_bool(expression, expected);
    }
    let items = result("list<int>", "return [a, b, a + b];");
    assert_eq!(items, Value::list([7, 3, 10].map(Value::Int)));
    let sum = result("int", "var x = 0; for item in [a, b, 5] { x += item; } return x;");
    assert_eq!(sum, Value::Int(15));
}

/// The highest part of an expression counts, at any position.
#[test]
fn an_expression_is_too_deep_whichever_of_its_parts_is() {
    let deep = format!("1{}", " + 1".repeat(250));
    let wrap =
        |inside: &str| (0..10).fold(inside.to_owned(), |inner, _| format!("[{inner}].size()"));
    for (list, is_too_deep) in [
        (format!("[{deep}, 1]"), true),
        (format!("[1, {deep}]"), true),
        ("[1, 1]".to_owned(), false),
    ] {
        let text = format!("transaction t() -> int {{ return {}; }}", wrap(&list));
        let checked = check(text.as_str());
        let told = format!("{:?}", checked.diagnostics);
        assert_eq!(
            told.contains("nested more than 256 deep"),
            is_too_deep,
            "{}: {told}",
            &text[..60]
        );
    }
}

/// Every process must compile a program to the same plan: a helper finishes another process's
/// transaction by its slots.
#[test]
fn a_program_is_compiled_to_the_same_plan_each_time() {
    let vars: Vec<String> = (0..12).map(|n| format!("v{n}")).collect();
    let each = |line: fn(&String) -> String| vars.iter().map(line).collect::<Vec<_>>().join("\n");
    let declared = each(|var| format!("var {var} = a;"));
    let assigned = each(|var| format!("{var} += i;"));
    let text = format!(
        "store s: linearizable; object O in s {{ key k: int; n: int; }}
         transaction t(o: ref O, a: int) {{
            {declared} var i = 0; while i < 3 {{ i += 1; {assigned} }} o.n = {};
         }}",
        vars.join(" + ")
    );
    let plan = || {
        let checked = check(text.as_str());
        let program = checked.program.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
        format!("{:?}", program.plans[0])
    };
    let first = plan();
    for _ in 0..5 {
        assert!(plan() == first, "another plan");
    }
}

/// A fresh id depends on each of its inputs.
#[test]
fn fresh_ids_differ_in_whatever_their_place_differs() {
    let all = [
        ops::unique(1, 1, &[]),
        ops::unique(2, 1, &[]),
        ops::unique(1 << 64, 1, &[]),
        ops::unique(1 << 127, 1, &[]),
        ops::unique(1, 2, &[]),
        ops::unique(1, 1, &[0]),
        ops::unique(1, 1, &[1]),
        ops::unique(1, 1, &[0, 1]),
        ops::unique(1, 1, &[1, 0]),
    ];
    let text = |id: &Value| match id {
        Value::String(text) => text.to_string(),
        other => panic!("{other:?} is no text"),
    };
    let all = all.map(|id| text(&id));
    for (index, id) in all.iter().enumerate() {
        assert!(all[..index].iter().all(|other| other != id), "{index}: {id}");
    }
    // Both halves of the id depend on the place: the second half in its last digits.
    let sites = [1, 2, 3].map(|site| text(&ops::unique(1, site, &[])));
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let (one, other) = (&sites[one], &sites[other]);
        assert!(one[..12] != other[..12] && one[14..] != other[14..], "{one} and {other}");
    }
    assert_eq!(text(&ops::unique(1, 1, &[])), all[0]);
}
