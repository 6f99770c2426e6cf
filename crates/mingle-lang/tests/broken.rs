//! Broken programs: whatever somebody types, the compiler answers and does not crash.

use mingle_lang::diagnostic::{Severity, render_human, render_short, to_json};
use mingle_lang::syntax::lex;
use mingle_lang::{apply_edits, check, format};
use proptest::prelude::*;

const PROGRAMS: [&str; 6] = [
    include_str!("../../../examples/message_groups.mingle"),
    include_str!("../../../examples/contest_rejected.mingle"),
    include_str!("../../../examples/contest.mingle"),
    include_str!("../../../examples/ticket_shop.mingle"),
    include_str!("../../../examples/cart.mingle"),
    include_str!("../../../examples/bank.mingle"),
];

/// Texts that stand between tokens, or instead of them.
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

/// A program with some of its tokens changed.
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

/// Everything that can be done with a text.
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
