//! `mingle datacenters`: shows the state of data centers, gives one up, and brings it back.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Run, folder, mingle};

const SHOP: &str = "\
store accounts: linearizable;
store feed: causal;

object Account in accounts {
    key name: string;
    left: int;
}

object Page in feed {
    key name: string;
    lines: log<string>;
}

transaction pay(name: string, amount: int) -> int {
    Account[name].left += amount;
    return Account[name].left;
}

transaction say(name: string, line: string) {
    Page[name].lines.append(line);
}

transaction read(name: string) -> list<string> {
    return Page[name].lines.to_list();
}
";

const BINDING: &str = "\
[stores.accounts]
datacenters = [\"oslo\", \"rome\", \"lima\"]

[stores.feed]
datacenters = [\"oslo\", \"rome\", \"lima\", \"bonn\"]
";

fn datacenters(path: &Path, args: &[&str]) -> Run {
    let all: Vec<&str> = ["datacenters", "shop.mingle"].iter().chain(args).copied().collect();
    mingle(path, &all)
}

fn call(path: &Path, args: &[&str]) -> String {
    let all: Vec<&str> = ["run", "shop.mingle"].iter().chain(args).copied().collect();
    let run = mingle(path, &all);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    run.stdout
}

fn json_of(path: &Path, args: &[&str]) -> Value {
    let all: Vec<&str> = args.iter().chain(&["--format", "json"]).copied().collect();
    let run = datacenters(path, &all);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    serde_json::from_str(&run.stdout).expect("it is JSON")
}

#[test]
fn one_that_is_given_up_stays_so_until_it_is_admitted() {
    let folder = folder(&[("shop.mingle", SHOP), ("mingle.toml", BINDING)]);
    let path = folder.path();
    call(path, &["pay", "name=ana", "amount=3", "--at", "oslo"]);
    call(path, &["say", "name=ana", "line=hello", "--at", "oslo"]);
    let shown = datacenters(path, &[]);
    let expected = "\
accounts
  oslo         up
  rome         up
  lima         up
feed
  oslo         up
  rome         up
  lima         up
  bonn         up
";
    assert_eq!((shown.code, shown.stdout.as_str()), (Some(0), expected), "{}", shown.stderr);

    let run = datacenters(path, &["give-up", "oslo"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(4), ""));
    let expected = "data center oslo of store accounts runs, and what only it has would be lost: \
                    say so with --accept-loss";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    let run = datacenters(path, &["give-up", "oslo", "--accept-loss"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for said in [
        "accounts: oslo is given up; what it committed up to 20",
        "feed: oslo is given up; what it committed up to 20",
        "  no transaction is lost\n",
        "`mingle datacenters shop.mingle admit oslo` brings it back",
    ] {
        assert!(run.stdout.contains(said), "{}", run.stdout);
    }
    for args in [&["--store", "feed"][..], &[]] {
        let run = datacenters(path, &[&["give-up", "oslo", "--accept-loss"], args].concat());
        assert_eq!((run.code, run.stdout.as_str()), (Some(4), ""));
        assert!(run.stderr.contains("its data center oslo was given up already"), "{}", run.stderr);
    }

    // The other data centers continue, and a caller that names the given-up one gets an error.
    assert_eq!(call(path, &["pay", "name=ana", "amount=4", "--at", "rome"]), "7\n");
    call(path, &["say", "name=ana", "line=there", "--at", "bonn"]);
    let away = mingle(path, &["run", "shop.mingle", "read", "name=ana", "--at", "oslo"]);
    assert_eq!(away.code, Some(4));
    assert!(away.stderr.contains("its data center oslo was given up"), "{}", away.stderr);
    let given_up = json!({ "name": "oslo", "state": "given up", "incarnation": 0 });
    assert_eq!(json_of(path, &["status", "--store", "feed"])[0]["datacenters"][0], given_up);

    let run = datacenters(path, &["admit", "oslo"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let expected = "accounts: oslo is back, and has what the others have\n\
                    feed: oslo is back, and has what the others have\n";
    assert_eq!(run.stdout, expected);
    assert!(datacenters(path, &[]).stdout.contains("oslo         up, admitted again\n"));
    // While a process runs, the data centers come to show the same transactions.
    let deadline = Instant::now() + Duration::from_mins(1);
    while call(path, &["read", "name=ana", "--at", "oslo"]) != "[\"hello\",\"there\"]\n" {
        assert!(Instant::now() < deadline, "it never comes to show what the others have");
    }
    assert_eq!(call(path, &["pay", "name=ana", "amount=1", "--at", "oslo"]), "8\n");
    for args in [&["--store", "accounts"][..], &[]] {
        let run = datacenters(path, &[&["admit", "oslo"], args].concat());
        assert_eq!((run.code, run.stdout.as_str()), (Some(4), ""));
        assert!(run.stderr.contains("its data center oslo was not given up"), "{}", run.stderr);
    }
    // Only one store.
    let given_up = json_of(path, &["give-up", "bonn", "--accept-loss"]);
    assert_eq!((&given_up[0]["store"], &given_up[0]["lost"]), (&json!("feed"), &json!(0)));
    let admitted = json_of(path, &["admit", "bonn"]);
    assert_eq!(admitted, json!([{ "store": "feed", "datacenter": "bonn", "incarnation": 1 }]));
}

#[test]
fn what_cannot_be_asked_is_said() {
    let folder = folder(&[("shop.mingle", SHOP), ("mingle.toml", BINDING)]);
    let path = folder.path();
    for (args, expected) in [
        (
            &["give-up", "paris"][..],
            "no data center is called `paris`; there are bonn, lima, oslo, rome",
        ),
        (&["admit", "paris"], "no data center is called `paris`"),
        (
            &["--store", "shop"],
            "no store `shop` has data centers; those that have are `accounts`, `feed`",
        ),
        (&["give-up", "bonn", "--store", "accounts"], "there are lima, oslo, rome"),
    ] {
        let run = datacenters(path, args);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    std::fs::write(path.join("mingle.toml"), "").expect("it is written");
    let run = datacenters(path, &["--data", "elsewhere"]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("no store has data centers: the binding gives them"),
        "{}",
        run.stderr
    );
}
