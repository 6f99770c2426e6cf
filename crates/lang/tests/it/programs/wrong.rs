//! Wrong programs that a newcomer writes: each mistake gives one error, which says how to write it.
//!
//! Each page in `wrong/` has programs under headings. A block marked `mingle,M0001` gives exactly
//! that error, one with several codes as many errors; warnings do not count. A page may open with a
//! prelude that precedes every other program of the page. Snapshots hold the rendered errors.

use std::fmt::Write as _;

use super::common::{blocks, shown};
use mingle_lang::diagnostic::{Diagnostic, Severity, render_human};
use mingle_lang::{Checked, apply_edits, check};

const PAGES: [(&str, &str); 8] = [
    ("punctuation", include_str!("wrong/punctuation.md")),
    ("characters", include_str!("wrong/characters.md")),
    ("operators", include_str!("wrong/operators.md")),
    ("statements", include_str!("wrong/statements.md")),
    ("types", include_str!("wrong/types.md")),
    ("items", include_str!("wrong/items.md")),
    ("calls", include_str!("wrong/calls.md")),
    ("foreign", include_str!("wrong/foreign.md")),
];

/// The least number of programs, so that a page that is not read is noticed.
const PROGRAMS_MIN: usize = 200;

struct Wrong {
    title: String,
    prelude: usize,
    text: String,
    expected: Vec<String>,
}

/// Returns the programs of a page.
fn programs(page: &str) -> Vec<Wrong> {
    let titles = page.lines().filter_map(|line| line.strip_prefix("## "));
    // The pages hold line ends of every kind, which `blocks` would unify.
    let ends_with_returns = |title: &str| title == "carriage returns";
    let (preludes, rest): (Vec<_>, Vec<_>) =
        blocks(page).into_iter().partition(|block| block.info == "mingle,prelude");
    let prelude = preludes.first().map_or("", |block| &block.text);
    let programs = titles.zip(rest).map(|(title, block)| {
        let body =
            if ends_with_returns(title) { block.text.replace('\n', "\r\n") } else { block.text };
        let (_, codes) = block.info.split_once(',').expect("a block names its errors");
        Wrong {
            title: title.to_owned(),
            prelude: prelude.len(),
            text: format!("{prelude}{body}"),
            expected: codes.split(' ').map(str::to_owned).collect(),
        }
    });
    programs.collect()
}

fn all() -> Vec<Wrong> {
    let all: Vec<Wrong> = PAGES.iter().flat_map(|(_, page)| programs(page)).collect();
    assert!(all.len() >= PROGRAMS_MIN, "only {} programs", all.len());
    all
}

fn errors(checked: &Checked) -> Vec<&Diagnostic> {
    let errors = checked.diagnostics.iter().filter(|found| found.severity() == Severity::Error);
    errors.collect()
}

/// Returns the names of the snapshot's programs with their rendered errors.
fn rendered(page: &str) -> String {
    let mut text = String::new();
    for wrong in programs(page) {
        let checked = check(wrong.text.as_str());
        let found: Vec<Diagnostic> = errors(&checked).into_iter().cloned().collect();
        let errors = render_human(&checked.source, "wrong.mingle", &found, false);
        writeln!(text, "## {}\n\n{errors}", wrong.title).expect("a string takes everything");
    }
    text
}

#[test]
fn messages_say_how_to_write_it() {
    for (name, page) in PAGES {
        insta::assert_snapshot!(format!("wrong_{name}"), rendered(page));
    }
}

#[test]
fn one_mistake_gives_one_error() {
    for wrong in all() {
        let checked = check(wrong.text.as_str());
        let codes: Vec<&str> = errors(&checked).iter().map(|found| found.code.text()).collect();
        assert_eq!(codes, wrong.expected, "{}\n{}", wrong.title, shown(&checked));
    }
}

/// Each edit is right: it removes its error and brings no others.
#[test]
fn an_edit_mends_its_mistake() {
    let mut edits = 0;
    for wrong in all() {
        let checked = check(wrong.text.as_str());
        let before = errors(&checked);
        for found in &before {
            for help in found.help.iter().filter(|help| !help.edits.is_empty()) {
                edits += 1;
                let text = apply_edits(&checked.source, &help.edits);
                let again = check(text.as_str());
                let after = errors(&again);
                let stays = after.iter().any(|other| other.title == found.title);
                let is_better = after.len() < before.len() || !stays;
                assert!(
                    is_better && after.len() <= before.len(),
                    "{}\n{}\n{}",
                    wrong.title,
                    &text[wrong.prelude.min(text.len())..],
                    shown(&again)
                );
            }
        }
    }
    assert!(edits > 130, "only {edits} edits");
}
