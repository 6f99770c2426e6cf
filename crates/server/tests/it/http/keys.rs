//! Idempotency keys over HTTP. The tests of the runtime and of the command check that keys hold
//! across a crash.

use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::time::{Duration, Instant};

use mingle_proxy::{Fault, Proxy};
use mingle_services::Engine;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::http::client::{Answer, Request, Served, TEXT, read_all};

fn keyed(key: &str, transaction: &str, body: &serde_json::Value) -> Request {
    Request::call(transaction, body).header("idempotency-key", key)
}

#[test]
fn a_call_again_runs_once() {
    let served = Served::new();
    let add = json!({ "item": "tea", "count": 5 });
    let first = served.send(&keyed("k-1", "add", &add));
    let second = served.send(&keyed("k-1", "add", &add));
    assert_eq!((first.status, second.status), (200, 200));
    assert_eq!(first.body, second.body);
    assert_eq!(first.header("mingle-repeated"), None);
    assert_eq!(second.header("mingle-repeated"), Some("true"));
    assert_eq!(served.ok("count", &json!({ "item": "tea" })), json!(5));

    let other = served.send(&keyed("k-1", "add", &json!({ "item": "tea", "count": 6 })));
    assert_eq!((other.status, &*other.code()), (422, "idempotency-mismatch"));
    assert_eq!(served.send(&keyed("k-2", "add", &add)).json()["result"], 10);

    // The refused call wrote nothing, so the key may be used again.
    let buy = json!({ "item": "milk", "count": 1, "buyer": "ana" });
    assert_eq!(served.send(&keyed("k-3", "buy", &buy)).status, 422);
    served.ok("add", &json!({ "item": "milk", "count": 1 }));
    assert_eq!(served.send(&keyed("k-3", "buy", &buy)).status, 200);
    let again = served.send(&keyed("k-3", "buy", &buy));
    assert_eq!((again.status, again.header("mingle-repeated")), (200, Some("true")));
    // The session of the answer includes the writes of the call, at the later store too.
    let read = Request::call("read", &json!({ "of": "ana" }));
    let read = served.send(&read.header("mingle-session", again.session()));
    assert_eq!(read.json()["result"], json!(["bought"]));
}

#[test]
fn keys_have_a_form() {
    let served = Served::new();
    let ping = json!({});
    assert_eq!(served.send(&keyed(&"k".repeat(128), "ping", &ping)).status, 200);
    for bad in ["", "a b", "é", &"k".repeat(129)] {
        let answer = served.send(&keyed(bad, "ping", &ping));
        assert_eq!((answer.status, &*answer.code()), (400, "invalid-argument"), "{bad:?}");
    }
}

#[test]
fn while_a_call_runs_its_key_is_taken() {
    let served = Served::with(TEXT, "[stores.stock]\ndistance = \"2s\"", |_| {});
    let add = keyed("k", "add", &json!({ "item": "tea", "count": 1 }));
    let mut first = served.connect();
    first.write_all(&add.bytes()).expect("it listens");
    // Either call may come first; the other one does not wait for it.
    let second = served.send(&add);
    let first = Answer::parse(&read_all(&mut first));
    let (done, refused) = if first.status == 200 { (first, second) } else { (second, first) };
    assert_eq!(done.json()["result"], 1);
    assert_eq!((refused.status, &*refused.code()), (409, "in-progress"));
    assert_eq!(refused.json()["retryable"], true);
    let third = served.send(&add);
    assert_eq!((third.body, third.headers.len()), (done.body, done.headers.len() + 1));
}

/// Sends a request until it is answered with 200, like a client that has lost an answer.
fn insists(served: &Served, request: &Request) -> Answer {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let answer = served.send(request);
        if answer.status == 200 {
            return answer;
        }
        // The call completes by itself (202), its outcome is unknown, or it has written nothing.
        let may_pass = matches!(answer.status, 202 | 409 | 503 | 504);
        assert!(may_pass && Instant::now() < deadline, "{answer:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn over_postgres_a_call_again_has_the_first_result() {
    let runtime = Runtime::new().expect("a runtime starts");
    let Some(server) = runtime.block_on(mingle_services::shared(Engine::Postgres)) else { return };
    let upstream = server.addresses()[0];
    let proxy = runtime.block_on(Proxy::start(upstream, 7)).expect("loopback listens");
    let url = server.url().replace(&upstream.to_string(), &proxy.address().to_string());
    let own = format!("http_keys_{:016x}", RandomState::new().hash_one(std::process::id()));
    let binding: String = ["stock", "feed"]
        .map(|store| {
            format!("[stores.{store}]\nengine = \"postgres\"\nurl = \"{url}\"\nschema = \"{own}_{store}\"\n")
        })
        .concat();
    let mut served = Served::with(TEXT, &binding, |_| {});
    served.ok("add", &json!({ "item": "tea", "count": 100 }));
    for round in 1..=8_i64 {
        let fault = if round % 2 == 0 { Fault::LoseAnswer } else { Fault::CutRequest };
        proxy.once_containing(b"COMMIT", fault);
        let buy = json!({ "item": "tea", "count": 1, "buyer": "ana" });
        let buy = keyed(&format!("k-{round}"), "buy", &buy);
        let first = served.send(&buy);
        if round > 4 {
            // Another server, over the same stores.
            served.stop();
            served = Served::with(TEXT, &binding, |_| {});
        }
        let again = insists(&served, &buy);
        assert_eq!(again.json()["result"], 100 - round, "{first:?}");
        if first.status == 200 {
            assert_eq!(again.header("mingle-repeated"), Some("true"));
            assert_eq!(first.body, again.body);
        }
        let buys: Vec<_> = (0..4).map(|_| (served.connect(), buy.bytes())).collect();
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let sent: Vec<_> = buys
                .into_iter()
                .map(|(mut stream, bytes)| {
                    scope.spawn(move || {
                        stream.write_all(&bytes).expect("it listens");
                        Answer::parse(&read_all(&mut stream))
                    })
                })
                .collect();
            sent.into_iter().map(|one| one.join().expect("it does not panic")).collect()
        });
        for answer in answers {
            let is_repeated = answer.status == 200 && answer.json()["result"] == 100 - round;
            assert!(is_repeated || answer.status == 409, "{answer:?}");
        }
    }
    let counts = proxy.counts();
    assert_eq!((counts.answers_lost, counts.requests_cut), (4, 4));
    assert_eq!(served.ok("count", &json!({ "item": "tea" })), json!(92));
    let deadline = Instant::now() + Duration::from_secs(30);
    while served.ok("read", &json!({ "of": "ana" })) != json!(vec!["bought"; 8]) {
        assert!(Instant::now() < deadline, "{}", served.ok("read", &json!({ "of": "ana" })));
        std::thread::sleep(Duration::from_millis(20));
    }
}
