//! `mingle check`.

use serde_json::{Value, json};

use super::{BAD, GOOD, folder, mingle, mingle_with};

#[test]
fn a_good_program_is_quiet() {
    let folder = folder(&[("good.mingle", GOOD)]);
    let run = mingle(folder.path(), &["check", "good.mingle"]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn errors_are_shown_with_their_lines() {
    let folder = folder(&[("bad.mingle", BAD), ("good.mingle", GOOD)]);
    let run = mingle(folder.path(), &["check", "bad.mingle", "good.mingle"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains("error[M0101]"), "{}", run.stdout);
    assert!(run.stdout.contains("--> bad.mingle:9:8"), "{}", run.stdout);
    assert!(run.stdout.contains("9 |     to.inbx.append(text);"), "{}", run.stdout);
    assert!(!run.stdout.contains('\u{1b}'), "no colours in a pipe");
    assert_eq!(run.stderr, "1 error\n");
}

#[test]
fn a_binding_is_checked_too() {
    let text = "store accounts: linearizable;\n\
        object Account in accounts { key number: string; balance: counter; owner: string; }\n\
        transaction deposit(account: ref Account) { account.balance.add(1); }\n\
        transaction rename(account: ref Account, owner: string) { account.owner = owner; }";
    let geo = "[stores.accounts]\ndatacenters = 3\nconflicts = ";
    let (good, bad) = (format!("{geo}[[\"rename\", \"rename\"]]"), format!("{geo}[]"));
    let folder = folder(&[("bank.mingle", text), ("good.toml", &good), ("mingle.toml", &bad)]);
    let run = mingle(folder.path(), &["check", "bank.mingle", "--config", "good.toml"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""));
    assert!(run.stderr.starts_with("note: store accounts is causal but for"), "{}", run.stderr);
    let run = mingle(folder.path(), &["check", "bank.mingle", "--config", "mingle.toml"]);
    assert_eq!(run.code, Some(2));
    let expected = "error: stores.accounts.conflicts: two of rename need not see each other";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
    assert!(run.stderr.contains("list [\"rename\", \"rename\"]"), "{}", run.stderr);
    let run = mingle(folder.path(), &["check", "bank.mingle"]);
    assert_eq!(run.code, Some(2), "the one beside the program is meant");
}

#[test]
fn a_password_that_would_cross_the_network_is_refused() {
    let text = "store vault: linearizable;\n\
        object Box in vault { key name: string; value: int; }\n\
        transaction fill(box: ref Box) { box.value = 1; }";
    let binding = "[stores.vault]\nengine = \"mingled\"\naddress = \"db.example.com:6398\"\n\
        user = \"shop\"\npassword = \"secret\"\n";
    let folder = folder(&[("shop.mingle", text), ("mingle.toml", binding)]);
    let check = || mingle(folder.path(), &["check", "shop.mingle"]);
    let run = check();
    assert_eq!(run.code, Some(2));
    let expected =
        "stores.vault.tls: the password would cross the network to db.example.com:6398 as it is";
    assert!(run.stderr.contains(expected) && !run.stderr.contains("secret"), "{}", run.stderr);
    for more in ["tls = true\n", "plain_text = true\n"] {
        std::fs::write(folder.path().join("mingle.toml"), format!("{binding}{more}"))
            .expect("room");
        let run = check();
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    }
    std::fs::write(folder.path().join("password"), "").expect("room");
    let file = folder.path().join("password");
    let wrong = binding.replace("password = \"secret\"", &format!("password_file = {file:?}"));
    std::fs::write(folder.path().join("mingle.toml"), wrong).expect("room");
    let run = check();
    assert!(
        run.stderr.contains("stores.vault.password_file: expected a password of 1"),
        "{}",
        run.stderr
    );
}

#[test]
fn one_line_each() {
    let folder = folder(&[("bad.mingle", BAD)]);
    let run = mingle(folder.path(), &["check", "--format", "short", "bad.mingle"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.stdout.lines().count(), 1);
    assert!(run.stdout.starts_with("bad.mingle:9:8: error[M0101]: "), "{}", run.stdout);
    assert_eq!(run.stderr, "");
}

#[test]
fn json_for_other_programs() {
    let folder = folder(&[("bad.mingle", BAD), ("good.mingle", GOOD)]);
    let run = mingle(folder.path(), &["check", "--format", "json", "good.mingle", "bad.mingle"]);
    assert_eq!(run.code, Some(1));
    let report: Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    let found = &report["diagnostics"][0];
    assert_eq!(found["code"], "M0101");
    assert_eq!(found["severity"], "error");
    assert_eq!(found["file"], "bad.mingle");
    assert_eq!(found["start"], json!({ "line": 9, "column": 8 }));
    assert_eq!(found["end"], json!({ "line": 9, "column": 12 }));
    assert_eq!(found["labels"][0]["start"], found["start"]);
    assert_eq!(found["help"][0]["edits"][0]["text"], "inbox");
    assert_eq!(report["diagnostics"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["endorsements"], json!([]));
}

#[test]
fn warnings_alone_are_no_failure() {
    let text = GOOD.replace("text: string)", "text: string, extra: int)");
    let folder = folder(&[("a.mingle", &text)]);
    let run = mingle(folder.path(), &["check", "a.mingle"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.contains("warning[W0501]"), "{}", run.stdout);
    assert_eq!(run.stderr, "1 warning\n");
}

#[test]
fn endorsements_are_listed() {
    let text = include_str!("../../../../../examples/contest.mingle");
    let folder = folder(&[("contest.mingle", text)]);
    let run = mingle(folder.path(), &["check", "--endorsements", "contest.mingle"]);
    assert_eq!(run.code, Some(0));
    let line = 1 + text.lines().position(|line| line.contains("endorse(")).expect("it is there");
    let start = format!("contest.mingle:{line}:8: endorsed as linearizable: strong_size counts");
    assert!(run.stdout.starts_with(&start), "{}", run.stdout);

    let run = mingle(folder.path(), &["check", "--format=json", "contest.mingle"]);
    let report: Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    let endorsement = &report["endorsements"][0];
    assert_eq!(endorsement["level"], "linearizable");
    assert_eq!(endorsement["file"], "contest.mingle");
    assert_eq!(endorsement["start"], json!({ "line": line, "column": 8 }));
    assert!(endorsement["reason"].as_str().is_some_and(|reason| reason.starts_with("strong")));
}

#[test]
fn standard_input_is_a_dash() {
    let folder = folder(&[]);
    let run = mingle_with(folder.path(), &["check", "--format", "short", "-"], BAD);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.starts_with("<stdin>:9:8: "), "{}", run.stdout);
}

#[test]
fn colours_where_they_are_asked_for() {
    let folder = folder(&[("bad.mingle", BAD)]);
    let run = mingle(folder.path(), &["check", "--color", "always", "bad.mingle"]);
    assert!(run.stdout.contains("\u{1b}["));
}

#[test]
fn the_binding_beside_the_program_is_checked() {
    let program = "store bank: causal { query names() -> list<string>; }\nstore feed: causal;\n\
        object A in bank { key k: string; n: int; }\nobject B in feed { key k: string; n: int; }\n\
        transaction t(a: ref A, b: ref B) {\n    a.n = 1;\n    b.n = 2;\n}\n";
    let servers = "[stores.feed]\n[stores.bank]\nengine = \"postgres\"\n\
        servers = { a = \"postgres://a/x\", b = \"postgres://b/x\" }\n";
    for (binding, expected) in [
        (servers, "has no operations of its own"),
        ("[stores.bank]\nreplicas = 2\n", "stores.feed: the binding does not say"),
        ("[stores.nowhere]\n", "the program has no such store"),
        ("[runtime]\nlease = \"far\"\n", "runtime.lease"),
    ] {
        let folder = folder(&[("bank.mingle", program), ("mingle.toml", binding)]);
        let run = mingle(folder.path(), &["check", "bank.mingle"]);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    let right = "[stores.bank]\n[stores.feed]\n";
    let folder = folder(&[("bank.mingle", program), ("mingle.toml", right)]);
    let run = mingle(folder.path(), &["check", "bank.mingle"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn an_isolated_transaction_that_its_stores_cannot_isolate_is_noted() {
    let program = "store a: linearizable; store b: causal; store c: eventual;
        object A in a { key k: string; n: int; }
        object B in b { key k: string; n: int; }
        object C in c { key k: string; n: int; }
        isolated transaction three(x: ref A, y: ref B, z: ref C) { x.n += 1; y.n += 1; z.n += 1; }
        isolated transaction two(x: ref A, y: ref B) { x.n += 1; y.n += 1; }
        ";
    let folder = folder(&[("a.mingle", program)]);
    let expected = "every call is refused: three: it is isolated, so all stores that it visits but the last \
                    must be serializable, and b is not";
    let checked = mingle(folder.path(), &["check", "a.mingle"]);
    assert_eq!(
        (checked.code, checked.stderr.trim_end()),
        (Some(0), format!("note: {expected}").as_str())
    );
    // A start tells it too, and other transactions run.
    let run = mingle(folder.path(), &["run", "a.mingle", "two", "x=1", "y=1"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stderr.matches(expected).count(), 1, "{}", run.stderr);
    let refused = mingle(folder.path(), &["run", "a.mingle", "three", "x=1", "y=1", "z=1"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}
