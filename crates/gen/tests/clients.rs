//! Clients in other languages, generated for a program with every unusual feature.
//!
//! The tests of the command check that the output is valid TypeScript and Python, and that it
//! works.

mod hostile;

use std::fs;
use std::path::Path;

use mingle_lang::Checked;

const ODD: &str = include_str!("odd.mingle");

/// A generator of a client.
type Generator = fn(&Checked, &str) -> Option<String>;

const GENERATORS: [(&str, Generator); 2] =
    [("typescript", mingle_gen::typescript::text), ("python", mingle_gen::python::text)];

/// Returns the part of the client that is specific to a program.
fn own(generator: Generator, program: &str) -> String {
    let text = generator(&mingle_lang::check(program), "odd.mingle").expect("it has no errors");
    let (before, rest) = text.split_once("What follows is the same").expect("it says so");
    let (_, after) = rest.split_once("How the program's own").expect("it says so");
    format!("{before}…{after}")
}

#[test]
fn an_odd_program_in_typescript() {
    insta::assert_snapshot!(own(mingle_gen::typescript::text, ODD));
}

#[test]
fn an_odd_program_in_python() {
    insta::assert_snapshot!(own(mingle_gen::python::text, ODD));
}

#[test]
fn a_program_of_nothing() {
    let all: String = GENERATORS.into_iter().map(|(_, generator)| own(generator, "")).collect();
    insta::assert_snapshot!(all);
}

#[test]
fn every_example_becomes_a_client() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the examples are there") {
        let path = entry.expect("the examples are there").path();
        if path.extension().is_none_or(|extension| extension != "mingle") {
            continue;
        }
        let checked = mingle_lang::check(fs::read_to_string(&path).expect("it is a text"));
        for (language, generator) in GENERATORS {
            let shown = path.display();
            let text = generator(&checked, "example.mingle");
            // One example is meant to be rejected.
            assert_eq!(text.is_some(), !checked.has_errors(), "{shown} in {language}");
            count += usize::from(text.is_some());
        }
    }
    assert!(count >= 12, "{count} clients");
}

#[test]
fn a_name_from_outside_stays_in_its_comment() {
    let checked = mingle_lang::check("store a: causal;");
    for (language, generator) in GENERATORS {
        let text = generator(&checked, "a\u{2028}b\n*/ \"\"\" \\x.mingle").expect("it is one");
        let first = text.lines().next().unwrap_or_default();
        assert!(first.ends_with(&format!("by `mingle gen {language}`.")), "{first}");
        assert!(!text.contains("\n*/ \"\"\""), "{text}");
    }
}
