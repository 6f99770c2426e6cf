//! `mingle explain`.

use super::{folder, mingle};

#[test]
fn a_code_is_explained() {
    let folder = folder(&[]);
    for code in ["M0302", "m0302"] {
        let run = mingle(folder.path(), &["explain", code]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        assert!(run.stdout.starts_with("# M0302: "), "{}", run.stdout);
        assert!(run.stdout.contains("## How to mend it"));
    }
}

#[test]
fn all_codes_are_listed() {
    let folder = folder(&[]);
    let run = mingle(folder.path(), &["explain", "list"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.starts_with("M0001  "), "{}", run.stdout);
    assert!(run.stdout.contains("\nW0503  "));
}

#[test]
fn an_unknown_code_is_a_mistake_of_the_call() {
    let folder = folder(&[]);
    let run = mingle(folder.path(), &["explain", "M9999"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("M9999"), "{}", run.stderr);
}
