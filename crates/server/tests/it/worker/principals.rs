//! Whose calls a worker runs.

use std::time::Duration;

use mingle::{Call, CallReport, Error, Principal};
use mingle_proxy::Proxy;
use mingle_server::{Config, Tokens};
use mingle_store_worker::wire::hex;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::worker::site::{PATIENCE, Site, TEXT, Working, beside, client};

/// A client's token that lists its callers.
fn listing(listed: &'static str) -> impl FnOnce(&mut Config) {
    let (digest, this) = (hex(&Sha256::digest("secret")), hex(&Sha256::digest(TEXT)));
    let text = format!(
        "[[tokens]]\nname = \"shop\"\nsha256 = \"{digest}\"\nworker = [\"bank\"]\nprograms = [\"{this}\"]\n\
         [tokens.principals]\n{listed}"
    );
    let program = mingle::compile(TEXT).expect("the program is right");
    let tokens = Tokens::parse(&text, &program).unwrap_or_else(|error| panic!("{error}"));
    move |config| config.tokens = Some(tokens)
}

fn call(
    site: &Site,
    principal: Option<&str>,
    name: &str,
    pairs: &[(&str, &str)],
) -> Result<CallReport, Error> {
    let arguments = site.client.arguments(name, pairs.iter().copied())?;
    let principal = principal.map(|name| Principal::new(name).expect("it is a name"));
    let call = Call { principal, ..Call::new(name, arguments) };
    site.runtime.block_on(site.client.submit(call))
}

#[test]
fn a_worker_runs_the_transactions_of_listed_callers_and_no_others() {
    let lists = "till = [\"fill\", \"pay\"]\n\"*\" = [\"get\"]";
    let site = Site::with(TEXT, TEXT, "token = \"secret\"", listing(lists));
    let fill = [("a", "x"), ("n", "3")];
    call(&site, Some("till"), "fill", &fill).expect("it is listed");
    for principal in [None, Some("guest")] {
        let error = call(&site, principal, "fill", &fill).expect_err("it is not listed");
        assert!(matches!(error, Error::Forbidden { .. }), "{error}");
        call(&site, principal, "get", &[("a", "x")]).expect("all callers may");
    }
    let error = call(&site, Some("till"), "add", &fill).expect_err("it is not listed");
    assert_eq!(error.to_string(), "till may not call add; nothing was written");
    assert_eq!(site.ok("get", &[("a", "x")]), json!(3));
    let pay = [("from", "x"), ("to", "y"), ("inbox", "y"), ("n", "1")];
    call(&site, Some("till"), "pay", &pay).expect("it is listed");
    assert_eq!(site.ok("get", &[("a", "y")]), json!(1));
}

/// The client was told another list when it opened the store; the worker itself looks, too.
#[test]
fn a_worker_looks_for_itself_at_every_phase_before_the_first_commit() {
    let mut site = Site::with(TEXT, TEXT, "token = \"secret\"", listing("till = [\"fill\"]"));
    call(&site, Some("till"), "fill", &[("a", "x"), ("n", "3")]).expect("it is listed");
    site.runtime.block_on(site.proxy.down());
    let working = site.working.take().expect("it is up");
    let stores = site.runtime.block_on(async {
        working.stop().await;
        // Another database, because a database keeps the tokens that it was given first.
        beside(TEXT, "").await
    });
    let again = site.runtime.block_on(Working::start(stores, listing("till = [\"get\"]")));
    site.proxy.set_upstream(again.address);
    site.working = Some(again);
    site.runtime.block_on(site.proxy.up()).expect("its port is free");
    let error = call(&site, Some("till"), "fill", &[("a", "x"), ("n", "4")]);
    let error = error.expect_err("the worker's list has it no more");
    assert!(matches!(error, Error::Forbidden { .. }), "{error}");
}

const LATER: &str = "store near: linearizable; store bank: causal;
    object Near in near { key k: string; n: int; }
    object Node in bank { key k: string; n: int; }
    transaction both(f: ref Near, a: ref Node) { f.n += 1; a.n += 1; }
    transaction get(a: ref Node) -> int { return a.n; }
    transaction near_is(f: ref Near) -> int { return f.n; }";

#[test]
fn a_caller_that_a_later_stores_worker_does_not_list_writes_nothing_at_the_first() {
    let (digest, this) = (hex(&Sha256::digest("secret")), hex(&Sha256::digest(LATER)));
    let text = format!(
        "[[tokens]]\nname = \"shop\"\nsha256 = \"{digest}\"\nworker = [\"bank\"]\nprograms = [\"{this}\"]\n\
         [tokens.principals]\ntill = [\"*\"]\n\"*\" = [\"get\"]"
    );
    let program = mingle::compile(LATER).expect("the program is right");
    let tokens = Tokens::parse(&text, &program).unwrap_or_else(|error| panic!("{error}"));
    let site =
        Site::with(LATER, LATER, "token = \"secret\"", |config| config.tokens = Some(tokens));
    let both = [("f", "x"), ("a", "y")];
    let error = call(&site, Some("guest"), "both", &both).expect_err("it is not listed");
    assert!(matches!(error, Error::Forbidden { .. }), "{error}");
    assert_eq!(site.ok("near_is", &[("f", "x")]), json!(0));
    call(&site, Some("till"), "both", &both).expect("it is listed");
    assert!(site.runtime.block_on(site.client.settle(PATIENCE)), "all is over");
    assert_eq!(
        (site.ok("near_is", &[("f", "x")]), site.ok("get", &[("a", "y")])),
        (json!(1), json!(1))
    );
}

