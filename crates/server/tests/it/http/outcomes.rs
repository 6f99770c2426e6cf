//! Calls whose callers do not receive the full outcome: several callers at once with one key, and
//! incomplete or unknown outcomes, or answers without the result. Each answer says so, and its
//! session continues from the writes of the call.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use mingle_store::DataStore;
use mingle_store::wrap::fault::{Call, Fault, FaultPlan, FaultyStore, Rates};
use serde_json::{Value as Json, json};

use crate::http::client::{Answer, Request, Served, TEXT};

fn keyed(key: &str, path: &str, body: &Json) -> Request {
    Request::new("POST", &format!("/v1/transactions/{path}"))
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(body.to_string())
}

/// Starts a server with one store that fails as planned.
fn failing(name: &'static str, plan: &Arc<FaultPlan>) -> Served {
    let plan = plan.clone();
    let wrap = move |store: &str, inner: Arc<dyn DataStore>| -> Arc<dyn DataStore> {
        if store == name { FaultyStore::new(inner, plan.clone()) } else { inner }
    };
    Served::around(TEXT, "[runtime]\nsweep_every = \"50ms\"\nlease = \"10s\"", |_| {}, wrap)
}

/// Sends a request until it is answered with 200.
fn insists(served: &Served, request: &Request) -> Answer {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let answer = served.send(request);
        if answer.status == 200 {
            return answer;
        }
        assert!(Instant::now() < deadline, "{answer:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn callers_at_once_with_one_key_have_one_effect_and_one_answer() {
    let served = Served::new();
    let other = served.beside(|_| {});
    served.ok("add", &json!({ "item": "tea", "count": 100 }));
    for round in 1..=20_i64 {
        let buy = json!({ "item": "tea", "count": 1, "buyer": "ana" });
        let buy = keyed(&format!("k-{round}"), "buy", &buy);
        // Two callers at each of two servers. Within one server the second caller is told to wait;
        // between the servers the store decides.
        let (barrier, servers) = (Barrier::new(4), [&served, &served, &other, &other]);
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let send = |server: &'static str, served: &Served| {
                barrier.wait();
                (server, served.send(&buy)).1
            };
            let sent = servers.map(|server| scope.spawn(move || send("one of two", server)));
            sent.into_iter().map(|sent| sent.join().expect("it does not panic")).collect()
        });
        let mut has_run = 0;
        for answer in &answers {
            if answer.status == 200 {
                assert_eq!(answer.json()["result"], 100 - round, "{answer:?}");
                has_run += usize::from(answer.header("mingle-repeated").is_none());
            } else {
                assert_eq!((answer.status, answer.code().as_str()), (409, "in-progress"));
                assert_eq!(answer.json()["retryable"], true);
            }
        }
        assert_eq!(has_run, 1, "{answers:?}");
        // A caller that was told to try again then gets the same answer, at either server.
        for server in [&served, &other] {
            let again = server.send(&buy);
            assert_eq!((again.status, &again.json()["result"]), (200, &json!(100 - round)));
            assert_eq!(again.header("mingle-repeated"), Some("true"));
        }
    }
    assert_eq!(served.ok("count", &json!({ "item": "tea" })), json!(80));
}

#[test]
fn what_is_incomplete_follows_and_its_session_sees_it() {
    let plan = FaultPlan::seeded(7, Rates { lost_before: 1_000, ..Rates::default() });
    let served = failing("feed", &plan);
    served.ok("add", &json!({ "item": "tea", "count": 5 }));
    let body = json!({ "item": "tea", "count": 1, "buyer": "ana" });
    let buy = keyed("k", "buy?deadline_ms=200", &body);
    let answer = served.send(&buy);
    assert_eq!((answer.status, answer.code().as_str()), (202, "incomplete"));
    let problem = answer.json();
    assert_eq!((&problem["committed"], &problem["missing"]), (&json!(["stock"]), &json!(["feed"])));
    assert_eq!((&problem["store"], &problem["retryable"]), (&json!("feed"), &json!(false)));
    let session = answer.session().to_owned();
    assert_eq!(served.ok("count", &json!({ "item": "tea" })), json!(4), "it was written once");
    plan.set_on(false);
    // The read waits for the remaining writes of its session's call.
    let read = Request::call("read", &json!({ "of": "ana" })).header("mingle-session", &session);
    assert_eq!(insists(&served, &read).json()["result"], json!(["bought"]));
    let again = insists(&served, &buy);
    assert_eq!(
        (again.header("mingle-repeated"), &again.json()["result"]),
        (Some("true"), &json!(4))
    );
    assert_eq!(served.ok("count", &json!({ "item": "tea" })), json!(4));
}

