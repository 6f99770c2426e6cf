//! Heads that are malformed, too large, or name no host: a problem body, and the end of the
//! connection.

use std::io::Write;
use std::net::Shutdown;

use serde_json::json;

use crate::http::client::{Answer, Request, Served, read_all};

/// Sends bytes, and reads the only answer.
#[track_caller]
fn check(served: &Served, bytes: &[u8], (status, code): (u16, &str)) {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
    for ends in [false, true] {
        let mut stream = served.connect();
        let _ = stream.write_all(bytes);
        if ends {
            let _ = stream.shutdown(Shutdown::Write);
        }
        let answer = Answer::parse(&read_all(&mut stream));
        assert_eq!((answer.status, &*answer.code()), (status, code), "{shown}: {answer:?}");
        assert_eq!(answer.header("connection"), Some("close"), "{shown}");
        assert_eq!(answer.json()["retryable"], false, "{shown}");
    }
}

#[test]
fn what_is_no_http_is_answered_with_a_problem() {
    let served = Served::new();
    let post = "POST /v1/transactions/ping HTTP/1.1\r\nhost: localhost\r\n";
    for wrong in [
        "\x16\x03\x01\x00\x01\x01\x00\x00",
        "HELO\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET /\r\n\r\n",
        "GET a b HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nhost localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: localhost\r\nna me: x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: localhost\r\nname: \x01\r\n\r\n",
        &format!("{post}content-length: x\r\n\r\n"),
        &format!("{post}content-length: 1\r\ncontent-length: 2\r\n\r\nxx"),
        &format!("{post}transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\nxx"),
        &format!("{post}transfer-encoding: gzip\r\n\r\nxx"),
    ] {
        check(&served, wrong.as_bytes(), (400, "bad-request"));
    }
    assert_eq!(served.get("/healthz").status, 200);
    let metrics = served.get("/metrics").body;
    assert!(metrics.contains("mingle_http_answers_total{status=\"400\"} 26"), "{metrics}");
}

#[test]
fn heads_have_bounds() {
    let served = Served::new();
    let head = |more: &str| format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{more}\r\n");
    for long in [
        head(&"a: b\r\n".repeat(100)),
        head(&"a: b\r\n".repeat(50_000)),
        head(&format!("a: {}\r\n", "b".repeat(1_000_000))),
        head(&format!("{}: b\r\n", "a".repeat(10_000))),
        format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(100_000)),
    ] {
        check(&served, long.as_bytes(), (431, "head-too-large"));
    }
    let most = head(&"a: b\r\n".repeat(98)).replace("a: b\r\n\r\n", "connection: close\r\n\r\n");
    assert_eq!(Answer::parse(&served.raw(most.as_bytes())).status, 200);
    let long = head(&format!("connection: close\r\na: {}\r\n", "b".repeat(400_000)));
    assert_eq!(Answer::parse(&served.raw(long.as_bytes())).status, 200);
}

#[test]
fn a_request_says_its_host_once() {
    let served = Served::new();
    for (target, hosts) in [
        ("/", ""),
        ("/", "host: localhost\r\nhost: localhost\r\n"),
        ("/", "host: localhost\r\nHost: example.org\r\n"),
        ("/", "host:\r\n"),
        ("/", "host: localhost:8080.example.org\r\n"),
        ("/", "host: [::1].example.org\r\n"),
        ("/", "host: localhost, example.org:1\r\n"),
        ("/", "host: me@localhost\r\n"),
        ("http://example.org/", "host: localhost\r\n"),
    ] {
        let head = format!("GET {target} HTTP/1.1\r\n{hosts}\r\n");
        check(&served, head.as_bytes(), (400, "invalid-host"));
    }
    let old = Answer::parse(&served.raw(b"GET /healthz HTTP/1.0\r\n\r\n"));
    assert_eq!(old.status, 200, "HTTP/1.0 has no hosts");
}

#[test]
fn the_answers_to_earlier_requests_come_first() {
    let served = Served::new();
    let add = Request::call("add", &json!({ "item": "tea", "count": 1 }));
    let chunked = "POST /v1/transactions/ping HTTP/1.1\r\nhost: localhost\r\n\
        content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1;x\r\n}\r\n0\r\n\r\n";
    let mut bytes = add.header("connection", "keep-alive").bytes();
    bytes.extend(chunked.as_bytes());
    bytes.extend(b"GET /healthz HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    // In one piece, and in pieces of seven bytes.
    for step in [bytes.len(), 7] {
        let mut stream = served.connect();
        for part in bytes.chunks(step) {
            let _ = stream.write_all(part);
        }
        let text = read_all(&mut stream);
        let (first, rest) = Answer::first(&text);
        assert_eq!(first.status, 200, "{text}");
        let (second, rest) = Answer::first(rest);
        assert_eq!(second.json()["result"], "pong");
        let last = Answer::parse(rest);
        assert_eq!((last.status, &*last.code()), (400, "invalid-host"));
    }
}

#[test]
fn the_place_of_refused_requests_is_nothing_for_others() {
    let served = Served::new();
    let answer = served.get("/.refused");
    assert_eq!((answer.status, &*answer.code()), (404, "not-found"));
}
