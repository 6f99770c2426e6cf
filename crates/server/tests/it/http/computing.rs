//! Calls that compute for long, and requests that are large together: other calls are still
//! answered.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::http::client::{Answer, Request, Served, TEXT, begin, read_all};

const SPINS: &str = "store s: linearizable;
    object Item in s { key name: string; count: int; }
    transaction spin(n: int) -> int { var i = 0; while i < n { i += 1; } return i; }
    transaction fill(item: ref Item, n: int) {
        item.count = 1;
        var i = 0;
        while i < n { i += 1; }
        item.count = i;
    }
    transaction count(item: ref Item) -> int { return item.count; }
    transaction many(n: int) -> list<int> {
        var all = [0];
        var i = 0;
        while i < n { all = all + all; i += 1; }
        return all;
    }";

/// Unlimited steps: only the deadline ends a computation.
const ENDLESS: &str = "[runtime]\nsteps = 9000000000000000000\n";

fn spinning(served: &Served, deadline_ms: u64) -> TcpStream {
    let body = json!({ "n": i64::MAX }).to_string();
    let path = format!("/v1/transactions/spin?deadline_ms={deadline_ms}");
    let call = Request::new("POST", &path).header("content-type", "application/json").body(body);
    let mut stream = served.connect();
    begin(&mut stream, call);
    stream
}

#[test]
fn while_calls_compute_others_are_answered() {
    let served = Served::with(SPINS, ENDLESS, |_| {});
    let computing: Vec<TcpStream> = (0..20).map(|_| spinning(&served, 29_000)).collect();
    for _ in 0..10 {
        assert_eq!(served.get("/healthz").status, 200);
        assert_eq!(served.get("/readyz").status, 200);
        assert_eq!(served.get("/metrics").status, 200);
        assert_eq!(served.ok("count", &json!({ "item": "tea" })), json!(0));
    }
    for stream in &computing {
        stream.set_nonblocking(true).expect("it is open");
        let peeked = stream.peek(&mut [0; 1]);
        assert!(peeked.is_err(), "it still computes: {peeked:?}");
    }
}

#[test]
fn a_deadline_ends_a_loop_and_nothing_is_written() {
    let served = Served::with(SPINS, ENDLESS, |_| {});
    let call = |name: &str, body| {
        let path = format!("/v1/transactions/{name}?deadline_ms=50");
        let request = Request::new("POST", &path).header("content-type", "application/json");
        served.send(&request.body(serde_json::Value::to_string(&body)))
    };
    for answer in [
        call("spin", json!({ "n": i64::MAX })),
        call("fill", json!({ "item": "tea", "n": i64::MAX })),
    ] {
        assert_eq!((answer.status, &*answer.code()), (504, "deadline"));
        assert_eq!(answer.json()["retryable"], false);
        assert!(answer.detail().ends_with("the deadline of 50ms; nothing was written"));
        assert_eq!(answer.header("mingle-session"), None);
    }
    assert_eq!(served.ok("count", &json!({ "item": "tea" })), json!(0));
}

#[test]
fn large_results_and_bodies_are_whole() {
    let served = Served::with(SPINS, "", |_| {});
    let all = served.ok("many", &json!({ "n": 16 }));
    assert_eq!(all.as_array().map(Vec::len), Some(1 << 16));
    // The same as the last event of a call that reports its phases.
    let mut stream = served.connect();
    let told = begin(&mut stream, Request::call("many", &json!({ "n": 12 })));
    let told = told + &read_all(&mut stream);
    let answer = told.split("event: answer\ndata: ").nth(1).expect("it ends with its answer");
    let answer = answer.split("\n\n").next().expect("an event ends");
    let answer: serde_json::Value = serde_json::from_str(answer).expect("it is JSON");
    assert_eq!(answer["body"]["result"].as_array().map(Vec::len), Some(1 << 12));
    assert_eq!((&answer["status"], &answer["repeated"]), (&json!(200), &json!(false)));
}

/// Opens a connection over which a part of a body has arrived, so that there is no room for another
/// body. If the other body comes first, this one is refused, and is sent again.
fn half_sent(served: &Served, part: &[u8], fill: impl Fn() -> u16) -> TcpStream {
    for _ in 0..20 {
        let mut slow = served.connect();
        slow.write_all(part).expect("it listens");
        slow.set_read_timeout(Some(Duration::from_millis(300))).expect("it is open");
        let is_refused = || slow.peek(&mut [0; 1]).is_ok();
        while !is_refused() {
            if fill() == 503 {
                slow.set_read_timeout(None).expect("it is open");
                return slow;
            }
        }
    }
    panic!("a body that has arrived in part never took any room");
}

#[test]
fn bodies_together_have_a_bound() {
    let binding = "[stores.feed]\ndistance = \"1s\"";
    let served = Served::with(TEXT, binding, |config| config.body_memory_max = 8_000);
    let tell = |length| json!({ "buyer": "ana", "text": "x".repeat(length) });
    let too_large = served.call("tell", &tell(9_000));
    assert_eq!((too_large.status, &*too_large.code()), (413, "too-large"));

    // The arguments of a running call are held until it has ended.
    let mut first = served.connect();
    begin(&mut first, Request::call("tell", &tell(5_000)));
    let refused = served.call("tell", &tell(5_000));
    assert_eq!((refused.status, &*refused.code()), (503, "overloaded"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.json()["retryable"], true);
    assert!(refused.detail().contains("8000 bytes"), "{}", refused.detail());
    assert_eq!(served.ok("ping", &json!({})), json!("pong"), "small ones have room");
    assert!(read_all(&mut first).contains("\"status\":200"));
    assert_eq!(served.call("tell", &tell(5_000)).status, 200, "it was given back");

    // Incomplete bodies, and the bodies of refused calls, are held as well.
    let body = Request::call("tell", &tell(6_000)).bytes();
    let fill = || served.call("tell", &tell(5_000)).status;
    let mut slow = half_sent(&served, &body[..5_500], fill);
    slow.write_all(&body[5_500..]).expect("it listens");
    assert_eq!(Answer::parse(&read_all(&mut slow)).status, 200);
    let wrong = json!({ "buyer": "ana", "text": ["x".repeat(5_000)] });
    for _ in 0..3 {
        assert_eq!(served.call("tell", &wrong).status, 400);
    }
    assert_eq!(fill(), 200);
}
