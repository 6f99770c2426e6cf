//! Both file formats: round trips, and the errors for invalid files.

use mingle_checker::{Model, check, read_jsonl, read_text, write_jsonl, write_text};

use super::files;
use super::random::Random;

#[test]
fn json_lines_there_and_back() {
    for (name, text) in files::histories() {
        let (_, rest) = text.split_once("\n\n").expect("a header and a history");
        let (body, _) = rest.split_once("---\n").expect("a history and counterexamples");
        let history = files::read(body);
        let written = write_jsonl(&history);
        assert_eq!(read_jsonl(&written).as_ref(), Ok(&history), "{name}");
    }
}

#[test]
fn the_plain_form_there_and_back() {
    for (name, text) in files::histories() {
        let (_, rest) = text.split_once("\n\n").expect("a header and a history");
        let (body, _) = rest.split_once("---\n").expect("a history and counterexamples");
        let written = write_text(&files::read(body));
        let again = read_text(&written).expect("it reads what it writes");
        assert_eq!(write_text(&again), written, "{name}");
        if !body.starts_with('{') {
            assert_eq!(written, body, "{name}");
        }
    }
}

#[test]
fn the_examples_of_the_book() {
    let page = include_str!("../../../../../docs/history.md");
    let block = |form: &str| {
        let (_, rest) = page.split_once(&format!("```{form}\n")).expect("an example");
        rest.split_once("```").expect("its end").0
    };
    let history = read_jsonl(block("jsonl")).expect("a history");
    assert!(check(&history, Model::Mixed).is_satisfied());
    assert_eq!(write_text(&history), "w(1,5,1,1)\nw(2,6,1,1)\nr(1,5,2,2)\nr(2,6,2,2)\n");
    let plain = block("text");
    assert_eq!(write_text(&read_text(plain).expect("a history")), plain);
    for model in Model::ALL {
        assert!(page.contains(&format!("\n| `{model}` |")), "{model}");
    }
}

