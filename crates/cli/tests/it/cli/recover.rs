//! `mingle recover`, and the treatment of earlier commands' unfinished transactions by other
//! commands.

use std::path::Path;
use std::sync::Arc;

use mingle::{Binding, Database, Error, Session, TokioWorld};
use mingle_store::DataStore;
use mingle_store::wrap::fault::{Call, Fault, FaultPlan, FaultyStore};
use serde_json::{Value, json};

use super::{Run, folder, mingle};

const SHOP: &str = "\
store tickets: linearizable;
store feed: causal;

object Event in tickets {
    key name: string;
    sold: int;
}

object Page in feed {
    key name: string;
    lines: log<string>;
}

transaction buy(event: ref Event, seats: int) -> int {
    event.sold += seats;
    Page[event.name].lines.append(\"sold \" + string(seats));
    return event.sold;
}
";

/// Buys in a process whose feed fails, and which dies soon afterwards.
fn leave_half_done(path: &Path, fault: Fault) {
    let program = mingle::compile(SHOP).expect("the program is right");
    let data = path.join(".mingle").join("shop");
    let binding = Binding::parse("[runtime]\ndeadline = \"50ms\"").expect("it is right");
    let script = (0..10_000).map(|index| (Call::Commit, index, fault));
    let plan = FaultPlan::scripted(script);
    let wrap = |name: &str, store: Arc<dyn DataStore>| -> Arc<dyn DataStore> {
        if name == "feed" { FaultyStore::new(store, plan.clone()) } else { store }
    };
    // All tasks end with the runtime, at any point of their work.
    let process = tokio::runtime::Builder::new_current_thread().enable_all().build();
    process.expect("it starts").block_on(async {
        let world = Arc::new(TokioWorld::new());
        let database = Database::open_wrapped(program, &binding, Some(&data), world, wrap);
        let database = database.await.unwrap_or_else(|error| panic!("{error}"));
        let arguments = database.arguments("buy", [("event", "gig"), ("seats", "2")]);
        let arguments = arguments.expect("they are right");
        let error = database.call("buy", arguments, Session::default()).await;
        let error = error.expect_err("the feed fails");
        assert!(matches!(error, Error::Incomplete { .. }), "{error}");
    });
}

fn lines(path: &Path) -> Value {
    let run = mingle(path, &["show", "shop.mingle", "Page", "gig"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let shown: Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    shown.get("lines").cloned().unwrap_or_default()
}

fn recover(path: &Path, args: &[&str]) -> Run {
    let all: Vec<&str> = ["recover", "shop.mingle"].iter().chain(args).copied().collect();
    mingle(path, &all)
}

#[test]
fn what_is_parked_is_listed_and_finished() {
    let folder = folder(&[("shop.mingle", SHOP)]);
    let path = folder.path();
    leave_half_done(path, Fault::Refused);
    assert_eq!(lines(path), Value::Null, "what is parked is not tried again by any start");
    let listed = recover(path, &["--list"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));
    let (first, rest) = listed.stdout.split_once('\n').expect("it has lines");
    let id = first.strip_suffix(" buy").expect("the name");
    assert!(id.ends_with("-1"), "{id}");
    let (began, rest) = rest.split_once('\n').expect("it has lines");
    let since = began.strip_prefix("  began at: tickets, ").expect("the store where it began");
    assert_eq!(rest, "  missing at: feed\n  parked: a fault was injected\n");
    let again = recover(path, &["--list", "--format", "json"]);
    let expected = json!([{ "id": id, "transaction": "buy", "principal": null, "began_at": "tickets", "since": since,
        "missing_at": ["feed"], "not_known_at": [], "parked": "a fault was injected" }]);
    assert_eq!(serde_json::from_str::<Value>(&again.stdout).expect("it is JSON"), expected);

    let run = recover(path, &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(run.stdout, format!("finished {id} buy at feed\n"));
    assert_eq!(lines(path), json!(["sold 2"]));
    assert_eq!(recover(path, &[]).stdout, "nothing was unfinished\n");
    assert_eq!(recover(path, &["--list"]).stdout, "nothing is unfinished\n");
    let json = recover(path, &["--format", "json"]);
    assert_eq!(json.stdout, "{\"finished\":[],\"left\":[],\"abandoned\":[]}\n");
}

/// Returns the id of the first listed transaction.
fn listed_id(path: &Path) -> String {
    let listed = recover(path, &["--list"]).stdout;
    listed.split_once(' ').expect("an id stands first").0.to_owned()
}

#[test]
fn what_is_abandoned_stays_listed() {
    let folder = folder(&[("shop.mingle", SHOP)]);
    let path = folder.path();
    leave_half_done(path, Fault::Refused);
    let id = listed_id(path);
    let unsaid = recover(path, &["--abandon", &id]);
    assert_eq!(unsaid.code, Some(2), "{}", unsaid.stderr);
    assert!(unsaid.stderr.contains("--because"), "{}", unsaid.stderr);
    let run = recover(path, &["--abandon", &id, "--because", "refunded by hand"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let line = format!("abandoned {id} buy, which never came to feed: refunded by hand\n");
    assert_eq!(run.stdout, line);
    assert_eq!(recover(path, &[]).stdout, format!("nothing was unfinished\n{line}"));
    let listed = recover(path, &["--list"]).stdout;
    let expected = format!(
        "nothing is unfinished\n{id} buy\n  began at: tickets\n  never came to: feed\n  \
         was parked: a fault was injected\n  abandoned: "
    );
    assert!(listed.starts_with(&expected), "{listed}");
    assert!(listed.ends_with(", because refunded by hand\n"), "{listed}");
    let json = recover(path, &["--list", "--format", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json[0]["abandoned"]["because"], "refunded by hand");
    // No command waits for it, and its first part stays.
    let run = mingle(path, &["run", "shop.mingle", "buy", "event=gig", "seats=1"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "3\n"), "{}", run.stderr);
    assert_eq!(lines(path), json!(["sold 1"]));
    let again = recover(path, &["--abandon", &id, "--because", "again"]);
    assert_eq!(again.code, Some(2), "{}{}", again.stdout, again.stderr);
}

#[test]
fn one_that_is_parked_is_tried_again() {
    let folder = folder(&[("shop.mingle", SHOP)]);
    let path = folder.path();
    leave_half_done(path, Fault::Refused);
    let id = listed_id(path);
    let wrong = recover(path, &["--retry", "7-1"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    let run = recover(path, &["--retry", &id]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(run.stdout, format!("finished {id} buy at feed\n"));
    assert_eq!(lines(path), json!(["sold 2"]));
    assert_eq!(recover(path, &["--retry"]).stdout, "nothing was unfinished\n");
}

#[test]
fn the_next_start_finishes_what_a_dead_process_left() {
    let folder = folder(&[("shop.mingle", SHOP)]);
    let path = folder.path();
    leave_half_done(path, Fault::Unavailable);
    let listed = recover(path, &["--list"]);
    assert!(listed.stdout.contains("missing at: feed\n"), "{}", listed.stdout);
    assert!(!listed.stdout.contains("parked"), "{}", listed.stdout);
    // A read is enough: it opens the stores like any other command.
    assert_eq!(lines(path), json!(["sold 2"]));
    assert_eq!(recover(path, &["--list"]).stdout, "nothing is unfinished\n");
    assert_eq!(lines(path), json!(["sold 2"]), "once");
}

#[test]
fn what_a_call_meets_and_cannot_be_finished_is_said() {
    let binding = "[runtime]\nhelp_after = \"20ms\"\n";
    let folder = folder(&[("shop.mingle", SHOP), ("mingle.toml", binding)]);
    let path = folder.path();
    leave_half_done(path, Fault::Refused);
    // For the same event the call would have to wait for the other transaction at the feed, so it
    // commits nothing.
    let run = mingle(path, &["run", "shop.mingle", "buy", "event=gig", "seats=1"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(4), ""), "{}", run.stderr);
    assert!(!run.stderr.contains("committed at tickets"), "{}", run.stderr);
    assert!(run.stderr.contains("cannot be finished: a fault was injected"), "{}", run.stderr);
    assert!(run.stderr.contains("`mingle recover`"), "{}", run.stderr);
    // A call for another event is independent of it.
    let other = mingle(path, &["run", "shop.mingle", "buy", "event=play", "seats=1"]);
    assert_eq!((other.code, other.stdout.as_str()), (Some(0), "1\n"), "{}", other.stderr);

    let run = recover(path, &[]);
    assert_eq!((run.code, run.stdout.lines().count()), (Some(0), 1), "{}", run.stdout);
    assert_eq!(lines(path), json!(["sold 2"]));
    let run = mingle(path, &["run", "shop.mingle", "buy", "event=gig", "seats=1"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "3\n"), "{}", run.stderr);
}

#[test]
fn the_result_is_there_before_the_last_store() {
    let binding = "[stores.tickets]\n[stores.feed]\ndistance = \"50ms\"\n";
    let folder = folder(&[("shop.mingle", SHOP), ("mingle.toml", binding)]);
    let path = folder.path();
    let args = ["run", "shop.mingle", "buy", "event=gig", "seats=2", "--until", "tickets"];
    let run = mingle(path, &args);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "2\n", ""));
    // The rest was finished before the command ended.
    assert_eq!(recover(path, &["--list"]).stdout, "nothing is unfinished\n");
    assert_eq!(lines(path), json!(["sold 2"]));
    let args = ["run", "shop.mingle", "buy", "event=gig", "seats=2", "--until", "tikets"];
    let run = mingle(path, &args);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("does not visit a store \"tikets\""), "{}", run.stderr);
}

/// Binds `feed` to a database that does not exist.
#[cfg(feature = "postgres")]
const FEED_IS_AWAY: &str = "\
[stores.tickets]
engine = \"embedded\"

[stores.feed]
engine = \"postgres\"
url = \"postgres://127.0.0.1:1/feed\"
";

#[cfg(feature = "postgres")]
#[test]
fn stores_that_answer_are_listed_while_another_one_is_away() {
    let folder = folder(&[("shop.mingle", SHOP)]);
    let path = folder.path();
    leave_half_done(path, Fault::Refused);
    let id = listed_id(path);
    std::fs::write(path.join("mingle.toml"), FEED_IS_AWAY).expect("it is written");

    let listed = recover(path, &["--list"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(4), ""));
    assert!(
        listed.stdout.starts_with(&format!("{id} buy\n  began at: tickets, ")),
        "{}",
        listed.stdout
    );
    assert!(listed.stdout.contains("\n  not known at: feed\n"), "{}", listed.stdout);
    assert!(
        listed.stdout.contains("\nstore feed does not answer, and what began there"),
        "{}",
        listed.stdout
    );
    let json = recover(path, &["--list", "--format", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json[0]["not_known_at"], json!(["feed"]));
    assert_eq!(json[1]["unreachable"]["store"], "feed");
    assert!(
        json[1]["unreachable"]["reason"]
            .as_str()
            .is_some_and(|why| why.starts_with("cannot reach PostgreSQL")),
        "{json}"
    );

    let status = mingle(path, &["status", "shop.mingle"]);
    assert_eq!((status.code, status.stderr.as_str()), (Some(4), ""));
    assert!(
        status.stdout.contains("store tickets (linearizable) answers in "),
        "{}",
        status.stdout
    );
    assert!(status.stdout.contains("store feed (causal) does not answer: "), "{}", status.stdout);
    let process = id.split('-').next().expect("the process");
    assert!(
        status.stdout.contains(&format!("process {process} gives no sign of life")),
        "{}",
        status.stdout
    );
}

#[test]
fn status_counts_what_is_left() {
    let folder = folder(&[("shop.mingle", SHOP)]);
    let path = folder.path();
    leave_half_done(path, Fault::Refused);
    let run = mingle(path, &["status", "shop.mingle", "--format", "json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let told: Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    let store = |name: &str| {
        let stores = told["stores"].as_array().expect("stores").iter();
        stores
            .filter(|store| store["store"] == name)
            .map(|store| {
                let sum = |what: &str| store[what].as_u64().expect("a number");
                (sum("transactions"), sum("parked"))
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(store("tickets"), [(1, 1)], "{told}");
    assert_eq!(store("feed"), [(0, 0)], "{told}");
    let process = &told["processes"][0];
    assert_eq!((&process["transactions"], &process["parked"]), (&json!(1), &json!(1)), "{told}");
    assert_eq!(process["alive"], json!(false), "{told}");
    recover(path, &[]);
    let run = mingle(path, &["status", "shop.mingle"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.ends_with("no process has left anything\n"), "{}", run.stdout);
}
