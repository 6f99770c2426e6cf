//! `mingle fmt`.

use std::fs;

use super::{GOOD, folder, mingle, mingle_with};

#[test]
fn a_program_is_rewritten() {
    let ugly = GOOD.replace("    ", " ").replace("{\n", "{ // here\n\n");
    let folder = folder(&[("a.mingle", &ugly), ("b.mingle", GOOD)]);
    let check = mingle(folder.path(), &["fmt", "--check", "a.mingle", "b.mingle"]);
    assert_eq!((check.code, check.stdout.as_str()), (Some(1), "a.mingle\n"));
    let path = folder.path().join("a.mingle");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), ugly, "only checked");

    let run = mingle(folder.path(), &["fmt", "a.mingle", "b.mingle"]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    let text = fs::read_to_string(&path).expect("it is there");
    assert_eq!(text, GOOD.replace("{\n", "{ // here\n"));

    let again = mingle(folder.path(), &["fmt", "--check", "a.mingle", "b.mingle"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""));
    let left: Vec<_> = fs::read_dir(folder.path()).expect("it is a folder").collect();
    assert_eq!(left.len(), 2, "nothing is left beside the programs");
}

#[test]
fn standard_input_goes_to_standard_output() {
    let folder = folder(&[]);
    let run = mingle_with(folder.path(), &["fmt", "-"], "store  a:causal ;");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "store a: causal;\n"));
}

#[test]
fn a_program_with_syntax_errors_is_left_alone() {
    let text = "store  a causal ;";
    let folder = folder(&[("a.mingle", text)]);
    let run = mingle(folder.path(), &["fmt", "a.mingle"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains("error[M0001]"), "{}", run.stdout);
    assert_eq!(fs::read_to_string(folder.path().join("a.mingle")).expect("it is there"), text);
}
