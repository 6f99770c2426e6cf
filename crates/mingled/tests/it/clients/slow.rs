//! `SLOWLOG`.

use std::time::Duration;

use redis_protocol::resp2::types::OwnedFrame;

use super::{Raw, Started, shown};

/// The parts of an entry that are the same in each run: its id and its words.
fn entries(client: &mut Raw, count: &str) -> Vec<String> {
    let OwnedFrame::Array(entries) = client.call(&["SLOWLOG", "GET", count]) else {
        panic!("expected a list");
    };
    let stable = |entry: &OwnedFrame| {
        let OwnedFrame::Array(parts) = entry else { panic!("expected a list: {entry:?}") };
        assert_eq!(parts.len(), 6, "{parts:?}");
        assert!(shown(&parts[4]).contains("127.0.0.1:"), "{parts:?}");
        format!("{} {}", shown(&parts[0]), shown(&parts[3]))
    };
    entries.iter().map(stable).collect()
}

#[test]
fn slow_requests_are_kept_with_what_they_were() {
    let mut started = Started::with(|clients| clients.slow = Some(Duration::ZERO));
    let mut client = started.client();
    client.expect("SET a 1 => +OK");
    client.ask("SESSION ATTACH a-secret");
    let long = "v".repeat(200);
    client.call(&["SET", "long", &long]);
    let many: Vec<String> = (0..50).map(|number| format!("m{number}")).collect();
    let many: Vec<&str> =
        ["SADD", "s"].into_iter().chain(many.iter().map(String::as_str)).collect();
    client.call(&many);
    let found = entries(&mut client, "4");
    assert!(found[0].ends_with("\"m28\", \"... (21 more arguments)\"]"), "{found:?}");
    assert_eq!(
        found[1],
        format!(":2 [\"SET\", \"long\", \"{}... (72 more bytes)\"]", "v".repeat(128))
    );
    assert_eq!(found[2], ":1 [\"SESSION\", \"ATTACH\", \"(redacted)\"]");
    assert_eq!(found[3], ":0 [\"SET\", \"a\", \"1\"]");
    client.expect("SLOWLOG LEN => :5\nSLOWLOG RESET => +OK");
    // RESET is kept, too: it ends after it has removed the others.
    client.send("INCR x\r\nINCR y\r\nINCR z\r\n");
    for _ in 0..3 {
        client.reply();
    }
    let found = entries(&mut client, "-1");
    assert_eq!(found.last().expect("an entry"), ":6 [\"SLOWLOG\", \"RESET\"]");
    for number in 0..200 {
        client.call(&["SET", "a", &number.to_string()]);
    }
    client.expect("SLOWLOG LEN => :128");
    client.expect(
        "
        SLOWLOG GET -2 => -ERR count should be greater than or equal to -1
        SLOWLOG GET x => -ERR count should be greater than or equal to -1
        SLOWLOG GET 0 => []
        SLOWLOG HELP => -ERR expected SLOWLOG GET [count], SLOWLOG LEN or SLOWLOG RESET
        CONFIG GET slowlog-log-slower-than => [\"slowlog-log-slower-than\", \"0\"]
        ",
    );
    started.stop();
}

#[test]
fn fast_requests_are_not_kept() {
    let mut started = Started::with(|clients| clients.slow = Some(Duration::from_hours(1)));
    let mut client = started.client();
    client.expect("SET a 1 => +OK\nSLOWLOG LEN => :0\nSLOWLOG GET => []");
    started.stop();
}

#[test]
fn passwords_are_not_kept() {
    let started = Started::with(|clients| clients.slow = Some(Duration::ZERO));
    let mut client = started.client();
    for request in ["AUTH a-secret", "AUTH me a-secret", "HELLO 2 AUTH me a-secret"] {
        client.ask(request);
    }
    let kept = entries(&mut client, "-1").concat();
    assert!(kept.contains("\"HELLO\", \"2\", \"(redacted)\""), "{kept}");
    assert!(!kept.contains("a-secret") && !kept.contains("\"me\""), "{kept}");
}