#[test]
fn what_is_unknown_is_asked_again_with_its_key() {
    for (lost, body) in [(Fault::LostAfter, "after"), (Fault::LostBefore, "before")] {
        let outcomes = (0..10_000).map(|at| (Call::Outcome, at, Fault::Unavailable));
        let script = std::iter::once((Call::Commit, 1, lost)).chain(outcomes);
        let plan = FaultPlan::scripted(script);
        let served = failing("stock", &plan);
        served.ok("add", &json!({ "item": "tea", "count": 5 }));
        let buy = json!({ "item": "tea", "count": 1, "buyer": "ana" });
        let buy = keyed("k", "buy?deadline_ms=200", &buy);
        let answer = served.send(&buy);
        assert_eq!((answer.status, answer.code().as_str()), (504, "unknown"), "{body}: {answer:?}");
        assert_eq!(answer.json()["store"], "stock");
        assert_eq!(answer.json()["retryable"], true, "it has a key");
        let session = answer.session().to_owned();
        plan.set_on(false);
        let again = insists(&served, &buy.clone().header("mingle-session", &session));
        assert_eq!(again.json()["result"], 4, "{body}");
        let count = Request::call("count", &json!({ "item": "tea" }));
        let count = insists(&served, &count.header("mingle-session", again.session()));
        assert_eq!(count.json()["result"], 4, "{body}: it took effect once");
        let read = Request::call("read", &json!({ "of": "ana" }));
        let read = insists(&served, &read.header("mingle-session", again.session()));
        assert_eq!(read.json()["result"], json!(["bought"]), "{body}");
    }
}

#[test]
fn what_is_unknown_without_a_key_is_not_retryable() {
    let outcomes = (0..10_000).map(|at| (Call::Outcome, at, Fault::Unavailable));
    let script = std::iter::once((Call::Commit, 0, Fault::LostAfter)).chain(outcomes);
    let plan = FaultPlan::scripted(script);
    let served = failing("stock", &plan);
    let call = Request::new("POST", "/v1/transactions/add?deadline_ms=200")
        .header("content-type", "application/json")
        .body(json!({ "item": "tea", "count": 5 }).to_string());
    let answer = served.send(&call);
    assert_eq!((answer.status, answer.code().as_str()), (504, "unknown"), "{answer:?}");
    assert_eq!(answer.json()["retryable"], false);
    assert!(!answer.session().is_empty());
}

#[test]
fn a_result_that_is_gone_is_said_to_be() {
    let text = "store s: linearizable;
        object Item in s { key name: string; count: int; }
        transaction fill(item: ref Item) -> list<int> {
            item.count += 9000000000000000;
            var all = [item.count];
            var i = 0;
            while i < 18 { all = all + all; i += 1; }
            return all;
        }
        transaction count(item: ref Item) -> int { return item.count; }";
    let served = Served::with(text, "", |_| {});
    let fill = keyed("k", "fill", &json!({ "item": "tea" }));
    let first = served.send(&fill);
    assert_eq!(first.json()["result"].as_array().map(Vec::len), Some(1 << 18));
    let gone = served.send(&fill);
    assert_eq!(gone.status, 410);
    assert_eq!((gone.status, gone.code().as_str()), (410, "result-gone"));
    assert_eq!(gone.json()["retryable"], false);
    let count = Request::call("count", &json!({ "item": "tea" }));
    let count = served.send(&count.header("mingle-session", gone.session()));
    assert_eq!(count.json()["result"], 9_000_000_000_000_000_i64, "it took effect once");
}