#[test]
fn a_field_that_is_there_twice_is_refused() {
    let inner = r#""kind":"write","key":1,"value":5,"store":"s","level":"causal""#;
    let lines = [
        (
            format!(
                r#"{{"transaction":1,"transaction":1,"session":1,"operations":[{{{inner}}}]}}"#
            ),
            "transaction",
        ),
        (
            format!(
                r#"{{"transaction":1,"session":1,"operations":[],"operations":[{{{inner}}}]}}"#
            ),
            "operations",
        ),
        (format!(r#"{{"transaction":1,"session":1,"operations":[{{{inner},"key":2}}]}}"#), "key"),
        (
            format!(r#"{{"transaction":1,"session":1,"operations":[{{{inner},"\u006bey":2}}]}}"#),
            "key",
        ),
    ];
    for (line, field) in lines {
        let error = read_jsonl(&format!("\n{line}\n")).expect_err(&line);
        assert_eq!(error.line, 2, "{error}");
        assert!(error.message.contains(&format!("the member `{field}` is there twice")), "{error}");
    }
}

#[test]
fn the_plain_form_of_outcomes() {
    let line = |id: i64, outcome: &str, kind: &str, value: i64| {
        format!(
            r#"{{"transaction":{id},"session":{id},"outcome":"{outcome}","operations":[{{"kind":"{kind}","key":7,"value":{value},"store":"s","level":"causal"}}]}}"#
        )
    };
    let lines = [
        line(1, "unknown", "write", 1),
        line(2, "unknown", "write", 2),
        line(3, "aborted", "write", 3),
        line(4, "committed", "read", 1),
    ];
    let history = read_jsonl(&lines.join("\n")).expect("a history");
    // A transaction read from the first, so it committed.
    let expected = "w(7,1,1,1)\nw(7,2,2,-1)\nw(7,3,3,-1)\nr(7,1,4,4)\n";
    assert_eq!(write_text(&history), expected);
}

#[test]
fn plain_files_that_are_wrong() {
    let check = |text: &str, expected: &str| {
        let error = read_text(text).expect_err(text);
        assert_eq!(error.to_string(), expected);
    };
    let form = "expected r(key,value,session,transaction) or the same with w";
    check("r(1,2,3)", &format!("line 1: `r(1,2,3)`: {form}"));
    check("# one\n\nx(1,2,3,4)", &format!("line 3: `x(1,2,3,4)`: {form}"));
    check("r(1,2,3,4", &format!("line 1: `r(1,2,3,4`: {form}"));
    check("r(1,2,3,4,5)", &format!("line 1: `r(1,2,3,4,5)`: {form}"));
    check("ü(", &format!("line 1: `ü(`: {form}"));
    check("r(a,2,3,4)", "line 1: key `a`: expected a whole number of 64 bits");
    let huge = "line 1: value `9223372036854775808`: expected a whole number of 64 bits";
    check("r(1,9223372036854775808,3,4)", huge);
    check("r(1,2,3,-2)", "line 1: transaction -2: expected -1 or a number that is not negative");
    check(
        "w(1,5,1,1)\nw(1,5,2,2)",
        "line 2: value 5 of key 1 is written twice, in transactions 1 and 2; \
         expected each value once",
    );
    check(
        "w(1,0,1,1)",
        "line 1: key 1 is written 0, which it holds before any write; expected another value",
    );
    check(
        "w(1,5,1,1)\nw(1,6,1,2)\nw(1,7,1,1)",
        "line 3: transaction 1 goes on in session 1, expected its operations in one session \
         and together",
    );
}

/// Files may have any content: they are rejected or checked, and nothing panics.
#[test]
fn changed_files_are_refused_or_checked() {
    let (mut refused, mut checked) = (0, 0);
    for (name, text) in files::histories() {
        let (_, rest) = text.split_once("\n\n").expect("a header and a history");
        let (body, _) = rest.split_once("---\n").expect("a history and counterexamples");
        for seed in 0..300 {
            let mut random = Random(seed);
            let mut bytes = body.as_bytes().to_vec();
            for _ in 0..=random.below(3) {
                let (place, from) = (random.below(bytes.len()), random.below(bytes.len()));
                match random.below(3) {
                    0 => bytes[place] = bytes[from],
                    1 => drop(bytes.remove(place)),
                    _ => bytes.insert(place, b"0123456789-\n,"[random.below(13)]),
                }
            }
            let changed = String::from_utf8(bytes).expect("only ASCII");
            let read = if body.starts_with('{') { read_jsonl } else { read_text };
            match read(&changed) {
                Ok(history) => {
                    checked += 1;
                    for model in Model::ALL {
                        assert!(!check(&history, model).to_string().is_empty(), "{name}: {model}");
                    }
                }
                Err(error) => {
                    refused += 1;
                    assert!((1..=changed.lines().count()).contains(&error.line), "{name}: {error}");
                }
            }
        }
    }
    assert!(refused > 500 && checked > 500, "{refused} refused, {checked} checked");
}

#[test]
fn json_files_that_are_wrong() {
    let good = r#"{"transaction":1,"session":1,"operations":[{"kind":"read","key":1,"value":5,"store":"s","level":"causal"}]}"#;
    assert!(read_jsonl(good).is_ok());
    let check = |from: &str, to: &str, expected: &str| {
        assert!(good.contains(from), "{from}");
        let error = read_jsonl(&format!("\n{}", good.replace(from, to))).expect_err(to);
        assert_eq!(error.to_string(), format!("line 2: {expected}"));
    };
    check("\"session\":1,", "", "`session` is missing, expected a whole number");
    check(
        ":1,\"session\"",
        ":\"a\",\"session\"",
        "`transaction` is \"a\", expected a whole number",
    );
    check(":1,\"session\"", ":1.5,\"session\"", "`transaction` is 1.5, expected a whole number");
    check("\"read\"", "\"cas\"", "kind `cas`: expected read or write");
    check("\"causal\"", "7", "`level` is 7, expected linearizable, snapshot, causal or eventual");
    let levels = "level `strong`: expected linearizable, snapshot, causal or eventual";
    check("\"causal\"", "\"strong\"", levels);
    let both = "`begin` is there without `end`, expected both or neither";
    check("\"operations\"", "\"begin\":1,\"operations\"", both);
    let late = "transaction 1 begins at 5, after its end at 2";
    check("\"operations\"", "\"begin\":5,\"end\":2,\"operations\"", late);
    let negative = "`commit` is -1, expected a whole number that is not negative";
    check("\"operations\"", "\"commit\":-1,\"operations\"", negative);
    let outcome = "outcome `lost`: expected committed, aborted or unknown";
    check("\"operations\"", "\"outcome\":\"lost\",\"operations\"", outcome);
    let list = "`operations` is 3, expected a list";
    check(&good[good.find('[').expect("a list")..good.len() - 1], "3", list);
    let field = "`values` is no field of an operation, \
                 expected one of kind, key, value, store, level, version";
    check("\"value\"", "\"values\"", field);
    check("\"causal\"", "\"causal\",\"version\":1", "a read of key 1 has a version, expected none");
    let error = read_jsonl("[1]").expect_err("no object");
    assert_eq!(error.to_string(), "line 1: [1]: expected a transaction as an object");
    let error = read_jsonl("{").expect_err("no JSON");
    assert!(error.to_string().starts_with("line 1: not JSON: "), "{error}");
}

#[test]
fn json_files_that_contradict_themselves() {
    let line = |id: i64, rest: &str| {
        format!(
            r#"{{"transaction":{id},"session":1,"commit":{id},"operations":[{{"kind":"write",{rest}}}]}}"#
        )
    };
    let first = line(1, r#""key":1,"value":5,"store":"s","level":"causal","version":1"#);
    let check = |second: String, expected: &str| {
        let error = read_jsonl(&format!("{first}\n{second}\n")).expect_err(expected);
        assert_eq!(error.to_string(), format!("line 2: {expected}"));
    };
    let other = r#""key":1,"value":6,"store":"t","level":"causal""#;
    check(line(2, other), "key 1 is at store t, expected s as before");
    let other = r#""key":2,"value":6,"store":"s","level":"eventual""#;
    check(line(2, other), "store s has level eventual, expected causal as before");
    let other = r#""key":1,"value":6,"store":"s","level":"causal","version":1"#;
    check(line(2, other), "version 1 of key 1 is written twice, in transactions 1 and 2");
    let other = r#""key":1,"value":6,"store":"s","level":"causal""#;
    check(line(1, other), "transaction 1 is there twice, expected another number");
    let commit = line(2, other).replace("\"commit\":2", "\"commit\":1");
    check(commit, "transactions 1 and 2 both have commit 1");
    check(
        line(-1, other).replace("\"commit\":-1,", ""),
        "transaction -1: expected a number that is not negative",
    );
}
