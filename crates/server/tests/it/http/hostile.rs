//! Requests that make no sense, come slowly, or do not end: clear answers, no hang, no 5xx.

use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

use serde_json::json;

use crate::http::client::{Answer, Request, Served, TEXT, begin, read_all};

#[test]
fn bodies_that_make_no_sense_are_refused() {
    let served = Served::new();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let within = format!("{{\"lines\":{deep}}}");
    let bodies: Vec<(Vec<u8>, &str)> = vec![
        (b"{".to_vec(), "not JSON"),
        (b"\xff\xfe".to_vec(), "not JSON"),
        (b"{\"item\": \"\xff\"}".to_vec(), "not JSON"),
        (b"{\"item\": \"\\ud800\"}".to_vec(), "not JSON"),
        (b"null".to_vec(), "expected an object"),
        (b"\"text\"".to_vec(), "expected an object"),
        (b"{} {}".to_vec(), "not JSON"),
        (deep.into_bytes(), "not JSON"),
        (within.into_bytes(), "not JSON"),
        (b"{\"item\": \"\\u0000\", \"count\": 1}".to_vec(), "U+0000"),
        (b"{\"item\": \"a\", \"count\": 1e999}".to_vec(), "expected an int"),
        (b"{\"item\": \"a\", \"count\": 9223372036854775808}".to_vec(), "expected an int"),
    ];
    for (body, expected) in bodies {
        let request = Request::call("add", &json!({})).body(body.clone());
        let answer = served.send(&request);
        let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        assert_eq!((answer.status, &*answer.code()), (400, "invalid-argument"), "{shown}");
        assert!(answer.detail().contains(expected), "{shown}: {}", answer.detail());
    }
    let plain = Request::call("add", &json!({})).header("content-type", "text/plain");
    let answer = served.send(&plain);
    assert_eq!((answer.status, &*answer.code()), (415, "unsupported-media-type"));
}

#[test]
fn bodies_have_a_bound() {
    let served = Served::with(TEXT, "", |config| config.body_bytes_max = 1_000);
    let long = json!({ "buyer": "a", "text": "x".repeat(2_000) });
    let answer = served.call("tell", &long);
    assert_eq!((answer.status, &*answer.code()), (413, "too-large"));
    // An announced body that is never sent.
    let head = "POST /v1/transactions/tell HTTP/1.1\r\nhost: localhost\r\n\
        content-type: application/json\r\n";
    let announced = format!("{head}content-length: 99999999999\r\n\r\n");
    assert_eq!(Answer::parse(&served.raw(announced.as_bytes())).code(), "too-large");
    // A body without an announced length.
    let mut chunked = format!("{head}transfer-encoding: chunked\r\n\r\n");
    for _ in 0..20 {
        chunked.extend(["64\r\n", &" ".repeat(100), "\r\n"]);
    }
    chunked.push_str("0\r\n\r\n");
    assert_eq!(Answer::parse(&served.raw(chunked.as_bytes())).code(), "too-large");
}

#[test]
fn paths_that_make_no_sense_are_refused() {
    let served = Served::new();
    for path in ["/v1/transactions/%ff", "/v1/transactions/%zz", "/v1/objects/Item/%", "/%00"] {
        let answer = served.get(path);
        assert!((400..500).contains(&answer.status), "{path}: {}", answer.status);
        answer.code();
    }
    for (method, path, allowed) in [
        ("GET", "/v1/transactions/ping", "POST"),
        ("PUT", "/v1/transactions/ping", "POST"),
        ("OPTIONS", "/v1/transactions/ping", "POST"),
        ("POST", "/v1/objects/Item/tea", "GET,HEAD"),
        ("DELETE", "/openapi.json", "GET,HEAD"),
    ] {
        let answer = served.send(&Request::new(method, path));
        assert_eq!(
            (answer.status, &*answer.code()),
            (405, "method-not-allowed"),
            "{method} {path}"
        );
        assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
    }
}

