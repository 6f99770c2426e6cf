//! `mingle run` and `mingle show`.

use std::path::Path;

use serde_json::{Value, json};

use super::{BAD, Run, folder, mingle};

const GROUPS: &str = include_str!("../../../../../examples/message_groups.mingle");

fn json_of(run: &Run) -> Value {
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
    serde_json::from_str(&run.stdout).expect("it is JSON")
}

fn call(folder: &Path, args: &[&str]) -> Value {
    let all: Vec<&str> = ["run", "groups.mingle"].iter().chain(args).copied().collect();
    json_of(&mingle(folder, &all))
}

#[test]
fn message_groups_from_end_to_end() {
    let folder = folder(&[("groups.mingle", GROUPS), ("post.txt", "from a\nfile\n")]);
    let path = folder.path();
    assert_eq!(call(path, &["create_user", "name=ana"]), json!("ana"));
    assert_eq!(call(path, &["create_user", "name=bo"]), json!("bo"));
    for user in ["user=ana", "user=bo"] {
        assert_eq!(call(path, &["join_group", user, "group=rust"]), Value::Null);
    }
    assert_eq!(call(path, &["add_post", "post=hello = world", "group=rust"]), json!(2));
    assert_eq!(call(path, &["add_post", "group=rust", "post=@post.txt"]), json!(2));
    assert_eq!(call(path, &["add_post", "group=rust", "post=@@home"]), json!(2));
    let posts = json!(["hello = world", "from a\nfile\n", "@home"]);
    assert_eq!(call(path, &["check_inbox", "user=ana"]), posts);
    assert_eq!(call(path, &["check_inbox", "user=ana"]), json!([]));

    let shown = json_of(&mingle(path, &["show", "groups.mingle", "User", "ana"]));
    assert_eq!(shown["name"], "ana");
    assert_eq!(shown["read"], posts);
    assert_eq!(shown["unread"], json!([]));
    assert_eq!(shown["groups"], json!(["rust"]));
    let limited = json_of(&mingle(path, &["show", "groups.mingle", "User", "ana", "--limit", "1"]));
    assert_eq!(limited["read"], json!(["@home"]));
    let absent = json_of(&mingle(path, &["show", "groups.mingle", "User", "nobody"]));
    assert_eq!(absent, Value::Null);

    let list = ["show", "groups.mingle", "User", "--count", "1", "--limit", "0"];
    let first = mingle(path, &list);
    assert_eq!(json_of(&first)["name"], "ana");
    let cursor = first.stderr.split('\'').nth(1).expect("it says how to go on").to_owned();
    let second = mingle(path, &[&list[..], &["--after", &cursor]].concat());
    let found = json_of(&second);
    assert_eq!((&found["name"], &found["read"]), (&json!("bo"), &json!([])));
    assert_eq!(second.stderr, "", "it is the last page");
    let wrong = mingle(path, &[&list[..], &["--after", "?"]].concat());
    assert_eq!(wrong.code, Some(4), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("\"?\" is no cursor"), "{}", wrong.stderr);
    assert!(path.join(".mingle").is_dir(), "the data is kept beside the program");
}

#[test]
fn a_failed_require_ends_with_3_and_writes_nothing() {
    let folder = folder(&[("groups.mingle", GROUPS)]);
    let path = folder.path();
    call(path, &["join_group", "user=ana", "group=rust"]);
    call(path, &["set_closed", "group=rust", "closed=true"]);
    let run = mingle(path, &["run", "groups.mingle", "add_post", "group=rust", "post=x"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""));
    assert_eq!(run.stderr, "error: the group is closed [closed]\n");
    let shown = json_of(&mingle(path, &["show", "groups.mingle", "User", "ana"]));
    assert_eq!(shown["unread"], json!([]));
}

#[test]
fn data_is_kept_where_it_is_wanted() {
    let folder = folder(&[("groups.mingle", GROUPS)]);
    let path = folder.path();
    call(path, &["create_user", "name=ana", "--data", "elsewhere"]);
    let here = mingle(path, &["show", "groups.mingle", "User", "ana"]);
    assert_eq!(here.stdout, "null\n");
    let there = mingle(path, &["show", "groups.mingle", "User", "ana", "--data", "elsewhere"]);
    assert_eq!(json_of(&there)["name"], "ana");
}

