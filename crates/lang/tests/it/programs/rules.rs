//! The rules of the reference, one by one: programs that are accepted and programs that are not.
//!
//! Each page in `rules/` opens with a prelude that precedes every other program of the page. A
//! block marked `mingle` is accepted; a block marked `mingle,M0301` has that diagnostic and no
//! other. Warnings about unused names are ignored here.

use super::common::{blocks, shown};
use mingle_lang::check;

fn page(text: &str) {
    let found = blocks(text);
    let (prelude, rest) = found.split_first().expect("a page has blocks");
    assert_eq!(prelude.info, "mingle,prelude");
    let (mut accepted, mut rejected) = (0, 0);
    for block in rest {
        let text = format!("{}{}", prelude.text, block.text);
        let checked = check(text.as_str());
        let mut codes: Vec<&str> =
            checked.diagnostics.iter().map(|found| found.code.text()).collect();
        codes.retain(|code| *code != "W0501");
        codes.dedup();
        match block.info.split_once(',') {
            None => {
                accepted += 1;
                assert!(codes.is_empty(), "{}\n{}", block.text, shown(&checked));
                assert!(checked.program.is_some(), "{}", block.text);
            }
            Some((_, expected)) => {
                rejected += 1;
                assert_eq!(codes.join(","), expected, "{}\n{}", block.text, shown(&checked));
            }
        }
    }
    assert!(accepted > 0 && rejected > 0, "{accepted} accepted and {rejected} rejected");
}

#[test]
fn names() {
    page(include_str!("rules/names.md"));
}

#[test]
fn types() {
    page(include_str!("rules/types.md"));
}

#[test]
fn objects() {
    page(include_str!("rules/objects.md"));
}

#[test]
fn statements() {
    page(include_str!("rules/statements.md"));
}

#[test]
fn answers() {
    page(include_str!("rules/answers.md"));
}

#[test]
fn bounded_counters() {
    page(include_str!("rules/bounded.md"));
}

#[test]
fn flow() {
    page(include_str!("rules/flow.md"));
}

#[test]
fn levels() {
    page(include_str!("rules/levels.md"));
}

#[test]
fn endorsement() {
    page(include_str!("rules/endorsement.md"));
}

#[test]
fn allowed_warnings() {
    page(include_str!("rules/allow.md"));
}

const WEAK_AND_STRONG: &str = "store strong: linearizable;\nstore weak: causal;\n\
    object S in strong { key id: string; n: int; flag: bool; }\n\
    object W in weak { key id: string; n: int; flag: bool; text: string; }\n";

#[test]
fn a_label_stands_at_the_variable_that_it_names() {
    let checked = check(format!(
        "{WEAK_AND_STRONG}fn f(w: ref W) -> int {{ let half = w.n; half + 1 }}\n\
         transaction t(s: ref S, w: ref W) {{ let whole = f(w); var copy = 0; copy = whole; \
         s.n = copy; }}\n"
    ));
    let labels = &checked.diagnostics[0].labels;
    for name in ["half", "whole", "copy"] {
        let label = labels.iter().find(|label| label.message.contains(&format!("`{name}`")));
        let label = label.unwrap_or_else(|| panic!("{name}\n{}", shown(&checked)));
        assert_eq!(checked.source.span_text(label.span), name, "{}", shown(&checked));
    }
}

#[test]
fn whatever_decides_can_be_endorsed() {
    for (body, expected) in [
        ("if w.flag { return; } s.n = 1;", "endorse(w.flag)"),
        ("s.n = 1; require s.flag else w.text;", "endorse(w.text)"),
        ("s.n = 1; require w.flag else \"no\";", "endorse(w.flag)"),
    ] {
        let checked =
            check(format!("{WEAK_AND_STRONG}transaction t(s: ref S, w: ref W) {{ {body} }}"));
        let edits = checked.diagnostics.iter().flat_map(|found| &found.help);
        let found = edits.flat_map(|help| &help.edits).any(|edit| edit.text.starts_with(expected));
        assert!(found, "{}", shown(&checked));
    }
}

#[test]
fn joins() {
    page(include_str!("rules/joins.md"));
}

#[test]
fn an_incomparable_level_is_not_called_stronger() {
    let text = "level left between linearizable and causal;\n\
                level right between linearizable and causal;\n\
                store a: left;\nstore b: right;\n\
                object A in a { key id: int; n: int; }\nobject B in b { key id: int; n: int; }\n\
                transaction copy(from: ref A, to: ref B) { to.n = from.n; }\n";
    let found = shown(&check(text));
    assert!(found.contains("the store `b` (right), neither weaker nor stronger"), "{found}");
    assert!(!found.contains("the stronger store"), "{found}");
}

#[test]
fn a_transaction_may_visit_as_many_stores_as_there_are_sources() {
    let program = |stores: usize| {
        let store = |n: usize| {
            format!("store s{n}: causal;\nobject O{n} in s{n} {{ key id: int; n: int; }}\n")
        };
        let all: String = (0..stores).map(store).collect();
        let sum: Vec<String> = (0..stores).map(|n| format!("O{n}[1].n")).collect();
        let sum = sum.join(" + ");
        format!("{all}transaction sum() -> int {{ return {sum}; }}\n")
    };
    for stores in [127, 128] {
        let checked = check(program(stores).as_str());
        assert!(checked.program.is_some(), "{stores}: {}", shown(&checked));
    }
    let found = shown(&check(program(129).as_str()));
    assert!(found.contains("128"), "{found}");
}
