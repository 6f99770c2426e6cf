//! A worker before Cassandra, which counts one of several copies of a phase.

use std::sync::Arc;

use mingle::{CallReport, Database, Error, Session};
use mingle_proxy::{Fault, Proxy};
use mingle_services::Engine;
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

use crate::worker::site::{Working, beside, client, eventually, unique};

/// The near store decides: the writes at the far store depend on reads at the near one.
const TEXT: &str = "store near: linearizable; store bank: eventual;
    object Near in near { key k: string; n: int; }
    object Far in bank { key k: string; n: counter; last: int; open: set<string>; lines: log<string>; }
    transaction both(a: ref Near, b: ref Far) -> int {
        a.n += 1;
        let now = a.n;
        b.n.add(1);
        b.lines.append(string(now));
        if b.n.value() % 2 == 0 { b.open.insert(string(now)); } else { b.open.remove(string(now - 1)); }
        b.last = now;
        return now;
    }
    transaction look(b: ref Far) -> list<int> { return [b.n.value(), b.lines.size(), b.last]; }
    ";

const ATTEMPT: &[u8] = b"PUT /v1/worker/stores/bank/attempts/";

fn call(
    runtime: &Runtime,
    client: &Arc<Database>,
    name: &str,
    arguments: &[(&str, &str)],
) -> Result<CallReport, Error> {
    let arguments = client.arguments(name, arguments.iter().copied()).expect("they fit");
    runtime.block_on(client.call(name, arguments, Session::default()))
}

fn look(runtime: &Runtime, client: &Arc<Database>) -> Json {
    let report = call(runtime, client, "look", &[("b", "y")]);
    client.result_json("look", &report.unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn a_later_phase_takes_effect_once_whatever_is_lost() {
    let runtime = Runtime::new().expect("a runtime starts");
    let Some(server) = runtime.block_on(mingle_services::shared(Engine::Cassandra)) else { return };
    let nodes: Vec<String> = server.url().split(',').map(|node| format!("{node:?}")).collect();
    let binding = format!(
        "[stores.near]\n[stores.bank]\nengine = \"cassandra\"\nnodes = [{}]\ndatacenters = [\"dc1\", \"dc2\", \"dc3\"]\n\
         area = \"{}\"\nreplication = {{ dc1 = 1, dc2 = 1, dc3 = 1 }}\n",
        nodes.join(", "),
        unique("by_id"),
    );
    let (working, proxy, client) = runtime.block_on(async {
        let working = Working::start(beside(TEXT, &binding).await, |_| {}).await;
        let proxy = Proxy::start(working.address, 7).await.expect("loopback listens");
        let replicas = "replicas = [\"dc1\", \"dc2\", \"dc3\"]";
        let client = client(TEXT, &proxy, replicas).await.unwrap_or_else(|error| panic!("{error}"));
        (working, proxy, client)
    });
    for round in 1..=8_i64 {
        match round % 3 {
            1 => proxy.once_containing(ATTEMPT, Fault::LoseAnswer),
            2 => proxy.once_containing(ATTEMPT, Fault::CutRequest),
            _ => {}
        }
        match call(&runtime, &client, "both", &[("a", "x"), ("b", "y")]) {
            Ok(report) => assert_eq!(client.result_json("both", &report), json!(round)),
            // The near store has it, so the far one gets it.
            Err(error) => assert!(matches!(error, Error::Incomplete { .. }), "{error}"),
        }
        eventually(|| look(&runtime, &client) == json!([round, round, round]));
    }
    let counts = proxy.counts();
    assert!(counts.answers_lost >= 3 && counts.requests_cut >= 3, "{counts:?}");
    assert!(runtime.block_on(client.settle(std::time::Duration::from_mins(1))));
    drop(working);
}
