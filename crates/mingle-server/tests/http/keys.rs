//! Idempotency keys over HTTP; that they hold across a crash is tried where the runtime is, and with
//! the command.

use std::io::Write;

use serde_json::json;

use crate::client::{Answer, Request, Served, TEXT, read_all};

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

    // What was refused wrote nothing, so the key may be used again.
    let buy = json!({ "item": "milk", "count": 1, "buyer": "ana" });
    assert_eq!(served.send(&keyed("k-3", "buy", &buy)).status, 422);
    served.ok("add", &json!({ "item": "milk", "count": 1 }));
    assert_eq!(served.send(&keyed("k-3", "buy", &buy)).status, 200);
    let again = served.send(&keyed("k-3", "buy", &buy));
    assert_eq!((again.status, again.header("mingle-repeated")), (200, Some("true")));
    // Its session has seen what the call wrote, at the later store too.
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
    // Whichever of the two comes first; the other one does not wait for it.
    let second = served.send(&add);
    let first = Answer::parse(&read_all(&mut first));
    let (done, refused) = if first.status == 200 { (first, second) } else { (second, first) };
    assert_eq!(done.json()["result"], 1);
    assert_eq!((refused.status, &*refused.code()), (409, "in-progress"));
    assert_eq!(refused.json()["retryable"], true);
    let third = served.send(&add);
    assert_eq!((third.body, third.headers.len()), (done.body, done.headers.len() + 1));
}
