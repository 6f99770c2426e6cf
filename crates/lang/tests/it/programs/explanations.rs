//! The output of `mingle explain CODE`: its examples have the effect that the page claims.

use super::common::{assert_clean, assert_formatted, blocks, errors, shown};
use mingle_lang::diagnostic::Code;
use mingle_lang::{apply_edits, check};

#[test]
fn each_has_its_parts() {
    for code in Code::ALL {
        let text = code.explanation();
        assert!(text.starts_with(&format!("# {code}: ")), "{code}: the heading");
        let why = if code.text().starts_with("M03") { "## Why it is unsound" } else { "## Why" };
        let mut rest = text;
        for part in ["\n## What\n", why, "\n## How to mend it\n", "\n## Example\n"] {
            let at = rest.find(part).unwrap_or_else(|| panic!("{code}: no `{part}`"));
            rest = &rest[at + part.len()..];
        }
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{code}: a long line");
    }
}

#[test]
fn each_example_gives_its_code_and_nothing_else() {
    for code in Code::ALL {
        let found = blocks(code.explanation());
        let broken: Vec<_> = found.iter().filter(|block| block.info != "mingle").collect();
        assert_eq!(broken.len(), 1, "{code}: one broken program");
        let checked = check(broken[0].text.as_str());
        match broken[0].info.as_str() {
            "mingle,error" => assert_eq!(errors(&checked), [code.text()], "{}", shown(&checked)),
            "mingle,warning" => assert!(errors(&checked).is_empty(), "{}", shown(&checked)),
            other => panic!("{code}: a block of {other}"),
        }
        for diagnostic in &checked.diagnostics {
            assert_eq!(diagnostic.code, *code, "{}", shown(&checked));
        }
        assert!(!checked.diagnostics.is_empty(), "{code} is not given");
        if *code != Code::M0001 {
            assert_formatted(&checked);
        }
    }
}

#[test]
fn each_mended_program_is_clean() {
    for code in Code::ALL {
        let found = blocks(code.explanation());
        let mended: Vec<_> = found.iter().filter(|block| block.info == "mingle").collect();
        assert!(!mended.is_empty(), "{code}: a mended program");
        for block in mended {
            assert_clean(&block.text);
        }
    }
}

/// The rendered form of each diagnostic, with its source.
#[test]
fn each_diagnostic_looks_as_it_did() {
    for code in Code::ALL {
        let found = blocks(code.explanation());
        let broken = found.iter().find(|block| block.info != "mingle").expect("a broken program");
        let checked = check(broken.text.as_str());
        insta::assert_snapshot!(code.text(), format!("{}\n{}", broken.text, shown(&checked)));
    }
}

/// Applying a diagnostic's advice removes the diagnostic.
#[test]
fn each_offered_edit_mends_its_program() {
    let mut offered = 0;
    for code in Code::ALL {
        let found = blocks(code.explanation());
        let broken = found.iter().find(|block| block.info != "mingle").expect("a broken program");
        let checked = check(broken.text.as_str());
        for help in checked.diagnostics.iter().flat_map(|found| &found.help) {
            if help.edits.is_empty() {
                continue;
            }
            offered += 1;
            let mended = check(apply_edits(&checked.source, &help.edits));
            let still_there = mended.diagnostics.iter().any(|found| found.code == *code);
            assert!(!still_there, "{code}, {}:\n{}", help.message, shown(&mended));
            assert!(errors(&mended).is_empty(), "{code}, {}:\n{}", help.message, shown(&mended));
        }
    }
    assert!(offered >= 10, "only {offered} edits are offered");
}
