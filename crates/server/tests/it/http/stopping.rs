//! Stopping: running calls are finished, and nothing new is begun.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::http::client::{Request, Served, TEXT, begin, read_all};

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
    begin(&mut running, add.header("connection", "keep-alive"));
    assert!(served.stop(), "all calls end in time");
    let rest = read_all(&mut running);
    assert!(rest.contains("event: answer") && rest.contains(r#""result":1"#), "{rest}");
    assert_eq!(read_all(&mut idle), "", "it is closed");
    TcpStream::connect(served.address).expect_err("nobody listens any more");
}

#[test]
fn a_call_that_takes_too_long_is_not_waited_for() {
    let mut served = Served::with(TEXT, "[stores.stock]\ndistance = \"60s\"", |config| {
        config.shutdown_after = Duration::from_millis(50);
    });
    let mut running = served.connect();
    begin(&mut running, Request::call("add", &json!({ "item": "tea", "count": 1 })));
    assert!(!served.stop(), "the call cannot end in time");
    let rest = read_all(&mut running);
    assert!(!rest.contains("event: answer"), "{rest}");
}
