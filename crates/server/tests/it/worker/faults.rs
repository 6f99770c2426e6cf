//! Answers that are lost, requests that are cut, workers that go away: nothing is done twice, nothing
//! is half done.

use mingle::Error;
use mingle_proxy::{Fault, Rates};
use serde_json::{Value as Json, json};

use crate::worker::site::{Site, Working, eventually};

const ATTEMPT: &[u8] = b"PUT /v1/worker/stores/bank/attempts/";

fn pay(n: &str) -> Vec<(&str, &str)> {
    vec![("from", "ana"), ("to", "bob"), ("inbox", "bob"), ("n", n)]
}

/// Starts another worker over the same stores: it does not know the requests to the first one. The
/// client's connection leads to the first one until it breaks.
fn replace_once_it_breaks(site: &mut Site) -> Working {
    let first = site.working.as_ref().expect("the worker is up");
    let stores = (first.database.clone(), first.bank.clone());
    let second = site.runtime.block_on(Working::start(stores, |_| {}));
    site.proxy.set_upstream(second.address);
    second
}

#[test]
fn a_lost_answer_is_asked_for_again_and_nothing_runs_twice() {
    let site = Site::new();
    site.ok("fill", &[("a", "ana"), ("n", "10")]);
    site.proxy.once_containing(ATTEMPT, Fault::LoseAnswer);
    let report = site.report("add", &[("a", "ana"), ("n", "5")]);
    assert_eq!(site.client.result_json("add", &report), json!(15));
    assert_eq!(report.phases[0].round_trips, 2, "the second one asks what came of the first");
    site.proxy.once_containing(ATTEMPT, Fault::LoseAnswer);
    assert_eq!(site.ok("pay", &pay("3")), json!(12));
    assert_eq!(site.proxy.counts().answers_lost, 2);
    assert_eq!(site.ok("get", &[("a", "bob")]), json!(3));
    assert_eq!(site.ok("paid", &[("inbox", "bob")]), json!(3));
}

#[test]
fn a_request_that_was_cut_is_run_once() {
    let site = Site::new();
    site.ok("fill", &[("a", "ana"), ("n", "10")]);
    for _ in 0..5 {
        site.proxy.once_containing(ATTEMPT, Fault::CutRequest);
        site.ok("pay", &pay("1"));
    }
    assert_eq!(site.proxy.counts().requests_cut, 5);
    assert_eq!(site.ok("get", &[("a", "ana")]), json!(5));
    assert_eq!(site.ok("paid", &[("inbox", "bob")]), json!(5));
}

/// Calls a transaction whose answer is lost, by a worker that is gone before it can be asked again.
fn lost_for_good(transaction: &str, arguments: &[(&str, &str)]) -> (Site, Result<Json, Error>) {
    let mut site = Site::new();
    // One connection is open, and leads to the first worker.
    site.ok("fill", &[("a", "ana"), ("n", "10")]);
    let second = replace_once_it_breaks(&mut site);
    site.proxy.once_containing(ATTEMPT, Fault::LoseAnswer);
    let called = site.call(transaction, arguments);
    assert_eq!(site.proxy.counts().answers_lost, 1);
    site.working = Some(second);
    let result = called.map(|report| site.client.result_json(transaction, &report));
    (site, result)
}

#[test]
fn what_a_worker_that_is_gone_has_committed_is_found_out_from_the_store() {
    // The bank has it, and so must the feed; the result of `pay` was in the lost answer.
    let (site, result) = lost_for_good("pay", &pay("4"));
    let error = result.expect_err("its result is gone");
    assert!(matches!(error, Error::ResultGone { .. }), "{error}");
    assert_eq!(site.ok("get", &[("a", "ana")]), json!(6));
    assert_eq!(site.ok("get", &[("a", "bob")]), json!(4));
    eventually(|| site.ok("paid", &[("inbox", "bob")]) == json!(4));

    let (site, result) = lost_for_good("add", &[("a", "ana"), ("n", "1")]);
    let error = result.expect_err("its result is gone");
    assert!(matches!(error, Error::ResultGone { .. }), "{error}");
    assert_eq!(site.ok("get", &[("a", "ana")]), json!(11));

    // A transaction without a result loses nothing, and one that only reads is run again.
    let (site, result) = lost_for_good("fill", &[("a", "ana"), ("n", "1")]);
    assert_eq!(result, Ok(json!(null)));
    assert_eq!(site.ok("get", &[("a", "ana")]), json!(1));
    assert_eq!(lost_for_good("get", &[("a", "ana")]).1, Ok(json!(10)));
}

#[test]
fn what_a_worker_that_is_gone_has_not_got_is_run_by_the_next() {
    let mut site = Site::new();
    site.ok("fill", &[("a", "ana"), ("n", "10")]);
    let second = replace_once_it_breaks(&mut site);
    site.proxy.once_containing(ATTEMPT, Fault::CutRequest);
    assert_eq!(site.ok("pay", &pay("4")), json!(6));
    assert_eq!(site.ok("paid", &[("inbox", "bob")]), json!(4));
    drop(second);
}

#[test]
fn a_worker_that_goes_away_and_comes_back() {
    let mut site = Site::new();
    site.ok("fill", &[("a", "ana"), ("n", "10")]);
    site.runtime.block_on(site.proxy.down());
    let working = site.working.take().expect("the worker is up");
    let stores = site.runtime.block_on(working.stop());
    eventually(|| {
        let error = site.call("get", &[("a", "ana")]).expect_err("nobody is there");
        error.unreachable().is_some_and(|store| &**store == "bank")
    });
    let error = site.call("pay", &pay("4")).expect_err("nobody is there");
    assert_eq!(error.unreachable().map(|store| &**store), Some("bank"), "{error}");
    let working = site.runtime.block_on(Working::start(stores, |_| {}));
    site.proxy.set_upstream(working.address);
    site.runtime.block_on(site.proxy.up()).expect("its port is free");
    assert_eq!(site.ok("pay", &pay("4")), json!(6));
    assert_eq!(site.ok("paid", &[("inbox", "bob")]), json!(4));
    site.working = Some(working);
}

#[test]
fn under_faults_every_call_takes_effect_once_or_not_at_all() {
    let site = Site::new();
    site.ok("fill", &[("a", "ana"), ("n", "1000")]);
    let rates = Rates { cut_request: 0.1, lose_answer: 0.15, ..Rates::default() };
    site.proxy.set_rates(rates);
    let mut taken = 0;
    let mut last = 1000;
    for _ in 0..60 {
        match site.call("pay", &pay("1")) {
            Ok(report) => {
                taken += 1;
                let left = site.client.result_json("pay", &report);
                let left = left.as_i64().expect("it is an int");
                assert!(left < last, "{left} after {last}: it was told of an earlier state");
                last = left;
            }
            Err(Error::ResultGone { .. } | Error::Incomplete { .. }) => taken += 1,
            // Nothing was sent, or it was seen to that it never takes effect.
            Err(Error::Store(_) | Error::Conflict { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    site.proxy.set_rates(Rates::default());
    let counts = site.proxy.counts();
    assert!(counts.answers_lost > 0 && counts.requests_cut > 0, "{counts:?}");
    assert!(taken > 30, "{taken} calls took effect");
    assert_eq!(site.ok("get", &[("a", "ana")]), json!(1000 - taken));
    assert_eq!(site.ok("get", &[("a", "bob")]), json!(taken));
    eventually(|| site.ok("paid", &[("inbox", "bob")]) == json!(taken));
}
