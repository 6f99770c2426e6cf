//! Stores with replicas behind a worker, and transactions that are isolated.

use std::sync::Arc;

use mingle::{Database, Session};
use mingle_proxy::Proxy;
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

use crate::worker::site::{Working, beside, client};

const TEXT: &str = "store near: linearizable; store bank: causal;
    object Near in near { key k: string; n: int; }
    object Far in bank { key k: string; n: int; lines: log<string>; }
    transaction both(a: ref Near, b: ref Far, n: int) -> int {
        a.n += n;
        b.n += n;
        b.lines.append(\"x\");
        return a.n;
    }
    transaction far(b: ref Far) -> int { return b.n; }
    transaction lines(b: ref Far) -> int { return b.lines.size(); }
    transaction bump(b: ref Far) { b.n += 1; }
    isolated transaction sum(a: ref Near, b: ref Far) -> int { return a.n + b.n; }
    ";

const REPLICAS: &str =
    "[stores.near]\n[stores.bank]\nreplicas = [\"oslo\", \"rome\"]\ndelay = \"20ms\"";

struct Place {
    runtime: Runtime,
    client: Arc<Database>,
    _working: Working,
    _proxy: Proxy,
}

impl Place {
    fn new() -> Self {
        let runtime = Runtime::new().expect("a runtime starts");
        let (working, proxy, client) = runtime.block_on(async {
            let working = Working::start(beside(TEXT, REPLICAS).await, |_| {}).await;
            let proxy = Proxy::start(working.address, 7).await.expect("loopback listens");
            let replicas = "replicas = [\"oslo\", \"rome\"]";
            let client = client(TEXT, &proxy, replicas).await.expect("the store opens");
            (working, proxy, client)
        });
        Self { runtime, client, _working: working, _proxy: proxy }
    }

    fn ok(&self, session: &Session, transaction: &str, arguments: &[(&str, &str)]) -> Json {
        let arguments = self.client.arguments(transaction, arguments.iter().copied());
        let arguments = arguments.unwrap_or_else(|error| panic!("{error}"));
        let call = self.client.call(transaction, arguments, session.clone());
        let report = self.runtime.block_on(call);
        let report = report.unwrap_or_else(|error| panic!("{transaction}: {error}"));
        self.client.result_json(transaction, &report)
    }
}

#[test]
fn a_session_sees_at_another_replica_what_it_has_written_through_the_worker() {
    let place = Place::new();
    for round in 1..=5 {
        let session = Session::at("oslo");
        let both = [("a", "x"), ("b", "y"), ("n", "2")];
        assert_eq!(place.ok(&session, "both", &both), json!(2 * round));
        place.ok(&session, "bump", &[("b", "z")]);
        session.move_to("rome");
        assert_eq!(place.ok(&session, "far", &[("b", "z")]), json!(round));
        assert_eq!(place.ok(&session, "far", &[("b", "y")]), json!(2 * round));
        assert_eq!(place.ok(&session, "lines", &[("b", "y")]), json!(round));
    }
}

#[test]
fn an_isolated_transaction_reads_both_stores_of_one_moment() {
    let place = Place::new();
    let session = Session::at("oslo");
    for round in 1..=3 {
        place.ok(&session, "both", &[("a", "x"), ("b", "y"), ("n", "1")]);
        assert_eq!(place.ok(&session, "sum", &[("a", "x"), ("b", "y")]), json!(2 * round));
    }
}