#[test]
fn replicas_come_from_the_binding() {
    let binding =
        "[stores.groups]\n[stores.inboxes]\nreplicas = [\"oslo\", \"lima\"]\ndelay = \"60min\"\n";
    let folder = folder(&[("groups.mingle", GROUPS), ("mingle.toml", binding)]);
    let path = folder.path();
    call(path, &["create_user", "name=ana", "--at", "lima"]);
    let show = |replica| mingle(path, &["show", "groups.mingle", "User", "ana", "--at", replica]);
    assert_eq!(json_of(&show("lima"))["name"], "ana");
    assert_eq!(show("oslo").stdout, "null\n", "it takes an hour to get there");
    let run = show("rome");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("`rome`") && run.stderr.contains("lima, oslo"), "{}", run.stderr);
}

#[test]
fn mistakes_of_the_call_end_with_2() {
    let broken = "[stores.nowhere]\n";
    let folder = folder(&[("groups.mingle", GROUPS), ("broken.toml", broken)]);
    for (args, expected) in [
        (&["run", "groups.mingle", "create_usr", "name=ana"][..], "create_usr"),
        (&["run", "groups.mingle", "create_user"], "name"),
        (&["run", "groups.mingle", "create_user", "nme=ana"], "nme"),
        (&["run", "groups.mingle", "create_user", "ana"], "NAME=VALUE"),
        (&["run", "groups.mingle", "create_user", "name=@none"], "cannot read none"),
        (&["run", "groups.mingle", "set_closed", "group=g", "closed=maybe"], "closed"),
        (&["run", "none.mingle", "create_user"], "cannot read none.mingle"),
        (&["show", "groups.mingle", "Usr", "ana"], "Usr"),
        (&["show", "--config", "broken.toml", "groups.mingle", "User", "ana"], "nowhere"),
        (&["show", "--config", "none.toml", "groups.mingle", "User", "ana"], "none.toml"),
    ] {
        let run = mingle(folder.path(), args);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
        assert!(run.stderr.contains(expected), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_program_with_errors_does_not_run() {
    let folder = folder(&[("bad.mingle", BAD)]);
    let run = mingle(folder.path(), &["run", "bad.mingle", "send", "to=ana", "text=x"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.contains("error[M0101]"), "{}", run.stderr);
    assert!(run.stderr.ends_with("error: bad.mingle has errors\n"), "{}", run.stderr);
}

#[test]
fn changed_data_is_refused_with_4() {
    let changed = GROUPS.replace("since: time;", "since: int;").replace("since: now()", "since: 1");
    let folder = folder(&[("groups.mingle", GROUPS), ("changed.mingle", &changed)]);
    let data = ["--data", "data"];
    call(folder.path(), &["create_user", "name=ana", data[0], data[1]]);
    let args = ["run", "changed.mingle", "create_user", "name=bo", data[0], data[1]];
    let run = mingle(folder.path(), &args);
    assert_eq!((run.code, run.stdout.as_str()), (Some(4), ""), "{}", run.stderr);
    assert!(run.stderr.contains("since"), "{}", run.stderr);
}

#[test]
fn a_contest_is_won_once() {
    let text = include_str!("../../../../../examples/contest.mingle").replace("1_000_000", "2");
    let binding = "[stores.contests]\n[stores.inboxes]\nreplicas = 2\n\
        [stores.inboxes.operations]\nstrong_size = \"builtin:size Team.inbox\"\n";
    let folder = folder(&[("contest.mingle", &text), ("mingle.toml", binding)]);
    let path = folder.path();
    for (team, at, winner) in [
        ("red", "r1", Value::Null),
        ("blue", "r2", Value::Null),
        ("red", "r2", json!("red")),
        ("blue", "r1", json!("red")),
    ] {
        let team = format!("team={team}");
        let args = ["run", "contest.mingle", "post", "contest=cup", &team, "text=x", "--at", at];
        let run = mingle(path, &args);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{team}");
        let shown = json_of(&mingle(path, &["show", "contest.mingle", "Contest", "cup"]));
        assert_eq!(shown.get("winner").unwrap_or(&Value::Null), &winner, "{team} at {at}");
    }
}

#[test]
fn the_other_examples_run() {
    let shop = include_str!("../../../../../examples/ticket_shop.mingle");
    let cart = include_str!("../../../../../examples/cart.mingle");
    let bank = include_str!("../../../../../examples/bank.mingle");
    let folder = folder(&[("shop.mingle", shop), ("cart.mingle", cart), ("bank.mingle", bank)]);
    let path = folder.path();
    let run = |args: &[&str]| mingle(path, args);

    let event = run(&["run", "shop.mingle", "put_on_sale", "name=gig", "price=20", "seats=3"]);
    assert_eq!(json_of(&event), json!("gig"));
    let order = json_of(&run(&["run", "shop.mingle", "buy", "event=gig", "buyer=ana", "seats=2"]));
    let order = run(&["show", "shop.mingle", "Order", order.as_str().expect("a fresh key")]);
    assert_eq!(json_of(&order)["total"], 40);
    let sold_out = run(&["run", "shop.mingle", "buy", "event=gig", "buyer=bo", "seats=2"]);
    assert_eq!(sold_out.code, Some(3));
    assert!(sold_out.stderr.contains("seats left: 1"), "{}", sold_out.stderr);
    let again = run(&["run", "shop.mingle", "put_on_sale", "name=gig", "price=1", "seats=1"]);
    assert_eq!(again.code, Some(3), "there is such an event: {}", again.stderr);

    run(&["run", "cart.mingle", "restock", "item=tea", "count=5", "price=3"]);
    run(&["run", "cart.mingle", "put_in", "customer=ana", "item=tea", "count=2"]);
    let lines = run(&["run", "cart.mingle", "show_cart", "customer=ana"]);
    assert_eq!(json_of(&lines), json!([{ "item": "tea", "count": 2 }]));
    let lines = format!("lines={}", lines.stdout.trim());
    let order = run(&["run", "cart.mingle", "check_out", "customer=ana", &lines]);
    assert!(json_of(&order).is_string());
    let item = run(&["show", "cart.mingle", "Item", "tea"]);
    assert_eq!(json_of(&item)["left"], 3);
    let empty = run(&["run", "cart.mingle", "show_cart", "customer=ana"]);
    assert_eq!(json_of(&empty), json!([]));

    for (number, owner) in [("number=1", "owner=ana"), ("number=2", "owner=bo")] {
        run(&["run", "bank.mingle", "open_account", number, owner]);
    }
    run(&["run", "bank.mingle", "deposit", "account=1", "amount=100"]);
    let moved = run(&["run", "bank.mingle", "transfer", "from=1", "to=2", "amount=30"]);
    assert_eq!(json_of(&moved), Value::Null);
    let told = run(&["run", "bank.mingle", "messages", "customer=bo", "limit=10"]);
    assert_eq!(json_of(&told), json!(["received 30 from 1"]));
    let account = run(&["show", "bank.mingle", "Account", "1"]);
    assert_eq!(json_of(&account)["balance"], 70);
}

#[test]
fn isolation_across_stores_needs_serializable_ones_before_the_last() {
    let text = "store a: linearizable;\nstore b: causal;\nstore c: causal;\n\
        object A in a { key k: string; n: int; }\nobject B in b { key k: string; n: int; }\n\
        object C in c { key k: string; n: int; }\n\
        isolated transaction both(x: ref A, y: ref B) -> int { x.n += 1; y.n += 1; return x.n; }\n\
        isolated transaction weak(y: ref B, z: ref C) { y.n += 1; z.n += 1; }\n";
    let folder = folder(&[("p.mingle", text)]);
    let both = mingle(folder.path(), &["run", "p.mingle", "both", "x=1", "y=1"]);
    assert_eq!((both.code, both.stdout.as_str()), (Some(0), "1\n"), "{}", both.stderr);
    // The other transaction can never run here, and a start says so.
    assert!(both.stderr.starts_with("note: every call is refused: weak: "), "{}", both.stderr);
    assert_eq!(both.stderr.lines().count(), 1, "{}", both.stderr);
    let weak = mingle(folder.path(), &["run", "p.mingle", "weak", "y=1", "z=1"]);
    assert_eq!((weak.code, weak.stdout.as_str()), (Some(2), ""), "{}", weak.stderr);
    assert!(
        weak.stderr.contains("isolated") && weak.stderr.contains("b is not"),
        "{}",
        weak.stderr
    );
}

#[test]
fn a_binding_that_does_not_fit_is_a_mistake_of_the_call() {
    let binding = "[stores.inboxes]\n[stores.groups]\nreplicas = 3\n";
    let folder = folder(&[("groups.mingle", GROUPS), ("mingle.toml", binding)]);
    let run = mingle(folder.path(), &["run", "groups.mingle", "create_user", "name=ana"]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("one replica, not 3"), "{}", run.stderr);
}
