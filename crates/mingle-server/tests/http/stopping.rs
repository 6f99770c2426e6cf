//! Stopping: what runs is finished, and nothing new is begun.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Answer, Request, Served, TEXT, read_all};

/// Waits until what was sent is being run.
fn wait_for_call(served: &Served) {
    let until = Instant::now() + Duration::from_secs(20);
    while !served.get("/metrics").body.contains("mingle_http_connections 2") {
        assert!(Instant::now() < until, "the call does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_call_that_runs_is_answered_and_then_all_is_over() {
    let mut served = Served::with(TEXT, "[stores.stock]\ndistance = \"500ms\"", |_| {});
    let mut idle = served.connect();
    let ready = Request::get("/readyz").header("connection", "keep-alive");
    idle.write_all(&ready.bytes()).expect("it listens");
    let mut buffer = [0; 1_000];
    let count = idle.read(&mut buffer).expect("it answers");
    assert!(buffer[..count].starts_with(b"HTTP/1.1 200"), "it is ready");

    let mut running = served.connect();
    let add = Request::call("add", &json!({ "item": "tea", "count": 1 }));
    running.write_all(&add.header("connection", "keep-alive").bytes()).expect("it listens");
    let until = Instant::now() + Duration::from_secs(20);
    while !served.get("/metrics").body.contains("mingle_http_connections 3") {
        assert!(Instant::now() < until, "the connections are not accepted");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(served.stop(), "all calls end in time");
    let answer = Answer::parse(&read_all(&mut running));
    assert_eq!(answer.json()["result"], 1);
    assert_eq!(read_all(&mut idle), "", "it is closed");
    TcpStream::connect(served.address).expect_err("nobody listens any more");
}

#[test]
fn a_call_that_takes_too_long_is_not_waited_for() {
    let mut served = Served::with(TEXT, "[stores.stock]\ndistance = \"60s\"", |config| {
        config.shutdown_after = Duration::from_millis(50);
    });
    let mut running = served.connect();
    let add = Request::call("add", &json!({ "item": "tea", "count": 1 }));
    running.write_all(&add.bytes()).expect("it listens");
    wait_for_call(&served);
    assert!(!served.stop(), "the call cannot end in time");
    assert_eq!(read_all(&mut running), "");
}