#[test]
fn a_list_without_programs_or_with_a_bad_name_is_refused() {
    let program = mingle::compile(TEXT).expect("the program is right");
    let long = "x".repeat(257);
    for (rest, expected) in [
        (
            "worker = [\"bank\"]\n[tokens.principals]\ntill = [\"pay\"]".to_owned(),
            "needs worker and programs",
        ),
        (
            "programs = []\n[tokens.principals]\ntill = [\"pay\"]".to_owned(),
            "needs worker and programs",
        ),
        (
            format!("worker = [\"bank\"]\nprograms = []\n[tokens.principals]\n{long} = []"),
            "found 257",
        ),
    ] {
        let digest = "ab".repeat(32);
        let text = format!("[[tokens]]\nname = \"shop\"\nsha256 = \"{digest}\"\n{rest}");
        let error = Tokens::parse(&text, &program).expect_err(&text).to_string();
        assert!(error.contains(expected), "{error} should contain {expected}");
    }
}

/// Both stores are behind the worker, each reached by a way of its own.
#[test]
fn a_helper_runs_a_later_phase_as_the_caller_even_if_that_has_lost_its_right_since() {
    let listing = |listed: &str| {
        let (digest, this) = (hex(&Sha256::digest("secret")), hex(&Sha256::digest(TEXT)));
        let text = format!(
            "[[tokens]]\nname = \"shop\"\nsha256 = \"{digest}\"\nworker = [\"*\"]\nprograms = [\"{this}\"]\n\
             [tokens.principals]\n\"*\" = [\"get\", \"paid\"]\n{listed}"
        );
        let program = mingle::compile(TEXT).expect("the program is right");
        Tokens::parse(&text, &program).unwrap_or_else(|error| panic!("{error}"))
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        let first = listing("till = [\"fill\", \"pay\"]");
        let working = Working::start(beside(TEXT, "").await, |c| c.tokens = Some(first)).await;
        let second = listing("");
        let stores = (working.database.clone(), working.bank.clone());
        let later = Working::start(stores, |c| c.tokens = Some(second)).await;
        let start = async |address| Proxy::start(address, 7).await.expect("loopback listens");
        let (bank, feed) = (start(working.address).await, start(working.address).await);
        let binding = |address: std::net::SocketAddr| {
            format!("token = \"secret\"\n[stores.feed]\nworker = \"http://{address}\"\ntoken = \"secret\"")
        };
        let payer = client(TEXT, &bank, &binding(feed.address())).await.expect("it opens");
        let till = Principal::new("till").ok();
        let submit = async |name: &str, pairs: &[(&str, &str)]| {
            let arguments = payer.arguments(name, pairs.iter().copied())?;
            let (principal, deadline) = (till.clone(), Some(Duration::from_millis(300)));
            payer.submit(Call { principal, deadline, ..Call::new(name, arguments) }).await
        };
        submit("fill", &[("a", "x"), ("n", "3")]).await.expect("it is listed");
        feed.down().await;
        feed.cut();
        let pay = [("from", "x"), ("to", "y"), ("inbox", "y"), ("n", "1")];
        let error = submit("pay", &pay).await.expect_err("the feed is away");
        assert!(matches!(error, Error::Incomplete { .. }), "{error}");

        // The helper's own calls carry no name, and its worker no longer lists a caller for `pay`.
        let (bank, feed) = (start(later.address).await, start(later.address).await);
        let helper = client(TEXT, &bank, &binding(feed.address())).await.expect("it opens");
        let arguments = helper.arguments("pay", pay).expect("they are right");
        let call = Call { principal: till.clone(), ..Call::new("pay", arguments) };
        let error = helper.submit(call).await.expect_err("it is not listed any more");
        assert!(matches!(error, Error::Forbidden { .. }), "{error}");
        let left = helper.unfinished().await.expect("the stores answer");
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(left[0].principal, till);
        helper.retry(left[0].id).await.expect("it is carried out");
        let arguments = helper.arguments("paid", [("inbox", "y")]).expect("they are right");
        let report = helper.call("paid", arguments, mingle::Session::default()).await;
        let report = report.expect("all callers may");
        assert_eq!(helper.result_json("paid", &report), json!(1));
        for working in [working, later] {
            working.stop().await;
        }
    });
}