/// Bytes that are not HTTP are answered with 400 or not at all, and the connection is closed.
#[test]
fn what_is_no_http_is_not_waited_for() {
    let served = Served::new();
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(5_000));
    let long = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(1_000_000));
    let wrong: [&[u8]; 8] = [
        b"\x16\x03\x01\x00\xa5\x01\x00\x00",
        b"HELO\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a b\x01\r\n\r\n",
        b"POST /v1/transactions/ping HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n",
        b"POST /v1/transactions/ping HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        many.as_bytes(),
        long.as_bytes(),
    ];
    for bytes in wrong {
        let mut stream = served.connect();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let text = read_all(&mut stream);
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        if !text.is_empty() {
            let status = Answer::first(&text).0.status;
            // The bound on heads applies to buffered bytes: a head that arrives in one piece may
            // pass.
            assert!((200..500).contains(&status), "{shown}: {text}");
        }
    }
    assert_eq!(served.get("/healthz").status, 200);
}

#[test]
fn requests_in_one_go_are_answered_in_order() {
    let served = Served::new();
    let mut bytes = Vec::new();
    for count in 1..=20 {
        let add = Request::call("add", &json!({ "item": "tea", "count": 1 }));
        let kept = if count < 20 { "keep-alive" } else { "close" };
        bytes.extend(add.header("connection", kept).bytes());
    }
    let text = served.raw(&bytes);
    let mut rest = text.as_str();
    for count in 1..=20 {
        let (answer, after) = Answer::first(rest);
        assert_eq!(answer.json()["result"], count);
        rest = after;
    }
    assert_eq!(rest, "");
}

#[test]
fn who_sends_nothing_more_still_gets_the_answer() {
    let served = Served::with(TEXT, "[stores.stock]\ndistance = \"100ms\"", |_| {});
    let mut stream = served.connect();
    let add = Request::call("add", &json!({ "item": "tea", "count": 1 }));
    stream.write_all(&add.header("connection", "keep-alive").bytes()).expect("it listens");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let answer = Answer::parse(&read_all(&mut stream));
    assert_eq!(answer.json()["result"], 1);
}

#[test]
fn who_goes_away_in_the_middle_is_forgotten() {
    let served = Served::new();
    let bytes = Request::call("add", &json!({ "item": "tea", "count": 1 })).bytes();
    for cut in [1, 20, bytes.len() / 2, bytes.len() - 1] {
        let mut stream = served.connect();
        stream.write_all(&bytes[..cut]).expect("it listens");
    }
    assert_eq!(served.ok("count", &json!({ "item": "tea" })), json!(0));
}

#[test]
fn who_is_slow_is_not_waited_for() {
    let served = Served::with(TEXT, "", |config| {
        config.head_within = Duration::from_millis(200);
        config.body_within = Duration::from_millis(200);
    });
    let bytes = Request::call("add", &json!({ "item": "tea", "count": 1 })).bytes();
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n").expect("it has a head") + 4;

    // A head that does not end, an idle connection, and a body that does not end.
    for (sent, expected) in [(20, None), (0, None), (head + 3, Some("timeout"))] {
        let mut stream = served.connect();
        stream.write_all(&bytes[..sent]).expect("it listens");
        let text = read_all(&mut stream);
        match expected {
            Some(code) => {
                let answer = Answer::parse(&text);
                assert_eq!((answer.status, &*answer.code()), (408, code));
                assert_eq!(answer.json()["retryable"], true);
            }
            None => assert!(text.is_empty() || Answer::parse(&text).status == 408, "{text}"),
        }
    }
    assert_eq!(served.get("/healthz").status, 200);
}

#[test]
fn connections_have_a_bound_and_slow_ones_make_place() {
    let served = Served::with(TEXT, "", |config| {
        config.connections_max = 4;
        config.head_within = Duration::from_millis(300);
    });
    let idle: Vec<_> = (0..8).map(|_| served.connect()).collect();
    assert_eq!(served.get("/healthz").status, 200, "it has waited until there was a place");
    drop(idle);
}

#[test]
fn calls_at_a_time_have_a_bound() {
    let binding = "[stores.stock]\ndistance = \"2s\"";
    let served = Served::with(TEXT, binding, |config| config.concurrent_max = 1);
    let mut first = served.connect();
    let add = Request::call("add", &json!({ "item": "tea", "count": 1 }));
    begin(&mut first, add);
    let refused = served.call("ping", &json!({}));
    assert_eq!((refused.status, &*refused.code()), (503, "overloaded"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.json()["retryable"], true);
    assert_eq!(served.get("/healthz").status, 200);
    let rest = read_all(&mut first);
    assert!(rest.contains(r#""result":1"#), "{rest}");
    assert_eq!(served.ok("ping", &json!({})), json!("pong"));
}
