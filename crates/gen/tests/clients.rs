//! Clients in other languages, generated for a program with every unusual feature.
//!
//! The tests of the command check that the output is valid in its language, and that it
//! works.

mod hostile;

use std::fs;
use std::path::Path;

use mingle_lang::Checked;

const ODD: &str = include_str!("odd.mingle");

/// A generator of a client.
type Generator = fn(&Checked, &str) -> Option<String>;

const GENERATORS: [(&str, Generator); 3] = [
    ("typescript", mingle_gen::typescript::text),
    ("python", mingle_gen::python::text),
    ("go", mingle_gen::go::text),
];

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
fn an_odd_program_in_go() {
    insta::assert_snapshot!(own(mingle_gen::go::text, ODD));
}

#[test]
fn an_odd_program_in_go_that_imports_its_runtime() {
    let options = mingle_gen::go::Options {
        package: Some("strange".to_owned()),
        runtime: mingle_gen::Runtime::Imported,
        module: Some("shop.example/mingleclient".to_owned()),
    };
    let text = mingle_gen::go::text_with(&mingle_lang::check(ODD), "odd.mingle", &options);
    let text = text.expect("it has no errors").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    // The types and methods are those of the other snapshot.
    let (head, rest) = text.split_once("\n// NewClient returns").expect("it has a client");
    let (_, names) = rest.split_once("\n// Store is the name").expect("it has the package's names");
    insta::assert_snapshot!(format!("{head}\n…\n// Store is the name{names}"));
}

#[test]
fn a_program_of_nothing() {
    let all = GENERATORS.into_iter().map(|(language, generator)| {
        // A program without types has no codecs in Go.
        let program =
            if language == "go" { "object O in s { key k: int; } store s: causal;" } else { "" };
        own(generator, program)
    });
    let all: String = all.collect();
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
