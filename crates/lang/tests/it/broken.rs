//! Broken programs: the compiler answers every input and does not crash.

use mingle_lang::diagnostic::{Severity, render_human, render_short, to_json};
use mingle_lang::syntax::lex;
use mingle_lang::{apply_edits, check, format};
use proptest::prelude::*;

const PROGRAMS: [&str; 6] = [
    include_str!("../../../../examples/message_groups.mingle"),
    include_str!("../../../../examples/contest_rejected.mingle"),
    include_str!("../../../../examples/contest.mingle"),
    include_str!("../../../../examples/ticket_shop.mingle"),
    include_str!("../../../../examples/cart.mingle"),
    include_str!("../../../../examples/bank.mingle"),
];

/// Texts that are inserted between tokens, or replace them.
const WORDS: [&str; 32] = [
    "{", "}", "(", ")", "[", "]", ";", ",", ".", ":", "=", "->", "=>", "??", "-", "<", ">", "if",
    "for", "while", "match", "return", "new", "put", "endorse", "none", "some", "0", "\"", "\n",
    "\u{0}", "é",
];

#[derive(Clone, Debug)]
enum Change {
    Remove(usize),
    Double(usize),
    Swap(usize, usize),
    Insert(usize, usize),
    Replace(usize, usize),
    CutOff(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let (at, other) = (any::<usize>(), any::<usize>());
    prop_oneof![
        5 => at.prop_map(Change::Remove),
        5 => at.prop_map(Change::Double),
        5 => (at, other).prop_map(|(at, other)| Change::Swap(at, other)),
        5 => (at, other).prop_map(|(at, word)| Change::Insert(at, word)),
        5 => (at, other).prop_map(|(at, word)| Change::Replace(at, word)),
        1 => at.prop_map(Change::CutOff),
    ]
}

/// Returns a program with some of its tokens changed.
fn broken(program: &str, changes: &[Change]) -> String {
    let source = lex(program);
    let count = source.tokens.len() as u32;
    let mut words: Vec<&str> = (0..count).map(|token| source.token_text(token)).collect();
    for change in changes {
        let count = words.len().max(1);
        let word = |index: usize| WORDS[index % WORDS.len()];
        match *change {
            _ if words.is_empty() => {}
            Change::Remove(at) => drop(words.remove(at % count)),
            Change::Double(at) => words.insert(at % count, words[at % count]),
            Change::Swap(at, other) => words.swap(at % count, other % count),
            Change::Insert(at, index) => words.insert(at % count, word(index)),
            Change::Replace(at, index) => words[at % count] = word(index),
            Change::CutOff(at) => words.truncate(at % count),
        }
    }
    words.join(" ")
}

/// Runs everything that the crate can do with a text.
fn exercise(text: &str) {
    let checked = check(text);
    let (source, found) = (&checked.source, &checked.diagnostics);
    let has_errors = found.iter().any(|found| found.severity() == Severity::Error);
    assert_eq!(checked.program.is_none(), has_errors, "{text}");
    for color in [false, true] {
        render_human(source, "a.mingle", found, color);
    }
    assert_eq!(render_short(source, "a.mingle", found).lines().count(), found.len());
    to_json(source, "a.mingle", found, &checked.endorsements);
    for help in found.iter().flat_map(|found| &found.help) {
        apply_edits(source, &help.edits);
    }
    if !found.iter().any(|found| found.code.text() == "M0001") {
        format::format(source, &checked.syntax);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_that_are_broken_are_answered(
        program in 0..PROGRAMS.len(),
        changes in prop::collection::vec(change(), 1..8),
    ) {
        exercise(&broken(PROGRAMS[program], &changes));
    }

    #[test]
    fn random_programs_of_noise_are_answered(text in "[ -~\n\t\u{0}-\u{2ff}\u{1f600}]{0,200}") {
        exercise(&text);
    }
}

#[test]
fn much_of_everything_is_answered() {
    for (piece, count) in [
        ("(", 10_000),
        ("{", 10_000),
        ("if a {", 10_000),
        ("\u{0}", 100_000),
        ("\"", 100_001),
        ("store a: causal;\n", 10_000),
        ("transaction t() { return 1; }\n", 10_000),
        ("a b ", 100_000),
        ("é", 1_000_000),
        ("/// x\n", 100_000),
    ] {
        exercise(&piece.repeat(count));
    }
}

/// Programs that grow much faster inside the compiler than their text.
#[test]
fn small_programs_do_not_grow_without_bound() {
    let many = |count: usize, write: fn(usize) -> String| (0..count).map(write).collect::<String>();
    let store = "store s: causal; ";
    let shown = "object Z in s { key k: int; v: S0; r: ref P0; } ";
    for (text, expected) in [
        // Functions that call each other twice, and compute nothing.
        (
            many(60, |i| {
                let call = format!("f{}(x)", i + 1);
                format!("fn f{i}(x: int) -> int {{ let _a = {call}; let _b = {call}; x }} ")
            }) + "fn f60(x: int) -> int { x } transaction t() -> int { return f0(1); }",
            "M0204",
        ),
        (
            many(5_000, |i| format!("fn f{i}(x: int) -> int {{ f{}(x) }} ", i + 1))
                + "fn f5000(x: int) -> int { x } transaction t() -> int { return f0(1); }",
            "M0204",
        ),
        (
            format!("{store}{shown}object P0 in s {{ key k: int; }} struct S40 {{ a: int }} ")
                + &many(40, |i| format!("struct S{i} {{ a: S{0}, b: S{0} }} ", i + 1)),
            "M0204",
        ),
        (
            format!("{store}{shown}object P0 in s {{ key k: int; }} struct S20000 {{ a: int }} ")
                + &many(20_000, |i| format!("struct S{i} {{ a: S{} }} ", i + 1)),
            "M0204",
        ),
        (
            format!("{store}{shown}struct S0 {{ a: int }} object P20000 in s {{ key k: int; }} ")
                + &many(20_000, |i| format!("object P{i} in s {{ key k: ref P{}; }} ", i + 1)),
            "M0204",
        ),
        (
            format!("{store}object Z in s {{ key k: int; ")
                + &many(70_000, |i| format!("f{i}: int; "))
                + "}",
            "M0204",
        ),
        (
            many(3_000, |i| format!("fn f{i}(x: int) -> int {{ f{}(x) }} ", (i + 1) % 3_000)),
            "M0204",
        ),
        ("\"".to_owned() + &"\\u{".repeat(300_000), "M0001"),
    ] {
        let checked = check(text.as_str());
        assert!(checked.program.is_none());
        assert_eq!(checked.diagnostics[0].code.text(), expected, "{}", &text[..200]);
    }
}

#[test]
fn long_programs_take_time_in_proportion() {
    let many = |count: usize, write: fn(usize) -> String| (0..count).map(write).collect::<String>();
    let declared = "store s: linearizable; store c: causal; \
                    object O in s { key id: string; n: int; k: counter; } \
                    object C in c { key id: string; n: int; k: counter; } ";
    let body = |text: String| format!("{declared}transaction t(o: ref O, c: ref C) {{ {text} }}");
    for text in [
        body(many(20_000, |i| format!(r#"require !O["a{i}"].exists() else "x"; "#)) + "o.n = 1;"),
        body(many(20_000, |i| format!(r#"o.k.add(O["a{i}"].n); "#))),
        body(
            "var a = 0; ".to_owned()
                + &many(10_000, |i| format!(r#"a += C["a{i}"].n; c.k.add(1); "#))
                + r#"o.n = endorse(a) as linearizable because "x";"#,
        ),
        body(
            many(20_000, |i| format!("let zz{i} = 1; "))
                + &many(20_000, |i| format!("o.n = zy{i}; ")),
        ),
        body(many(20_000, |_| "o.n = c.n; ".to_owned())),
        many(20_000, |i| {
            let above = i.checked_sub(1).map_or("linearizable".to_owned(), |i| format!("l{i}"));
            format!("level l{i} between {above} and causal; ")
        }),
    ] {
        // Linear work takes less than a second. Comparing each line with each other takes minutes,
        // so the running test shows it.
        check(text);
    }
}
