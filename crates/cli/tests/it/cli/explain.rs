//! `mingle explain`.

use serde_json::Value;

use super::{BAD, folder, mingle};

const GROUPS: &str = include_str!("../../../../../examples/message_groups.mingle");

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
    assert!(run.stdout.contains("\nW0503  ") && run.stdout.contains("\nW0504  "));
}

#[test]
fn an_unknown_code_is_a_mistake_of_the_call() {
    let folder = folder(&[]);
    let run = mingle(folder.path(), &["explain", "M9999"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("M9999"), "{}", run.stderr);
}

#[test]
fn the_phases_of_a_program_are_explained() {
    let folder = folder(&[("groups.mingle", GROUPS)]);
    let run = mingle(folder.path(), &["explain", "groups.mingle", "add_post"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let head = "transaction add_post(group: ref Group, post: string) -> int\n";
    assert!(run.stdout.starts_with(head), "{}", run.stdout);
    let groups = run.stdout.find("groups (linearizable)").expect("the strong phase");
    let inboxes = run.stdout.find("inboxes (causal)").expect("the weak phase");
    assert!(groups < inboxes, "{}", run.stdout);
    assert!(!run.stdout.contains("join_group"));
    let all = mingle(folder.path(), &["explain", "groups.mingle"]);
    assert!(all.stdout.contains("join_group"), "{}", all.stdout);
}

#[test]
fn the_phases_as_json() {
    let folder = folder(&[("groups.mingle", GROUPS)]);
    let run = mingle(folder.path(), &["explain", "--format", "json", "groups.mingle"]);
    let report: Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    let transactions = report["transactions"].as_array().expect("a list");
    assert_eq!(transactions.len(), 5);
    let post = transactions.iter().find(|found| found["name"] == "add_post").expect("it is there");
    let stores: Vec<&Value> =
        post["phases"].as_array().expect("a list").iter().map(|phase| &phase["store"]).collect();
    assert_eq!(stores, ["groups", "inboxes"]);
    assert_eq!(post["phases"][0]["mode"], "read");
    assert_eq!(post["phases"][1]["mode"], "write");
    assert_eq!(post["phases"][0]["before_endorsement"], false);
    for key in ["reads", "writes", "records"] {
        assert!(post["phases"][0][key].is_array(), "{key}");
    }
    assert!(post["phases"][0]["round_trips"].is_object());
}

#[test]
fn what_cannot_be_explained() {
    let folder = folder(&[("groups.mingle", GROUPS), ("bad.mingle", BAD)]);
    let run = mingle(folder.path(), &["explain", "groups.mingle", "nothing"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("add_post"), "{}", run.stderr);
    let run = mingle(folder.path(), &["explain", "M0302", "nothing"]);
    assert_eq!(run.code, Some(2));
    let run = mingle(folder.path(), &["explain", "bad.mingle"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.contains("error[M0101]"), "{}", run.stderr);
}
