//! `mingle test`.

use serde_json::Value as Json;

use super::{folder, mingle};

const PAGE: &str = include_str!("../../../../../docs/testing.md");

/// Returns the fenced blocks of the page, in order.
fn blocks() -> Vec<&'static str> {
    let fenced = PAGE.split("\n```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').map_or("", |(_, text)| text)).collect()
}

#[test]
fn the_page_of_the_book_is_right() {
    let [program, tests, output] = blocks()[..] else { panic!("three blocks") };
    let folder = folder(&[("shop.mingle", program), ("shop.test.mingle", tests)]);
    let (command, expected) = output.split_once('\n').expect("a command and its output");
    let arguments: Vec<_> = command.trim_start_matches("$ mingle ").split(' ').collect();
    let run = mingle(folder.path(), &arguments);
    assert_eq!((run.stdout.trim_end(), run.stderr.as_str()), (expected, ""));
    assert_eq!(run.code, Some(0));
    // Without a name, and by the name of the file of tests.
    for arguments in [&["test"][..], &["test", "shop.test.mingle"]] {
        assert_eq!(mingle(folder.path(), arguments).stdout, run.stdout);
    }
    let checked = mingle(folder.path(), &["check", "shop.test.mingle"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(0), ""));
}

const PROGRAM: &str = "store s: linearizable;
object Item in s { key sku: string; count: int; }
transaction fill(sku: string, count: int) { Item[sku].count = count; }
";

#[test]
fn a_failure_has_its_place_and_its_reason() {
    let tests = "test \"good\" { fill(\"a\", 1); expect Item[\"a\"].count == 1; }\n\
                 test \"bad\" {\n    fill(\"a\", 1);\n    expect Item[\"a\"].count == 2;\n}\n";
    let folder = folder(&[("a.mingle", PROGRAM), ("a.test.mingle", tests)]);
    let run = mingle(folder.path(), &["test", "a.mingle"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""));
    let expected = "a.test.mingle
  ok    good
  FAIL  bad
        a.test.mingle:4:5: this is not so
            expect Item[\"a\"].count == 2
        left:  1
        right: 2
        again: mingle test a.test.mingle --only \"bad\" --seed 1
1 of 2 tests failed
";
    assert_eq!(run.stdout, expected);

    let one = mingle(folder.path(), &["test", "a.mingle", "--only", "good"]);
    assert_eq!(
        (one.code, one.stdout.as_str()),
        (Some(0), "a.test.mingle\n  ok    good\n1 test passed\n")
    );

    let json = mingle(folder.path(), &["test", "a.mingle", "--format", "json"]);
    assert_eq!(json.code, Some(1));
    let json: Json = serde_json::from_str(&json.stdout).expect("it is JSON");
    assert_eq!(json["tests"][0]["passed"], true);
    assert_eq!(json["tests"][1]["failure"]["place"], "a.test.mingle:4:5");
    assert_eq!(json["tests"][1]["failure"]["details"][0], "left:  1");
}

#[test]
fn mistakes_in_tests_are_shown_where_they_stand() {
    let tests = "test \"t\" {\n    expect Item[\"a\"].cuont == 1;\n}\n";
    let folder = folder(&[("a.mingle", PROGRAM), ("a.test.mingle", tests)]);
    for command in ["test", "check"] {
        let run = mingle(folder.path(), &[command, "a.test.mingle"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{command}");
        assert!(run.stderr.contains("--> a.test.mingle:2:22"), "{}", run.stderr);
        assert!(run.stderr.contains("there is `count`"), "{}", run.stderr);
    }
    let formatted = mingle(folder.path(), &["fmt", "a.test.mingle"]);
    assert_eq!(formatted.code, Some(2));
    assert!(formatted.stderr.contains("a file of tests"), "{}", formatted.stderr);
}

#[test]
fn tests_need_a_file_a_program_and_embedded_stores() {
    let tests = "test \"t\" { fill(\"a\", 1); }";
    let folder = folder(&[("a.mingle", PROGRAM), ("b.test.mingle", tests)]);
    for (arguments, expected) in [
        (&["test", "a.mingle"][..], "cannot read a.test.mingle"),
        (&["test", "b.mingle"], "cannot read b.mingle"),
    ] {
        let run = mingle(folder.path(), arguments);
        assert_ne!(run.code, Some(0));
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    let empty = super::folder(&[]);
    let run = mingle(empty.path(), &["test"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no file of tests (*.test.mingle)"), "{}", run.stderr);

    let elsewhere = "[stores.s]\nengine = \"postgres\"\nurl = \"postgres://x@127.0.0.1:1/x\"\n";
    let bound = [("a.mingle", PROGRAM), ("a.test.mingle", tests), ("test.toml", elsewhere)];
    let bound = super::folder(&bound);
    let run = mingle(bound.path(), &["test"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("tests run over embedded stores"), "{}", run.stderr);
}

#[test]
fn a_binding_of_ones_own_gives_other_replicas() {
    let program = "store s: causal;
object Page in s { key name: string; hits: counter; }
transaction hit(page: ref Page) { page.hits.add(1); }
";
    let tests = "test \"t\" {
        client a at oslo;
        client b at rome;
        as a: hit(Page[\"x\"]);
        wait 150ms;
        as b: expect Page[\"x\"].hits.value() == 0;
        wait 100ms;
        as b: expect Page[\"x\"].hits.value() == 1;
    }";
    let binding = "[stores.s]\nreplicas = [\"oslo\", \"rome\"]\ndelay = \"200ms\"\n";
    let folder = folder(&[("a.mingle", program), ("a.test.mingle", tests), ("test.toml", binding)]);
    let run = mingle(folder.path(), &["test"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
}
