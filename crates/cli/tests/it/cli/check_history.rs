//! `mingle check-history`.

use super::{folder, mingle, mingle_with};

const LOST_UPDATE: &str = "r(1,0,1,1)\nw(1,1,1,1)\nr(1,0,2,2)\nw(1,2,2,2)\n";

/// The reads of the strong store are correct; the weak store's are stale, which its level allows.
const MIXED: &str = r#"{"transaction":1,"session":1,"begin":1,"end":2,"operations":[{"kind":"write","key":1,"value":1,"store":"accounts","level":"linearizable"},{"kind":"write","key":2,"value":1,"store":"journal","level":"eventual"}]}
{"transaction":2,"session":2,"begin":3,"end":4,"operations":[{"kind":"read","key":1,"value":1,"store":"accounts","level":"linearizable"},{"kind":"read","key":2,"value":0,"store":"journal","level":"eventual"}]}
"#;

#[test]
fn a_history_that_keeps_its_promise() {
    let folder = folder(&[("run.jsonl", MIXED), ("lost.txt", LOST_UPDATE)]);
    let run = mingle(folder.path(), &["check-history", "run.jsonl"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
    let expected = "mixed is satisfied, by the axioms\n  \
                    strict-serializability is satisfied, by the axioms\n";
    assert!(run.stdout.starts_with(expected), "{}", run.stdout);
    for model in ["causal", "causal-plus", "read-atomic", "convergence"] {
        let run = mingle(folder.path(), &["check-history", "--model", model, "lost.txt"]);
        assert_eq!(run.code, Some(0), "{model}: {}", run.stdout);
        assert_eq!(run.stdout, format!("{model} is satisfied, by the axioms\n"));
    }
}

#[test]
fn a_history_that_does_not() {
    let folder = folder(&[("run.jsonl", MIXED), ("lost.txt", LOST_UPDATE)]);
    for model in ["strict-serializability", "serializability", "snapshot"] {
        let run = mingle(folder.path(), &["check-history", "--model", model, "lost.txt"]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""), "{model}");
        let start =
            format!("{model} is violated, by the axioms:\n  T1 -rw(1)-> T2: T1 reads key 1 ");
        assert!(run.stdout.starts_with(&start), "{}", run.stdout);
    }
    let run = mingle(folder.path(), &["check-history", "--model=causal", "run.jsonl"]);
    assert_eq!(run.code, Some(1), "as one store it is torn: {}", run.stdout);
    assert!(run.stdout.contains("T2 -rw(2)-> T1"), "{}", run.stdout);
}

#[test]
fn what_the_history_does_not_say_is_unknown() {
    let folder = folder(&[]);
    let args = ["check-history", "--format", "text", "--model", "strict-serializability", "-"];
    let run = mingle_with(folder.path(), &args, "w(1,1,1,1)\n");
    assert_eq!((run.code, run.stderr.as_str()), (Some(6), ""));
    assert!(run.stdout.starts_with("unknown: "), "{}", run.stdout);
}

#[test]
fn the_plain_form_is_written_and_read() {
    let folder = folder(&[("run.jsonl", MIXED)]);
    let run = mingle(folder.path(), &["check-history", "--export", "text", "run.jsonl"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(run.stdout, "w(1,1,1,1)\nw(2,1,1,1)\nr(1,1,2,2)\nr(2,0,2,2)\n");
    let args = ["check-history", "--format", "text", "--export", "text", "-"];
    assert_eq!(mingle_with(folder.path(), &args, &run.stdout).stdout, run.stdout);
}

#[test]
fn files_that_are_wrong() {
    let folder = folder(&[("run.jsonl", "{}\n"), ("run.txt", "w(1,1,1,1)\nw(1,1)\n")]);
    let check = |args: &[&str], expected: &str| {
        let run = mingle(folder.path(), args);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert_eq!(run.stderr, expected);
    };
    let missing = "error: run.jsonl: line 1: `transaction` is missing, expected a whole number\n";
    check(&["check-history", "run.jsonl"], missing);
    let form = "error: run.txt: line 2: `w(1,1)`: \
                expected r(key,value,session,transaction) or the same with w\n";
    check(&["check-history", "run.txt"], form);
    check(&["check-history", "none"], "error: cannot read none: there is no such file\n");
}
